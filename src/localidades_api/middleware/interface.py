"""What a middleware is: an ASGI application that may also respond before a task is made for the request."""

from typing import Protocol

from starlette.types import Receive, Scope, Send

from localidades_api.http.raw_response import RawResponse
from localidades_api.router.probes import OPERATIONAL


class Middleware(Protocol):
    """An ASGI application between the server and routing.

    The server calls `try_respond` once for each request, and the application only where that returned None: whatever a
    middleware counts or refuses, it counts or refuses there.
    """

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Return the response if it takes no waiting; None leaves the request to the call."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, or pass on."""


def is_operational(scope: Scope) -> bool:
    """Tell whether a request is a probe's or a collector's: whoever runs the service is never refused."""
    return scope["path"] in OPERATIONAL
