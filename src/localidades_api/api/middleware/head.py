"""HEAD, which FastAPI leaves out."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.paths import WITH_BODY


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
