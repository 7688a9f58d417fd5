"""Reading a release that a server lacks or has just removed is unavailable, never an empty result."""

import inspect
import pkgutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import asyncpg
import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.mercator import Frame, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database import queries
from localidades_api.database.models import localities
from localidades_api.database.pool import Database
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
MISSING = "does not have the requested release"

# The arguments of queries, by the names of their parameters, and those of queries that mean something else by a name.
ARGUMENTS: Mapping[str, object] = {
    "code": "1", "part": 0,
    "id_": LOCALITY, "ids": [LOCALITY], "estado_id": ESTADO, "first": MUNICIPIO, "last": LOCALITY,
    "at": range(1, 5), "positions": range(1, 5), "after": 1, "limit": 5, "most": 10, "format_": "csv",
    "filters": LocalityFilters(municipio_id=MUNICIPIO), "table": localities, "frame": Frame(0, 0, 64, 64, 64),
    "tile": Tile(0, 0, 0), "lat": 21.88, "lon": -102.29, "points": [(21.88, -102.29)],
    "version": "v2", "level": "mgem", "words": "municipio", "by": "estado",
}  # fmt: skip
OTHERWISE: Mapping[str, Mapping[str, object]] = {
    "get_state": {"id_": ESTADO}, "list_largest_seats": {"ids": [ESTADO]}, "list_homonyms": {"id_": HOMONYM},
    "get_municipality": {"id_": MUNICIPIO},
    "list_seats": {"ids": [MUNICIPIO]}, "list_municipalities_by_key": {"ids": [MUNICIPIO]},
    "list_pages": {"first": 1, "last": 2},
}  # fmt: skip
READS_OF_BOTH = ("find_changes", "get_stored_changes", "list_localities_of_both")
# Municipios and estados are removed after the localities, so these are right until then.
READS_OF_AREAS = (
    "get_municipality", "get_state", "list_municipalities", "list_states", "list_municipalities_by_key",
)  # fmt: skip
# These list the releases that have a key, or raise NotFoundError for a retired one.
READS_OF_THE_LIST = ("find_last_release", "list_history", "find_changes", "get_stored_changes")


def queries_of_releases() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every function that reads a release from the database, with its name."""
    names = (f"{queries.__name__}.{module.name}" for module in pkgutil.iter_modules(queries.__path__))
    for module in map(import_module, (*names, wscatgeo.__name__)):
        for holder in (module, CatalogueRepository):
            for name, function in inspect.getmembers(holder, inspect.isfunction):
                is_read = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
                reads_release = inspect.signature(function).parameters.keys() & {"release", "new"}
                if is_read and reads_release and function.__module__ == module.__name__ and not name.startswith("_"):
                    yield name, function


QUERIES = dict(queries_of_releases())


async def read(name: str, database: Database, release: Release, earlier: Release) -> object:
    """Run a query of a release; some compare it with an earlier one."""
    given = {
        "database": database, "self": CatalogueRepository(database), "release": release, "new": release,
        "old": earlier, "last_id": earlier.id, **ARGUMENTS, **OTHERWISE.get(name, {}),
    }  # fmt: skip
    parameters = inspect.signature(QUERIES[name]).parameters.values()
    found = QUERIES[name](**{one.name: given[one.name] for one in parameters if one.default is one.empty})
    return await (anext(found) if inspect.isasyncgen(found) else found)


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
        for name in QUERIES:
            with pytest.raises(DatabaseUnavailableError, match=MISSING) as caught:
                await read(name, database, others[1], older)
            assert caught.value.is_passing, name
        for name in READS_OF_BOTH:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await read(name, database, newer, others[0])


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
    unavailable = QUERIES.keys() - {*READS_OF_THE_LIST}
    async with retiring(server, both, newer, MARK, DETACH) as database:
        for name in unavailable - {*READS_OF_AREAS}:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await read(name, database, newer, older)
        for name in READS_OF_AREAS:
            await database.engine.dispose()  # a new connection hasn't found the release
            assert await read(name, database, newer, older)
    async with retiring(server, both, newer, MARK, DETACH, *CLEAR) as database:
        for name in unavailable:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await read(name, database, newer, older)
    async with retiring(server, both, older, MARK, DETACH, *CLEAR) as database:
        for name in {*READS_OF_BOTH} - {*READS_OF_THE_LIST}:
            with pytest.raises(DatabaseUnavailableError, match=MISSING):
                await read(name, database, newer, older)
