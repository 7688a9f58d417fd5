"""The one router, with every route under /api/census."""

from fastapi import APIRouter

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
from localidades_api.router.redirects import add_slashless_twins, add_trailing_slash
from localidades_api.router.responses import CACHEABLE_ERRORS, ERRORS, PageTooLargeError, show_smaller_page
from localidades_api.router.services import Services

__all__ = ["PageTooLargeError", "Services", "router", "show_smaller_page"]

census = APIRouter(prefix=PREFIX, responses={**ERRORS, **CACHEABLE_ERRORS})
census.add_api_route("", add_trailing_slash, include_in_schema=False)
for part in (
    index,
    areas,
    downloads,
    bulk,
    tiles,
    localities,
    releases,
):  # `localidades/download/` and others must precede `localidades/{id}/`
    add_slashless_twins(part.router)
    census.include_router(part.router)
census.include_router(feed.router)
router = APIRouter()
router.include_router(census)
router.include_router(reconcile.router, prefix=PREFIX, tags=["Reconciliation"], responses=ERRORS)
