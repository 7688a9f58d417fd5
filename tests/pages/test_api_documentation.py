"""The API's documentation: in the layout of the site, in a browser that may only reach the service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, Page, ViewportSize, expect
from playwright.sync_api import sync_playwright

from localidades_api.api.examples import Exchange, read_examples
from localidades_api.languages.translators import Language, translator
from tests.support.application import Below, below_a_prefix, import_file
from tests.support.browser import SCREENSHOTS, TELEPHONE, axe_faults, chromium, visit
from tests.support.catalogue import many, write_catalogue
from tests.support.pages import Page as Parsed
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, in_thread
from tests.support.wire import LOCALIDADES, await_names, serving

DESKTOP: ViewportSize = {"width": 1200, "height": 1500}
MAX_BYTES = 100_000  # of a page as sent, compressed


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_documentation_has_the_layout_of_the_site_in_both_languages(client: httpx.AsyncClient, path: str) -> None:
    titles = set()
    for language, headers in (("en", {}), ("es", {"Accept-Language": "es-MX"})):
        answer = await client.get(path, headers=headers)
        page = Parsed.of(answer)
        assert page.one("html").attributes["lang"] == language
        assert page.one("a", **{"class": "home"}).attributes["href"] == "/api/census/"
        other = page.of_class("a", "language").attributes
        assert (await client.get(f"{path}{other['href']}")).status_code == 200
        assert answer.headers["vary"] == "Accept-Language, Accept-Encoding"
        assert 0 < int(answer.headers["content-length"]) < MAX_BYTES
        titles.add(page.one("h1").text)
    assert len(titles) == 2
    assert (await client.get(f"{path}?lang=es")).text.count('lang="es"') >= 1


async def test_documentation_refuses_bad_parameters(client: httpx.AsyncClient) -> None:
    for query in ("lang=fr", "format=json", "x=1", "lang=es&lang=en"):
        assert (await client.get(f"/docs?{query}")).status_code == 422, query


@below_a_prefix
async def test_documentation_includes_the_forwarded_prefix(app: FastAPI, below: Below) -> None:
    async with below(app, "/below") as client:
        page = Parsed.of(await client.get("/below/docs"))
        files = [one.attributes["src"] for one in page.all("script")]
        files += [one.attributes["href"] for one in page.all("link")]
        assert len(files) >= 7
        for file in [*files, page.one("div", id="swagger-ui").attributes["data-document"]]:
            assert file.startswith("/below/")
            assert (await client.get(file)).status_code == 200, file


async def test_reference_has_every_operation_parameter_and_schema(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    page = Parsed.of(await client.get("/redoc"))
    sections = {one.attributes["id"]: one.text for one in page.all("section")}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            section = sections[operation["operationId"]]
            assert f"{method.upper()} {path}" in section
            for parameter in operation.get("parameters", []):
                assert parameter["name"] in section, (path, parameter["name"])
            for status in operation["responses"]:
                assert status in section, (path, status)
    for name, schema in document["components"]["schemas"].items():
        for member in schema.get("properties", {}):
            assert member in sections[name], (name, member)
    targets = {one.attributes["href"] for one in page.all("a") if one.attributes["href"].startswith("#")}
    assert {target[1:] for target in targets} - set(sections) == {"main"}


async def test_reference_shows_every_recorded_example(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    page = Parsed.of(await client.get("/redoc"))
    for path, item in document["paths"].items():
        for operation in item.values():
            [section] = [one for one in page.all("section") if one.attributes["id"] == operation["operationId"]]
            exchanges = read_examples()[operation["operationId"]].values()
            commands = [one for one in page.inside("code", of=section) if "data-copy" in one.attributes]
            assert [one.text for one in commands] == [exchange.curl(path) for exchange in exchanges]
            assert [one.text for one in page.inside("pre", of=section)] == [*map(as_shown, exchanges)]
            assert "details" in commands[0].path
    assert {one.attributes["href"] for one in page.all("a")} >= {"/wscatgeo/", "/ogc/"}


def as_shown(exchange: Exchange) -> str:
    """Return an answer as the reference shows it."""
    answer = exchange.answer
    if answer.size:
        return f"HTTP {answer.status} {answer.media_type}, {answer.size:,} bytes"
    if answer.location:
        return f"HTTP {answer.status} Location: {answer.location}"
    return (
        f"HTTP {answer.status} {answer.media_type}\n\n{answer.text}" if answer.media_type else f"HTTP {answer.status}"
    )


async def test_spanish_documentation_uses_the_spanish_document(client: httpx.AsyncClient) -> None:
    for path in ("/docs", "/redoc"):
        page = Parsed.of(await client.get(f"{path}?lang=es"))
        assert {one.attributes["lang"] for one in page.elements if "lang" in one.attributes} == {"es", "en"}
        assert [one.text for one in page.elements if one.attributes.get("lang") == "en"] == ["English"]
        (link,) = [one.attributes["href"] for one in page.all("a") if "openapi.json" in one.attributes["href"]]
        assert (await client.get(link)).json()["paths"][LOCALIDADES]["get"]["summary"] == "Listar localidades"
    captions = {one.text for one in page.all("caption")}
    assert captions >= {"Parámetros", "Respuestas", "Campos", "Cuerpo: application/json"}
    assert {one.text for one in page.all("b")} == {"obligatorio"}
    assert {"Listar localidades", "Localidades"} <= {one.text for one in page.all("h2") + page.all("h3")}
    said = " ".join(text for one in page.elements if one.tag != "code" for text in one.own)
    assert not re.search(r"\b(the|an|of|is|or|by|list|string|required|described|Parameters|Responses|Body)\b", said)


in_two_looks = pytest.mark.parametrize(
    ("scheme", "viewport", "language"),
    [
        pytest.param("light", DESKTOP, "en", id="light-desktop-en"),
        pytest.param("dark", TELEPHONE, "es", id="dark-telephone-es", marks=pytest.mark.tail),
    ],
)


@pytest.mark.tail  # a third of a minute, because the page is long
@in_two_looks
async def test_reference_passes_axe(
    browser: Browser, live_server: str, scheme: str, viewport: ViewportSize, language: str
) -> None:
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": viewport}
    async with visit(browser, live_server, **options) as page:
        await page.goto(f"/redoc?lang={language}")
        assert await axe_faults(page) == {}
        assert await page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        narrowest = "Math.min(...[...document.querySelectorAll('.members td')].map(one => one.clientWidth))"
        assert await page.evaluate(narrowest) >= 60  # room for a word
        await page.screenshot(path=SCREENSHOTS / f"redoc-{scheme}.png")
        await page.locator("#theme").click()
        other = {"light": "dark", "dark": "light"}[scheme]
        await expect(page.locator("html")).to_have_attribute("data-theme", other)


@in_two_looks
async def test_swagger_ui_passes_axe_and_follows_the_theme(
    browser: Browser, live_server: str, scheme: str, viewport: ViewportSize, language: Language
) -> None:
    """`visit` fails on console messages, such as violations of the security policy."""
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": viewport}
    async with visit(browser, live_server, **options) as page:
        await page.goto(f"/docs?lang={language}")
        await expect(page.locator("html.dark-mode")).to_have_count(int(scheme == "dark"))
        systems: list[Literal["light", "dark"]] = ["dark", "light", "dark"]
        for system in systems[: 2 if scheme == "light" else 3]:  # which may change while the page is open
            await page.emulate_media(color_scheme=system)
            await expect(page.locator("html.dark-mode")).to_have_count(int(system == "dark"))
        await expect(page.locator(".opblock-tag").first).to_contain_text(translator(language)("Localities"))
        for method, path in (("get", "estados/"), ("get", "localidades/{id}/"), ("post", "localidades/match/")):
            await _try(page, f".opblock-{method}", f"/api/census/{path}")
        assert await axe_faults(page) == {}
        await expect(page.locator("main a:not([href], [role=none])")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        labels = await page.locator("#swagger-ui :is(h4, h5, small, button, td)").all_inner_texts()
        words = {label.strip() for label in labels}
        english = {"Parameters", "Execute", "Cancel", "Clear", "Server response", "Example Value", "Media type"}
        assert {translator(language)(word) for word in english} <= words
        assert language == "en" or not english & words
        await page.screenshot(path=SCREENSHOTS / f"docs-{scheme}.png", full_page=True)
        await page.locator("#theme").click()
        await expect(page.locator("html.dark-mode")).to_have_count(int(scheme == "light"))


KEEP_SWAGGER_UI = """
    let bundle;
    Object.defineProperty(window, "SwaggerUIBundle", { get: () => bundle, set(made) {
        bundle = (options) => (window.swaggerUi = made(options));
    } });
"""
RESOLVED = "Object.keys(swaggerUi.getState().getIn(['spec', 'resolvedSubtrees'])?.toJS() ?? {})"


async def test_swagger_ui_resolves_nothing_before_an_operation_is_opened(browser: Browser, live_server: str) -> None:
    """It takes seconds on a telephone, during which the page doesn't react."""
    async with visit(browser, live_server) as page:
        await page.add_init_script(KEEP_SWAGGER_UI)
        await page.goto("/docs")
        await expect(page.locator(".opblock").first).to_be_visible()
        assert await page.evaluate(RESOLVED) == []
        await page.locator(".opblock-summary-control").first.click()
        await expect(page.locator(".try-out__btn")).to_be_visible()
        assert await page.evaluate(RESOLVED) == ["paths"]


async def _try(page: Page, method: str, path: str) -> None:
    """Open an operation and send it as prefilled."""
    operation = page.locator(f"{method}:has([data-path='{path}'])")
    await operation.locator(".opblock-summary-control").click()
    await operation.locator(".try-out__btn").click()
    await operation.locator(".execute").click()
    await expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")


async def test_documentation_without_scripts_links_to_the_reference(browser: Browser, live_server: str) -> None:
    async with visit(browser, live_server, java_script_enabled=False) as page:
        await page.goto("/docs")
        await expect(page.locator(".problem")).to_be_visible()
        await page.locator("main a[href^='/redoc']").click()
        await expect(page.locator("#list_localities h3")).to_have_text("List localities")


# -- Prefilled operations


@pytest.fixture(scope="module", params=["of two releases", "of the demo"])
def service(
    request: pytest.FixtureRequest, server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Yield clients of a service on two small releases, and of one on the demo."""
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
            await_names(live.base, within=2 * PATIENCE)  # the demo's are a whole country
            yield client


def operations(service: httpx.Client) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in service.get("/openapi.json").json()["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def example_body(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the first example of a request's body, if it has one."""
    if "requestBody" not in operation:
        return {}
    media_type, content = next(iter(operation["requestBody"]["content"].items()))
    body = next(iter(content["examples"].values()))["value"]
    if media_type == "application/x-www-form-urlencoded":
        return {"data": body}
    return {"content": json.dumps(body), "headers": {"Content-Type": media_type}}


@pytest.mark.tail
def test_example_of_each_parameter_is_answered(service: httpx.Client) -> None:
    for method, path, operation in operations(service):
        parameters, body = operation.get("parameters", []), example_body(operation)
        examples = {one["name"]: one["schema"]["examples"][0] for one in parameters}
        address = path.format(**examples)
        filled_in = [one for one in parameters if one["in"] == "query" and "example" in one]
        assert service.request(
            method, address, params={one["name"]: one["example"] for one in filled_in}, **body
        ).is_success, path
        needed = {one["name"]: one["example"] for one in filled_in if one["required"]}
        for one in parameters:
            if one["in"] == "query":
                query = {**needed, one["name"]: examples[one["name"]]}
                answer = service.request(method, address, params=query, **body)
                # Of a workbook, and beside NDJSON; the body is neither.
                if one["name"] in {"sheet", "header_row", "file"}:
                    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
                    continue
                assert answer.is_success, (path, one["name"], answer.text)
                if "page_size" in examples and "changes" not in path:
                    assert answer.json()["quantity"], (path, one["name"])


@pytest.mark.tail
@pytest.mark.parametrize("service", ["of two releases"], indirect=True)  # the page is that of any catalogue
def test_every_prefilled_operation_can_be_tried_out(service: httpx.Client) -> None:
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
