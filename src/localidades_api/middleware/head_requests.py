"""HEAD on every path: the response to GET, without the body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.paths import WITH_BODY


class HeadRequests:
    """Passes HEAD on as GET, and drops the body of the response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with HEAD turned into GET."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        inner = {**scope, "method": "GET", WITH_BODY: False}  # the server reads the method from its own scope
        try:
            await self._app(inner, receive, send_without_body)
        finally:
            scope.update({**inner, "method": "HEAD"})  # the log needs the route that was found
