"""Routes that read their parameters themselves, and redirects to canonical addresses."""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends, Query
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from localidades_api.api.params import read_query


class DirectRoute(APIRoute):
    """A route to a function of the request, the parameters in its path, a model of its query, and dependencies.

    A dependency is a plain function of the request. FastAPI's own way from a route to its function also takes bodies,
    dependencies that wait, and what has to be closed afterwards, which costs a fifth of a request
    (docs/decisions/tree.md).
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401  # FastAPI's
        super().__init__(path, endpoint, **options)
        if self.dependencies:
            raise TypeError(f"{path} has dependencies besides those of its function, which nothing would call")
        self._dependencies: dict[str, Callable[[Request], Any]] = {}
        self._path: dict[str, TypeAdapter[Any]] = {}
        self._query: tuple[str, TypeAdapter[Any]] | None = None
        for name, hint in get_type_hints(endpoint, include_extras=True).items():
            marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
            if name == "return":
                continue
            if hint is Request:
                self._dependencies[name] = lambda request: request
            elif depends := next((mark for mark in marks if isinstance(mark, Depends)), None):
                self._dependencies[name] = _function_of(depends)
            elif any(isinstance(mark, Query) for mark in marks):
                self._query = name, TypeAdapter(hint)
            else:
                self._path[name] = TypeAdapter(hint)
        if not self._path.keys() <= self.param_convertors.keys():
            raise TypeError(f"{endpoint.__name__} takes parameters that are not in its path, {path}")

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the function with its parameters, and send the response that it returns."""
        request = Request(scope, receive, send)
        response = await self.endpoint(**self._read(request))
        await response(scope, receive, send)

    def _read(self, request: Request) -> dict[str, Any]:
        """Return what the function takes; raise RequestValidationError with everything that is wrong."""
        query = read_query(request) if self._query else {}
        taken = {name: get(request) for name, get in self._dependencies.items()}
        faults: list[Any] = []
        for name, adapter in self._path.items():
            try:
                taken[name] = adapter.validate_python(request.path_params[name])
            except ValidationError as error:
                faults += _faults(error, "path", name)
        if self._query:
            name, adapter = self._query
            try:
                taken[name] = adapter.validate_python(query)
            except ValidationError as error:
                faults += _faults(error, "query")
        if faults:
            raise RequestValidationError(faults)
        return taken


def _function_of(depends: Depends) -> Callable[[Request], Any]:
    assert depends.dependency  # noqa: S101  # FastAPI has set it
    if iscoroutinefunction(depends.dependency):
        raise TypeError(f"{depends.dependency.__name__} is a coroutine: a dependency of a DirectRoute can't wait")
    return depends.dependency


def _faults(error: ValidationError, *place: str) -> list[dict[str, Any]]:
    return [{**fault, "loc": (*place, *fault["loc"])} for fault in error.errors(include_url=False)]


def slash_redirects(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return redirects from the slashless form of every path of some routes.

    A POST is answered there, because a redirect may lose its body.
    """
    redirects = APIRouter(route_class=DirectRoute, include_in_schema=False)
    for route in routes:
        if isinstance(route, APIRoute) and route.path.endswith("/"):
            path = route.path.rstrip("/")
            if "POST" in (route.methods or ()):
                redirects.add_api_route(path, route.endpoint, methods=["POST"])
            else:
                redirects.add_api_route(path, add_trailing_slash)
    return redirects.routes


def slashless_redirects(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return redirects to the paths of some routes from the same paths with a slash, as people type them."""
    redirects = APIRouter(route_class=DirectRoute, include_in_schema=False)
    for route in routes:
        if isinstance(route, APIRoute):
            redirects.add_api_route(f"{route.path}/", drop_trailing_slash)
    return redirects.routes


async def add_trailing_slash(request: Request) -> Response:
    """Redirect to the path with its trailing slash."""
    return redirect(request, quote(request.scope["path"].rpartition("/")[2]) + "/")


async def drop_trailing_slash(request: Request) -> Response:
    """Redirect to the path without its trailing slash: the route's, since a request's may end in a newline too."""
    return redirect(request, f"../{request.scope['route'].path.rstrip('/').rpartition('/')[2]}")


async def leave_out_blanks(request: Request) -> Response:
    """Redirect a form to the list above, without its blank fields: a browser submits every field."""
    return see_list(filled(request))


def filled(request: Request) -> dict[str, str]:
    """Return the fields of a form that aren't blank."""
    return {name: value for name, value in read_query(request).items() if value}


def see_list(query: Mapping[str, str]) -> Response:
    """Redirect a form to the list above it."""
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": f"../?{urlencode(query)}"})


def redirect(request: Request, location: str) -> Response:
    """Redirect permanently, with the query, to a relative address, since the Host header is not trusted."""
    if query := request.scope["query_string"]:
        location += "?" + quote(query, safe="!$%&'()*+,;=:@/?-._~")
    return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": location})
