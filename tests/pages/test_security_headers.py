"""Security headers: no sniffing of types, and no foreign scripts."""

import httpx
import pytest

from tests.pages.conftest import Reader
from tests.support.pages import ERRORS, PAGES

# Documents, files and problems that tests/golden/contract doesn't show.
OTHERS = [
    "/openapi.json", "/readyz", "/static/style.css", "/static/icon.svg", "/static/maplibre/maplibre-gl.mjs",
    "/static-swagger-ui/swagger-ui-bundle.js", "/static/nothing",
    *(f"/api/census/localidades/download/?format={name}" for name in ("parquet", "xlsx", "gpkg")),
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
