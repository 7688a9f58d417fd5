"""The OpenAPI document matches the responses, and models the recorded ones: no member is missing or undeclared."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis
from babel.messages.pofile import read_po
from fastapi.routing import RouteContext, iter_route_contexts
from pydantic import TypeAdapter, ValidationError

from localidades_api.api.examples import read_examples
from localidades_api.api.openapi import translate
from localidades_api.app import create_app
from localidades_api.catalogue.columns import EVERY_COLUMN
from localidades_api.html.reference import describe_reference
from localidades_api.settings import Settings
from tests.http.test_contract import CONTRACT
from tests.support.application import await_release, client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import execute
from tests.support.wire import LOCALIDADES, run

INDEX = "/api/census/"
STATIC = {"release": "2018-09", "name": "2018-09", "since": "2012-06"}  # parameters that name releases
Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    """Return the document; it needs no database."""
    return create_app(Settings()).openapi()


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def validate(document: Document, schema: Document, value: object) -> None:
    """Check a value against a schema of the document."""
    jsonschema_rs.validate({**schema, "components": document["components"]}, value)


async def test_operations_document_304_if_they_answer_it(client: httpx.AsyncClient, document: Document) -> None:
    documented, answered = set(), set()
    for name, operation in operations(document):
        method, _, path = name.partition(" ")
        example = next(iter(read_examples()[operation["operationId"]].values()))
        target = example.request.target(path)
        answer = await client.get(target) if method == "GET" else None
        if answer is not None and answer.status_code == 200:  # in the sample
            again = await client.get(target, headers={"If-None-Match": answer.headers.get("ETag", "")})
            answered |= {name} if again.status_code == 304 else set()
            documented |= {name} if "304" in operation["responses"] else set()
    assert documented == answered
    assert len(answered) > 10


def test_document_is_valid_openapi(document: Document) -> None:
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_every_operation_parameter_and_response_is_described(document: Document) -> None:
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert used == {tag["name"] for tag in document["tags"] if len(tag["description"]) > 20}
    for name, operation in operations(document):
        assert re.fullmatch(r"[A-Z][a-z ,]+[a-z]", operation["summary"]), name
        assert len(operation["description"]) > 20, name
        for parameter in operation.get("parameters", []):
            assert len(parameter["description"]) > 20, (name, parameter)
            assert parameter["schema"].get("examples") or "example" in parameter, (name, parameter)
        assert not {"requestBody", "304"} <= {*operation, *operation["responses"]}, name  # a POST isn't revalidated
        for status, answer in operation["responses"].items():
            assert len(answer["description"]) > 5, (name, status)
            assert all({"description", "schema", "example"} <= one.keys() for one in answer.get("headers", {}).values())


def test_examples_match_their_schemas(document: Document) -> None:
    models = document["components"]["schemas"].values()
    members = [member for model in models for member in model.get("properties", {}).values()]
    parameters = [one["schema"] for _, operation in operations(document) for one in operation.get("parameters", [])]
    examples = [(schema, example) for schema in (*members, *parameters) for example in schema.get("examples", [])]
    assert len(examples) > 100
    for schema, example in examples:
        validate(document, schema, example)


def test_each_status_has_its_own_example_of_a_problem(document: Document) -> None:
    for name, operation in operations(document):
        for status in (status for status in operation["responses"] if status >= "400"):
            content = operation["responses"][status]["content"]["application/problem+json"]
            validate(document, content["schema"], content["example"])
            assert content["example"]["status"] == int(status), (name, status)
            model = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
            assert content["example"].keys() <= model["properties"].keys(), (name, status)


JSON_BODY = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        *(
            ("POST", path, options, status)
            for path in (f"{LOCALIDADES}match/", f"{LOCALIDADES}match/preview/", f"{LOCALIDADES}nearest/")
            for options, status in (
                ({"params": {"x": 1}, "content": "{}", "headers": JSON_BODY}, 422),
                ({"content": "[", "headers": JSON_BODY}, 422),
                ({"content": "{}", "headers": {"Content-Type": "image/png"}}, 415),
            )
        ),
        ("POST", "/api/census/reconcile/", {"content": "{}", "headers": JSON_BODY}, 415),
        ("POST", "/api/census/reconcile/", {"data": {"queries": "{}", "extend": "{}"}}, 422),
        ("GET", "/api/census/reconcile/preview/", {"params": {"id": "1"}}, 422),
        ("GET", LOCALIDADES, {"params": {"page": 99}}, 404),
        ("GET", LOCALIDADES, {"headers": {"Accept": "image/png"}}, 406),
    ],
)
async def test_problems_have_no_members_that_their_schemas_lack(
    client: httpx.AsyncClient, document: Document, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    answer = await client.request(method, path, **options)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    response = document["paths"][path][method.lower()]["responses"][str(status)]
    schema = response["content"]["application/problem+json"]["schema"]
    model = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    validate(document, {**model, "additionalProperties": False}, answer.json())


@pytest.mark.parametrize(
    ("target", "status"),
    [(LOCALIDADES, 200), (INDEX, 200), (f"{LOCALIDADES}?page=4", 404), (f"{INDEX}?release=none", 404),
     (f"{LOCALIDADES}?page=0&x=1", 422)],
)  # fmt: skip
async def test_responses_match_their_schemas(
    client: httpx.AsyncClient, document: Document, target: str, status: int
) -> None:
    answer = await client.get(target)
    assert answer.status_code == status
    response = document["paths"][target.partition("?")[0]]["get"]["responses"][str(status)]
    validate(document, response["content"][answer.headers["content-type"]]["schema"], answer.json())
    documented = response["headers"]
    assert set(documented) <= {name.title().replace("Etag", "ETag") for name in answer.headers}
    always = {"Allow", "Vary", "ETag", "Last-Modified", "Cache-Control", "Catalogue-Release"}
    assert set(documented) >= (always if status == 200 else {"Allow", "Vary"})


async def test_served_document_only_adds_the_releases(client: httpx.AsyncClient, document: Document) -> None:
    served = (await client.get("/openapi.json")).json()
    assert served.pop("servers") == [{"url": "http://test"}]
    assert served != document
    for _, operation in operations(served):
        for parameter in operation.get("parameters", []):
            if parameter["name"] in STATIC:
                example = STATIC[parameter["name"]]
                parameter["schema"]["examples"] = [example]
                parameter.update({"example": example} if "example" in parameter else {})
    assert served == {name: part for name, part in document.items() if name != "servers"}
    assert (document["servers"], document["security"]) == ([{"url": "http://127.0.0.1:8000"}], [])


async def test_served_document_lists_the_current_releases(database: str, tmp_path: Path) -> None:
    async with running_app(database) as app, client_of(app) as client:
        assert await named_releases(client) == STATIC
        published = ["2019-01", "2020-01", "2021-01"]
        for index, (release, since) in enumerate(zip(published, ["2019-01", *published], strict=False)):
            await import_into(database, write_catalogue(tmp_path / f"{release}.csv", many(20 + index)))
            await await_release(client, release)
            for language in ("en", "es"):
                expected = {"release": release, "name": release, "since": since}
                assert await named_releases(client, language) == expected
        execute(database, "UPDATE current_release SET release_id = (SELECT id FROM releases WHERE name = '2020-01')")
        await await_release(client, "2020-01")
        assert await named_releases(client) == {"release": "2020-01", "name": "2020-01", "since": "2019-01"}


async def named_releases(client: httpx.AsyncClient, language: str = "en") -> dict[str, str]:
    """Return the examples of the parameters that name releases."""
    found: dict[str, str] = {}
    for _, operation in operations((await client.get("/openapi.json", params={"lang": language})).json()):
        for parameter in operation.get("parameters", []):
            if parameter["name"] in STATIC:
                [example] = parameter["schema"]["examples"]
                assert parameter.get("example", example) == example
                assert found.setdefault(parameter["name"], example) == example
    return found


def test_command_prints_the_served_document(document: Document) -> None:
    printed = run("openapi")
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == document


# -- In Spanish


def in_catalogue() -> dict[str, str]:
    """Return the translations of the document's texts."""
    with (files("localidades_api.html.languages") / "openapi.es.po").open("rb") as file:
        return {str(message.id): str(message.string) for message in read_po(file, abort_invalid=True) if message.id}


def said_of(document: Document) -> set[str]:
    """Return every text of the document, and every word that the reference adds to them."""
    said: set[str] = set()

    def note(text: str) -> str:
        said.add(text)
        return text

    assert translate(document, note) == document
    describe_reference(document, note)
    return said


def test_every_text_of_the_document_is_translated(document: Document) -> None:
    spanish = in_catalogue()
    of_columns = {column.meaning for column in EVERY_COLUMN.values()}
    assert {text for text in said_of(document) - of_columns if not spanish.get(text)} == set()
    assert set(spanish) - said_of(document) == set()


def test_translations_keep_names_paragraphs_and_numbers() -> None:
    for english, spanish in in_catalogue().items():
        for kept in ("`[^`]+`", "\n\n", r"\{\w+\}", r"RFC [0-9]+|[0-9]+(?: kB| GB)"):
            assert Counter(re.findall(kept, english)) == Counter(re.findall(kept, spanish)), (english, spanish)


async def test_spanish_document_differs_only_in_texts(client: httpx.AsyncClient) -> None:
    texts = {"summary", "description", "name", "tags"}
    english, spanish = [(await client.get("/openapi.json", params=query)).text for query in ({}, {"lang": "es"})]
    structures = [
        json.loads(text, object_hook=lambda value: {name: value[name] for name in value.keys() - texts})
        for text in (english, spanish)
    ]
    assert structures[0] == structures[1]
    document = json.loads(spanish)
    assert document["paths"][LOCALIDADES]["get"]["summary"] == "Listar localidades"
    assert {tag["name"] for tag in document["tags"]} == {one["tags"][0] for _, one in operations(document)}
    schemathesis.openapi.from_dict(document).validate()


async def test_language_of_the_document_is_that_of_its_address(client: httpx.AsyncClient) -> None:
    plain = await client.get("/openapi.json")
    for query, language in (({}, "es-MX,es;q=0.9"), ({"lang": "en"}, "es")):
        answer = await client.get("/openapi.json", params=query, headers={"Accept-Language": language})
        assert answer.content == plain.content
        assert "accept-language" not in answer.headers.get("vary", "").lower()
    assert (await client.get("/openapi.json", params={"lang": "fr"})).status_code == 422


# -- Recorded answers

PUBLISHED_AT = "2020-01-02T03:04:05Z"  # for the golden files, which leave it out


@pytest.fixture(scope="module")
def routes() -> list[RouteContext]:
    return [route for route in iter_route_contexts(create_app(Settings()).routes) if route.methods]


def route_of(routes: list[RouteContext], method: str, target: str) -> RouteContext | None:
    path = target.partition("?")[0]
    return next((one for one in routes if method in (one.methods or ()) and one.path_regex.match(path)), None)


def model_of(route: RouteContext, status: int) -> Any:  # noqa: ANN401  # a model or another type
    return route.response_model if status == HTTPStatus.OK else route.responses.get(status, {}).get("model")


def assert_declared(model: Any, body: str, name: str) -> None:  # noqa: ANN401  # as above
    adapter = TypeAdapter(model)
    try:
        declared = adapter.dump_python(adapter.validate_json(body), mode="json", by_alias=True, exclude_unset=True)
    except ValidationError as error:
        raise AssertionError(name) from error
    assert declared == json.loads(body), name


def golden() -> Iterator[tuple[str, str, int, str]]:
    """Yield the method, the target, the status and the body of each golden response that has JSON."""
    for file in CONTRACT.glob("*.txt"):
        for section in re.split("^### ", file.read_text(), flags=re.MULTILINE)[1:]:
            head, _, body = section.partition("\n\n")
            if body.strip() and re.search(r"^content-type: application/(problem\+)?json$", head, re.MULTILINE):
                method, target, status = head.split("\n")[0].split(" ")
                yield method, target, int(status), body.replace("{published-at}", PUBLISHED_AT)


def test_golden_answers_have_what_their_models_declare(routes: list[RouteContext]) -> None:
    checked = 0
    for method, target, status, body in golden():
        route = route_of(routes, method, target)
        if route and "fields=" not in target and (model := model_of(route, status)):
            assert_declared(model, body, target)
            checked += 1
    assert checked > 25


def test_recorded_examples_have_what_their_models_declare(routes: list[RouteContext]) -> None:
    by_name = {route.name: route for route in routes}
    checked = 0
    for id_, exchanges in read_examples().items():
        for name, exchange in exchanges.items():
            answer, fields = exchange.answer, exchange.request.parameters.get("fields")
            if isinstance(answer.body, dict) and not fields and (model := model_of(by_name[id_], answer.status)):
                assert_declared(model, json.dumps(answer.body), f"{id_}: {name}")
                checked += 1
    assert checked > 15
