"""The examples of the OpenAPI document are requests to the demo catalogue, with the answers that it gives.

To record an operation anew, delete its file in `api/examples` and run the tests below twice, those of the demo with
`-m tail`: the first run writes it and fails.
"""

import json
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import jsonschema_rs
import pytest

from localidades_api.api import examples
from localidades_api.api.examples import SERVICE, Exchange, RecordedAnswer, RecordedRequest, read_examples
from localidades_api.app import create_app
from localidades_api.importer.demo.generate import generate_demo
from localidades_api.settings import Settings
from tests.support.application import client_of, import_into, running_app
from tests.support.golden import assert_golden
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

FOLDER = Path(examples.__file__).parent
MAX_BYTES = 2_500  # of a recorded body
VARYING = {"published_at", "age_seconds", "lag_seconds", "serviceVersion"}  # members that can't repeat
BEFORE, AFTER = "2026-10", "2026-11"  # releases for the list of changes
LEFT_OUT = '"010010004"'

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
# The demo has the first place, INEGI's catalogue the second.
ROWS = [
    {"nombre": "San Jasinto de la Laguna", "municipio": "Coyumatlán", "estado": "Ags."},
    {"nombre": "Guadalajra", "municipio": "Guadalajara", "estado": "Jal."},
]
HEADED = [{"Localidad": row["nombre"], "Entidad": row["estado"]} for row in ROWS]
POINTS = [{"latitud": 20.6767, "longitud": -103.3475}, {"latitud": 21.88, "longitud": -102.3}]
QUERIES = {"queries": '{"q0": {"query": "Aguascalientes", "type": "estado"}}'}
EXTENSION = {"extend": '{"ids": ["010010001"], "properties": [{"id": "poblacion"}, {"id": "municipio"}]}'}


def asking(**parameters: str | float) -> RecordedRequest:
    return RecordedRequest(parameters=parameters)


def sending(media_type: str, body: object) -> RecordedRequest:
    return RecordedRequest(media_type=media_type, body=body)


TWO_PLACES = "010010001,010020001"
REQUESTS: Mapping[str, Mapping[str, RecordedRequest]] = {
    "list_localities": {"towns": asking(estado_id=1, ambito="U", sort="-poblacion", page_size=3)},
    "suggest_localities": {"typed": asking(q="guadal", limit=2)},
    "list_nearest_localities": {"nearest": asking(lat=21.88, lon=-102.3, limit=2)},
    "list_nearest_to_each": {"points": sending(JSON, {"rows": POINTS})},
    "get_locality": {"locality": asking(id=10010001)},
    "list_states": {"found": asking(search="mex")},
    "get_state": {"estado": asking(id=1)},
    "list_municipalities": {"municipios": asking(estado_id=1, page_size=2)},
    "get_municipality": {"municipio": asking(id=1001)},
    "get_index": {"index": asking()},
    "list_releases": {"releases": asking()},
    "list_changes": {"changes": asking(name=AFTER, since=BEFORE)},
    "describe_tiles": {"tiles": asking()},
    "get_tile": {"tile": asking(z=5, x=7, y=14)},
    "get_backdrop": {"backdrop": asking()},
    "match_localities": {"rows": sending(JSON, {"rows": ROWS})},
    "preview_match": {"rows": sending(JSON, {"rows": HEADED})},
    "download_localities": {
        format_: asking(cvegeo=TWO_PLACES, format=format_) for format_ in ("csv", "ndjson", "geojson")
    },
    "get_reconciliation": {"manifest": asking(), "queries": asking(**QUERIES)},
    "reconcile": {"queries": sending(FORM, QUERIES), "extend": sending(FORM, EXTENSION)},
    "suggest_entities": {"typed": asking(prefix="mex", type="estado")},
    "suggest_types": {"typed": asking(prefix="mun")},
    "suggest_properties": {"typed": asking(prefix="viv")},
    "propose_properties": {"properties": asking(type="municipio", limit=2)},
    "view_entity": {"locality": asking(id="010010001")},
    "preview_entity": {"english": asking(id="010010001"), "spanish": asking(id="010010001", lang="es")},
    "get_liveness": {"alive": asking()},
    "get_readiness": {"ready": asking()},
    "get_startup": {"started": asking()},
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def test_every_operation_has_a_recorded_example(document: dict[str, Any]) -> None:
    operation_ids = {operation["operationId"] for _, _, operation in operations(document)}
    assert operation_ids == read_examples().keys() == REQUESTS.keys()
    for id_, exchanges in read_examples().items():
        assert {name: exchange.request for name, exchange in exchanges.items()} == REQUESTS[id_]


def test_every_recorded_exchange_is_an_example_of_the_document(document: dict[str, Any]) -> None:
    shown = 0
    for method, path, operation in operations(document):
        recorded = read_examples()[operation["operationId"]]
        first = next(iter(recorded.values()))
        for parameter in operation.get("parameters", []):
            if parameter["name"] not in {"name", "since"}:  # which name the releases of the service
                given = first.request.parameters.get(parameter["name"])
                assert parameter.get("example") == given, (path, parameter["name"])
        for name, exchange in recorded.items():
            title = f"{method.upper()} {exchange.request.target(path)}"
            if exchange.request.body is not None:
                title += f" ({name})"
                body = operation["requestBody"]["content"][exchange.request.media_type]["examples"][name]
                assert body == {"summary": title, "value": exchange.request.body}
            answer = operation["responses"][str(exchange.answer.status)]
            if exchange.answer.body is not None:
                example = answer["content"][exchange.answer.media_type]["examples"][name]
                assert example == {"summary": title, "value": exchange.answer.body}
                shown += 1
            if exchange.answer.location:
                assert answer["headers"]["Location"]["example"] == exchange.answer.location
    assert shown > 25


def test_recorded_examples_match_their_schemas(document: dict[str, Any]) -> None:
    checked = 0
    for _, path, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        media = [content for body in bodies for content in body.get("content", {}).values() if "schema" in content]
        values = [(one["schema"], example["value"]) for one in media for example in one.get("examples", {}).values()]
        values += [(one["schema"], one["example"]) for one in operation.get("parameters", []) if "example" in one]
        for schema, value in values:
            assert not [*jsonschema_rs.iter_errors({**schema, "components": document["components"]}, value)], path
            checked += 1
    assert checked > 50


def test_command_repeats_the_recorded_request(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        for exchange in read_examples()[operation["operationId"]].values():
            request = exchange.request
            program, address, *options = shlex.split(exchange.curl(path))
            given = {name: str(value) for name, value in request.parameters.items()}
            assert (program, urlsplit(address).path) == ("curl", path.format(**given))
            queried = {name: value for name, value in given.items() if f"{{{name}}}" not in path}
            assert dict(parse_qsl(urlsplit(address).query)) == queried
            if request.media_type == JSON:
                assert options[:3] == ["-H", f"Content-Type: {JSON}", "-d"]
                assert json.loads(options[3]) == request.body
            elif request.media_type:
                assert options == ["--data-urlencode", *("=".join(field) for field in request.body.items())]
            else:
                assert options == (["-O"] if exchange.answer.size else [])


# -- What the service answers


@pytest.fixture(scope="module")
async def client(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the application on the demo, at the address of `make run`."""
    with new_database(server, migrated) as url:
        await import_into(url, "demo")
        async with running_app(url) as app, client_of(app) as client:
            client.base_url = httpx.URL(SERVICE)
            yield client


@pytest.mark.tail
@pytest.mark.parametrize("operation_id", sorted(REQUESTS.keys() - {"list_changes"}))
async def test_service_answers_as_recorded(
    client: httpx.AsyncClient, document: dict[str, Any], operation_id: str
) -> None:
    await assert_recorded(client, document, operation_id)


@pytest.mark.tail
async def test_problem_that_operations_share_is_an_answer_of_the_service(
    client: httpx.AsyncClient, document: dict[str, Any]
) -> None:
    answer = await client.get(LOCALIDADES, params={"page": "first"})
    problems = document["paths"][LOCALIDADES]["get"]["responses"]["422"]["content"]
    assert answer.json() == problems[answer.headers["content-type"]]["example"]


@pytest.mark.tail
async def test_service_lists_changes_as_recorded(database: str, document: dict[str, Any], tmp_path: Path) -> None:
    """The demo is a single release, so these are two with its places in Aguascalientes."""
    header, *places = (line for line in generate_demo() if line.startswith(('"CVEGEO"', '"01')))
    changed = [
        line.replace('"Ejido San Pedro Segundo"', '"San Pedro Segundo"') for line in places if LEFT_OUT not in line
    ]
    for release, lines in ((BEFORE, places), (AFTER, changed)):
        path = tmp_path / f"{release}.csv"
        path.write_text("\n".join([header, *lines]))
        await import_into(database, path)
    async with running_app(database, in_background=False) as app, client_of(app) as client:
        await assert_recorded(client, document, "list_changes")


async def assert_recorded(client: httpx.AsyncClient, document: dict[str, Any], id_: str) -> None:
    """Compare the answers to an operation's requests with its file."""
    [(method, path)] = [(method, path) for method, path, one in operations(document) if one["operationId"] == id_]
    exchanges: dict[str, Any] = {}
    for name, request in REQUESTS[id_].items():
        exchange = Exchange(request=request, answer=await ask(client, method, request.target(path), request))
        recorded = read_examples().get(id_, {}).get(name, exchange)
        exchanges[name] = settled(dump(exchange), dump(recorded))
    assert_golden(f"{id_}.json", f"{json.dumps(exchanges, ensure_ascii=False, indent=1)}\n".encode(), FOLDER)


def dump(exchange: Exchange) -> dict[str, Any]:
    return exchange.model_dump(exclude_defaults=True)


async def ask(client: httpx.AsyncClient, method: str, target: str, request: RecordedRequest) -> RecordedAnswer:
    """Send a request, and return what is recorded of the answer."""
    body = {}
    if request.media_type == JSON:
        body["json"] = request.body
    elif request.media_type:
        body["data"] = request.body
    answer = await client.request(method, target, headers={"Accept": "*/*"}, **body)
    assert answer.status_code < 400, (target, answer.text)
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    recorded = RecordedAnswer(
        status=answer.status_code, location=answer.headers.get("location"), media_type=media_type or None
    )
    if len(answer.content) > MAX_BYTES:
        return recorded.model_copy(update={"size": len(answer.content)})
    if media_type.endswith("json") and media_type != "application/x-ndjson":
        return recorded.model_copy(update={"body": answer.json()})
    return recorded.model_copy(update={"body": answer.text or None})


def settled(value: Any, recorded: Any) -> Any:  # noqa: ANN401  # any part of JSON
    """Return a value with what can't repeat as it was recorded."""
    match value, recorded:
        case dict(), dict():
            return {
                name: recorded[name] if name in VARYING & recorded.keys() else settled(member, recorded.get(name))
                for name, member in value.items()
            }
        case list(), list() if len(value) == len(recorded):
            return [settled(member, other) for member, other in zip(value, recorded, strict=True)]
    return value
