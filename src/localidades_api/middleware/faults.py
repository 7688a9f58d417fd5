"""The last resort: a fault of a middleware's own is a problem too, as one of routing is."""

from starlette.types import Receive, Scope, Send

from localidades_api.http.problems import FaultsAsProblems
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.api_headers import complete_sender
from localidades_api.middleware.interface import Middleware


class MiddlewareFaults:
    """Answers what escapes the middleware behind it."""

    def __init__(self, inner: Middleware) -> None:
        self._inner = inner
        self._answering = FaultsAsProblems(inner, complete_sender)

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Ask the middleware behind it; after a fault it is called, and that fault is answered."""
        try:
            return self._inner.try_respond(scope)
        except Exception:  # noqa: BLE001  # see above
            return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and answer what went wrong."""
        await self._answering(scope, receive, send)
