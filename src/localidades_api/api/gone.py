"""Keys that a release does not have: 404 or 410, and the details on the page of that problem."""

import re
from collections.abc import Sequence
from typing import Any, NoReturn
from urllib.parse import unquote

from fastapi import Request
from sqlalchemy import Table

from localidades_api.api import html_context
from localidades_api.api.problems import ProblemPage
from localidades_api.api.services import Services, services_of
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KINDS, PlaceKind, format_key, misspellings
from localidades_api.catalogue.locality import describe_locality, describe_near
from localidades_api.catalogue.pagination import MAX_HTML_PAGE_SIZE
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.nearest import find_nearest
from localidades_api.database.queries.withdrawn import find_last_release, find_successor, list_successor_municipalities
from localidades_api.errors import GoneError, InvalidPageError, LocalidadesError, NotFoundError
from localidades_api.html.svg import draw_inset, draw_map

_NEAREST = 5
_MEANT = 5
_RECORD = re.compile(r".*/(localidades|municipios)/([0-9]{1,12})/?")
_WORDS = re.compile(r"[^\W\d_][\w .'-]{2,59}")  # of a path that a person typed; a longer path is not looked up


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
    """Return the details for the page of a problem; None if there are none, or the database does not answer.

    Only the pages of keys ask the database.
    """
    path: str = request.scope["path"]
    if isinstance(error, InvalidPageError) or not isinstance(error, NotFoundError | GoneError):
        return None
    services = services_of(request)
    if not (record := _RECORD.fullmatch(path)):
        return ProblemPage(context={"meant": _suggest(services, path)})
    try:
        release = await services.releases.get(request.query_params.get("release"))
        if not isinstance(error, GoneError):
            return await _describe_unknown(services, release, record[1], record[2])
        describe = _describe_withdrawn if record[1] == "localidades" else _describe_withdrawn_municipality
        return await describe(services, release, error, int(record[2]))
    except LocalidadesError:
        pass
    return None


async def _describe_withdrawn(services: Services, release: Release, error: GoneError, id_: int) -> ProblemPage | None:
    """Return a withdrawn locality's last record, its successor, and the localities near its last point now."""
    last = await services.releases.named(error.last_release)
    row = await services.repository.get_locality(last, id_)
    if row is None:
        return None
    record = describe_locality(row)
    successor = await services.repository.get_locality(release, error.successor) if error.successor else None
    context = {
        "record": record,
        "gone_in": _first_after(services, last, release),
        "successor": describe_locality(successor) if successor else None,
        **await _describe_around(services, release, row.nombre, record["latitud"], record["longitud"]),
        "inset": draw_inset([(record["longitud"], record["latitud"])]),
        "history": (await services.repository.list_history(release, id_))[-MAX_HTML_PAGE_SIZE:],
    }
    return ProblemPage("withdrawn.html", row.nombre, release, context)


async def _describe_withdrawn_municipality(
    services: Services, release: Release, error: GoneError, id_: int
) -> ProblemPage | None:
    """Return a withdrawn municipio's last record, the new keys of its places, and the localities near its cabecera."""
    last = await services.releases.named(error.last_release)
    row = await services.repository.get_municipality(last, id_)
    if row is None:
        return None
    then = await html_context.of_municipality(services.repository, last, id_)
    seat = then["summary"]
    context = {
        "record": row,
        "gone_in": _first_after(services, last, release),
        "successors": await list_successor_municipalities(services.database, release, last, id_),
        **then,
        **await _describe_around(services, release, seat.seat, seat.seat_latitud, seat.seat_longitud),
    }
    return ProblemPage("withdrawn_municipality.html", row.nombre, release, context)


def _first_after(services: Services, last: Release, release: Release) -> str:
    """Return the first release after the last that has a key; `release` does not have it."""
    later = (one.name for one in services.releases.every if one.id > last.id and one.is_demo == last.is_demo)
    return next(later, release.name)


async def _describe_around(
    services: Services, release: Release, name: str, lat: float | None, lon: float | None
) -> dict[str, Any]:
    """Return the localities near a point in degrees, and a map of them; nothing if the point is unknown."""
    if lat is None or lon is None:
        return {"nearby": [], "drawing": None}
    nearby = [describe_near(place) for place in await find_nearest(services.database, release, lat, lon, _NEAREST)]
    here = {"nombre": name, "latitud": lat, "longitud": lon}
    return {"nearby": nearby, "drawing": draw_map(here, nearby) if nearby else None}


async def _describe_unknown(services: Services, release: Release, folder: str, typed: str) -> ProblemPage:
    """Return the places whose keys resemble one that no release has, and the municipio of that key."""
    ids = misspellings("municipio" if folder == "municipios" else "localidad", typed)
    if folder == "municipios":
        named = await services.repository.list_municipalities_by_key(release, ids)
        meant = [_place("municipio", id_, f"{row.nombre}, {row.estado}") for id_, row in named.items()]
        return ProblemPage(context={"meant": meant[:_MEANT], "is_key": True})
    rows = await services.repository.list_largest_among(release, ids, _MEANT)
    within = await services.repository.list_municipalities_by_key(release, {int(typed) // KEYS_OF_A_MUNICIPIO})
    meant = [_place("localidad", row.id, f"{row.nombre}, {row.municipio_nombre}, {row.estado_nombre}") for row in rows]
    return ProblemPage(context={"meant": meant, "is_key": True, "within": next(iter(within.values()), None)})


def _suggest(services: Services, path: str) -> Sequence[dict[str, Any]]:
    """Return the places that the last words of a path name; none if the index of names is not open."""
    words = unquote(path).rstrip("/").rpartition("/")[2].replace("-", " ").replace("_", " ")
    release = services.releases.served
    names = services.names.held(release) if release else None
    if names is None or not _WORDS.fullmatch(words):
        return []
    found = names.suggest(words, kinds=("localidad", "municipio", "estado"), limit=_MEANT)
    return [_place(area.kind, area.id, area.label) for area in found if area.match != "near"]


def _place(kind: PlaceKind, id_: int, label: str) -> dict[str, Any]:
    return {"path": f"{KINDS[kind].plural}/{id_}/", "key": format_key(kind, id_), "label": label}
