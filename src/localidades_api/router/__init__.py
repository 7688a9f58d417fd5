"""The one router, with every route under /api/census."""

from fastapi import APIRouter

from localidades_api.http.paths import PREFIX
from localidades_api.router import (
    areas,
    bulk,
    downloads,
    index,
    localities,
    releases,
)
from localidades_api.router.by_key import add_slashless_twins, add_trailing_slash
from localidades_api.router.responses import (
    ERRORS,
    PageTooLargeError,
    Services,
    show_smaller_page,
)

__all__ = ["PageTooLargeError", "Services", "router", "show_smaller_page"]

router = APIRouter(prefix=PREFIX, tags=["census"], responses=ERRORS)
router.add_api_route("", add_trailing_slash, include_in_schema=False)
for part in (
    index,
    areas,
    downloads,
    bulk,
    localities,
    releases,
):  # `localidades/download/` must precede `localidades/{id}/`
    add_slashless_twins(part.router)
    router.include_router(part.router)
