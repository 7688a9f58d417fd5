"""Reading a release that a server lacks or has just removed is unavailable, never an empty result."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.mercator import Frame, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database import queries
from localidades_api.database.models import localities
from localidades_api.database.pool import Database
from localidades_api.database.queries import (
    AreasRepository,
    CatalogueRepository,
    ChangesRepository,
    MapRepository,
    NamesRepository,
    NearestRepository,
    RecordsRepository,
    ReleasesRepository,
    TilesRepository,
    WscatgeoRepository,
)
from localidades_api.errors import DatabaseUnavailableError
from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.database import connected
from tests.support.postgres import new_database, run_sql

ESTADO, MUNICIPIO, LOCALITY = 1, 1001, 10010001
FILTERS = LocalityFilters(municipio_id=MUNICIPIO)


async def names_in_batches(database: Database, release: Release) -> object:
    return [rows async for rows in NamesRepository(database).list_places(release)]


# Each takes the release to read, and an earlier one.
READS: Mapping[str, Callable[[Database, Release, Release], Awaitable[object]]] = {
    "AreasRepository.list_successors": lambda d, r, o: AreasRepository(d).list_successors(r, o, MUNICIPIO),
    "AreasRepository.locate_municipalities": lambda d, r, _: AreasRepository(d).locate_municipalities(r, [MUNICIPIO]),
    "AreasRepository.locate_states": lambda d, r, _: AreasRepository(d).locate_states(r, [ESTADO]),
    "AreasRepository.summarize": lambda d, r, _: AreasRepository(d).summarize(r, MUNICIPIO, MUNICIPIO),
    "CatalogueRepository.find_last_release": lambda d, r, _: CatalogueRepository(d).find_last_release(
        localities, r, LOCALITY
    ),
    "CatalogueRepository.find_positions": lambda d, r, _: CatalogueRepository(d).find_positions(r, FILTERS),
    "CatalogueRepository.find_successor": lambda d, r, o: CatalogueRepository(d).find_successor(r, o.id, LOCALITY),
    "CatalogueRepository.get_locality": lambda d, r, _: CatalogueRepository(d).get_locality(r, LOCALITY),
    "CatalogueRepository.get_municipality": lambda d, r, _: CatalogueRepository(d).get_municipality(r, MUNICIPIO),
    "CatalogueRepository.get_state": lambda d, r, _: CatalogueRepository(d).get_state(r, ESTADO),
    "CatalogueRepository.list_between": lambda d, r, _: CatalogueRepository(d).list_between(r, LOCALITY, LOCALITY),
    "CatalogueRepository.list_history": lambda d, r, _: CatalogueRepository(d).list_history(r, LOCALITY),
    "CatalogueRepository.list_largest_among": lambda d, r, _: CatalogueRepository(d).list_largest_among(
        r, [LOCALITY], 1
    ),
    "CatalogueRepository.list_municipalities": lambda d, r, _: CatalogueRepository(d).list_municipalities(r, ESTADO),
    "CatalogueRepository.list_pages": lambda d, r, _: CatalogueRepository(d).list_pages(r, 1, 2),
    "CatalogueRepository.list_places": lambda d, r, _: CatalogueRepository(d).list_places(r, range(1, 5)),
    "CatalogueRepository.list_states": lambda d, r, _: CatalogueRepository(d).list_states(r),
    "CatalogueRepository.name_municipalities": lambda d, r, _: CatalogueRepository(d).name_municipalities(
        r, [MUNICIPIO]
    ),
    "ChangesRepository.find_changes": lambda d, r, o: ChangesRepository(d, d).find_changes(o, r),
    "ChangesRepository.list_records": lambda d, r, o: ChangesRepository(d, d).list_records(o, r, [LOCALITY]),
    "MapRepository.overview": lambda d, r, _: MapRepository(d).overview(r, FILTERS),
    "NamesRepository.list_other_names": lambda d, r, o: NamesRepository(d).list_other_names(r, [o]),
    "NamesRepository.list_places": lambda d, r, _: names_in_batches(d, r),
    "NamesRepository.list_withdrawn": lambda d, r, o: NamesRepository(d).list_withdrawn(r, [o]),
    "NearestRepository.list_nearest": lambda d, r, _: NearestRepository(d).list_nearest(r, 21.88, -102.29, 3),
    "NearestRepository.list_nearest_to_each": lambda d, r, _: NearestRepository(d).list_nearest_to_each(
        r, [(21.88, -102.29)], 3
    ),
    "RecordsRepository.list_by_key": lambda d, r, _: RecordsRepository(d).list_by_key(r, [LOCALITY]),
    "RecordsRepository.list_lines": lambda d, r, _: RecordsRepository(d).list_lines(r, range(1, 5), "csv"),
    "RecordsRepository.list_rows": lambda d, r, _: RecordsRepository(d).list_rows(r, range(1, 5)),
    "RecordsRepository.list_sheet_rows": lambda d, r, _: RecordsRepository(d).list_sheet_rows(r, range(1, 5), 1),
    "TilesRepository.read_backdrop": lambda d, r, _: TilesRepository(d).read_backdrop(r, Frame(0, 0, 64, 64, 64)),
    "TilesRepository.read_bounds": lambda d, r, _: TilesRepository(d).read_bounds(r),
    "TilesRepository.read_tile": lambda d, r, _: TilesRepository(d).read_tile(r, Tile(0, 0, 0), 10),
    "WscatgeoRepository.find_areas": lambda d, r, _: WscatgeoRepository(d).find_areas(r, "v2", "mgem", "municipio"),
    "WscatgeoRepository.list_areas": lambda d, r, _: WscatgeoRepository(d).list_areas(
        r, "v2", "mgem", MUNICIPIO, MUNICIPIO
    ),
}

READS_OF_BOTH = (
    "AreasRepository.list_successors",
    "ChangesRepository.find_changes",
    "ChangesRepository.list_records",
    "NamesRepository.list_other_names",
    "NamesRepository.list_withdrawn",
)


def test_every_query_is_covered() -> None:
    found = {
        f"{name}.{method}"
        for name in queries.__all__
        if name.endswith("Repository") and name != ReleasesRepository.__name__
        for method, _ in inspect.getmembers(getattr(queries, name), inspect.isfunction)
        if not method.startswith("_")
    }
    assert found == READS.keys()


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Database]:
    database = Database.for_reading(url, pool_size=1, timeout=20)
    try:
        yield database
    finally:
        await database.dispose()


@pytest.fixture(scope="module")
def both(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a template database with two releases that differ in a few places."""
    folder = tmp_path_factory.mktemp("missing")
    places = many(132)
    newer = [replace(places[0], nombre="Otro nombre"), *places[2:]]
    with new_database(server, migrated) as url:
        for name, rows in (("2019-01", places), ("2020-01", newer)):
            import_file(url, write_catalogue(folder / f"catun_localidad_{name}.csv", rows))
        yield url


@pytest.fixture(scope="module")
async def releases(both: str) -> Sequence[Release]:
    """Return the two releases, the earlier one first."""
    async with reading(both) as database:
        return (await ReleasesRepository(database).list_releases()).every


@pytest.fixture(scope="module")
async def present(server: str, both: str) -> AsyncIterator[Database]:
    """Yield a server with both releases and no other."""
    with new_database(server, both) as url:
        async with reading(url) as database:
            yield database


def unpublished(release: Release) -> Release:
    """Return a release that no server has."""
    return release.model_copy(update={"id": release.id + 100})


@pytest.mark.parametrize("name", READS)
async def test_existing_release_is_read(present: Database, releases: Sequence[Release], name: str) -> None:
    older, newer = releases
    await READS[name](present, newer, older)


@pytest.mark.parametrize("name", READS)
async def test_release_missing_on_the_server_is_unavailable(
    present: Database, releases: Sequence[Release], name: str
) -> None:
    older, newer = releases
    with pytest.raises(DatabaseUnavailableError, match="does not have the requested release") as caught:
        await READS[name](present, unpublished(newer), older)
    assert caught.value.is_passing


@pytest.mark.parametrize("name", READS_OF_BOTH)
async def test_second_release_missing_on_the_server_is_unavailable(
    present: Database, releases: Sequence[Release], name: str
) -> None:
    older, newer = releases
    with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
        await READS[name](present, newer, unpublished(older))


async def test_other_release_with_the_same_id_is_unavailable_once_noticed(
    server: str, both: str, releases: Sequence[Release]
) -> None:
    newer = releases[1]
    with new_database(server, both) as url:
        async with reading(url) as database:
            catalogue = CatalogueRepository(database)
            assert await catalogue.get_state(newer, ESTADO)
            await run_sql(url, "UPDATE releases SET published_at = published_at + interval '1 second'")
            for estado in (ESTADO + 40, ESTADO):  # the server is only asked again after an empty result
                with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
                    await catalogue.get_state(newer, estado)


# Municipios and estados are removed after the localities, so these are right until then.
READS_OF_AREAS = (
    "CatalogueRepository.get_municipality",
    "CatalogueRepository.get_state",
    "CatalogueRepository.list_municipalities",
    "CatalogueRepository.list_states",
    "CatalogueRepository.name_municipalities",
)
# These list the releases that have a key, or raise NotFoundError for a retired one.
READS_OF_THE_LIST = (
    "CatalogueRepository.find_last_release",
    "CatalogueRepository.list_history",
    "ChangesRepository.find_changes",
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


@pytest.fixture(scope="module")
async def detached(server: str, both: str, releases: Sequence[Release]) -> AsyncIterator[Database]:
    """Yield a server that no longer has the localities of the newer release."""
    async with retiring(server, both, releases[1], MARK, DETACH) as database:
        yield database


@pytest.fixture(scope="module")
async def cleared(server: str, both: str, releases: Sequence[Release]) -> AsyncIterator[Database]:
    """Yield a server that no longer has anything of the newer release."""
    async with retiring(server, both, releases[1], MARK, DETACH, *CLEAR) as database:
        yield database


@pytest.fixture(scope="module")
async def without_older(server: str, both: str, releases: Sequence[Release]) -> AsyncIterator[Database]:
    """Yield a server that no longer has anything of the older release."""
    async with retiring(server, both, releases[0], MARK, DETACH, *CLEAR) as database:
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
            with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
                await CatalogueRepository(database).get_locality(newer, LOCALITY)


@pytest.mark.parametrize("name", READS_OF_AREAS)
async def test_areas_are_read_until_they_are_removed(
    detached: Database, releases: Sequence[Release], name: str
) -> None:
    await detached.engine.dispose()  # a new connection hasn't found the release
    assert await READS[name](detached, releases[1], releases[0])


@pytest.mark.parametrize("name", [name for name in READS if name not in READS_OF_AREAS + READS_OF_THE_LIST])
async def test_detached_localities_are_unavailable(detached: Database, releases: Sequence[Release], name: str) -> None:
    with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
        await READS[name](detached, releases[1], releases[0])


@pytest.mark.parametrize("name", [name for name in READS if name not in READS_OF_THE_LIST])
async def test_removed_release_is_unavailable(cleared: Database, releases: Sequence[Release], name: str) -> None:
    with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
        await READS[name](cleared, releases[1], releases[0])


@pytest.mark.parametrize("name", [name for name in READS_OF_BOTH if name not in READS_OF_THE_LIST])
async def test_second_removed_release_is_unavailable(
    without_older: Database, releases: Sequence[Release], name: str
) -> None:
    with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
        await READS[name](without_older, releases[1], releases[0])
