"""A separate port for probes and metrics."""

from starlette.types import Receive, Scope, Send

from localidades_api.errors import NotFoundError
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.interface import Middleware, is_operational
from localidades_api.middleware.refusals import raw_problem

_NOT_FOUND = NotFoundError("There is nothing at this address.")


class ManagementPort:
    """Serves probes and metrics on the management port only, and nothing else there."""

    def __init__(self, inner: Middleware, port: int) -> None:
        self._inner = inner
        self._port = port

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Ask the inner middleware, or respond with 404 on the wrong port."""
        if (scope["server"][1] == self._port) != is_operational(scope):
            return raw_problem(scope, _NOT_FOUND)
        return self._inner.try_respond(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        await self._inner(scope, receive, send)
