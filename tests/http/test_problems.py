"""Problem types: each has a stable URI that leads to its description."""

import re
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from fastapi import FastAPI

from localidades_api.api.site import answerable
from tests.support.application import Below, behind_proxy, mounted
from tests.support.pages import BROWSER
from tests.support.wire import LOCALIDADES

# Slugs are part of the contract: they are never renamed, and unused ones stay.
SLUGS = {
    "bad-request", "comparison-running", "content-too-large", "database-unavailable", "gone",
    "internal-error", "invalid-ogc-parameters", "invalid-page",
    "invalid-parameters", "method-not-allowed",
    "no-release", "not-acceptable", "not-found", "overloaded",
    "request-timeout", "search-unavailable", "transfers-full", "unavailable", "unreadable-body",
    "unsupported-media-type",
}  # fmt: skip


def test_each_problem_type_has_its_own_slug_and_texts() -> None:
    assert {error.slug for error in answerable()} == SLUGS
    for error in answerable():
        assert {"slug", "meaning", "remedy"} <= set(vars(error)), error
        assert error.meaning.endswith(".")
        assert error.remedy.endswith(".")


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
    page = await client.get(address, headers=BROWSER)
    assert page.status_code == 200
    assert f'<section id="{fragment}">' in page.text
    told = (await client.get(address)).json()["results"]
    assert [kind["status"] for kind in told if kind["type"] == problem["type"]] == [problem["status"]]


@pytest.mark.parametrize(("below", "root"), [(behind_proxy, ""), (behind_proxy, "/claves"), (mounted, "/claves")])
async def test_addresses_of_a_problem_include_the_forwarded_prefix(app: FastAPI, below: Below, root: str) -> None:
    """And not the path below which static files are mounted."""
    async with below(app, root) as client:
        for target in ("/nothing", "/static/nothing"):
            assert (await client.get(f"{root}{target}")).json()["type"] == f"{root}/problems#not-found"
            page = (await client.get(f"{root}{target}", headers=BROWSER)).text
            assert f'href="{root}/static/style.css"' in page
            assert "/static/problems" not in page


@pytest.mark.parametrize("path", ["/api/census/", f"{LOCALIDADES}10010001/", "/docs", "/docs/", "/match/"])
async def test_path_with_a_trailing_newline_is_404_and_not_echoed(client: httpx.AsyncClient, path: str) -> None:
    """A newline in a header would be a server error."""
    answer = await client.get(f"{path}%0A")
    assert answer.status_code in ({308, 404} if path in {"/docs/", "/match/"} else {404})
    assert "\n" not in answer.headers.get("location", "")


async def test_problems_are_explained_in_both_languages(client: httpx.AsyncClient) -> None:
    pages = [(await client.get(f"/problems?format=api&lang={language}")).text for language in ("en", "es")]
    assert "<h1>Errores de la API</h1>" in pages[1]
    english, spanish = ("".join(re.findall("(?s)<section.*?</section>", page)) for page in pages)
    for sentence in (sentence for error in answerable() for sentence in (error.meaning, error.remedy)):
        written = re.sub("`([^`]*)`", r"<code>\1</code>", sentence.replace("'", "&#39;"))
        assert (written in english, written in spanish) == (True, False)
