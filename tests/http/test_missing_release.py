"""Reading a release that a server lacks or has just removed is unavailable, never an empty result."""

import inspect
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module

import asyncpg
import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.mercator import Frame, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database import queries
from localidades_api.database.models import localities
from localidades_api.database.pool import Database
from localidades_api.database.queries import areas, catalogue, changes, downloads, nearest, tiles
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.extensions.wscatgeo import queries as wscatgeo
from tests.support.application import database_with
from tests.support.catalogue import many
from tests.support.database import connected
from tests.support.postgres import new_database, run_sql

ESTADO, MUNICIPIO, LOCALITY = 1, 1001, 10010001
HOMONYM = 10010002
FILTERS = LocalityFilters(municipio_id=MUNICIPIO)
MISSING = "does not have the requested release"


# Each takes the release to read, and an earlier one.
READS: Mapping[str, Callable[[Database, Release, Release], Awaitable[object]]] = {
    "areas.count_municipalities": lambda d, r, _: areas.count_municipalities(d, r),
    "areas.get_area_summary": lambda d, r, _: areas.get_area_summary(d, r, MUNICIPIO, MUNICIPIO),
    "areas.list_centres": lambda d, r, _: areas.list_centres(d, r),
    "areas.list_cities": lambda d, r, _: areas.list_cities(d, r, 1),
    "areas.list_largest_seats": lambda d, r, _: areas.list_largest_seats(d, r, [ESTADO]),
    "areas.list_seats": lambda d, r, _: areas.list_seats(d, r, [MUNICIPIO]),
    "areas.list_successor_municipalities": lambda d, r, o: areas.list_successor_municipalities(d, r, o, MUNICIPIO),
    "catalogue.find_last_release": lambda d, r, _: CatalogueRepository(d).find_last_release(localities, r, LOCALITY),
    "catalogue.find_positions": lambda d, r, _: CatalogueRepository(d).find_positions(r, FILTERS),
    "catalogue.find_successor": lambda d, r, o: CatalogueRepository(d).find_successor(r, o.id, LOCALITY),
    "catalogue.get_locality": lambda d, r, _: CatalogueRepository(d).get_locality(r, LOCALITY),
    "catalogue.get_municipality": lambda d, r, _: CatalogueRepository(d).get_municipality(r, MUNICIPIO),
    "catalogue.get_state": lambda d, r, _: CatalogueRepository(d).get_state(r, ESTADO),
    "catalogue.list_at_positions": lambda d, r, _: CatalogueRepository(d).list_at_positions(r, range(1, 5)),
    "catalogue.list_between": lambda d, r, _: CatalogueRepository(d).list_between(r, LOCALITY, LOCALITY),
    "catalogue.list_history": lambda d, r, _: CatalogueRepository(d).list_history(r, LOCALITY),
    "catalogue.list_homonyms": lambda d, r, _: CatalogueRepository(d).list_homonyms(r, HOMONYM, 5),
    "catalogue.list_largest_among": lambda d, r, _: CatalogueRepository(d).list_largest_among(r, [LOCALITY], 1),
    "catalogue.list_localities": lambda d, r, _: anext(catalogue.list_localities(d, r)),
    "catalogue.list_municipalities": lambda d, r, _: CatalogueRepository(d).list_municipalities(r, ESTADO),
    "catalogue.list_municipalities_by_key": lambda d, r, _: CatalogueRepository(d).list_municipalities_by_key(
        r, [MUNICIPIO]
    ),
    "catalogue.list_pages": lambda d, r, _: CatalogueRepository(d).list_pages(r, 1, 2),
    "catalogue.list_states": lambda d, r, _: CatalogueRepository(d).list_states(r),
    "changes.find_changes": lambda d, r, o: changes.find_changes(d, o, r),
    "changes.get_stored_changes": lambda d, r, o: changes.get_stored_changes(d, o, r),
    "changes.list_localities_of_both": lambda d, r, o: changes.list_localities_of_both(d, o, r, [LOCALITY]),
    "downloads.list_lines": lambda d, r, _: downloads.list_lines(d, r, range(1, 5), "csv"),
    "downloads.list_records": lambda d, r, _: downloads.list_records(d, r, range(1, 5)),
    "downloads.list_records_with_keys": lambda d, r, _: downloads.list_records_with_keys(d, r, [LOCALITY]),
    "downloads.list_sheet_rows": lambda d, r, _: downloads.list_sheet_rows(d, r, range(1, 5), 1),
    "nearest.find_nearest": lambda d, r, _: nearest.find_nearest(d, r, 21.88, -102.29, 3),
    "nearest.find_nearest_to_each": lambda d, r, _: nearest.find_nearest_to_each(d, r, [(21.88, -102.29)], 3),
    "tiles.get_backdrop": lambda d, r, _: tiles.get_backdrop(d, r, Frame(0, 0, 64, 64, 64)),
    "tiles.get_bounds": lambda d, r, _: tiles.get_bounds(d, r),
    "tiles.get_overview": lambda d, r, _: tiles.get_overview(d, r, FILTERS),
    "tiles.get_tile": lambda d, r, _: tiles.get_tile(d, r, Tile(0, 0, 0), 10),
    "tiles.list_state_cells": lambda d, r, _: tiles.list_state_cells(d, r, Frame(0, 0, 64, 64, 64)),
    "wscatgeo.find_areas": lambda d, r, _: wscatgeo.find_areas(d, r, "v2", "mgem", "municipio"),
    "wscatgeo.list_areas": lambda d, r, _: wscatgeo.list_areas(d, r, "v2", "mgem", MUNICIPIO, MUNICIPIO),
}

READS_OF_BOTH = (
    "areas.list_successor_municipalities",
    "changes.find_changes",
    "changes.get_stored_changes",
    "changes.list_localities_of_both",
)


def test_every_query_is_covered() -> None:
    found = set()
    full_names = {module.name: f"{queries.__name__}.{module.name}" for module in pkgutil.iter_modules(queries.__path__)}
    for module_name, full_name in {**full_names, "wscatgeo": wscatgeo.__name__}.items():
        for holder in (import_module(full_name), CatalogueRepository):
            for name, function in inspect.getmembers(holder, inspect.isfunction):
                is_read = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
                reads_release = inspect.signature(function).parameters.keys() & {"release", "new"}
                if is_read and reads_release and function.__module__ == full_name and not name.startswith("_"):
                    found.add(f"{module_name}.{name}")
    assert found == READS.keys()


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Database]:
    database = Database.for_reading(url, pool_size=1, timeout=20)
    try:
        yield database
    finally:
        await database.dispose()


@pytest.fixture(scope="module")
def both(server: str, migrated: str) -> Iterator[str]:
    """Yield a template database with two releases that differ in a few places."""
    places = many(132)
    newer = [replace(places[0], nombre="Otro nombre"), *places[2:]]
    with database_with(server, migrated, {"2019-01": places, "2020-01": newer}) as url:
        yield url


@pytest.fixture(scope="module")
async def releases(both: str) -> Sequence[Release]:
    """Return the two releases, the earlier one first."""
    async with reading(both) as database:
        return (await get_release_snapshot(database)).every


async def test_release_missing_on_the_server_is_unavailable(both: str, releases: Sequence[Release]) -> None:
    older, newer = releases
    others = [one.model_copy(update={"id": one.id + 100}) for one in releases]
    async with reading(both) as database:
        for name, read in READS.items():
            with pytest.raises(DatabaseUnavailableError, match=MISSING) as caught:
                await read(database, others[1], older)
            assert caught.value.is_passing, name
        for name in READS_OF_BOTH:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await READS[name](database, newer, others[0])


async def test_other_release_with_the_same_id_is_unavailable_once_noticed(
    server: str, both: str, releases: Sequence[Release]
) -> None:
    with new_database(server, both) as url:
        async with reading(url) as database:
            catalogue = CatalogueRepository(database)
            assert await catalogue.get_state(releases[1], ESTADO)
            await run_sql(url, "UPDATE releases SET published_at = published_at + interval '1 second'")
            for estado in (ESTADO + 40, ESTADO):  # the server is only asked again after an empty result
                with pytest.raises(DatabaseUnavailableError, match=MISSING):
                    await catalogue.get_state(releases[1], estado)


# Municipios and estados are removed after the localities, so these are right until then.
READS_OF_AREAS = (
    "catalogue.get_municipality",
    "catalogue.get_state",
    "catalogue.list_municipalities",
    "catalogue.list_states",
    "catalogue.list_municipalities_by_key",
)
# These list the releases that have a key, or raise NotFoundError for a retired one.
READS_OF_THE_LIST = (
    "catalogue.find_last_release",
    "catalogue.list_history",
    "changes.find_changes",
    "changes.get_stored_changes",
)
# The steps of `releases.retire`.
MARK = "UPDATE releases SET retired_at = now() WHERE id = {id}"
DETACH = "ALTER TABLE localities DETACH PARTITION localities_r{id}"
CLEAR = ("DROP TABLE localities_r{id}", "DELETE FROM municipalities WHERE release_id = {id}",
         "DELETE FROM states WHERE release_id = {id}")  # fmt: skip


@asynccontextmanager
async def retiring(server: str, both: str, release: Release, *steps: str) -> AsyncIterator[Database]:
    """Yield a server that removed the rows of a release after a connection had found them."""
    with new_database(server, both) as url:
        async with reading(url) as database:
            assert await CatalogueRepository(database).get_state(release, ESTADO)
            for step in steps:
                await run_sql(url, step.format(id=release.id))
            yield database


async def test_release_marked_for_removal_is_read_while_it_has_rows(
    server: str, both: str, releases: Sequence[Release]
) -> None:
    async with retiring(server, both, releases[1], MARK) as database:
        assert await CatalogueRepository(database).get_locality(releases[1], LOCALITY)
        assert await CatalogueRepository(database).get_locality(releases[1], LOCALITY + 8999) is None


async def test_half_detached_release_is_unavailable(server: str, both: str, releases: Sequence[Release]) -> None:
    newer = releases[1]
    with new_database(server, both) as url:
        async with reading(url) as database, connected(url) as retirer, connected(url) as reader:
            assert await CatalogueRepository(database).get_locality(newer, LOCALITY)
            await retirer.execute(MARK.format(id=newer.id))
            await retirer.execute("SET statement_timeout = 1000")
            async with reader.transaction():
                await reader.execute("SELECT FROM localities")  # the detachment waits for its end
                with pytest.raises(asyncpg.QueryCanceledError):
                    await retirer.execute(f"{DETACH.format(id=newer.id)} CONCURRENTLY")
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await CatalogueRepository(database).get_locality(newer, LOCALITY)


async def test_localities_are_unavailable_once_detached_and_areas_once_removed(
    server: str, both: str, releases: Sequence[Release]
) -> None:
    older, newer = releases
    unavailable = READS.keys() - {*READS_OF_THE_LIST}
    async with retiring(server, both, newer, MARK, DETACH) as database:
        for name in unavailable - {*READS_OF_AREAS}:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await READS[name](database, newer, older)
        for name in READS_OF_AREAS:
            await database.engine.dispose()  # a new connection hasn't found the release
            assert await READS[name](database, newer, older)
    async with retiring(server, both, newer, MARK, DETACH, *CLEAR) as database:
        for name in unavailable:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await READS[name](database, newer, older)
    async with retiring(server, both, older, MARK, DETACH, *CLEAR) as database:
        for name in {*READS_OF_BOTH} - {*READS_OF_THE_LIST}:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await READS[name](database, newer, older)
