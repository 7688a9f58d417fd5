"""Keys that a release does not have: 404 or 410, and the details on the page of a withdrawn locality."""

from typing import Any, NoReturn

from fastapi import Request
from sqlalchemy import Table

from localidades_api.api.problems import ProblemPage
from localidades_api.api.services import Services, services_of
from localidades_api.catalogue.locality import describe_locality, describe_near
from localidades_api.catalogue.pagination import MAX_HTML_PAGE_SIZE
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.nearest import find_nearest
from localidades_api.database.queries.withdrawn import find_last_release, find_successor
from localidades_api.errors import GoneError, LocalidadesError, NotFoundError
from localidades_api.html.svg import draw_inset, draw_map
from localidades_api.http.paths import LOCALIDADES, path_of

_NEAREST = 5


async def refuse_unknown(repository: CatalogueRepository, table: Table, release: Release, id_: int) -> NoReturn:
    """Raise GoneError for a key that an earlier release had, else NotFoundError."""
    last = await find_last_release(repository.database, table, release, id_)
    if last is None:
        raise NotFoundError("Neither this release nor an earlier one has this key.")
    is_locality = table is localities
    raise GoneError(
        last.name, await find_successor(repository.database, release, last.id, id_) if is_locality else None
    )


async def describe_problem(request: Request, error: LocalidadesError) -> ProblemPage | None:
    """Return the details for the page of a withdrawn locality; None of other problems, or without a database."""
    if not isinstance(error, GoneError) or not path_of(request.scope).startswith(LOCALIDADES):
        return None
    services, id_ = services_of(request), int(request.path_params["id"])
    try:
        release = await services.releases.get(request.query_params.get("release"))
        last = await services.releases.named(error.last_release)
        return await _describe_withdrawn(services, release, last, id_, error.successor)
    except LocalidadesError:
        return None


async def _describe_withdrawn(
    services: Services, release: Release, last: Release, id_: int, successor_id: int | None
) -> ProblemPage | None:
    row = await services.repository.get_locality(last, id_)
    if row is None:
        return None
    record = describe_locality(row)
    successor = await services.repository.get_locality(release, successor_id) if successor_id else None
    later = (other.name for other in services.releases.every if other.id > last.id and other.is_demo == last.is_demo)
    context = {
        "record": record,
        "gone_in": next(later, release.name),
        "successor": describe_locality(successor) if successor else None,
        **await _describe_around(services, release, row.nombre, record["latitud"], record["longitud"]),
        "inset": draw_inset([(record["longitud"], record["latitud"])]),
        "history": (await services.repository.list_history(release, id_))[-MAX_HTML_PAGE_SIZE:],
    }
    return ProblemPage("withdrawn.html", row.nombre, release, context)


async def _describe_around(
    services: Services, release: Release, name: str, lat: float | None, lon: float | None
) -> dict[str, Any]:
    """Return the localities near a point in degrees, and a map of them; nothing if the point is unknown."""
    if lat is None or lon is None:
        return {"nearby": [], "drawing": None}
    nearby = [describe_near(place) for place in await find_nearest(services.database, release, lat, lon, _NEAREST)]
    here = {"nombre": name, "latitud": lat, "longitud": lon}
    return {"nearby": nearby, "drawing": draw_map(here, nearby) if nearby else None}
