"""Builds the index of a release's names; for a whole catalogue this module runs as a separate process.

A catalogue as large as INEGI's takes seconds of processor time, and memory that a worker would never release.
"""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Row

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.names import list_localities, list_other_names, list_withdrawn
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.name_indexes.folders import digest, digest_of_code
from localidades_api.name_indexes.places import Areas, index_places
from localidades_api.names.build import build_index
from localidades_api.names.places import Former, IndexedPlace, Withdrawn

_PACKAGE = Path(__file__).parents[1]
# The modules and tables that determine the content of an index, without its readers, whose upgrades keep it.
_CODE = (
    "catalogue/folding.py",
    "catalogue/keys.py",
    "database/queries/names.py",
    "name_indexes/build.py",
    "name_indexes/places.py",
    "names/build.py",
    "names/layout.py",
    "names/naming.py",
    "names/places.py",
    "names/query.py",
    "names/text.py",
    "names/vocabulary.py",
    "names/estados.tsv",
    "names/everyday_names.tsv",
    "names/words.tsv",
)
_TIMEOUT = 60.0  # seconds for a statement
_NICENESS = 10  # requests have priority
OUTDATED = 3  # exit code if the releases or the code have changed since the index was requested


def fingerprint(release: Release, releases: Collection[Release]) -> str:
    """Return the name of a release's index: a digest of the data and the code that it is made from."""
    sources = [release, *earlier(release, releases)]
    made_from = "/".join([digest_of_builder(), *(f"{one.name} {one.sha256} {one.localities}" for one in sources)])
    return digest(made_from)


@cache
def digest_of_builder() -> str:
    """Return a digest of the code that determines the content of an index."""
    return digest_of_code(_PACKAGE, _CODE)


def earlier(release: Release, releases: Collection[Release]) -> list[Release]:
    """Return the releases whose names lead to places of this one; the invented demo has no history.

    The names of later ones don't, or every publication would rebuild the indexes of all releases.
    """
    return [one for one in releases if one.is_demo == release.is_demo and one.id < release.id]


async def build(url: str, release: Release, releases: Collection[Release], folder: Path) -> None:
    """Read a release's names over a separate connection, and write its index into a new folder."""
    database = Database.for_reading(url, pool_size=1, timeout=_TIMEOUT)
    try:
        places, withdrawn = await _read(database, release, earlier(release, releases))
    finally:
        await database.dispose()
    await asyncio.to_thread(build_index, folder, places, withdrawn)


async def _read(
    database: Database, release: Release, before: Collection[Release]
) -> tuple[list[IndexedPlace], Collection[Withdrawn]]:
    """Return the places of a release, and the withdrawn places that only earlier ones have."""
    former = await list_other_names(database, release, before)
    gone = await list_withdrawn(database, release, before)
    successors = {row.other_id for row in former}
    withdrawn = {row.id: Withdrawn(row.id, row.nombre, row.municipio) for row in gone if row.id not in successors}
    return await _read_places(database, release, former), withdrawn.values()


async def _read_places(database: Database, release: Release, former_names: Iterable[Row[Any]]) -> list[IndexedPlace]:
    """Return the places of a release with their former names."""
    catalogue = CatalogueRepository(database)
    areas = Areas(
        {row.id: row.nombre for row in await catalogue.list_states(release)},
        {row.id: (row.nombre, row.estado_id) for row in await catalogue.list_municipalities(release, None)},
    )
    former = defaultdict(list)
    for row in former_names:
        former[row.id].append(Former(row.nombre, row.municipio, row.other_id))
    places: list[IndexedPlace] = []
    async for batch in list_localities(database, release):
        places += index_places(batch, areas, former)
    return places


async def _main(name: str, folder: Path) -> None:
    url = os.environ["DATABASE_URL"]
    database = Database.for_reading(url, pool_size=1, timeout=_TIMEOUT)
    try:
        every = (await get_release_snapshot(database)).every
    finally:
        await database.dispose()
    release = next((one for one in every if one.name == name), None)
    if release is None or fingerprint(release, every) != folder.name:
        raise SystemExit(OUTDATED)
    await build(url, release, every, folder)


if __name__ == "__main__":
    os.nice(_NICENESS)
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2])))
