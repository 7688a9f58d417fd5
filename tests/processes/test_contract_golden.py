"""Complete responses, byte for byte, in tests/golden.

A file has the status line, the headers and the body. Values that change between runs are written `{name}`.
"""

import json
import re
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow import parquet

from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.database import BREAK_LOCALITIES
from tests.support.golden import assert_golden, assert_golden_json
from tests.support.postgres import execute, new_database
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, Answer, ask, serving_with_uvicorn

INDEX = "/api/census/"
RECONCILE = f"{INDEX}reconcile/"
_VARIABLE = (
    ("date", r"^(date: ).*$"),
    ("last-modified", r"^(last-modified: ).*$"),
    ("request-id", r"^(x-request-id: )[0-9a-f]{8}-[0-9a-f]+$"),
    ("published-at", r'("(?:published_at|created)":"|<(?:updated|published)>)[^"<]*(?=["<])'),
    ("day", r"(<lastmod>|^Expires: )[0-9-]+"),
    ("version", r'("serviceVersion":"|"title":"Localidades de México","version":")[^"]*(?=")'),
    ("sha256", r'("sha256":")[0-9a-f]{64}(?=")'),
)


def written(answer: Answer) -> bytes:
    head = "".join(f"{name}: {value}\n" for name, value in answer.headers)
    text = f"{answer.status}\n{head}\n{answer.body.decode()}"
    for name, pattern in _VARIABLE:
        text = re.sub(pattern, rf"\g<1>{{{name}}}", text, flags=re.MULTILINE)
    text = re.sub(
        r"^etag: .*", lambda tag: re.sub('[0-9a-f]{12,16}(?=[."])', "{etag}", tag[0]), text, flags=re.MULTILINE
    )
    return text.encode()


def assert_answer(name: str, answer: Answer) -> None:
    assert_golden(f"{name}.http", written(answer))


WIRE: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "page-first": ("GET", LOCALIDADES, []),
    "page-middle": ("GET", f"{LOCALIDADES}?page=2", []),
    "page-last": ("GET", f"{LOCALIDADES}?page=3", []),
    "page-first-head": ("HEAD", LOCALIDADES, []),
    "page-not-modified": ("GET", LOCALIDADES, [("If-None-Match", "*")]),
    "estados": ("GET", f"{INDEX}estados/", []),
    "municipios": ("GET", f"{INDEX}municipios/", []),
    "municipios-filtered": ("GET", f"{INDEX}municipios/?estado_id=2&page=2&page_size=4", []),
    "index": ("GET", INDEX, []),
    "options": ("OPTIONS", LOCALIDADES, []),
    "redirect": ("GET", f"{LOCALIDADES[:-1]}?page=2", []),
    "error-404-page": ("GET", f"{LOCALIDADES}?page=4", []),
    "error-404-release": ("GET", f"{LOCALIDADES}?release=none", []),
    "error-404-path": ("GET", f"{INDEX}nothing/", []),
    "error-405": ("DELETE", LOCALIDADES, []),
    "error-406": ("GET", LOCALIDADES, [("Accept", "image/png")]),
    "error-422-page": ("GET", f"{LOCALIDADES}?page=0", []),
    "error-422-digits": ("GET", f"{LOCALIDADES}?page=%2B1", []),
    "error-422-format": ("GET", f"{LOCALIDADES}?format=xml", []),
    "error-422-release": ("GET", f"{LOCALIDADES}?release=-", []),
    "error-422-unknown": ("GET", f"{LOCALIDADES}?municipio=1", []),
    "error-422-repeated": ("GET", f"{LOCALIDADES}?page=1&page=1", []),
    "error-422-nul": ("GET", f"{LOCALIDADES}?page=%00", []),
    "error-422-undecodable": ("GET", f"{LOCALIDADES}?page=%FF", []),
}
# What the protocol of the server, which the `uvicorn` command has of its own, takes part in.
UNDER_UVICORN = (
    "page-first", "page-first-head", "page-not-modified", "options", "redirect", "error-404-path", "error-405",
    "error-406", "error-422-digits", "error-422-nul", "error-422-undecodable",
)  # fmt: skip


@pytest.mark.parametrize("name", WIRE)
def test_response_on_the_wire_equals_the_golden_file(live_server: str, name: str) -> None:
    method, target, headers = WIRE[name]
    assert_answer(name, ask(live_server, target, *headers, method=method))


def test_responses_under_uvicorn_equal_the_golden_files(server: str, seeded: str) -> None:
    with new_database(server, seeded) as url, serving_with_uvicorn(url, "--no-server-header") as live:
        for name in UNDER_UVICORN:
            method, target, headers = WIRE[name]
            assert_answer(name, ask(live.base, target, *headers, method=method))


def answer_of(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers.multi_items(), response.content)


# The APIs of others, which their programs read as they are written here.
OTHERS = {
    "wscatgeo": "/wscatgeo/v2/",
    "wscatgeo-estado": "/wscatgeo/v2/mgee/01",
    "wscatgeo-municipios": "/wscatgeo/v2/mgem/01",
    "wscatgeo-localidad": "/wscatgeo/v2/localidades/010010004",
    "wscatgeo-localidad-v1": "/wscatgeo/localidades/010010004",
    "wscatgeo-found": "/wscatgeo/v2/localidades/buscar/asientos",
    "wscatgeo-release": "/wscatgeo/v2/mgem/01/002?release=2020-01",
    "wscatgeo-refused": "/wscatgeo/v2/mgem/99",
    "ogc": "/ogc/",
    "ogc-conformance": "/ogc/conformance",
    "ogc-collections": "/ogc/collections",
    "ogc-items": "/ogc/collections/localidades/items?limit=2&estado_id=1",
    "ogc-item": "/ogc/collections/localidades/items/10010004",
    "ogc-definition": "/ogc/api",
    "ogc-collection": "/ogc/collections/localidades",
    "ogc-municipio": "/ogc/collections/municipios/items/1001",
    "ogc-estados": "/ogc/collections/estados/items?bbox=-103,21,-102,22&limit=1",
    "ogc-page": "/ogc/collections/localidades/items?limit=1&offset=3&ambito=R&bbox=-103,21,-102,23&release=2020-01",
    "ogc-error-400": "/ogc/collections/estados/items?limit=0",
    "ogc-error-404": "/ogc/collections/localidades/items/0",
    "ogc-error-unknown": "/ogc/collections/localidades/items/999999999",
    "reconcile": RECONCILE,
    "reconcile-suggest": f"{RECONCILE}suggest/entity/?prefix=asientos",
    "reconcile-suggest-type": f"{RECONCILE}suggest/type/?prefix=mun",
    "reconcile-suggest-property": f"{RECONCILE}suggest/property/?prefix=pob&type=localidad",
    "reconcile-properties": f"{RECONCILE}properties/?type=estado&limit=3",
    "reconcile-view": f"{RECONCILE}view/?id=01001",
    "robots": "/robots.txt",
    "llms": "/llms.txt",
    "api-catalog": "/.well-known/api-catalog",
    "tilejson": f"{LOCALIDADES}tiles.json",
    "backdrop": f"{LOCALIDADES}backdrop.svg?release=2020-01",
    "dataset": f"{LOCALIDADES}datapackage.json",
    "download-csv": f"{LOCALIDADES}download/?format=csv&municipio_id=1002",
    "download-geojson": f"{LOCALIDADES}download/?format=geojson&cvegeo=010010004",
    "download-ndjson": f"{LOCALIDADES}download/?format=ndjson&cvegeo=010010004&release=2020-01",
}
# The rest of this one, without what the tests above compare.
RESOURCES = {
    "root": "/",
    "localidad": f"{LOCALIDADES}10010004/",
    "localidad-fields": f"{LOCALIDADES}10010004/?fields=nombre,carta&release=2020-01",
    "localidad-redirect": f"{LOCALIDADES}010010004/?fields=nombre",
    "localidades-filtered": f"{LOCALIDADES}?ambito=U&sort=-poblacion&fields=nombre,poblacion&page_size=1",
    "localidades-searched": f"{LOCALIDADES}?search=asientos",
    "form": f"{LOCALIDADES}filter/?clave=4&search=ninguno&ambito=",
    "form-municipio": f"{LOCALIDADES}filter/?clave=01001&lang=es",
    "form-key": f"{LOCALIDADES}filter/?search=010010004&lang=es&format=api",
    "estado": f"{INDEX}estados/1/",
    "municipio": f"{INDEX}municipios/1001/",
    "suggest": f"{LOCALIDADES}suggest/?q=asientos&kind=localidad,municipio",
    "nearest": f"{LOCALIDADES}nearest/?lat=21.88&lon=-102.29&limit=2",
    "tile-error": f"{LOCALIDADES}tiles/2/4/0.mvt",
    "suggest-nothing": f"{LOCALIDADES}suggest/?q=",
    "error-422-fields": f"{LOCALIDADES}?fields=nombre,nombres&bbox=1&sort=x&cvegeo=1",
    "error-404-since": f"{INDEX}releases/2020-01/changes/?since=none",
}
CSV = (
    "nombre,municipio,latitud,longitud\r\n"
    "Asientos,,,\r\nNinguno,1001,21.88,-102.29\r\nXyzzyqwert,,,\r\nNinguno,,,-102.29\r\n"
)
ROWS = '{"rows": [{"nombre": "Aguascaliente", "estado": "Ags"}, {"nombre": 5}]}'
POINTS = '{"rows": [{"latitud": 21.88, "longitud": -102.29}, {"latitud": 91}, {"latitud": 21, "longitud": null}]}'
BODIES = {  # address, media type, body
    "match-json": (f"{LOCALIDADES}match/?fields=nombre,poblacion", "application/json", ROWS),
    "match-csv": (f"{LOCALIDADES}match/?format=csv&lang=es", "text/csv", CSV),
    "match-ndjson": (f"{LOCALIDADES}match/?format=ndjson", "text/csv", CSV),
    "match-preview": (f"{LOCALIDADES}match/preview/", "text/csv", CSV),
    "match-error-415": (f"{LOCALIDADES}match/", "image/png", "x"),
    "match-error-422": (f"{LOCALIDADES}match/?limit=1", "application/json", "["),
    "nearest-json": (f"{LOCALIDADES}nearest/?limit=1", "application/json", POINTS),
    "nearest-csv": (f"{LOCALIDADES}nearest/?limit=1&format=csv", "text/csv", CSV),
    "reconcile-error-422": (RECONCILE, "application/x-www-form-urlencoded", "queries={}&quality=1&x=2"),
    "reconcile-error-both": (RECONCILE, "application/x-www-form-urlencoded", "queries={}&extend={}"),
    "reconcile-error-query": (RECONCILE, "application/x-www-form-urlencoded", 'queries={"a":{"query":5,"limit":"x"}}'),
}


@pytest.mark.parametrize("name", [*OTHERS, *RESOURCES])
async def test_response_of_a_resource_equals_the_golden_file(client: httpx.AsyncClient, name: str) -> None:
    target = {**OTHERS, **RESOURCES}[name]
    assert_answer(name, answer_of(await client.get(target, headers={"Accept-Encoding": "identity"})))


@pytest.mark.parametrize("name", BODIES)
async def test_response_to_a_body_equals_the_golden_file(client: httpx.AsyncClient, name: str) -> None:
    target, media_type, body = BODIES[name]
    headers = {"Accept-Encoding": "identity", "Content-Type": media_type}
    assert_answer(name, answer_of(await client.post(target, content=body, headers=headers)))


# Of 2021-01, which lacks 010010002, has renamed 010010004 and moved 010010005.
LATER = {
    "error-410": f"{LOCALIDADES}10010002/",
    "error-410-ogc": "/ogc/collections/localidades/items/10010002",
    "releases": f"{INDEX}releases/",
    "changes": f"{INDEX}releases/2021-01/changes/?since=2020-01&page_size=2",
    "changes-ndjson": f"{INDEX}releases/2021-01/changes/?since=2020-01&change=removed&format=ndjson",
    "feed": f"{INDEX}releases/feed.atom?lang=es",
    "sitemap": "/sitemap.xml",
    "security": "/.well-known/security.txt",
}


@pytest.fixture(scope="module")
async def later(server: str, seeded: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Lend a client of an application on two releases and without names."""
    changed = {
        "010010004": {"nombre": "Ardillas"},
        "010010005": {"latitud": "21.9", "longitud": "-102.5", "poblacion": "5"},
    }
    places = [replace(one, **changed.get(one.cvegeo, {})) for one in many(132) if one.cvegeo != "010010002"]
    file = write_catalogue(tmp_path_factory.mktemp("later") / "catun_localidad_2021-01.csv", places)
    with new_database(server, seeded) as url:
        await import_into(url, file, reason="a test")
        options = {"security_contact": "mailto:x@example.org", "in_background": False}
        async with running_app(url, **options) as app, client_of(app) as client:
            yield client


@pytest.mark.parametrize("format_", ["parquet", "gpkg", "xlsx"])
async def test_file_equals_the_golden_file(later: httpx.AsyncClient, tmp_path: Path, format_: str) -> None:
    query = {"format": format_, "cvegeo": "010010004,010010005,010020001"}
    answer = await later.get(f"{LOCALIDADES}download/", params=query)
    assert answer.status_code == 200
    (tmp_path / "file").write_bytes(answer.content)
    described = {"parquet": describe_parquet, "gpkg": describe_geopackage, "xlsx": describe_workbook}[format_]
    headers = dict(
        line.split(": ", 1) for line in written(replace(answer_of(answer), body=b"")).decode().splitlines()[1:-1]
    )
    assert_golden_json(f"download-{format_}.json", {"headers": headers, **described(tmp_path / "file")})


async def test_workbook_of_answers_equals_the_golden_file(client: httpx.AsyncClient, tmp_path: Path) -> None:
    answer = await client.post(
        f"{LOCALIDADES}match/?format=xlsx&lang=es", content=CSV, headers={"Content-Type": "text/csv"}
    )
    (tmp_path / "file").write_bytes(answer.content)
    assert_golden_json("match-xlsx.json", describe_workbook(tmp_path / "file"))


def describe_parquet(path: Path) -> dict[str, Any]:
    schema = parquet.read_schema(path)
    metadata = {name.decode(): value.decode() for name, value in schema.metadata.items() if name != b"ARROW:schema"}
    metadata["geo"] = json.loads(metadata["geo"])
    return {"columns": {field.name: str(field.type) for field in schema}, "metadata": metadata}


# Without SQLite's own tables for the index, which each version of it may write otherwise.
_OWN_SQL = "SELECT sql FROM sqlite_master WHERE sql NOT NULL AND (type <> 'table' OR name NOT GLOB 'rtree_*_geom_*')"


def describe_geopackage(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        own = [name for name in tables if name.startswith("gpkg_") and name != "gpkg_contents"]
        return {
            "sql": [text for (text,) in database.execute(_OWN_SQL)],
            "pragmas": [database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")],
            "contents": database.execute("SELECT * FROM gpkg_contents").fetchone()[:4],
            "rows": {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in own},  # noqa: S608  # ours
            "box": database.execute("SELECT * FROM rtree_localidades_geom").fetchall(),
            "points": [text for (text,) in database.execute("SELECT hex(geom) FROM localidades")],
        }


def describe_workbook(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return {"sheet": archive.read("xl/worksheets/sheet1.xml").decode().replace("<row", "\n<row").splitlines()}


async def test_response_to_a_preflight_equals_the_golden_file(client: httpx.AsyncClient) -> None:
    headers = {"Origin": "http://example.org", "Access-Control-Request-Private-Network": "true"}
    assert_answer("options-private", answer_of(await client.options(f"{LOCALIDADES}match/", headers=headers)))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("reconcile-batch", {"queries": {"q0": {"query": "Asientos", "limit": 1}, "q1": {"query": ""}}}),
        ("reconcile-extend", {"extend": {"ids": ["010010004"], "properties": [{"id": "clave"}, {"id": "altitud"}]}}),
    ],
)
async def test_response_to_openrefine_equals_the_golden_file(
    client: httpx.AsyncClient, name: str, form: dict[str, object]
) -> None:
    data = {field: json.dumps(value) for field, value in form.items()}
    assert_answer(name, answer_of(await client.post(RECONCILE, data=data, headers={"Accept-Encoding": "identity"})))


@pytest.mark.parametrize("name", LATER)
async def test_response_of_a_later_release_equals_the_golden_file(later: httpx.AsyncClient, name: str) -> None:
    assert_answer(name, answer_of(await later.get(LATER[name], headers={"Accept-Encoding": "identity"})))


PAGES = [
    "/", INDEX, f"{INDEX}?lang=es", f"{INDEX}?release=2020-01", f"{INDEX}estados/", f"{INDEX}estados/1/",
    f"{INDEX}municipios/?estado_id=1&page_size=5", f"{INDEX}municipios/1001/", LOCALIDADES, f"{LOCALIDADES}?page=2",
    f"{LOCALIDADES}?page=99", f"{LOCALIDADES}10010004/",
    f"{LOCALIDADES}10010002/", f"{LOCALIDADES}99/", f"{LOCALIDADES}?fields=nombre", f"{LOCALIDADES}?page=0",
    f"{INDEX}releases/", f"{INDEX}releases/2021-01/changes/?since=2020-01", "/map?estado_id=1", "/match", "/docs",
    "/docs?lang=es", "/help", "/help/openrefine", "/redoc", "/problems", "/wscatgeo/", "/nothing",
    f"{RECONCILE}preview/?id=010010004", f"{RECONCILE}preview/?id=010010002", f"{RECONCILE}preview/?id=1",
    "/openapi.json", "/favicon.ico", "/card.png", "/card.png?id=10010002", "/static/style.css", "/livez",
    "/readyz", "/metrics", f"{LOCALIDADES}tiles/5/6/14.mvt",
]  # fmt: skip


async def test_pages_have_their_headers_and_are_revalidated(later: httpx.AsyncClient) -> None:
    accepted = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip", "Accept-Language": "es"}
    kept = ("etag", "cache-control", "vary", "content-location", "catalogue-release", "last-modified")
    for target in PAGES:
        answer = await later.get(target, headers=accepted)
        assert answer.headers["x-content-type-options"] == "nosniff", target
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'"), target
            assert answer.headers["referrer-policy"] == "no-referrer", target
        if tag := answer.headers.get("etag"):
            again = await later.get(target, headers=accepted | {"If-None-Match": tag})
            assert (again.status_code, again.content) == (304, b""), target
            assert [again.headers.get(name) for name in kept] == [answer.headers.get(name) for name in kept], target


async def test_response_without_a_release_equals_the_golden_file(database: str) -> None:
    async with running_app(database) as app, client_of(app) as client:
        assert_answer("error-503-release", answer_of(await client.get(LOCALIDADES)))


async def test_response_without_a_database_equals_the_golden_file() -> None:
    async with running_app("postgresql://x@localhost/x?host=/nowhere") as app, client_of(app) as client:
        assert_answer("error-503-database", answer_of(await client.get(LOCALIDADES)))


async def test_response_to_an_unexpected_error_equals_the_golden_file(seeded_database: str) -> None:
    execute(seeded_database, *BREAK_LOCALITIES)
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert_answer("error-500", answer_of(await client.get(f"{LOCALIDADES}?page_size=50")))

        async def is_served() -> bool:
            return app.state.services.releases.served is not None

        await eventually_async(is_served)
        assert_answer("error-500", answer_of(await client.get(LOCALIDADES)))
