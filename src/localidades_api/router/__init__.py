"""The one router, with every route under /api/census."""

from starlette.routing import BaseRoute

from localidades_api.router import (
    areas,
    bulk,
    downloads,
    feed,
    index,
    localities,
    reconcile,
    releases,
    tiles,
)
from localidades_api.router.redirects import slash_redirects
from localidades_api.router.responses import PageTooLargeError, show_smaller_page
from localidades_api.router.services import Services

__all__ = ["PageTooLargeError", "Services", "list_routes", "show_smaller_page"]

# `localidades/download/` and others must precede `localidades/{id}/`.
_PARTS = (index, areas, downloads, bulk, tiles, localities, releases, feed)


def list_routes() -> list[BaseRoute]:
    """Return the routes of each module, and their paths without a slash last (decision 0040)."""
    routes = [route for part in (*_PARTS, *reconcile.PARTS) for route in part.router.routes]
    return [*routes, *slash_redirects(routes)]
