"""Whole responses, byte for byte, in tests/golden: the status, the headers and the body.

Values that change between runs are written `{name}`. tests/processes/test_contract_wire.py compares some of the same
files with what the servers send.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import httpx
import pytest

from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.database import BREAK_LOCALITIES
from tests.support.golden import assert_golden
from tests.support.postgres import execute, new_database
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
RECONCILE = f"{INDEX}reconcile/"
OF_THE_WIRE = ("date", "connection")  # headers that servers add
_VARIABLE = (
    ("last-modified", r"^(last-modified: ).*$"),
    ("request-id", r"^(x-request-id: )[0-9a-f]{8}-[0-9a-f]+$"),
    ("published-at", r'("(?:published_at|created)":"|<(?:updated|published)>)[^"<]*(?=["<])'),
    ("day", r"(<lastmod>|^Expires: )[0-9-]+"),
    ("version", r'("serviceVersion":")[^"]*(?=")'),
    ("sha256", r'("sha256":")[0-9a-f]{64}(?=")'),
)


def assert_answer(name: str, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    head = "".join(f"{name}: {value}\n" for name, value in headers if name not in OF_THE_WIRE)
    text = f"{status}\n{head}\n{body.decode()}"
    for value, pattern in _VARIABLE:
        text = re.sub(pattern, rf"\g<1>{{{value}}}", text, flags=re.MULTILINE)
    text = re.sub("(?m)^etag: .*", lambda tag: re.sub('[0-9a-f]{12,16}(?=[."])', "{etag}", tag[0]), text)
    assert_golden(f"{name}.http", text.encode())


def assert_response(name: str, response: httpx.Response) -> None:
    assert_answer(name, response.status_code, response.headers.multi_items(), response.content)


# The protocol of the server takes part in these.
ON_THE_WIRE: dict[str, tuple[str, str, dict[str, str]]] = {
    "page-first": ("GET", LOCALIDADES, {}),
    "page-first-head": ("HEAD", LOCALIDADES, {}),
    "page-not-modified": ("GET", LOCALIDADES, {"If-None-Match": "*"}),
    "options": ("OPTIONS", LOCALIDADES, {}),
    "redirect": ("GET", f"{LOCALIDADES[:-1]}?page=2", {}),
    "error-404-path": ("GET", f"{INDEX}nothing/", {}),
    "error-405": ("DELETE", LOCALIDADES, {}),
    "error-406": ("GET", LOCALIDADES, {"Accept": "image/png"}),
    "error-422-digits": ("GET", f"{LOCALIDADES}?page=%2B1", {}),
    "error-422-nul": ("GET", f"{LOCALIDADES}?page=%00", {}),
    "error-422-undecodable": ("GET", f"{LOCALIDADES}?page=%FF", {}),
}
RESOURCES = {
    "root": "/",
    "index": INDEX,
    "page-middle": f"{LOCALIDADES}?page=2",
    "page-last": f"{LOCALIDADES}?page=3",
    "localidad": f"{LOCALIDADES}10010004/",
    "localidad-fields": f"{LOCALIDADES}10010004/?fields=nombre,carta&release=2020-01",
    "localidad-redirect": f"{LOCALIDADES}010010004/?fields=nombre",
    "localidades-filtered": f"{LOCALIDADES}?ambito=U&sort=-poblacion&fields=nombre,poblacion&page_size=1",
    "localidades-searched": f"{LOCALIDADES}?search=asientos",
    "form": f"{LOCALIDADES}filter/?clave=4&search=ninguno&ambito=",
    "form-municipio": f"{LOCALIDADES}filter/?clave=01001&lang=es",
    "form-key": f"{LOCALIDADES}filter/?search=010010004&lang=es&format=api",
    "estado": f"{INDEX}estados/1/",
    "estados": f"{INDEX}estados/",
    "municipio": f"{INDEX}municipios/1001/",
    "municipios": f"{INDEX}municipios/",
    "municipios-filtered": f"{INDEX}municipios/?estado_id=2&page=2&page_size=4",
    "suggest": f"{LOCALIDADES}suggest/?q=asientos&kind=localidad,municipio",
    "suggest-nothing": f"{LOCALIDADES}suggest/?q=",
    "nearest": f"{LOCALIDADES}nearest/?lat=21.88&lon=-102.29&limit=2",
    "tilejson": f"{LOCALIDADES}tiles.json",
    "tile-error": f"{LOCALIDADES}tiles/2/4/0.mvt",
    "backdrop": f"{LOCALIDADES}backdrop.svg?release=2020-01",
    "dataset": f"{LOCALIDADES}datapackage.json",
    "download-csv": f"{LOCALIDADES}download/?format=csv&municipio_id=1002",
    "download-geojson": f"{LOCALIDADES}download/?format=geojson&cvegeo=010010004",
    "download-ndjson": f"{LOCALIDADES}download/?format=ndjson&cvegeo=010010004&release=2020-01",
    "robots": "/robots.txt",
    "llms": "/llms.txt",
    "api-catalog": "/.well-known/api-catalog",
    "error-404-page": f"{LOCALIDADES}?page=4",
    "error-404-release": f"{LOCALIDADES}?release=none",
    "error-404-since": f"{INDEX}releases/2020-01/changes/?since=none",
    "error-422-fields": f"{LOCALIDADES}?fields=nombre,nombres&bbox=1&sort=x&cvegeo=1",
    "error-422-release": f"{LOCALIDADES}?release=-",
    "error-422-unknown": f"{LOCALIDADES}?municipio=1",
    "error-422-repeated": f"{LOCALIDADES}?page=1&page=1",
    # The APIs of others, which their programs read as they are written here.
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
    "ogc-collection": "/ogc/collections/localidades",
    "ogc-collections": "/ogc/collections",
    "ogc-item": "/ogc/collections/localidades/items/10010004",
    "ogc-items": "/ogc/collections/localidades/items?limit=2&estado_id=1",
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
}
CSV = (
    "nombre,municipio,latitud,longitud\r\n"
    "Asientos,,,\r\nNinguno,1001,21.88,-102.29\r\nXyzzyqwert,,,\r\nNinguno,,,-102.29\r\n"
)
ROWS = '{"rows": [{"nombre": "Aguascaliente", "estado": "Ags"}, {"nombre": 5}]}'
POINTS = '{"rows": [{"latitud": 21.88, "longitud": -102.29}, {"latitud": 91}, {"latitud": 21, "longitud": null}]}'
FORM = "application/x-www-form-urlencoded"
BODIES = {  # address, media type, body
    "match-json": (f"{LOCALIDADES}match/?fields=nombre,poblacion", "application/json", ROWS),
    "match-csv": (f"{LOCALIDADES}match/?format=csv&lang=es", "text/csv", CSV),
    "match-ndjson": (f"{LOCALIDADES}match/?format=ndjson", "text/csv", CSV),
    "match-preview": (f"{LOCALIDADES}match/preview/", "text/csv", CSV),
    "match-error-415": (f"{LOCALIDADES}match/", "image/png", "x"),
    "match-error-422": (f"{LOCALIDADES}match/?limit=1", "application/json", "["),
    "nearest-json": (f"{LOCALIDADES}nearest/?limit=1", "application/json", POINTS),
    "nearest-csv": (f"{LOCALIDADES}nearest/?limit=1&format=csv", "text/csv", CSV),
    "reconcile-batch": (RECONCILE, FORM, 'queries={"q0": {"query": "Asientos", "limit": 1}, "q1": {"query": ""}}'),
    "reconcile-extend": (RECONCILE, FORM,
                         'extend={"ids": ["010010004"], "properties": [{"id": "clave"}, {"id": "altitud"}]}'),
    "reconcile-error-422": (RECONCILE, FORM, "queries={}&quality=1&x=2"),
    "reconcile-error-both": (RECONCILE, FORM, "queries={}&extend={}"),
    "reconcile-error-query": (RECONCILE, FORM, 'queries={"a":{"query":5,"limit":"x"}}'),
}  # fmt: skip
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
UNCODED = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize("name", [*ON_THE_WIRE, *RESOURCES, *BODIES])
async def test_response_equals_the_golden_file(client: httpx.AsyncClient, name: str) -> None:
    if name in BODIES:
        target, media_type, body = BODIES[name]
        answer = await client.post(target, content=body, headers={"Content-Type": media_type, **UNCODED})
    else:
        method, target, headers = ON_THE_WIRE.get(name) or ("GET", RESOURCES[name], {})
        answer = await client.request(method, target, headers={**UNCODED, **headers})
    assert_response(name, answer)


async def test_every_entity_tag_is_answered_with_304(client: httpx.AsyncClient) -> None:
    tagged = 0
    for target in (
        *RESOURCES.values(),
        "/card.png",
        "/card.png?id=10010001",
        *map(LATER.__getitem__, ("releases", "feed")),
    ):
        for accept in ("application/json", "text/html"):
            answer = await client.get(target, headers={"Accept": accept})
            if tag := answer.headers.get("etag"):
                again = await client.get(target, headers={"Accept": accept, "If-None-Match": tag})
                assert (again.status_code, again.headers["etag"], again.content) == (304, tag, b""), (target, accept)
                tagged += 1
    assert tagged > 80


async def test_response_to_a_preflight_equals_the_golden_file(client: httpx.AsyncClient) -> None:
    target, private = f"{LOCALIDADES}match/", "Access-Control-Request-Private-Network"
    headers = {"Origin": "http://example.org", private: "true"}
    assert_response("options-private", await client.options(target, headers=headers))
    for other in ({"X-Other": "true"}, {private: "false"}):
        assert "access-control-allow-private-network" not in (await client.options(target, headers=other)).headers


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


@pytest.mark.parametrize("name", LATER)
async def test_response_of_a_later_release_equals_the_golden_file(later: httpx.AsyncClient, name: str) -> None:
    assert_response(name, await later.get(LATER[name], headers=UNCODED))


async def test_response_without_a_release_or_a_database_equals_the_golden_file(database: str) -> None:
    nowhere = "postgresql://x@localhost/x?host=/nowhere"
    for name, url in (("error-503-release", database), ("error-503-database", nowhere)):
        async with running_app(url) as app, client_of(app) as client:
            assert_response(name, await client.get(LOCALIDADES))


async def test_response_to_an_unexpected_error_equals_the_golden_file(seeded_database: str) -> None:
    execute(seeded_database, *BREAK_LOCALITIES)
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert_response("error-500", await client.get(f"{LOCALIDADES}?page_size=50"))

        async def is_served() -> bool:
            return app.state.services.releases.served is not None

        await eventually_async(is_served)
        assert_response("error-500", await client.get(LOCALIDADES))


@pytest.mark.parametrize("query", ["?", "?&", "?page=%31&", "?%70age=01", "?release=2020-01&page=1"])
async def test_spellings_of_the_first_page_are_equivalent(client: httpx.AsyncClient, query: str) -> None:
    answer, plain = await client.get(LOCALIDADES + query), await client.get(LOCALIDADES)
    assert (answer.status_code, answer.headers["etag"], answer.content) == (200, plain.headers["etag"], plain.content)


NO_PLAIN_NAME = "(a name that is not plain ASCII)"


@pytest.mark.parametrize(
    ("target", "named"),
    [
        (f"{LOCALIDADES}?page=%D9%A1", ["page"]),
        (f"{LOCALIDADES}?page={'9' * 5000}", ["page"]),
        (f"{INDEX}?release=2020-01&%72elease=2020-01", ["release"]),
        (f"{LOCALIDADES}?format[]=json", [NO_PLAIN_NAME]),
        (f"{LOCALIDADES}?{'n' * 41}=1", [NO_PLAIN_NAME]),
        (f"{LOCALIDADES}?page=x&format=y&release=/&z=1", ["format", "page", "release", "z"]),
        (f"{LOCALIDADES}?%80=1", ["query"]),
        (f"{INDEX}?release=2020-01%00", ["query"]),
        (f"{INDEX}?release={'x' * 65}", ["release"]),
    ],
)
async def test_bad_query_is_422_naming_the_parameter(client: httpx.AsyncClient, target: str, named: list[str]) -> None:
    answer = await client.get(target)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert sorted(fault["parameter"] for fault in json.loads(answer.content)["errors"]) == named


async def test_origin_and_cookies_change_nothing(client: httpx.AsyncClient) -> None:
    """Otherwise a shared cache would have to keep a response for each."""
    others = {"Origin": "https://other.example", "Cookie": "a=b", "Access-Control-Request-Headers": "if-none-match"}
    for method in ("GET", "OPTIONS"):
        asked, plain = [await client.request(method, LOCALIDADES, headers=headers) for headers in (others, {})]
        assert (asked.headers, asked.content) == (plain.headers, plain.content)


async def test_resources_can_be_read_from_any_origin(client: httpx.AsyncClient) -> None:
    """The metrics can't: any web page could read them through a browser in the operator's network."""
    for target in ("/", "/openapi.json", "/problems", "/livez", "/readyz", "/startupz", "/docs", "/static/style.css",
                   "/static/nothing", "/nothing", "/problems?x=1", "/robots.txt", "/favicon.ico"):  # fmt: skip
        answer = await client.get(target)
        assert answer.headers["access-control-allow-origin"] == "*", target
        preflight = await client.options(target)
        assert (preflight.status_code, preflight.headers["allow"]) == (204, "GET"), target
        assert preflight.headers["access-control-allow-origin"] == preflight.headers["access-control-allow-headers"]
        assert "GET" in preflight.headers["access-control-allow-methods"]
        if answer.status_code != 404:
            refused = await client.request("PROPFIND", target)
            assert (refused.status_code, refused.headers["allow"].partition(",")[0]) == (405, "GET"), target
    assert "access-control-allow-origin" not in (await client.get("/metrics")).headers
    assert (await client.options("/metrics")).status_code == 405
