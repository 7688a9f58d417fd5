"""The management port: probes and metrics are there only, and nothing else is."""

from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.api.middleware.limits import refusal
from localidades_api.api.probes import OPERATIONAL
from localidades_api.errors import NotFoundError
from localidades_api.http.paths import path_of

_NOT_FOUND = NotFoundError("There is nothing at this address.")


class ManagementPort:
    """Serves probes and metrics on the management port only, and nothing else there."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or respond with 404 on the wrong port."""
        if scope["type"] == "http" and self._is_on_port(scope) != (path_of(scope) in OPERATIONAL):
            await refusal(scope, _NOT_FOUND).send(send)
        else:
            await self.app(scope, receive, send)

    def _is_on_port(self, scope: Scope) -> bool:
        server = scope.get("server")  # a server on a Unix socket may leave it out
        return server is not None and server[1] == self._port
