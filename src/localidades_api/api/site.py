"""The routes outside of the API: pages, documentation, files and probes."""

from starlette.responses import Response
from starlette.routing import BaseRoute, Mount

from localidades_api.api import documentation, map_page, match_page, probes, problem_types, site_files
from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.redirects import slashless_redirects
from localidades_api.html.static_files import STATIC, CompressedStaticFiles
from localidades_api.http.paths import PREFIX

_PAGES = (problem_types, match_page, map_page, documentation)


def list_routes() -> list[BaseRoute]:
    """Return the routes of each module, and the paths of pages with a slash last, as people type them."""
    pages = [route for part in _PAGES for route in part.router.routes]
    return [
        *pages,
        *slashless_redirects(pages),
        *probes.router.routes,
        *site_files.router.routes,
        Mount(documentation.SWAGGER_UI, documentation.swagger_ui),
        Mount("/static", CompressedStaticFiles(directory=STATIC), name="static"),
        DirectRoute("/", _go_to_index, include_in_schema=False),
    ]


async def _go_to_index() -> Response:
    return Response(status_code=307, headers={"Location": PREFIX.lstrip("/") + "/"})
