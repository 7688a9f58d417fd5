"""The files that browsers and crawlers look for at the root of a site."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.html.renderer import root_of
from localidades_api.html.static_files import STATIC
from localidades_api.http.caching import CACHE_CONTROL
from localidades_api.http.paths import LOCALIDADES, RECONCILE

# Records, lists and pages may be indexed; these answer questions, or are files without end for a crawler.
_NOT_FOR_CRAWLERS = [
    *(f"{LOCALIDADES}{name}" for name in ("download/", "filter/", "match/", "nearest/", "suggest/", "tiles/")),
    RECONCILE,
]

router = APIRouter(route_class=DirectRoute, include_in_schema=False)


@router.get("/robots.txt")
async def get_robots(request: Request) -> Response:
    """Tell crawlers what not to ask for."""
    root = root_of(request.scope)
    lines = ["User-agent: *", *(f"Disallow: {root}{path}" for path in _NOT_FOR_CRAWLERS)]
    headers = {"Cache-Control": CACHE_CONTROL, "Content-Type": "text/plain; charset=utf-8"}
    return Response("\n".join([*lines, ""]), headers=headers)


@router.get("/favicon.ico")
async def get_icon() -> Response:
    """Return the icon for whoever does not read the page's `<link rel="icon">`, as with JSON in a browser."""
    headers = {"Cache-Control": CACHE_CONTROL, "Content-Type": "image/vnd.microsoft.icon"}
    return Response((STATIC / "favicon.ico").read_bytes(), headers=headers)
