"""Reads the records of a download in chunks."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import Row

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.downloads import list_records
from localidades_api.errors import DatabaseUnavailableError

CHUNK = 4000  # records: 20 ms and a megabyte of text, or 20 MB of rows, 40 MB if names are long


def check_whole(count: int, wanted: Sequence[int]) -> None:
    """Raise DatabaseUnavailableError if a statement did not return every record of a chunk."""
    if count != len(wanted):
        raise DatabaseUnavailableError(f"The database returned {count} of {len(wanted)} records of a download.")


async def rows_of(database: Database, release: Release, positions: Sequence[int]) -> AsyncIterator[Sequence[Row[Any]]]:
    """Yield the records as rows, with every column; raise DatabaseUnavailableError if some are missing."""
    for start in range(0, len(positions), CHUNK):
        wanted = positions[start : start + CHUNK]
        rows = await list_records(database, release, wanted)
        check_whole(len(rows), wanted)
        yield rows
