"""The methods allowed under /api/census, and the headers of every response: CORS, and in the API Allow and Vary."""

from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.errors import MethodNotAllowedError
from localidades_api.http.headers import complete
from localidades_api.http.paths import OPERATION, allowed, is_api
from localidades_api.http.problems import problem_response
from localidades_api.router.probes import METRICS

_PREFLIGHT = {
    "Access-Control-Allow-Headers": "*",
    "Access-Control-Max-Age": "86400",
}


class ApiHeaders:
    """Sets the headers of all responses in one place, outside the handlers that turn errors into responses.

    CORS headers are the same for every client, so that a shared cache can reuse a response for all of them. Starlette's
    middleware sends them only to requests with an Origin, and adds to Vary if there is a cookie.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what the resource allows, and respond to the rest; HEAD has become GET already (`head_requests`)."""
        if scope["type"] != "http" or scope["path"] == METRICS:
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        allow = allowed(scope["path"])
        sender = complete_sender(scope, send)
        if method == "OPTIONS":
            await Response(status_code=HTTPStatus.NO_CONTENT, headers=_preflight(allow))(scope, receive, sender)
        elif is_api(scope) and method not in allow.split(", "):
            await problem_response(scope, MethodNotAllowedError(allow))(scope, receive, sender)
        else:
            try:
                await self._app(scope, receive, sender)
            finally:
                if "route" in scope:
                    scope[OPERATION] = scope["route"].name


def _preflight(allow: str) -> dict[str, str]:
    """Return the headers that let scripts of any origin use the methods, with any headers of theirs (Fetch §3.3.3)."""
    methods = allow.removesuffix(", OPTIONS").replace("GET", "GET, HEAD")
    return {"Access-Control-Allow-Methods": methods, **_PREFLIGHT, "Allow": allow}


def complete_sender(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the headers of the response to a request."""
    return ApiSender(allowed(scope["path"]) if is_api(scope) else None, send)


class ApiSender:
    """Sends the response to one request, with the headers that it lacks; `allow` is None outside the API."""

    def __init__(self, allow: str | None, send: Send) -> None:
        self._allow = allow
        self._send = send

    async def __call__(self, message: Message) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            complete(MutableHeaders(scope=message), self._allow)
        await self._send(message)
