"""Plain requests for a cached tile of the served release, answered before routing."""

import re
from functools import cached_property

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from localidades_api.domain.mercator import Tile
from localidades_api.http.headers import complete
from localidades_api.http.paths import LOCALIDADES, OPERATION, allowed
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.interface import Middleware
from localidades_api.router import Services
from localidades_api.router.tiles import TILE

_FOLDER = f"{LOCALIDADES}tiles/"
_PATH = re.compile(rf"{_FOLDER}([0-9]{{1,2}})/([0-9]{{1,4}})/([0-9]{{1,4}})\.mvt")


class CachedTiles:
    """Answers GET requests for tiles that are cached, and passes all others on.

    It sends what routing would send, which a test checks by comparing both.
    """

    def __init__(self, inner: Middleware, app: FastAPI) -> None:
        self._inner = inner
        self._app = app

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Return a cached tile, or a 304, or ask the inner middleware."""
        if scope["path"].startswith(_FOLDER) and scope["method"] == "GET" and (response := self._respond(scope)):
            scope[OPERATION] = "get_tile"
            return response
        return self._inner.try_respond(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        await self._inner(scope, receive, send)

    def _respond(self, scope: Scope) -> RawResponse | None:
        """Return the response to a plain request; None for any other."""
        release, query = self._services.releases.served, scope["query_string"]
        numbers = _PATH.fullmatch(scope["path"])
        if release is None or numbers is None or query not in {b"", f"release={release.name}".encode()}:
            return None
        tile = Tile(*map(int, numbers.groups()))
        body = self._services.tiles.held(release, tile)
        if body is None:
            return None
        if TILE.is_held(_lines(scope, b"if-none-match"), release):
            response = TILE.not_modified(release, pinned=bool(query))
        else:
            response = TILE.answer(release, body, _lines(scope, b"accept-encoding"), pinned=bool(query))
        complete(response.headers, allowed(scope["path"]))
        return RawResponse.of(response)

    @cached_property
    def _services(self) -> Services:
        """Look them up once: each access to Starlette's `State` calls a method written in Python."""
        services: Services = self._app.state.services
        return services


def _lines(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
