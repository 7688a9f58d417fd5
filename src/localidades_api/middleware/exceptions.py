"""Turns an exception in middleware into a problem response, as routing does with its own."""

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from localidades_api.http.headers import complete
from localidades_api.http.paths import allowed, is_api
from localidades_api.http.problems import FaultsAsProblems
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.interface import Middleware
from localidades_api.observability.faults import FAULTS


class MiddlewareExceptions:
    """Turns exceptions of the inner middleware into responses."""

    def __init__(self, inner: Middleware) -> None:
        self._inner = inner
        self._answering = FaultsAsProblems(inner, _complete_sender)

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Ask the inner middleware; if it raises, leave the request to the call, which may do without it."""
        try:
            return self._inner.try_respond(scope)
        except Exception as error:  # noqa: BLE001  # see above
            FAULTS.report(error, "A cached response failed, so the request is routed.", traceback=True)
            return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and turn an exception into a response."""
        await self._answering(scope, receive, send)


def _complete_sender(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the headers that every response has."""

    async def send_complete(message: Message) -> None:
        if message["type"] == "http.response.start":
            complete(MutableHeaders(scope=message), allowed(scope["path"]) if is_api(scope) else None)
        await send(message)

    return send_complete
