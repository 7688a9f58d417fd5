"""What a layer in front of routing is."""

from typing import Protocol

from starlette.types import Receive, Scope, Send

from localidades_api.fast_path import ReadyAnswer


class Layer(Protocol):
    """An ASGI application in front of routing."""

    def ready(self, scope: Scope) -> ReadyAnswer | None:
        """Return the answer if it needs no waiting; None leaves the request to the call."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
