"""The examples of the OpenAPI document are requests to the demo catalogue, with the answers that it gives.

With `--regen`, they record an operation that has none, with the examples of its required parameters, in the file of its
module. To record other requests, write them there, each with the answer `{"status": 200}`.
"""

import inspect
import json
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from localidades_api.api.examples import SERVICE, Exchange, RecordedAnswer, RecordedRequest, read_examples
from localidades_api.app import create_app
from localidades_api.importer.demo.generate import generate_demo
from localidades_api.settings import Settings
from tests.extensions.outline_files import geojson, import_outlines_into, write
from tests.support.application import client_of, import_into, running_app
from tests.support.golden import assert_golden
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

MAX_BYTES = 2_500  # of a recorded body
VARYING = {"published_at", "age_seconds", "lag_seconds", "serviceVersion"}  # members that can't repeat
BEFORE, AFTER = "2026-10", "2026-11"  # releases for the list of changes
LEFT_OUT = '"010010004"'

JSON = "application/json"
when_recorded = pytest.mark.skipif("config.getoption('--regen')", reason="others record what is missing")
# The module of each operation. Its id is the name of its function.
OPERATIONS = {
    route.endpoint.__name__: Path(inspect.getfile(route.endpoint))
    for route in iter_route_contexts(create_app(Settings()).routes)
    if getattr(route, "include_in_schema", False) and route.endpoint
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


@when_recorded
def test_every_operation_has_a_recorded_example(document: dict[str, Any]) -> None:
    described = {operation["operationId"] for _, _, operation in operations(document)}
    assert described == read_examples().keys(), "run `make regen`"


@when_recorded
def test_every_recorded_exchange_is_an_example_of_the_document(document: dict[str, Any]) -> None:
    shown = 0
    for method, path, operation in operations(document):
        for name, exchange in read_examples()[operation["operationId"]].items():
            request, answer = exchange.request, exchange.answer
            summary = f"{method.upper()} {request.target(path)}"
            if request.body is not None:
                summary += f" ({name})"
                body = operation["requestBody"]["content"][request.media_type]["examples"][name]
                assert body == {"summary": summary, "value": request.body}
            response = operation["responses"][str(answer.status)]
            if answer.body is not None:
                example = response["content"][answer.media_type]["examples"][name]
                assert example == {"summary": summary, "value": answer.body}
                shown += 1
            if answer.location:
                assert response["headers"]["Location"]["example"] == answer.location
    assert shown > 25


@when_recorded
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
async def client(
    server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the application on the demo and invented outlines, at the address of `make run`."""
    with new_database(server, migrated) as url:
        await import_into(url, "demo")
        await import_outlines_into(url, write(tmp_path_factory.mktemp("outlines"), geojson(), "mgem.json"))
        async with running_app(url) as app, client_of(app) as client:
            client.base_url = httpx.URL(SERVICE)
            yield client


@pytest.mark.tail
@pytest.mark.parametrize("operation_id", sorted(OPERATIONS.keys() - {"list_changes"}))
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
    """Compare the answers to an operation's requests with the file of its module."""
    [(method, path, operation)] = [one for one in operations(document) if one[2]["operationId"] == id_]
    required = {one["name"]: one["example"] for one in operation.get("parameters", ()) if one["required"]}
    unrecorded = Exchange(request=RecordedRequest(parameters=required), answer=RecordedAnswer(status=200))
    exchanges: dict[str, Any] = {}
    for name, recorded in read_examples().get(id_, {"example": unrecorded}).items():
        answer = await ask(client, method, recorded.request.target(path), recorded.request)
        exchanges[name] = settled(dump(Exchange(request=recorded.request, answer=answer)), dump(recorded))
    module = OPERATIONS[id_]
    file = module.parent / (f"examples/{module.stem}.json" if module.parent.name == "api" else "examples.json")
    by_operation = json.loads(file.read_bytes()) if file.exists() else {}
    assert_golden(file.name, f"{to_text({**by_operation, id_: exchanges})}\n".encode(), file.parent)


def to_text(value: Any, indent: int = 0) -> str:  # noqa: ANN401  # any part of JSON
    """Write JSON with a member a line, except for what fits in one line."""
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(text) <= 110 - indent:
        return text
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {to_text(member, indent + 1)}" for name, member in value.items()]
    else:
        parts = [to_text(member, indent + 1) for member in value]
    margin = "\n" + " " * indent
    return f"{text[0]}{margin} {f',{margin} '.join(parts)}{margin}{text[-1]}"


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
