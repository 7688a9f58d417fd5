"""HEAD: what GET answers, without the body, on every path."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.paths import WITH_BODY


class HeadRequests:
    """Has a HEAD answered as a GET, and drops the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, a HEAD as a GET."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        inner = {**scope, "method": "GET", WITH_BODY: False}  # the server goes by the method of its own scope
        try:
            await self._app(inner, receive, send_without_body)
        finally:
            scope.update({**inner, "method": "HEAD"})  # what routing has found is for the log
