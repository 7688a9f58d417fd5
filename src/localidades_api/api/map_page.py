"""The page with the map of the country, and with a drawing of it where a browser can't show that."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import MapQuery
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import Services, ServicesDep
from localidades_api.api.strict import STRICT
from localidades_api.catalogue.mercator import MAX_ZOOM
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries import Overview
from localidades_api.html.renderer import root_of
from localidades_api.html.svg import draw_country
from localidades_api.http.paths import LOCALIDADES, MAP_PAGE

router = APIRouter(route_class=DirectRoute)


@router.get(MAP_PAGE, include_in_schema=False, dependencies=STRICT)
async def show_map_page(request: Request, query: Annotated[MapQuery, Query()], services: ServicesDep) -> Response:
    """Show the page; as JSON, the address of the tiles, and the box around the chosen places."""
    builder = await ResponseBuilder.begin(request, query, services)
    if builder.is_not_modified:
        response = builder.not_modified()
    else:
        release = builder.release
        overview = await services.map.overview(release, query.filters)
        content = {
            "tiles": f"{root_of(request.scope)}{LOCALIDADES}tiles/{{z}}/{{x}}/{{y}}.mvt?release={release.name}",
            "maxzoom": MAX_ZOOM,
            "bounds": overview.bounds,
        }
        context = await _context(services, release, query, overview) if builder.wants_html else {}
        response = builder.answer("map.html", "Map", content, **context)
    response.headers["Vary"] = "Accept, Accept-Language" if builder.wants_html else "Accept"
    return response


async def _context(services: Services, release: Release, query: MapQuery, overview: Overview) -> dict[str, Any]:
    """Return the largest places and a drawing of them, the estados, and the names of what the filters choose."""
    states = await services.repository.list_states(release)
    names = [state.nombre for state in states if state.id == query.estado_id]
    if query.municipio_id is not None:
        named = await services.repository.name_municipalities(release, {query.municipio_id})
        names += [f"{area.nombre}, {area.estado}" for area in named.values()]
    drawing = draw_country((place.longitud, place.latitud, place.nombre) for place in overview.largest)
    return {
        "largest": overview.largest,
        "drawing": drawing,
        "states": states,
        "names": names,
        "chosen": query.filters.chosen,
    }
