"""The service with a failing route, and the same with middleware, for `serve --app`."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.app import create_app
from localidades_api.settings import read_settings


class Stamp:
    """Adds a header to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""

        async def send_stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-stamp", b"mine")]}
            await send(message)

        await self.app(scope, receive, send_stamped)


async def fail() -> None:
    """Raise an error, whose response has the request's id."""
    raise ArithmeticError


app = create_app(read_settings())
app.get("/fails")(fail)
stamped = create_app(read_settings())
stamped.add_middleware(Stamp)
