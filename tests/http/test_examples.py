"""The examples of the OpenAPI document are requests to the demo catalogue, with the answers that it gives."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localidades_api.api import openapi
from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.application import client_of, import_into, running_app
from tests.support.golden import assert_golden
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES


@pytest.fixture(scope="module")
async def client(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the application on the demo."""
    with new_database(server, migrated) as url:
        await import_into(url, "demo")
        async with running_app(url) as app, client_of(app) as client:
            yield client


@pytest.mark.tail
async def test_service_answers_as_recorded(client: httpx.AsyncClient) -> None:
    paths = {
        operation["operationId"]: path
        for path, item in create_app(Settings()).openapi()["paths"].items()
        for operation in item.values()
    }
    recorded = {}
    for operation_id, example in openapi.read_examples().items():
        answer = await client.post(paths[operation_id], json=example["request"])
        recorded[operation_id] = {"request": example["request"], "answer": answer.raise_for_status().json()}
    assert_golden("examples.json", f"{to_text(recorded)}\n".encode(), Path(openapi.__file__).parent)


@pytest.mark.tail
async def test_problem_that_operations_share_is_an_answer_of_the_service(client: httpx.AsyncClient) -> None:
    answer = await client.get(LOCALIDADES, params={"page": "first"})
    problems = create_app(Settings()).openapi()["paths"][LOCALIDADES]["get"]["responses"]["422"]["content"]
    assert answer.json() == problems[answer.headers["content-type"]]["example"]


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
