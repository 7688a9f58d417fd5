"""Security headers: no sniffing of types, and no foreign scripts."""

import httpx
import pytest

from tests.pages.conftest import Reader
from tests.support.pages import ERRORS, PAGES

LIST = "/api/census/localidades/"
# One of each way to an answer: resources, documents, downloads, files of both folders, problems.
OTHERS = [
    "/api/census/", LIST, f"{LIST}10010001/", f"{LIST}suggest/?q=a",
    "/api/census/releases/2020-01/changes/?since=2020-01", "/openapi.json",
    "/readyz", "/problems", "/match", "/map", "/ogc/", "/ogc/collections/estados/items",
    "/sitemap.xml",
    *(f"{LIST}download/?format={name}" for name in ("csv", "parquet", "xlsx", "gpkg")),
    "/static/style.css", "/static/page.js", "/static/icon.svg", "/static/maplibre/maplibre-gl.mjs",
    "/static-swagger-ui/swagger-ui-bundle.js", "/nothing", "/static/nothing", f"{LIST}?page=x",
]  # fmt: skip
SPECIAL = ["/problems", "/match", "/map", "/map?estado_id=1&ambito=R", "/nothing", "/docs", "/redoc?lang=es"]


@pytest.mark.parametrize("target", OTHERS)
async def test_responses_have_nosniff(client: httpx.AsyncClient, target: str) -> None:
    answer = await client.get(target)
    assert answer.content
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers["content-type"]


@pytest.mark.parametrize("target", [*PAGES[:1], *PAGES[-10:], ERRORS[0][0], ERRORS[3][0], *SPECIAL])
async def test_pages_have_a_strict_content_security_policy(read: Reader, target: str) -> None:
    headers = (await read(target)).answer.headers
    assert headers.get_list("x-content-type-options") == ["nosniff"]
    (policy,) = headers.get_list("content-security-policy")
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"
    assert directives["form-action"] == directives["connect-src"] == "'self'"
    assert directives["script-src"] == "'self'"
    is_documentation = target.startswith(("/docs", "/redoc"))
    styles = directives["style-src"].split(" ")
    assert styles[0] == "'self'"
    assert all(is_documentation and style.startswith("'sha256-") for style in styles[1:])  # ReDoc's own
    assert directives["img-src"] == ("'self' data:" if is_documentation else "'self'")  # icons
    assert "*" not in policy
    assert "http" not in policy
    assert headers.get_list("referrer-policy") == ["no-referrer"]
