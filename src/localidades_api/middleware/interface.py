"""The interface of middleware: an ASGI application that may also respond before a request gets a task."""

from typing import Protocol

from starlette.types import Receive, Scope, Send

from localidades_api.http.raw_response import RawResponse
from localidades_api.router.probes import OPERATIONAL


class Middleware(Protocol):
    """An ASGI application between the server and routing.

    The server calls `try_respond` once for each request, and the application only if that returned None. A middleware
    therefore counts and refuses requests in `try_respond` alone.
    """

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Return the response if it needs no waiting, or None to have the application called."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, or pass on."""


def is_operational(scope: Scope) -> bool:
    """Return whether a request is a probe or a scrape of metrics, which no limit refuses."""
    return scope["path"] in OPERATIONAL
