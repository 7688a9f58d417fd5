"""Additional context of HTML pages: names of parents, choices of forms, neighbours, history, charts."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Row

from localidades_api.api.params import LocalitiesQuery, MapQuery
from localidades_api.caches.tiles import TileCache
from localidades_api.catalogue.capitals import CAPITAL, CAPITALS, CIUDAD_DE_MEXICO
from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import municipalities_of, state_of
from localidades_api.catalogue.locality import describe_near
from localidades_api.catalogue.pagination import MAX_HTML_PAGE_SIZE
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.areas import count_municipalities, get_area_summary, list_cities, list_seats
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.nearest import find_nearest
from localidades_api.downloads.changes import ChangedPlace
from localidades_api.html.svg import (
    STATES,
    City,
    Country,
    draw_country,
    draw_inset,
    draw_map,
    draw_municipio,
    draw_states,
)

_NEIGHBOURS = 8  # listed
_HOMONYMS = 12  # listed
_ON_MAP = 60  # drawn
_CITIES = 44  # drawn on the country


async def draw_cities(repository: CatalogueRepository, release: Release) -> Country:
    """Draw the country with the capitals of the estados and the largest cities."""
    cities = await list_cities(repository.database, release, _CITIES)
    return draw_country(map(_city, sorted(cities, key=lambda city: -(city.poblacion or 0))))


def draw_places(places: Iterable[Row[Any]], estado_id: int | None) -> Country:
    """Draw the country with places, the largest first; those of Ciudad de México are one city, unless it is chosen."""
    cities: dict[str, City] = {}
    for place in places:
        name, path = place.nombre, f"localidades/{place.id}/"
        if state_of(place.municipio_id) == CIUDAD_DE_MEXICO != estado_id:
            name, path = CAPITAL, f"estados/{CIUDAD_DE_MEXICO}/"
        cities.setdefault(path, City(place.longitud, place.latitud, name, place.poblacion, path))
    return draw_country(cities.values())


def _city(row: Row[Any]) -> City:
    """Return a cabecera under the name that people use; one of Ciudad de México is the whole city."""
    if state_of(row.municipio_id) == CIUDAD_DE_MEXICO:
        return City(row.longitud, row.latitud, CAPITAL, row.poblacion, f"estados/{CIUDAD_DE_MEXICO}/", is_capital=True)
    name = CAPITALS.get(row.municipio_id, row.nombre.partition(" de ")[0])  # León de los Aldama
    if fold(name) not in fold(row.nombre):  # of the demo, which has other places under real keys
        name = row.nombre
    is_capital = row.municipio_id in CAPITALS
    return City(row.longitud, row.latitud, name, row.poblacion, f"localidades/{row.id}/", is_capital)


async def of_localities(
    repository: CatalogueRepository, release: Release, filters: LocalitiesQuery, content: bytes
) -> dict[str, Any]:
    """Return the details of the localities on a page of the list, and the choices of its form."""
    ids = [locality["id"] for locality in from_json(content)["results"]]
    details = {row.id: row for row in await repository.list_largest_among(release, ids, len(ids))}
    keys = list(map(int, filters.municipio_id.split(","))) if filters.municipio_id else []
    estados = {state_of(key) for key in keys} or {*filter(None, [filters.only_state])}
    estado_id = estados.pop() if len(estados) == 1 else None
    municipalities: Sequence[Row[Any]] = ()
    if len(keys) > 1:
        municipalities = [*(await repository.list_municipalities_by_key(release, keys)).values()]
    elif estado_id:
        municipalities = await repository.list_municipalities(release, estado_id)
    return {
        "form": {
            "states": await repository.list_states(release),
            "municipalities": municipalities,
            "details": details,
            "ordered": [details[id_] for id_ in ids],
            "estado_id": estado_id,
            "is_filtered": bool(filters.chosen),
            "chosen": filters.chosen,
            "on_map": _on_map(filters.chosen),
        },
        "inset": draw_inset((row.longitud, row.latitud) for row in details.values()),
    }


def _on_map(chosen: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the filters of the map, which has one area at most; None if it lacks one of these."""
    has_all = chosen.keys() <= MapQuery.model_fields.keys() and not any("," in value for value in chosen.values())
    return chosen if has_all else None


async def of_municipalities(
    repository: CatalogueRepository, release: Release, estado_id: int | None, shown: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return where the municipios on a page are, and the estados: their names, and the choices of the filter form."""
    states = await repository.list_states(release)
    names = {state.id: state.nombre for state in states}
    seats = await list_seats(repository.database, release, [row["id"] for row in shown])
    return {
        "states": states,
        "names": names,
        "estado_id": estado_id,
        "where": list(dict.fromkeys(names[row["estado_id"]] for row in shown)),
        "inset": draw_inset((seat.longitud, seat.latitud) for seat in seats),
    }


async def of_states(
    tiles: TileCache, repository: CatalogueRepository, release: Release, shown: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a drawing of the estados on a page, and how many municipios, localities and inhabitants each has."""
    cells = await tiles.state_cells(release)
    localities: Counter[int] = Counter()
    population: Counter[int] = Counter()
    for cell in cells:
        localities[cell.id] += cell.places
        population[cell.id] += cell.population or 0
    shapes = draw_states(cells)
    return {
        "frame": STATES,
        "names": {row["id"]: row["nombre"] for row in shown},
        "shapes": {row["id"]: shapes[row["id"]] for row in shown if row["id"] in shapes},
        "municipalities": await count_municipalities(repository.database, release),
        "localities": localities,
        "population": population,
    }


async def of_locality(
    repository: CatalogueRepository, release: Release, locality: Mapping[str, Any], border: bytes | None
) -> dict[str, Any]:
    """Return a locality's neighbours, a map of them, its homonyms, and its records in the newest releases.

    `border` is that of its municipio, if it is known.
    """
    context: dict[str, Any] = {
        "history": (await repository.list_history(release, locality["id"]))[-MAX_HTML_PAGE_SIZE:],
        "homonyms": await repository.list_homonyms(release, locality["id"], _HOMONYMS),
    }
    if locality["latitud"] is None or locality["longitud"] is None:
        return {**context, "nearby": [], "drawing": None, "inset": ""}
    places = await find_nearest(repository.database, release, locality["latitud"], locality["longitud"], _ON_MAP + 1)
    around = [describe_near(row) for row in places if row.id != locality["id"]]
    inset = draw_inset([(locality["longitud"], locality["latitud"])])
    drawing = await asyncio.to_thread(draw_map, locality, around, border)  # which may have 100,000 vertices
    return {**context, "nearby": around[:_NEIGHBOURS], "drawing": drawing, "inset": inset}


async def of_state(repository: CatalogueRepository, release: Release, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of an estado, and its municipios."""
    summary = await get_area_summary(repository.database, release, *municipalities_of(state["id"]))
    municipalities = await repository.list_municipalities(release, state["id"])
    by_name = sorted(municipalities, key=lambda municipality: fold(municipality.nombre))
    return {"municipalities": by_name, "chosen": {"estado_id": state["id"]}, **_sums(summary)}


async def of_municipality(
    repository: CatalogueRepository, release: Release, id_: int, border: bytes | None
) -> dict[str, Any]:
    """Return the summary of a municipio, and a map of it if its border is known."""
    summary = await get_area_summary(repository.database, release, id_, id_)
    drawing = await asyncio.to_thread(draw_municipio, border, summary.largest) if border else None
    return {"chosen": {"municipio_id": id_}, "drawing": drawing, **_sums(summary)}


def _sums(summary: Row[Any]) -> dict[str, Any]:
    """Return a summary with its sums, and its releases, oldest first."""
    past = summary.past[::-1]
    return {
        "summary": summary,
        "inset": draw_inset(summary.points),
        "kinds": {kind["ambito"]: kind["localities"] for kind in summary.kinds},
        "localities": sum(kind["localities"] for kind in summary.kinds),
        "known": sum(kind["known"] for kind in summary.kinds),
        "population": sum(kind["population"] for kind in summary.kinds),
        "past": [
            {**one, "grown": one["localidades"] - before["localidades"] if before else None}
            for before, one in zip([None, *past], past, strict=False)
        ],
    }


async def of_changes(
    repository: CatalogueRepository, release: Release, estado_id: int | None, shown: Sequence[ChangedPlace]
) -> dict[str, Any]:
    """Return the changes on a page by kind, and the estados, the choices of the filter form."""
    by_kind = groupby(shown, key=lambda change: change.content["change"])
    return {
        "states": await repository.list_states(release),
        "estado_id": estado_id,
        "groups": [(kind, list(changes)) for kind, changes in by_kind],
        "figures": [name for name in ATTRIBUTES if name not in POINT],
    }
