"""Exception handlers: errors as problems, and answers to requests that match no route."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from localidades_api.api.census import add_headers
from localidades_api.api.gone import describe_problem
from localidades_api.api.probes import METRICS
from localidades_api.api.problems import PageOf, ResponsePreferences, problem_of, record_problem, translate
from localidades_api.api.redirects import redirect
from localidades_api.api.route_table import allowed_methods
from localidades_api.errors import LocalidadesError, MethodNotAllowedError, RequestError
from localidades_api.html.renderer import HTML
from localidades_api.http.conditional import EarlyResponse
from localidades_api.http.cors import answer_preflight
from localidades_api.http.paths import REQUEST_ID, is_census, path_of

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def add_exception_handlers(app: FastAPI) -> None:
    """Register a handler for each kind of error."""
    app.router.default = answer_unknown_path
    app.add_exception_handler(HTTPStatus.METHOD_NOT_ALLOWED, answer_method_not_allowed)
    app.add_exception_handler(HTTPException, answer_error)
    app.add_exception_handler(EarlyResponse, answer_early)
    for kind in (LocalidadesError, RequestValidationError, ValidationError, ClientDisconnect):
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(Exception, answer_unexpected_error)


async def answer_early(_request: Request, error: Exception) -> Response:
    """Return the response that a route has raised."""
    assert isinstance(error, EarlyResponse)  # noqa: S101  # it is registered for no other
    return error.response


async def answer_error(request: Request, error: Exception) -> Response:
    """Return the problem of an error; raise that of a model of an answer again, since it is a bug."""
    known = translate(error, request.scope.get("endpoint"))
    if isinstance(error, ValidationError) and not isinstance(known, RequestError):
        raise error
    if known is error:
        record_problem(known)
    wanted = ResponsePreferences.of(request.scope)
    if wanted.renderer is not HTML:
        return problem_of(known, wanted)
    pages: Mapping[str, PageOf] = request.app.state.problem_pages
    describe = pages.get(path_of(request.scope), describe_problem)
    return problem_of(known, wanted, await describe(request, known))


async def answer_unexpected_error(request: Request, error: Exception) -> Response:
    """Return the problem of an error that is a bug, or that this package doesn't know.

    Starlette calls this handler outside of all middleware, so it adds their headers, and raises the error again for the
    server. The telemetry has logged it.
    """
    response = problem_of(translate(error, request.scope.get("endpoint")), ResponsePreferences.of(request.scope))
    add_headers(request.scope, response.headers)
    if request_id := request.scope.get(REQUEST_ID):
        response.headers["X-Request-Id"] = request_id
    return response


async def answer_unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that matches no route.

    OPTIONS is answered for every path, a path that lacks its slash (or has one too many) is redirected, and under
    `/api/census` a method that changes something is refused, whether or not the resource exists.
    """
    if scope["type"] == "websocket":
        await WebSocketClose()(scope, receive, send)
        return
    request = Request(scope)
    response = _answer_for_any_path(request)
    if response is None and is_census(scope) and request.method not in _READING:
        raise MethodNotAllowedError(allowed_methods(scope))
    if response is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    await response(scope, receive, send)


async def answer_method_not_allowed(request: Request, _error: Exception) -> Response:
    """Answer a request whose path has a route with other methods."""
    known = _answer_for_any_path(request)
    return known or await answer_error(request, MethodNotAllowedError(allowed_methods(request.scope)))


def _answer_for_any_path(request: Request) -> Response | None:
    """Answer OPTIONS, and a path whose slash is missing or too many."""
    if request.method == "OPTIONS" and path_of(request.scope) != METRICS:
        return answer_preflight(allowed_methods(request.scope))
    location = _find_other_slash(request.scope)
    return redirect(request, location) if location else None


def _find_other_slash(scope: Scope) -> str | None:
    """Return the relative address of the path with a slash at its end, or without it, if a route has that.

    Starlette's own redirect is absolute: it trusts the Host header.
    """
    path: str = scope["path"]
    if path.endswith("//"):
        return None
    has_slash = path.endswith("/")
    other = {**scope, "path": path[:-1] if has_slash else f"{path}/"}
    if not any(route.matches(other)[0] is Match.FULL for route in scope["app"].routes if not isinstance(route, Mount)):
        return None
    name = other["path"].rstrip("/").rpartition("/")[2]
    return f"../{name}" if has_slash else f"{name}/"
