"""THE router: every route under /api/census."""

from fastapi import APIRouter

from localidades_api.paths import PREFIX
from localidades_api.router import downloads, index, localities, parents, releases
from localidades_api.router.answers import ERRORS, Catalogue, PageTooLargeError, show_smaller_page
from localidades_api.router.keys import add_slashless_twins, add_trailing_slash

__all__ = ["Catalogue", "PageTooLargeError", "router", "show_smaller_page"]

router = APIRouter(prefix=PREFIX, tags=["census"], responses=ERRORS)
router.add_api_route("", add_trailing_slash, include_in_schema=False)
for part in (index, parents, downloads, localities, releases):  # `localidades/download/` before `localidades/{id}/`
    add_slashless_twins(part.router)
    router.include_router(part.router)
