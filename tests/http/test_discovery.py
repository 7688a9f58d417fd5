"""Documents around the API: files for crawlers; codings and validators."""

import gzip
import re
from collections.abc import Callable
from xml.etree import ElementTree

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from localidades_api.http.caching import CACHE_CONTROL

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


async def test_discovery_files_use_the_request_host(client: httpx.AsyncClient) -> None:
    for path in ("/robots.txt", "/sitemap.xml"):
        answer = await client.get(path, headers={"Host": "a&b.example"})
        assert answer.status_code == 200
        assert "http://a&" in answer.text
        assert "http://test" not in answer.text
    root = ElementTree.fromstring(answer.content)  # noqa: S314  # our own
    assert {(one.text or "").split("/")[2] for one in root.iter(f"{NAMESPACE}loc")} == {"a&b.example"}


async def test_sitemap_from_robots_txt_lists_existing_pages(client: httpx.AsyncClient) -> None:
    robots = (await client.get("/robots.txt")).text
    (sitemap,) = re.findall("^Sitemap: (.+)$", robots, re.MULTILINE)
    root = ElementTree.fromstring((await client.get(sitemap)).content)  # noqa: S314  # our own
    addresses = [one.text or "" for one in root.iter(f"{NAMESPACE}loc")]
    states = (await client.get("/api/census/estados/?page_size=100")).json()["quantity"]
    municipalities = (await client.get("/api/census/municipios/?page_size=1000")).json()["quantity"]
    assert len(addresses) == len(set(addresses)) == 13 + states + municipalities
    disallowed = re.findall("^Disallow: (.+)$", robots, re.MULTILINE)
    for address in addresses[::4]:
        answer = await client.get(address, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert not address.removeprefix("http://test").startswith(tuple(disallowed))


# -- Representations

SHARED = (
    "/docs", "/docs?lang=es", "/redoc", "/problems", "/problems?format=api", "/help", "/help/data",
    "/help/add-keys?lang=es", "/ogc/api", "/favicon.ico",
    "/static-swagger-ui/swagger-ui-bundle.js", "/static-swagger-ui/swagger-ui.css",
)  # fmt: skip
MADE_FOR_THIS_HOST = ("/robots.txt", "/sitemap.xml", "/openapi.json", "/openapi.json?lang=es")
DECODERS: dict[str, Callable[[bytes], bytes]] = {"br": brotli.decompress, "gzip": gzip.decompress, "identity": bytes}


async def fetch(client: httpx.AsyncClient, path: str, coding: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """Return the answer and its body as sent."""
    asked = {"Accept-Encoding": coding, **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with client.stream("GET", path, headers=asked) as answer:
        return answer, b"".join([part async for part in answer.aiter_raw()])


@pytest.mark.parametrize("path", [*SHARED, *MADE_FOR_THIS_HOST])
async def test_document_is_compressed_and_revalidated(client: httpx.AsyncClient, path: str) -> None:
    plain, content = await fetch(client, path, "identity")
    tags = set()
    for coding, decode in DECODERS.items():
        answer, body = await fetch(client, path, coding)
        assert answer.status_code == 200
        assert answer.headers.get("content-encoding", "identity") == coding
        assert decode(body) == content
        assert int(answer.headers["content-length"]) == len(body)
        assert answer.headers["content-type"] == plain.headers["content-type"]
        tags.add(tag := answer.headers["etag"])
        kept, nothing = await fetch(client, path, coding, If_None_Match=f'"x", W/{tag}')
        assert (kept.status_code, nothing) == (304, b"")
        for name in ("etag", "vary", "cache-control"):
            assert kept.headers[name] == answer.headers[name]
        assert "Accept-Encoding" in answer.headers["vary"]
        assert answer.headers["cache-control"] == (CACHE_CONTROL if path in SHARED else "no-cache, private")
    assert len(tags) == 3


async def test_validator_follows_language_and_host(client: httpx.AsyncClient) -> None:
    for path, headers in (("/redoc", {"Accept-Language": "es"}), ("/sitemap.xml", {"Host": "claves.example"})):
        tag = (await client.get(path)).headers["etag"]
        other = await client.get(path, headers={**headers, "If-None-Match": tag})
        assert (other.status_code, other.headers["etag"] != tag) == (200, True)
    assert "Accept-Language" in (await client.get("/docs")).headers["vary"]


async def test_page_of_no_release_varies_by_what_it_depends_on(client: httpx.AsyncClient) -> None:
    page, data = [await client.get("/problems", params={"format": name}) for name in ("api", "json")]
    assert page.headers["vary"] == "Accept, Accept-Language, Accept-Encoding"
    assert data.headers["vary"] == "Accept, Accept-Encoding"
