"""Reads the records of a download in chunks."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import Row

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.downloads import list_records

CHUNK = 4000  # records: 20 ms and a megabyte of text, or 20 MB of rows, 40 MB if names are long


async def rows_of(database: Database, release: Release, positions: Sequence[int]) -> AsyncIterator[Sequence[Row[Any]]]:
    """Yield the records as rows, with every column; raise DatabaseUnavailableError if some are missing."""
    for start in range(0, len(positions), CHUNK):
        yield await list_records(database, release, positions[start : start + CHUNK])
