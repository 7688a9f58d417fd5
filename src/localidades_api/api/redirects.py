"""Redirects to canonical addresses: with the trailing slash, and without the blank fields of a form."""

from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute

from localidades_api.api.direct_route import DirectRoute


def slash_redirects(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return redirects from the slashless form of every path of some routes.

    A POST is answered there, because a redirect may lose its body.
    """
    redirects = APIRouter(route_class=DirectRoute, include_in_schema=False)
    for route in routes:
        if isinstance(route, APIRoute) and route.path.endswith("/"):
            path = route.path.rstrip("/")
            if "POST" in (route.methods or ()):
                redirects.add_api_route(path, route.endpoint, methods=["POST"], dependencies=route.dependencies)
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
    kept = [(name, value) for name, value in request.query_params.multi_items() if value]
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": f"../?{urlencode(kept)}"})


def redirect(request: Request, location: str) -> Response:
    """Redirect permanently, with the query, to a relative address, since the Host header is not trusted."""
    if query := request.scope["query_string"]:
        location += "?" + quote(query, safe="!$%&'()*+,;=:@/?-._~")
    return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": location})
