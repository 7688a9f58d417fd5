"""The router of `/api/census`, and the headers of each answer there."""

from fastapi import APIRouter
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api import areas, bulk, counts, downloads, localities, redirects, releases, tiles
from localidades_api.api.probes import METRICS
from localidades_api.api.route_table import RouteTable, allowed_methods, is_guarded
from localidades_api.http.headers import complete, make_private
from localidades_api.http.paths import is_census, path_of

# It has the routes of each resource, not their routers: FastAPI would match a router in a router twice.
_RESOURCES = (localities, counts, areas, releases, tiles, bulk, downloads, redirects)
router = APIRouter(routes=[route for resource in _RESOURCES for route in resource.router.routes])


class ResponseHeaders:
    """Adds Allow and Vary to every answer under `/api/census`, and CORS headers to every answer.

    CORS headers are the same for every client, so that shared caches can reuse an answer for all of them. Starlette's
    CORSMiddleware sends them only to requests with an Origin; if it was added, its headers are the only ones.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add headers to the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_headers(scope, MutableHeaders(scope=message))
            await send(message)

        await self.app(scope, receive, send_with_headers)


def add_headers(scope: Scope, headers: MutableHeaders) -> None:
    """Add the headers that every answer has, and those of every answer under `/api/census`.

    No shared cache may keep the answer of a route with added dependencies, such as one that checks an API
    key, and neither may the response cache.
    """
    if is_guarded(scope):
        make_private(headers)
    if path_of(scope) != METRICS:  # for the operator: scripts of other origins can't read them
        allow = allowed_methods(scope) if is_census(scope) else None
        complete(headers, allow, cors=not RouteTable.of(scope).has_cors)
