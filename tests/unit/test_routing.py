"""How much routing a request costs."""

from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from localidades_api.app import create_app
from localidades_api.http.paths import LOCALIDADES
from localidades_api.settings import Settings


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[APIRoute]:
    """Lend a list that names a route each time a request is compared with it."""
    routes: list[APIRoute] = []
    matches = APIRoute.matches

    def noted(route: APIRoute, scope: Any) -> Any:  # noqa: ANN401  # Starlette's types
        routes.append(route)
        return matches(route, scope)

    monkeypatch.setattr(APIRoute, "matches", noted)
    return routes


async def status_of(path: str) -> int:
    """Ask for an address that needs no database."""
    transport = httpx.ASGITransport(create_app(Settings(), in_background=False))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return (await client.get(path)).status_code


async def test_request_is_compared_with_few_routes(matched: list[APIRoute]) -> None:
    """FastAPI compares it with included routes once more at each level: a fifth of a request (decision 40)."""
    assert await status_of(f"{LOCALIDADES}no/such/address/") == 404
    every = {id(route) for route in matched}
    assert len(matched) == len(every)
    matched.clear()
    assert await status_of(f"{LOCALIDADES}filter/") == 303
    assert len(matched) < len(every) / 2
