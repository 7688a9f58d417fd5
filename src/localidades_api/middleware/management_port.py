"""A port of their own for probes and figures."""

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from localidades_api.errors import NotFoundError
from localidades_api.http.problems import problem_response
from localidades_api.middleware.cached_pages import RawResponse
from localidades_api.middleware.interface import Middleware, is_operational


class ManagementPort:
    """Leads to what is for operators on this port alone, and to nothing else on it."""

    def __init__(self, layer: Middleware, port: int) -> None:
        self._layer = layer
        self._port = port

    def ready(self, scope: Scope) -> RawResponse | None:
        """Return what is at hand; nothing of it is for operators."""
        return None if scope["server"][1] == self._port else self._layer.ready(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what came to the right port."""
        if scope["type"] == "lifespan":
            scope["state"].setdefault("front", self)
        if scope["type"] == "http" and (scope["server"][1] == self._port) != is_operational(scope):
            error = NotFoundError("There is nothing at this address.")
            await problem_response(Request(scope, receive), error)(scope, receive, send)
            return
        await self._layer(scope, receive, send)
