"""Security headers: no sniffing of types, and no foreign scripts."""

import httpx
import pytest

LIST = "/api/census/localidades/"
JSON = [
    "/api/census/", LIST, f"{LIST}?ambito=R", f"{LIST}10010001/", f"{LIST}suggest/?q=a", f"{LIST}?search=a",
    f"{LIST}nearest/?lat=21&lon=-102", "/api/census/estados/", "/api/census/estados/1/", "/api/census/municipios/",
    "/api/census/municipios/1001/", "/api/census/releases/", "/api/census/releases/2020-01/changes/?since=2020-01",
    "/openapi.json", "/readyz", "/problems", "/match", "/map", "/ogc/", "/ogc/api", "/ogc/collections/estados/items",
    "/sitemap.xml", "/llms.txt", "/.well-known/api-catalog", f"{LIST}datapackage.json",
]  # fmt: skip
FILES = [
    *(f"{LIST}download/?format={name}" for name in ("csv", "excel", "ndjson", "geojson", "parquet", "xlsx", "gpkg")),
    "/static/style.css", "/static/page.js", "/static/match.js", "/static/map.js", "/static/icon.svg",
    "/static/localidad-field.js",
    "/static/maplibre/maplibre-gl.mjs", "/static/maplibre/maplibre-gl-worker.mjs",
    "/static/delaunator/delaunator.min.js",
    "/static-swagger-ui/swagger-ui.css", "/static-swagger-ui/swagger-ui-bundle.js",
]  # fmt: skip
ERRORS = ["/nothing", "/static/nothing", f"{LIST}?page=x", f"{LIST}?page=99", f"{LIST}999999999/", "/api/census/x"]
PAGES = [*JSON[:13], "/problems", "/match", "/map", "/map?estado_id=1&ambito=R", *ERRORS]
PAGES = [f"{target}{'&' if '?' in target else '?'}format=api" for target in PAGES]
DOCUMENTATION = ["/docs", "/redoc", "/docs?lang=es", "/redoc?format=api&lang=es"]


@pytest.mark.parametrize("target", [*JSON, *FILES, *ERRORS, *PAGES, *DOCUMENTATION])
async def test_responses_have_nosniff(client: httpx.AsyncClient, target: str) -> None:
    answer = await client.get(target)
    assert answer.content
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers["content-type"]


@pytest.mark.parametrize("target", [*PAGES, *DOCUMENTATION])
async def test_pages_have_a_strict_content_security_policy(client: httpx.AsyncClient, target: str) -> None:
    headers = (await client.get(target)).headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    (policy,) = headers.get_list("content-security-policy")
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"
    assert directives["form-action"] == directives["connect-src"] == "'self'"
    assert directives["script-src"] == directives["style-src"] == "'self'"
    assert directives["img-src"] == ("'self' data:" if target.startswith("/docs") else "'self'")  # Swagger UI's icons
    assert "*" not in policy
    assert "http" not in policy
    assert headers.get_list("referrer-policy") == ["no-referrer"]


async def test_empty_response_outside_the_prefix_has_no_security_headers(client: httpx.AsyncClient) -> None:
    answer = await client.get("/livez")
    assert (answer.status_code, answer.content, answer.headers.get("content-security-policy")) == (204, b"", None)
    assert (await client.get("/")).status_code == 307
