"""Problem types: each has a stable URI that leads to its description."""

import re
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from fastapi import FastAPI

from localidades_api.api.site import answerable
from tests.support.application import Below, behind_proxy, below_a_prefix, client_of, mounted
from tests.support.wire import LOCALIDADES

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
_SECTION = re.compile(r"<section.*?</section>", re.DOTALL)
# Slugs are part of the contract: they are never renamed, and unused ones stay.
SLUGS = {
    "bad-request", "comparison-running", "content-too-large", "database-unavailable", "gone",
    "header-fields-too-large", "internal-error", "invalid-ogc-parameters", "invalid-page",
    "invalid-parameters", "method-not-allowed",
    "no-release", "not-acceptable", "not-found", "overloaded", "range-not-satisfiable",
    "request-timeout", "search-unavailable", "transfers-full", "unavailable", "unreadable-body",
    "unsupported-media-type", "uri-too-long",
}  # fmt: skip


def test_each_problem_type_has_its_own_slug_and_texts() -> None:
    assert {error.slug for error in answerable()} == SLUGS
    for error in answerable():
        assert {"slug", "meaning", "remedy"} <= set(vars(error)), error
        assert error.meaning.endswith(".")
        assert error.remedy.endswith(".")


async def test_path_with_a_trailing_newline_is_404(client: httpx.AsyncClient) -> None:
    for path in ("/api/census/", LOCALIDADES, "/api/census/estados/", f"{LOCALIDADES}10010001/", "/docs", "/problems"):
        answer = await client.get(f"{path}%0A")
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems#not-found")


@pytest.mark.parametrize(
    ("target", "slug"),
    [
        (f"{LOCALIDADES}?page=4", "invalid-page"),
        (f"{LOCALIDADES}?page=x", "invalid-parameters"),
        (f"{LOCALIDADES}10010099/", "not-found"),
        ("/nothing", "not-found"),
        ("/static/nothing", "not-found"),
        ("/static/", "not-found"),
        ("/static-swagger-ui/nothing", "not-found"),
    ],
)
async def test_problem_type_links_to_its_description(client: httpx.AsyncClient, target: str, slug: str) -> None:
    problem = (await client.get(target)).json()
    assert problem["type"] == f"/problems#{slug}"
    address, fragment = urldefrag(urljoin(f"http://test{target}", problem["type"]))
    page = await client.get(address, headers=HTML)
    assert page.status_code == 200
    assert f'<section id="{fragment}">' in page.text
    told = (await client.get(address)).json()["results"]
    assert [one["status"] for one in told if one["type"] == problem["type"]] == [problem["status"]]


@below_a_prefix
async def test_problem_type_includes_the_forwarded_prefix(app: FastAPI, below: Below) -> None:
    async with below(app, "/claves") as client:
        problem = (await client.get("/claves/nothing")).json()
        assert problem["type"] == "/claves/problems#not-found"
        page = await client.get("/claves/problems", headers=HTML)
        assert 'href="/claves/static/style.css"' in page.text


@pytest.mark.parametrize(("below", "root"), [(behind_proxy, ""), (behind_proxy, "/claves"), (mounted, "/claves")])
async def test_problem_type_of_a_missing_static_file_is_not_below_static(app: FastAPI, below: Below, root: str) -> None:
    async with below(app, root) as client:
        answer = await client.get(f"{root}/static/nothing")
        assert answer.json()["type"].startswith(f"{root}/problems#")
        page = (await client.get(f"{root}/static/nothing", headers=HTML)).text
        assert f'href="{root}/static/style.css"' in page
        assert "/static/static/" not in page
        assert "/static/problems" not in page


async def test_problems_page_is_in_the_preferred_language(client: httpx.AsyncClient) -> None:
    english = "".join(_SECTION.findall((await client.get("/problems?format=api")).text))
    page = await client.get("/problems", headers={**HTML, "Accept-Language": "es-MX,es;q=0.9"})
    spanish = "".join(_SECTION.findall(page.text))
    assert '<html lang="es">' in page.text
    assert "<h1>Errores de la API</h1>" in page.text
    for error in answerable():
        for sentence in (error.meaning, error.remedy):
            written = re.sub("`([^`]*)`", r"<code>\1</code>", sentence.replace("'", "&#39;"))
            assert written in english
            assert written not in spanish, "it is not translated"


async def test_root_redirects_browsers_to_html_and_programs_to_json(app: FastAPI) -> None:
    async with client_of(app) as client:
        page = await client.get("/", headers=HTML, follow_redirects=True)
        assert page.url.path == "/api/census/"
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "<h1>" in page.text
        data = await client.get("/", follow_redirects=True)
        assert data.json()["release"] == "2020-01"


async def test_trailing_newline_is_not_echoed(client: httpx.AsyncClient) -> None:
    """A newline in a header would be a server error."""
    for path in ("/docs/%0A", "/match/%0A", "/problems/%0A", "/docs%0A"):
        answer = await client.get(path)
        assert answer.status_code in {308, 404}
        assert "\n" not in answer.headers.get("location", "")
