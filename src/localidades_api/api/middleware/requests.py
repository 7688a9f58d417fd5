"""Refuses requests on the wrong port, answers HEAD as GET and If-None-Match with 304, removes tracking parameters."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api.middleware.limits import refusal
from localidades_api.api.middleware.response_cache import drop_tracking
from localidades_api.api.probes import OPERATIONAL
from localidades_api.api.problems import ResponsePreferences
from localidades_api.errors import NotFoundError
from localidades_api.http.caching import is_fresh
from localidades_api.http.paths import WITH_BODY, path_of

_NOT_FOUND = NotFoundError("There is nothing at this address.")
# Headers that a 304 lacks, because they describe the content or concern only its display (RFC 9110 §15.4.5).
_OF_CONTENT = frozenset({
    b"content-type", b"content-length", b"content-encoding", b"content-range", b"content-disposition",
    b"content-security-policy", b"referrer-policy", b"x-content-type-options",
})  # fmt: skip


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


class ConditionalRequests:
    """Replaces a response whose ETag the client has with a 304, whichever route it comes from.

    The 304 ends when the response begins. The server then reports a disconnect to the route, which ends a stream.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and discard a response that the client has."""
        asked = scope["headers"] if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} else ()
        if_none_match = [line.decode("latin-1") for name, line in asked if name == b"if-none-match"]
        if not if_none_match:
            await self.app(scope, receive, send)
            return
        is_discarded = False

        async def send_if_modified(message: Message) -> None:
            nonlocal is_discarded
            if message["type"] == "http.response.start":
                is_success = HTTPStatus.OK <= message["status"] < HTTPStatus.MULTIPLE_CHOICES
                etag = Headers(raw=message["headers"]).get("etag")
                if is_success and etag and is_fresh(if_none_match, etag):
                    is_discarded = True
                    kept = [field for field in message["headers"] if field[0] not in _OF_CONTENT]
                    await send({**message, "status": HTTPStatus.NOT_MODIFIED, "headers": kept})
                    await send({"type": "http.response.body"})
            if not is_discarded:
                await send(message)

        await self.app(scope, receive, send_if_modified)


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
