"""The service with middleware that adds a header: how long each response took to begin."""

from time import perf_counter

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.app import create_app
from localidades_api.settings import read_settings


class ServerTiming:
    """Adds a Server-Timing header, which browsers show beside the request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the header to its response."""
        if scope["type"] != "http":  # the start and the end of the application
            await self.app(scope, receive, send)
            return
        began = perf_counter()

        async def send_with_timing(message: Message) -> None:
            if message["type"] == "http.response.start":
                milliseconds = (perf_counter() - began) * 1000
                MutableHeaders(scope=message).append("Server-Timing", f"app;dur={milliseconds:.2f}")
            await send(message)

        await self.app(scope, receive, send_with_timing)


app = create_app(read_settings())
app.add_middleware(ServerTiming)
