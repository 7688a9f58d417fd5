"""The rows of every statement that reads a release, among others in which each key has another name and point."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest
from sqlalchemy import Row

from localidades_api.catalogue.area_filters import MunicipalitySort, StateSort
from localidades_api.catalogue.filters import LocalityFilters, Sort
from localidades_api.catalogue.mercator import MEXICO, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.pool import Database
from localidades_api.database.queries.areas import (
    count_municipalities,
    get_area_summary,
    list_largest_seats,
    list_seats,
    list_successor_municipalities,
)
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.changes import find_changes, get_stored_changes, list_localities_of_both
from localidades_api.database.queries.downloads import list_lines, list_records_with_keys
from localidades_api.database.queries.names import list_localities, list_other_names, list_withdrawn
from localidades_api.database.queries.nearest import find_nearest, find_nearest_to_each
from localidades_api.database.queries.releases import ReleaseSnapshot, get_release_snapshot
from localidades_api.database.queries.tiles import get_backdrop, get_bounds, get_overview, get_tile, list_state_cells
from localidades_api.database.queries.wscatgeo import find_areas, list_areas
from tests.support.application import import_into
from tests.support.catalogue import Place, write_catalogue
from tests.support.golden import assert_golden_json
from tests.support.postgres import new_database

_SEAT = {
    "ambito": "U",
    "poblacion": "900",
    "poblacion_masculina": "400",
    "poblacion_femenina": "500",
    "viviendas": "70",
}
_BAJA = {"nom_ent": "Baja California", "nom_abr": "BC"}
BEFORE = [
    Place("010010001", "Aguascalientes", nom_mun="Aguascalientes", latitud="21.88", longitud="-102.29", **_SEAT),
    Place("010010002", "Ñandú", nom_mun="Aguascalientes", latitud="21.90", longitud="-102.31", poblacion="20"),
    Place("010010003", "Paso, El", nom_mun="Aguascalientes", latitud="21.70", longitud="-102.50", poblacion="5"),
    Place("010010004", "Se va", nom_mun="Aguascalientes", latitud="21.60", longitud="-102.60"),
    Place("010010005", "Ñandú", nom_mun="Aguascalientes", latitud="-", longitud="-", altitud="-"),
    Place("010030001", "Calvillo", nom_mun="Calvillo", latitud="21.85", longitud="-102.72", **_SEAT),
    Place("010030002", "Se muda", nom_mun="Calvillo", latitud="21.75", longitud="-102.75", poblacion="12"),
    Place("010030003", "Se muda también", nom_mun="Calvillo", latitud="21.76", longitud="-102.76"),
    Place("020020001", "Mexicali", nom_mun="Mexicali", latitud="32.66", longitud="-115.47", **_BAJA, **_SEAT),
]
_MOVED = {"010030002": "010050002", "010030003": "010050003"}  # to a municipio that only the later release has
AFTER = [
    *(
        replace(one, nom_mun="Jesús María", cvegeo=_MOVED[one.cvegeo]) if one.cvegeo in _MOVED else one
        for one in [
            replace(BEFORE[0], poblacion="950"),
            replace(BEFORE[1], nombre="Ñandú Nuevo"),
            replace(BEFORE[2], latitud="21.71"),
            *BEFORE[4:5],
            *BEFORE[6:],
        ]
    ),
    Place("010050001", "Jesús María", nom_mun="Jesús María", latitud="21.96", longitud="-102.34", **_SEAT),
]
# All keys of both, under other names and elsewhere.
OTHERWISE = [
    replace(
        one, nombre=f"Otro {one.cvegeo}", nom_mun=f"Otro {one.cvegeo[:5]}", latitud=f"19.{one.cvegeo[-6:]}",
        longitud="-99.1", poblacion="1", nom_ent=f"Otro {one.cvegeo[:2]}", nom_abr="Otro", ambito="U",
    )
    for one in sorted({one.cvegeo: one for one in (*BEFORE, *AFTER)}.values(), key=lambda one: one.cvegeo)
]  # fmt: skip


@pytest.fixture(scope="module")
async def database(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    """Yield a database with four releases: the queries read the second and the third."""
    folder = tmp_path_factory.mktemp("releases")
    with new_database(server, migrated) as url:
        again = [replace(one, nombre=f"{one.nombre} más") for one in OTHERWISE]
        for name, places in (("2018-01", OTHERWISE), ("2019-01", BEFORE), ("2020-01", AFTER), ("2021-01", again)):
            await import_into(url, write_catalogue(folder / f"{name}.csv", places), allow_shrink=True)
        database = Database.for_reading(url, pool_size=1, timeout=20)
        yield database
        await database.dispose()


def plain(value: Any) -> Any:  # noqa: ANN401  # any result
    """Return a result as JSON; moments are left out."""
    match value:
        case Row():
            return plain({name: one for name, one in value._asdict().items() if name != "published_at"})
        case bytes():
            return value.decode().splitlines()
        case Release():
            return value.name
        case Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case str() | None | int() | float():
            return value
        case _:
            return [plain(one) for one in value]


Answers = AsyncIterator[tuple[str, object]]


async def of_releases(database: Database) -> Answers:
    snapshot = await get_release_snapshot(database)
    _, old, new, last = snapshot.every
    assert snapshot.current == last
    repository = CatalogueRepository(database)
    changes = await find_changes(database, old, new)
    assert changes == await get_stored_changes(database, old, new)
    yield "changes", changes
    yield "stored since another", await get_stored_changes(database, old, last)
    yield "both", list((await list_localities_of_both(database, old, new, [10010001, 10030001, 10050001])).values())
    yield "counts", {name: [since, counts] for name, (since, counts) in snapshot.changes.items()}
    yield "publications", [[one.release, one.previous, one.action] for one in snapshot.publications]

    yield "names", [row for rows in [batch async for batch in list_localities(database, new)] for row in rows]
    yield "other names", await list_other_names(database, new, [old])
    yield "withdrawn", await list_withdrawn(database, new, [old])
    yield "successors of a municipio", await list_successor_municipalities(database, new, old, 1003)
    yield "successors", [await repository.find_successor(new, old.id, id_) for id_ in (10030002, 10010004)]
    for table, id_ in ((localities, 10030002), (localities, 1), (municipalities, 1003), (states, 3)):
        yield f"last release of {id_}", await repository.find_last_release(table, new, id_)
    yield "history", await repository.list_history(new, 10010002)
    yield "homonyms", [await repository.list_homonyms(old, id_, 2) for id_ in (10010001, 10010002, 10010005)]


async def of_areas(database: Database) -> Answers:
    _, _, new, _ = (await get_release_snapshot(database)).every
    yield "municipios of the estados", await count_municipalities(database, new)
    yield "cells of the estados", sorted(map(str, await list_state_cells(database, new, MEXICO)))
    repository = CatalogueRepository(database)
    yield "municipio", await get_area_summary(database, new, 1001, 1001)
    yield "estado", await get_area_summary(database, new, 1000, 1999)
    yield "seats", await list_seats(database, new, [1001, 1005, 1003])
    yield "largest seats", await list_largest_seats(database, new, [1, 2, 3])
    for sort in get_args(StateSort):
        yield f"estados by {sort}", await repository.list_states(new, sort, [2, 1])
    for sort in get_args(MunicipalitySort):
        yield f"municipios by {sort}", await repository.list_municipalities(new, None, sort, [1005, 2002, 1001])
    yield "municipios of an estado", await repository.list_municipalities(new, 1)
    yield "areas", [await repository.get_state(new, 1), await repository.get_municipality(new, 1005)]
    yield "no areas", [await repository.get_state(new, 3), await repository.get_municipality(new, 1003)]
    yield "by key", await repository.list_municipalities_by_key(new, [1005, 1003])
    for version in ("v1", "v2"):
        yield f"{version} estados", await list_areas(database, new, version, "mgee", 1, 32)
        yield f"{version} municipios", await list_areas(database, new, version, "mgem", 1000, 1999)
        yield f"{version} baja", await find_areas(database, new, version, "mgee", "baja")
        yield f"{version} jesús", await find_areas(database, new, version, "mgem", "jesús")


async def of_localities(database: Database) -> Answers:
    _, _, new, _ = (await get_release_snapshot(database)).every
    repository, everywhere = CatalogueRepository(database), range(1, new.localities + 1)
    yield "pages", await repository.list_pages(new, 1, 1)
    yield "localidades", [await repository.get_locality(new, 10050002), await repository.get_locality(new, 10030002)]
    yield "between", await repository.list_between(new, 10010001, 10010003)
    yield "largest among", await repository.list_largest_among(new, [10010003, 10010002, 10010001, 10030002], 2)
    yield "at positions", await repository.list_at_positions(new, [5, 1, 2], ["id", "altitud"])
    for sort in get_args(Sort):
        if sort != "relevance":
            yield f"positions by {sort}", await repository.find_positions(new, LocalityFilters(), sort)
            yield f"some by {sort}", await repository.find_positions(new, LocalityFilters(), sort, [1, 4, 3, 6])
    for filters in (
        {"estado_id": 1}, {"municipio_id": 1001}, {"ambito": "U"}, {"clave": "0002"}, {"cvegeo": "010010003,010050001"},
        {"bbox": "-102.6,21.7,-102.3,21.9"}, {"estado_id": 1, "ambito": "R"},
    ):  # fmt: skip
        yield f"positions of {filters}", await repository.find_positions(new, LocalityFilters(**filters))
    for format_ in ("csv", "excel", "ndjson", "geojson"):
        yield format_, await list_lines(database, new, everywhere, format_)
    yield "lines in another order", await list_lines(database, new, [3, 1], "csv")
    yield "records", await list_records_with_keys(database, new, [10010002, 10050001, 10030002])
    for version in ("v1", "v2"):
        yield f"{version} all", await list_areas(database, new, version, "localidades", 10010001, 10010003)
        yield (
            f"{version} rural",
            await list_areas(database, new, version, "localidades", 10010001, 10059999, ambito="R"),
        )
        yield f"{version} found", await find_areas(database, new, version, "localidades", "ñandú")


async def of_points(database: Database) -> Answers:
    _, _, new, _ = (await get_release_snapshot(database)).every
    yield "nearest", await find_nearest(database, new, 21.88, -102.3, 3)
    yield "nearest to each", await find_nearest_to_each(database, new, [(32, -115), (21.7, -102.4)], 2)
    yield "bounds", await get_bounds(database, new)
    yield "overview", await get_overview(database, new, LocalityFilters(estado_id=1))
    yield "backdrop", await get_backdrop(database, new, MEXICO)
    for tile in (Tile(0, 0, 0), Tile.at(9, -102.3, 21.88)):
        yield f"tile {tile.zoom}", await get_tile(database, new, tile, 3)


@pytest.mark.parametrize("read", [of_releases, of_areas, of_localities, of_points], ids=lambda read: read.__name__)
async def test_answers_of_the_database_equal_the_golden_file(
    database: Database, read: Callable[[Database], Answers]
) -> None:
    name = read.__name__.removeprefix("of_")
    assert_golden_json(f"queries-{name}.json", {name: plain(answer) async for name, answer in read(database)})


async def test_database_without_releases_shows_none(migrated: str) -> None:
    database = Database.for_reading(migrated, pool_size=1, timeout=20)
    try:
        assert await get_release_snapshot(database) == ReleaseSnapshot([], None, {}, 0, [], is_behind=False)
    finally:
        await database.dispose()
