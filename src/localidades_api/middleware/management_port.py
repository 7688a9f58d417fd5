"""A separate port for probes and metrics."""

from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.api.probes import OPERATIONAL
from localidades_api.errors import NotFoundError
from localidades_api.middleware.refusals import refusal

_NOT_FOUND = NotFoundError("There is nothing at this address.")


class ManagementPort:
    """Serves probes and metrics on the management port only, and nothing else there."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or respond with 404 on the wrong port."""
        is_wrong = scope["type"] == "http" and (scope["server"][1] == self._port) != (scope["path"] in OPERATIONAL)
        await (refusal(scope, _NOT_FOUND) if is_wrong else self._app)(scope, receive, send)
