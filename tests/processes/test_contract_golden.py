"""Complete responses, byte for byte, in tests/golden.

A file has the status line, the headers and the body. Values that change between runs are written `{name}`.
"""

import json
import re

import httpx
import pytest

from tests.support.application import client_of, running_app
from tests.support.database import BREAK_LOCALITIES
from tests.support.golden import assert_golden
from tests.support.postgres import execute
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, Answer, ask

INDEX = "/api/census/"
RECONCILE = f"{INDEX}reconcile/"
_VARIABLE = (
    ("date", r"^(date: ).*$"),
    ("etag", r'^(etag: "2020-01\.[a-z.]+\.)[0-9a-f]{12}(?=")'),
    ("etag", r'^(etag: ")[0-9a-f]{16}(?=\.identity")'),
    ("last-modified", r"^(last-modified: ).*$"),
    ("request-id", r"^(x-request-id: )[0-9a-f]{8}-[0-9a-f]+$"),
    ("published-at", r'("(?:published_at|created)":")[^"]*(?=")'),
    ("version", r'("serviceVersion":")[^"]*(?=")'),
    ("sha256", r'("sha256":")[0-9a-f]{64}(?=")'),
)


def written(answer: Answer) -> bytes:
    head = "".join(f"{name}: {value}\n" for name, value in answer.headers)
    text = f"{answer.status}\n{head}\n{answer.body.decode()}"
    for name, pattern in _VARIABLE:
        text = re.sub(pattern, rf"\g<1>{{{name}}}", text, flags=re.MULTILINE)
    return text.encode()


def assert_answer(name: str, answer: Answer) -> None:
    assert_golden(f"{name}.http", written(answer))


@pytest.mark.parametrize(
    ("name", "target", "headers", "method"),
    [
        ("page-first", LOCALIDADES, [], "GET"),
        ("page-middle", f"{LOCALIDADES}?page=2", [], "GET"),
        ("page-last", f"{LOCALIDADES}?page=3", [], "GET"),
        ("page-first-head", LOCALIDADES, [], "HEAD"),
        ("page-not-modified", LOCALIDADES, [("If-None-Match", "*")], "GET"),
        ("estados", f"{INDEX}estados/", [], "GET"),
        ("municipios", f"{INDEX}municipios/", [], "GET"),
        ("municipios-filtered", f"{INDEX}municipios/?estado_id=2&page=2&page_size=4", [], "GET"),
        ("index", INDEX, [], "GET"),
        ("options", LOCALIDADES, [], "OPTIONS"),
        ("redirect", f"{LOCALIDADES[:-1]}?page=2", [], "GET"),
        ("error-404-page", f"{LOCALIDADES}?page=4", [], "GET"),
        ("error-404-release", f"{LOCALIDADES}?release=none", [], "GET"),
        ("error-404-path", f"{INDEX}nothing/", [], "GET"),
        ("error-405", LOCALIDADES, [], "DELETE"),
        ("error-406", LOCALIDADES, [("Accept", "image/png")], "GET"),
        ("error-422-page", f"{LOCALIDADES}?page=0", [], "GET"),
        ("error-422-digits", f"{LOCALIDADES}?page=%2B1", [], "GET"),
        ("error-422-format", f"{LOCALIDADES}?format=xml", [], "GET"),
        ("error-422-release", f"{LOCALIDADES}?release=-", [], "GET"),
        ("error-422-unknown", f"{LOCALIDADES}?municipio=1", [], "GET"),
        ("error-422-repeated", f"{LOCALIDADES}?page=1&page=1", [], "GET"),
        ("error-422-nul", f"{LOCALIDADES}?page=%00", [], "GET"),
        ("error-422-undecodable", f"{LOCALIDADES}?page=%FF", [], "GET"),
    ],
)
def test_response_equals_the_golden_file(
    any_server: str, name: str, target: str, headers: list[tuple[str, str]], method: str
) -> None:
    assert_answer(name, ask(any_server, target, *headers, method=method))


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
    "ogc-error-400": "/ogc/collections/estados/items?limit=0",
    "reconcile": RECONCILE,
    "reconcile-suggest": f"{RECONCILE}suggest/entity/?prefix=asientos",
    "dataset": f"{LOCALIDADES}datapackage.json",
    "download-csv": f"{LOCALIDADES}download/?format=csv&municipio_id=1002",
    "download-geojson": f"{LOCALIDADES}download/?format=geojson&cvegeo=010010004",
}


@pytest.mark.parametrize("name", OTHERS)
async def test_response_for_other_programs_equals_the_golden_file(client: httpx.AsyncClient, name: str) -> None:
    assert_answer(name, answer_of(await client.get(OTHERS[name], headers={"Accept-Encoding": "identity"})))


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
