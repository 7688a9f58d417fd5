"""The one router, with every route under /api/census."""

from fastapi import FastAPI

from localidades_api.http.paths import PREFIX
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
from localidades_api.router.responses import CACHEABLE_ERRORS, ERRORS, PageTooLargeError, show_smaller_page
from localidades_api.router.services import Services

__all__ = ["PageTooLargeError", "Services", "include_routes", "show_smaller_page"]

# `localidades/download/` and others must precede `localidades/{id}/`.
_PARTS = (index, areas, downloads, bulk, tiles, localities, releases, feed)


def include_routes(app: FastAPI) -> None:
    """Include the routes of each module on their own, and the redirects to them last (decision 0039)."""
    for part in _PARTS:
        app.include_router(part.router, prefix=PREFIX, responses={**ERRORS, **CACHEABLE_ERRORS})
    for part in reconcile.PARTS:
        app.include_router(part.router, prefix=PREFIX, responses=ERRORS)
    routers = [part.router for part in (*_PARTS, *reconcile.PARTS)]
    app.include_router(slash_redirects(routers), prefix=PREFIX)
