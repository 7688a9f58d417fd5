"""Chunks of a download: records, some thousand at a time, and a file whose content is taken away as it grows."""

import io
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row

from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries import RecordsRepository
from localidades_api.errors import DatabaseUnavailableError

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK = 4000  # records: a statement of some 20 ms, and a megabyte; some 20 MB as rows, 40 if names are long


def check_whole(count: int, wanted: Sequence[int]) -> None:
    """Raise DatabaseUnavailableError if a statement returned fewer records than it was to return."""
    if count != len(wanted):
        raise DatabaseUnavailableError(f"The database returned {count} of {len(wanted)} records of a download.")


async def rows_of(
    records: RecordsRepository, release: Release, places: Sequence[int]
) -> AsyncIterator[Sequence[Row[Any]]]:
    """Yield the records as rows, with every column; raise DatabaseUnavailableError if some are missing."""
    for start in range(0, len(places), CHUNK):
        wanted = places[start : start + CHUNK]
        rows = await records.list_rows(release, wanted)
        check_whole(len(rows), wanted)
        yield rows


class Sink(io.RawIOBase):
    """A file to append to, whose content is taken away as it is written."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return True, as a writer expects."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written in total."""
        return self._size

    def write(self, data: "Buffer", /) -> int:
        """Append bytes."""
        taken = bytes(data)
        self._written.append(taken)
        self._size += len(taken)
        return len(taken)

    def drain(self) -> bytes:
        """Return what was written since the last call, and forget it."""
        taken = b"".join(self._written)
        self._written.clear()
        return taken
