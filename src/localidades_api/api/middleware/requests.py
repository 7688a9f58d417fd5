"""Refuses requests on the wrong port, answers HEAD as GET and If-None-Match with 304, removes tracking parameters."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api.middleware.limits import refusal
from localidades_api.api.middleware.response_cache import drop_tracking
from localidades_api.api.probes import OPERATIONAL
from localidades_api.api.problems import ResponsePreferences
from localidades_api.errors import NotFoundError
from localidades_api.http.paths import WITH_BODY, path_of

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


class HeadMiddleware:
    """Answers HEAD as GET, without the body: FastAPI's routes have GET alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass HEAD on as GET, and anything else as it is."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        inner = {**scope, "method": "GET", WITH_BODY: False}  # the server reads the method from its own scope
        try:
            await self.app(inner, receive, send_without_body)
        finally:
            scope.update({**inner, "method": "HEAD"})  # the log needs the route that was found


class TrackingParametersMiddleware:
    """Removes tracking parameters from the query of an HTML page; JSON refuses them as it does any unknown one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, without them."""
        if query := scope.get("query_string"):
            left = drop_tracking(query)
            if left != query and ResponsePreferences.of(scope).renderer.format == "api":
                scope["query_string"] = left
        await self.app(scope, receive, send)
