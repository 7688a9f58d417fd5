"""What /docs offers to try works as it is filled in, in a browser that reaches nothing but the service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import sync_playwright

from tests.support.application import import_file
from tests.support.browser import chromium
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, in_thread
from tests.support.wire import await_names, serving

pytestmark = pytest.mark.tail


@pytest.fixture(scope="module", params=["of two releases", "of the demo"])
def service(
    request: pytest.FixtureRequest, server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Lend a client of a service on two small releases, and of one on what `make run` loads."""
    folder = tmp_path_factory.mktemp("examples")
    sources: list[Path | str] = ["demo"]
    if request.param != "of the demo":
        sources = [
            write_catalogue(folder / f"{release}.csv", many(count))
            for release, count in (("2019-01", 132), ("2020-01", 140))
        ]
    with new_database(server, migrated) as url:
        for source in sources:
            import_file(url, source)
        with serving(url) as live, httpx.Client(base_url=live.base, timeout=PATIENCE, follow_redirects=True) as client:
            await_names(live.base, within=2 * PATIENCE)  # those of the demo are a country's
            yield client


def operations(service: httpx.Client) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in service.get("/openapi.json").json()["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def example_body(operation: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent with a request: the example of its body in the first format, if it has one."""
    if "requestBody" not in operation:
        return {}
    media_type, content = next(iter(operation["requestBody"]["content"].items()))
    body = content["example"]
    if media_type == "application/x-www-form-urlencoded":
        return {"data": body}
    return {"content": json.dumps(body), "headers": {"Content-Type": media_type}}


def test_example_of_each_parameter_is_answered(service: httpx.Client) -> None:
    for method, path, operation in operations(service):
        parameters, body = operation.get("parameters", []), example_body(operation)
        examples = {one["name"]: one["schema"]["examples"][0] for one in parameters}
        address = path.format(**examples)
        needed = {one["name"]: one["example"] for one in parameters if one["in"] == "query" and one["required"]}
        assert service.request(method, address, params=needed, **body).is_success, path
        for one in parameters:
            # Only what is needed is filled in: with all filters at once nothing would be found.
            assert ("example" in one) == one["required"], (path, one)
            if one["in"] == "query":
                query = {**needed, one["name"]: examples[one["name"]]}
                answer = service.request(method, address, params=query, **body)
                assert answer.is_success, (path, one["name"], answer.text)
                if "page_size" in examples and "changes" not in path:
                    assert answer.json()["quantity"], (path, one["name"])


@pytest.mark.parametrize("service", ["of two releases"], indirect=True)  # the page is that of any catalogue
def test_docs_page_tries_out_every_operation_as_it_is_filled_in(service: httpx.Client) -> None:
    statuses, elsewhere, faults = in_thread(lambda: _try_everything(str(service.base_url).rstrip("/")))
    expected = {f"{method} {path}": "204" if path == "/livez" else "200" for method, path, _ in operations(service)}
    assert statuses == expected
    assert elsewhere == []
    assert faults == []


def _try_everything(service: str) -> tuple[dict[str, str], list[str], list[str]]:
    statuses: dict[str, str] = {}
    elsewhere: list[str] = []
    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 1500})
        page.on(
            "request", lambda request: elsewhere.append(request.url) if _is_elsewhere(request.url, service) else None
        )
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.goto(f"{service}/docs")
        page.wait_for_selector(".opblock")
        for operation in page.locator(".opblock").all():
            path = operation.locator(".opblock-summary-path").get_attribute("data-path")
            method = operation.locator(".opblock-summary-method").inner_text()
            operation.locator(".opblock-summary-control").click()
            operation.locator(".try-out__btn").click()
            operation.locator(".execute").click()
            answered = operation.locator(".live-responses-table .response-col_status").last
            statuses[f"{method} {path}"] = answered.inner_text().split()[0]
            operation.locator(".opblock-summary-control").click()
        browser.close()
    return statuses, elsewhere, faults


def _is_elsewhere(address: str, service: str) -> bool:
    return not address.startswith((f"{service}/", "data:", "blob:"))
