"""What a layer in front of routing is."""

from typing import Protocol

from starlette.types import Receive, Scope, Send

from localidades_api.middleware.cached_pages import RawResponse
from localidades_api.router.probes import OPERATIONAL


class Middleware(Protocol):
    """An ASGI application in front of routing."""

    def ready(self, scope: Scope) -> RawResponse | None:
        """Return the answer if it needs no waiting; None leaves the request to the call."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""


def is_operational(scope: Scope) -> bool:
    """Tell whether a request is a probe's or a collector's: whoever runs the service is never refused."""
    return scope["path"] in OPERATIONAL
