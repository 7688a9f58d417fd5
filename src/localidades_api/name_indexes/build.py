"""Reads a release's names from the database, and names its index."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Row

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.names import list_localities, list_other_names, list_withdrawn
from localidades_api.name_indexes.folders import digest, digest_of_code
from localidades_api.name_indexes.places import Areas, index_places
from localidades_api.names.build import build_index
from localidades_api.names.places import Former, IndexedPlace, Withdrawn

_PACKAGE = Path(__file__).parents[1]
# These determine the content of an index: whole folders, so that a new module counts unless it is named below.
_CODE = ("catalogue/folding.py", "catalogue/keys.py", "database/queries", "name_indexes", "names")
# The modules and the table that only read an index; a change to one keeps it.
_READERS = frozenset(
    {
        "name_indexes/imports.py",
        "name_indexes/open_indexes.py",
        "names/areas.py",
        "names/certainty.py",
        "names/coefficients.tsv",
        "names/differences.py",
        "names/evidence.py",
        "names/faults.py",
        "names/fields.py",
        "names/find.py",
        "names/index.py",
        "names/match.py",
        "names/match_areas.py",
        "names/ranking.py",
        "names/reader.py",
        "names/rows.py",
        "names/suggest.py",
        "names/suggest_areas.py",
        "names/weights.py",
    }
)
MAX_IN_THREAD = 20_000  # places; a separate process builds larger indexes
_TIMEOUT = 60.0  # seconds for a statement


def fingerprint(release: Release, releases: Collection[Release]) -> str:
    """Return the name of a release's index: a digest of the data and the code that it is made from."""
    sources = [release, *earlier(release, releases)]
    made_from = "/".join([digest_of_builder(), *(f"{one.name} {one.sha256} {one.localities}" for one in sources)])
    return digest(made_from)


@cache
def digest_of_builder() -> str:
    """Return a digest of the code that determines the content of an index."""
    return digest_of_code(_PACKAGE, _CODE, _READERS)


def earlier(release: Release, releases: Collection[Release]) -> list[Release]:
    """Return the releases whose names lead to places of this one; the invented demo has no history.

    The names of later ones don't, or every publication would rebuild the indexes of all releases.
    """
    return [one for one in releases if one.is_demo == release.is_demo and one.id < release.id]


async def build(url: str, release: Release, releases: Collection[Release], folder: Path) -> None:
    """Read a release's names over a separate connection, and write its index into a new folder."""
    async with reading(url) as database:
        places, withdrawn = await read(database, release, releases)
    await asyncio.to_thread(build_index, folder, places, withdrawn)


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Database]:
    """Open a separate connection."""
    database = Database.for_reading(url, pool_size=1, timeout=_TIMEOUT)
    try:
        yield database
    finally:
        await database.dispose()


async def read(
    database: Database, release: Release, releases: Collection[Release]
) -> tuple[list[IndexedPlace], Collection[Withdrawn]]:
    """Return the places of a release, and the withdrawn places that only earlier ones have."""
    before = earlier(release, releases)
    former = await list_other_names(database, release, before)
    gone = await list_withdrawn(database, release, before)
    successors = {row.other_id for row in former}
    withdrawn = {row.id: Withdrawn(row.id, row.nombre, row.municipio) for row in gone if row.id not in successors}
    return await _read_places(database, release, former), withdrawn.values()


async def _read_places(database: Database, release: Release, former_names: Iterable[Row[Any]]) -> list[IndexedPlace]:
    """Return the places of a release with their former names."""
    catalogue = CatalogueRepository(database)
    areas = Areas.of(await catalogue.list_states(release), await catalogue.list_municipalities(release, None))
    former = defaultdict(list)
    for row in former_names:
        former[row.id].append(Former(row.nombre, row.municipio, row.other_id))
    places: list[IndexedPlace] = []
    async for batch in list_localities(database, release):
        places += index_places(batch, areas, former)
    return places
