"""A header that stops browsers from guessing content types, outside the API.

The API's own responses have it already, and HTML pages have others besides (`http.html.renderer`).
"""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.paths import PREFIX


class SecurityHeaders:
    """Adds `X-Content-Type-Options` if missing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add the missing header."""
        if scope["type"] != "http" or f"{scope['path']}/".startswith(f"{PREFIX}/"):
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("X-Content-Type-Options", "nosniff")
            await send(message)

        await self._app(scope, receive, send_secured)
