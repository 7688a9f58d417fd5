"""Reads a release's names from the database, and names its index."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Row

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.names import list_localities
from localidades_api.name_indexes.folders import digest, digest_of_code
from localidades_api.name_indexes.history import History
from localidades_api.name_indexes.places import Areas
from localidades_api.names.build import build_index
from localidades_api.names.places import IndexedPlace, Withdrawn

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
    database: Database, release: Release, releases: Collection[Release], history: History | None = None
) -> tuple[Iterable[IndexedPlace], Iterable[Withdrawn]]:
    """Return the places of a release, and the withdrawn places that only earlier ones have.

    A `history` that has the release already, such as one that is not in the database yet, is continued.
    """
    catalogue = CatalogueRepository(database)
    if history is None:
        areas = Areas.of(await catalogue.list_states(release), await catalogue.list_municipalities(release, None))
        history = History(await _list_all(database, release), areas)
    for before in earlier(release, releases):
        history.add(await _list_all(database, before), await catalogue.list_municipalities(before, None))
    return history.places(), history.withdrawn()


async def _list_all(database: Database, release: Release) -> list[Row[Any]]:
    return [row async for batch in list_localities(database, release) for row in batch]
