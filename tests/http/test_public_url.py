"""The address that the operator has set: canonical links, and files for crawlers."""

from collections.abc import AsyncIterator
from xml.etree import ElementTree

import httpx
import pytest
from fastapi import FastAPI
from pydantic import ValidationError

from localidades_api.settings import Settings
from tests.support.application import Below, below_a_prefix, client_of, running_app
from tests.support.pages import BROWSER, INDEX, Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

PUBLIC = "https://claves.example/mx"
PAGES = [
    INDEX, LOCALIDADES, f"{LOCALIDADES}?page=2", f"{LOCALIDADES}?estado_id=1&lang=es", f"{LOCALIDADES}10010001/",
    f"{INDEX}municipios/1001/", f"{INDEX}releases/", "/problems", "/match", "/help/data", "/docs",
]  # fmt: skip


@pytest.fixture(scope="module")
async def named(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    """Yield the application with a public address."""
    with new_database(server, seeded) as url:
        async with running_app(url, public_url=f"{PUBLIC}/", in_background=False) as app:
            yield app


@pytest.fixture
async def public(named: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of it, which requests another address."""
    async with client_of(named) as client:
        yield client


def canonical_links(page: httpx.Response) -> list[str]:
    return [link.attributes["href"] for link in Page.of(page).all("link", rel="canonical")]


async def test_canonical_address_omits_tracking_and_is_a_page_to_a_crawler(public: httpx.AsyncClient) -> None:
    for target in PAGES:
        joined = f"{target}{'&' if '?' in target else '?'}utm_id=7"
        (canonical,) = canonical_links(await public.get(joined, headers=BROWSER))
        path, _, query = target.partition("?")
        pinned = [] if path in {"/docs", "/help/data"} else ["format=api"]  # which have no JSON
        assert canonical.partition("?")[::2] == (f"{PUBLIC}{path}", "&".join([*([query] if query else []), *pinned]))
        page = await public.get(canonical.removeprefix(PUBLIC), headers={"Accept": "*/*"})
        assert page.status_code == 200
        assert Page.of(page).all("meta", property="og:title")
        assert canonical_links(page) == [canonical]


async def test_problem_page_and_page_without_a_public_address_have_no_canonical_link(
    public: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    for target in (INDEX, LOCALIDADES, "/docs", "/match"):
        assert canonical_links(await client.get(target, headers=BROWSER)) == []
    missing = await public.get(f"{LOCALIDADES}999999999/", headers=BROWSER)
    assert (missing.status_code, canonical_links(missing)) == (404, [])


@below_a_prefix
async def test_public_address_takes_the_place_of_the_forwarded_prefix(named: FastAPI, below: Below) -> None:
    async with below(named, "/below") as client:
        page = await client.get(f"/below{LOCALIDADES}10010001/", headers=BROWSER)
        assert canonical_links(page) == [f"{PUBLIC}{LOCALIDADES}10010001/?format=api"]
        assert f"Sitemap: {PUBLIC}/sitemap.xml" in (await client.get("/below/robots.txt")).text


async def test_files_for_crawlers_have_the_public_address(public: httpx.AsyncClient) -> None:
    for path in ("/robots.txt", "/sitemap.xml"):
        answer = await public.get(path, headers={"Host": "internal.example"})
        assert (f"{PUBLIC}/" in answer.text, "internal.example" in answer.text) == (True, False), path


async def test_sitemap_has_the_canonical_addresses(public: httpx.AsyncClient) -> None:
    root = ElementTree.fromstring((await public.get("/sitemap.xml")).content)  # noqa: S314  # our own
    addresses = [one.text or "" for one in root.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    for address in addresses[:12]:
        page = await public.get(address.removeprefix(PUBLIC), headers=BROWSER)
        assert canonical_links(page) == [address]


async def test_response_with_the_public_address_has_an_etag_of_its_own(
    public: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    tags = [(await one.get(INDEX, headers=BROWSER)).headers["etag"] for one in (public, client)]
    assert tags[0] != tags[1]
    assert (await public.get(INDEX, headers={**BROWSER, "If-None-Match": tags[0]})).status_code == 304


def test_unusable_address_is_refused() -> None:
    addresses = ("claves.example", "ftp://claves.example", "https://", "https://a b", "https://a/?x=1", "https://a/#b")
    for address in addresses:
        with pytest.raises(ValidationError, match="an address such as"):
            Settings.model_validate({"public_url": address})
