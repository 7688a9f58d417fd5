"""Recorded answers have every member that the models of their routes require, and none that they do not declare."""

import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from fastapi.routing import RouteContext, iter_route_contexts
from pydantic import TypeAdapter, ValidationError

from localidades_api.api.examples import read_examples
from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.http.test_contract import CONTRACT

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
