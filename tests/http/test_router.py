"""The router under /api/census: what it sets on every answer, whatever answers."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import httpx
import pytest
from fastapi import Depends, FastAPI, Request
from starlette.responses import Response

from localidades_api.api.routes import DirectRoute
from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.pages import BROWSER
from tests.support.wire import LOCALIDADES

ANSWERS = [
    ("GET", LOCALIDADES, 200), ("HEAD", LOCALIDADES, 200), ("OPTIONS", LOCALIDADES, 204), ("PUT", LOCALIDADES, 405),
    ("GET", LOCALIDADES[:-1], 308), ("GET", f"{LOCALIDADES}?page=0", 422), ("GET", f"{LOCALIDADES}999999999/", 404),
    ("GET", "/api/census/nothing", 404), ("PUT", "/api/census/nothing", 405), ("GET", "/api/census", 308),
    ("GET", f"{LOCALIDADES}10010001/%0A", 404), ("GET", f"{LOCALIDADES}?page_size=1000&format=api", 307),
]  # fmt: skip


@pytest.mark.parametrize("root", ["", "/claves"])
@pytest.mark.parametrize(("method", "target", "status"), ANSWERS)
async def test_every_answer_has_allow_and_vary(app: FastAPI, root: str, method: str, target: str, status: int) -> None:
    """Below the path prefix of a proxy that keeps it, too."""
    transport = httpx.ASGITransport(app, root_path=root)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for accept in ({}, BROWSER):
            answer = await client.request(method, f"{root}{target}", headers=accept)
            assert answer.status_code == status
            assert answer.headers["allow"] == "GET"
            assert answer.headers["vary"].startswith("Accept")
            assert answer.headers["access-control-allow-origin"] == "*"


async def test_not_modified_has_them(client: httpx.AsyncClient) -> None:
    tag = (await client.get(LOCALIDADES)).headers["etag"]
    answer = await client.get(LOCALIDADES, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.headers["allow"], answer.headers["vary"]) == (304, "GET", "Accept")


async def test_exception_is_a_problem_that_has_them() -> None:
    app = create_app(Settings(), in_background=False)  # which has not started, so it has no services
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get(LOCALIDADES)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert (answer.headers["allow"], answer.headers["vary"]) == ("GET", "Accept")


async def _takes_another(request: Request, name: str) -> Response:
    raise NotImplementedError


async def _takes_none() -> Response:
    return Response(status_code=204)


@pytest.mark.parametrize(("path", "function"), [("/x/", _takes_another), ("/{other}/", _takes_another)])
def test_function_can_take_no_parameter_that_its_path_lacks(
    path: str, function: Callable[..., Awaitable[Response]]
) -> None:
    with pytest.raises(TypeError, match="parameters that are not in its path"):
        DirectRoute(path, function)
    assert DirectRoute(path, _takes_none).path == path


async def _waits(request: Request) -> None:
    raise NotImplementedError


async def _depends(waited: Annotated[None, Depends(_waits)]) -> Response:
    raise NotImplementedError


def test_dependency_that_waits_or_is_not_of_the_function_is_refused_when_its_route_is_declared() -> None:
    with pytest.raises(TypeError, match="_waits is a coroutine"):
        DirectRoute("/x/", _depends)
    with pytest.raises(TypeError, match="dependencies besides"):
        DirectRoute("/x/", _takes_none, dependencies=[Depends(_takes_none)])
