"""The OpenAPI document matches the responses, and models the recorded ones: no member is missing or undeclared."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis

from localidades_api.api.openapi import DESCRIPTION, KEYLESS, read_examples, translate
from localidades_api.app import create_app
from localidades_api.catalogue.columns import EVERY_COLUMN
from localidades_api.html.languages.translators import _messages
from localidades_api.settings import Settings
from tests.http.test_contract import CONTRACT
from tests.support.commands import invoke
from tests.support.pages import target_of
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
ALWAYS_SENT = {"allow", "vary", "etag", "retry-after", "location"}  # wherever the document has them
Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    """Return the document; it needs no database."""
    return create_app(Settings()).openapi()


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


@pytest.fixture(scope="module")
def closed(document: Document) -> Document:
    """Return the document's models with no other members than those that they declare."""
    schemas = {
        name: {"additionalProperties": False, **schema} if "properties" in schema else schema
        for name, schema in document["components"]["schemas"].items()
    }
    return {"components": {"schemas": schemas}}


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
            headers = answer.get("headers", {}).values()
            assert all({"description", "schema", "example"} <= header.keys() for header in headers)


def test_examples_match_their_schemas(document: Document, closed: Document) -> None:
    models = document["components"]["schemas"].values()
    members = [member for model in models for member in model.get("properties", {}).values()]
    parameters = [parameter for _, operation in operations(document) for parameter in operation.get("parameters", [])]
    schemas = (*members, *(parameter["schema"] for parameter in parameters))
    examples = [(schema, example) for schema in schemas for example in schema.get("examples", [])]
    examples += [(parameter["schema"], parameter["example"]) for parameter in parameters if "example" in parameter]
    bodies = [operation.get("requestBody", {"content": {}}) for _, operation in operations(document)]
    contents = [content for body in bodies for content in body["content"].values()]
    responses = [operation["responses"].get("200", {}) for _, operation in operations(document)]
    contents += [content for response in responses for content in response.get("content", {}).values()]
    recorded = [(content["schema"], content["example"]) for content in contents if "example" in content]
    assert len(recorded) == 2 * len(read_examples())
    examples += recorded
    assert len(examples) > 100
    for schema, example in examples:
        jsonschema_rs.validate({**schema, **closed}, example)


def test_each_status_has_its_own_example_of_a_problem(document: Document, closed: Document) -> None:
    for name, operation in operations(document):
        for status in (status for status in operation["responses"] if status >= "400"):
            content = operation["responses"][status]["content"]["application/problem+json"]
            jsonschema_rs.validate({**content["schema"], **closed}, content["example"])
            assert content["example"]["status"] == int(status), (name, status)


def operation_at(document: Document, method: str, path: str) -> Document:
    """Return the operation of a path; empty for another resource or method."""
    templates = sorted(document["paths"], key=lambda template: "{" in template)  # `match/` is no `{id}/`
    fitting = (template for template in templates if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path))
    operation: Document = document["paths"].get(next(fitting, ""), {}).get(method.lower(), {})
    return operation


def test_golden_answers_have_the_headers_and_members_of_the_document(document: Document, closed: Document) -> None:
    checked = 0
    sections = [section for file in CONTRACT.glob("*.txt") for section in file.read_text().split("\n### ")]
    for head, _, body in (section.removeprefix("### ").partition("\n\n") for section in sections):
        method, target, status = head.split("\n")[0].split(" ")
        headers = dict(re.findall("^([a-z-]+): (.*)$", head, re.MULTILINE))
        operation = operation_at(document, method, target.partition("?")[0])
        if not (described := operation.get("responses", {}).get(status)):
            continue
        documented = {name.lower() for name in described.get("headers", {})}
        assert documented & ALWAYS_SENT == headers.keys() & ALWAYS_SENT, target
        if status == "200":
            assert ("etag" in headers) is ("304" in operation["responses"]), target
        media_type = headers.get("content-type")
        if media_type in {"application/json", "application/problem+json"} and "fields=" not in target:
            content = described["content"][media_type]
            dated = json.loads(body.replace("{published-at}", "2020-01-02T03:04:05Z"))
            jsonschema_rs.validate({**content["schema"], **closed}, dated)
            checked += 1
    assert checked > 30


async def test_every_header_that_is_documented_anywhere_is_sent_where_it_is_documented(
    client: httpx.AsyncClient, document: Document
) -> None:
    described = [(name, operation["responses"].get("200", {})) for name, operation in operations(document)]
    every = {header.lower() for _, response in described for header in response.get("headers", ())}
    checked = 0
    for name, response in described:
        method, path = name.split(" ")
        parameters = document["paths"][path][method.lower()].get("parameters", ())
        values = {parameter["name"]: parameter.get("example") for parameter in parameters if parameter["required"]}
        values |= dict.fromkeys(values.keys() & {"name", "since"}, "2020-01")
        answer = await client.request(method, target_of(path, values))
        if answer.status_code == 200:
            assert {header.lower() for header in response.get("headers", ())} == every & {*answer.headers}, name
            checked += 1
    assert checked > 15


async def test_problems_have_the_members_of_the_document(
    client: httpx.AsyncClient, document: Document, closed: Document
) -> None:
    """Those with members of their own, which no golden answer has."""
    body: dict[str, Any] = {"content": "[", "headers": {"Content-Type": "application/json"}}
    for answer in (
        await client.post(f"{LOCALIDADES}match/", **body),
        await client.post(f"{LOCALIDADES}match/preview/", **body),
    ):
        assert answer.status_code == 422
        content = operation_at(document, answer.request.method, answer.url.path)["responses"]["422"]["content"]
        jsonschema_rs.validate({**content[answer.headers["content-type"]]["schema"], **closed}, answer.json())


def test_command_prints_the_document(document: Document) -> None:
    assert json.loads(invoke("openapi").stdout) == document


# -- In Spanish


DESCRIBED = DESCRIPTION, KEYLESS  # each translated by itself: the second depends on what is added


def said_of(document: Document) -> set[str]:
    """Return every text of the document."""
    said: set[str] = set()

    def note(text: str) -> str:
        said.add(text)
        return text

    assert translate(document, note) == document
    return said - {"".join(DESCRIBED)} | {*DESCRIBED}


def test_every_text_of_the_document_is_translated(document: Document) -> None:
    spanish = _messages("openapi.es")
    of_columns = {column.meaning for column in EVERY_COLUMN.values()}
    assert {text for text in said_of(document) - of_columns if not spanish.get(text)} == set()
    assert set(spanish) - said_of(document) == set()


def test_translations_keep_names_paragraphs_and_numbers() -> None:
    for english, spanish in _messages("openapi.es").items():
        for kept in ("`[^`]+`", "\n\n", r"\{\w+\}", r"RFC [0-9]+|[0-9]+(?: kB| GB)"):
            assert Counter(re.findall(kept, english)) == Counter(re.findall(kept, spanish)), (english, spanish)


async def test_document_is_in_the_language_of_its_address(client: httpx.AsyncClient) -> None:
    plain = await client.get("/openapi.json")
    for query, language in (({}, "es-MX,es;q=0.9"), ({"lang": "en"}, "es")):
        answer = await client.get("/openapi.json", params=query, headers={"Accept-Language": language})
        assert answer.content == plain.content
        assert "accept-language" not in answer.headers.get("vary", "").lower()
    spanish = (await client.get("/openapi.json", params={"lang": "es"})).json()
    assert spanish["paths"][LOCALIDADES]["get"]["summary"] == "Listar localidades"
    assert {tag["name"] for tag in spanish["tags"]} == {operation["tags"][0] for _, operation in operations(spanish)}
    schemathesis.openapi.from_dict(spanish).validate()
    assert (await client.get("/openapi.json", params={"lang": "fr"})).status_code == 422
