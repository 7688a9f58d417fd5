"""Routers: each finds the route of a request, and answers whatever happens then."""

from collections.abc import Iterable
from http import HTTPStatus

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Message, Receive, Scope, Send

from localidades_api.api.gone import describe_problem
from localidades_api.api.params import drop_tracking_parameters
from localidades_api.api.probes import METRICS
from localidades_api.api.problems import answer_error
from localidades_api.api.reconcile.entities import PREVIEW, describe_preview_problem
from localidades_api.api.responses import PageTooLargeError, show_smaller_page
from localidades_api.errors import MethodNotAllowedError, NotFoundError
from localidades_api.http.headers import complete
from localidades_api.http.paths import WITH_BODY, allowed, path_of
from localidades_api.observability.tracing import name_span

_PREFLIGHT = {
    "Access-Control-Allow-Headers": "*",
    "Access-Control-Max-Age": "86400",
}

_NOTHING = "There is nothing at this address."


class Router:
    """Answers requests: HEAD as GET, OPTIONS as CORS asks, errors as problems, all with the headers that they need.

    CORS headers are the same for every client, so that a shared cache can reuse a response for all of them. Starlette's
    middleware sends them only to requests with an Origin, and adds to Vary if there is a cookie.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._fixed: dict[str, list[BaseRoute]] = {}  # by path, found before the others
        self._others: list[BaseRoute] = []  # with parameters in their paths, tried in this order
        for route in routes:
            if isinstance(route, Route) and not route.param_convertors:
                self._fixed.setdefault(route.path, []).append(route)
            else:
                self._others.append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] != "HEAD":
            await self._answer(scope, receive, _Sender(self, scope, send))
            return
        inner = {**scope, "method": "GET", WITH_BODY: False}  # the server reads the method from its own scope
        try:
            await self._answer(inner, receive, _Sender(self, scope, send))
        finally:
            scope.update({**inner, "method": "HEAD"})  # the log needs the route that was found

    def complete(self, scope: Scope, headers: MutableHeaders) -> None:
        """Add the headers that the response to a request lacks."""
        if path_of(scope) != METRICS:
            complete(headers, None)

    def find(self, scope: Scope) -> BaseRoute:
        """Return the route of a request, and add to its scope what the route has found in it.

        Raises NotFoundError, or MethodNotAllowedError if the path has routes for other methods only.
        """
        path, is_known = path_of(scope), False
        if path.endswith("\n"):  # the `$` of Starlette's patterns matches before it, too
            raise NotFoundError(_NOTHING)
        for route in self._fixed.get(path, self._others):
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                return route
            is_known |= match is Match.PARTIAL
        raise MethodNotAllowedError if is_known else NotFoundError(_NOTHING)

    async def _answer(self, scope: Scope, receive: Receive, send: "_Sender") -> None:
        try:
            if scope["method"] == "OPTIONS" and path_of(scope) != METRICS:
                await _preflight(allowed(path_of(scope)))(scope, receive, send)
                return
            if scope["query_string"]:
                drop_tracking_parameters(scope)
            route = self.find(scope)
            name_span(scope["method"], getattr(route, "path_format", None))
            await route.handle(scope, receive, send)
        except PageTooLargeError as error:
            await show_smaller_page(error)(scope, receive, send)
        except Exception as error:
            if send.has_begun:
                raise
            describe = describe_preview_problem if path_of(scope) == PREVIEW else describe_problem
            response = await answer_error(Request(scope, receive), error, describe)
            await response(scope, receive, send)


class _Sender:
    """The `send` of one request: completes the headers, and drops the body of an answer to HEAD."""

    def __init__(self, router: Router, scope: Scope, send: Send) -> None:
        self._router = router
        self._scope = scope
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            self._router.complete(self._scope, MutableHeaders(scope=message))
        elif self._scope["method"] == "HEAD" and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def _preflight(allow: str) -> Response:
    """Let scripts of any origin use the methods, with any headers of theirs (Fetch §3.3.3)."""
    methods = allow.removesuffix(", OPTIONS").replace("GET", "GET, HEAD")
    headers = {"Access-Control-Allow-Methods": methods, **_PREFLIGHT, "Allow": allow}
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
