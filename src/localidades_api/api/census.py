"""The one router under /api/census, with every route there."""

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute
from starlette.types import Scope

from localidades_api.api import areas, bulk, dataset, downloads, localities, reconcile, releases, tiles
from localidades_api.api.router import Router
from localidades_api.api.routes import slash_redirects
from localidades_api.errors import MethodNotAllowedError
from localidades_api.http.headers import complete
from localidades_api.http.paths import allowed, path_of

# Of two patterns that match a path, the first decides.
_PARTS = (areas, downloads, dataset, bulk, tiles, localities, releases, *reconcile.PARTS)


def list_routes() -> list[BaseRoute]:
    """Return the routes of each module, and their paths without a slash last (docs/decisions/tree.md)."""
    routes = [route for part in _PARTS for route in part.router.routes]
    return [*routes, *slash_redirects(routes)]


class CensusRouter(Router):
    """Answers every request under /api/census, and sets Allow and Vary on every answer: 304, 404, 405 and 500 too.

    What is refused before a request gets here has them from the same function (`http.headers.complete`).
    """

    def complete(self, scope: Scope, headers: MutableHeaders) -> None:
        """Add Allow and Vary, and the headers that every response has."""
        complete(headers, allowed(path_of(scope)))

    def find(self, scope: Scope) -> BaseRoute:
        """Return the route of a request; a method that its path does not allow is refused first."""
        allow = allowed(path_of(scope))
        if scope["method"] not in allow.split(", "):
            raise MethodNotAllowedError(allow)
        return super().find(scope)
