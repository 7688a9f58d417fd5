"""The interface of row readers: fed with bytes as they arrive, they return the rows that are complete."""

from collections.abc import Iterator
from typing import Literal, Protocol, TypeAlias

from localidades_api.bulk.columns import Named
from localidades_api.bulk.csv_reader import CsvReader
from localidades_api.bulk.json_reader import JsonReader, NdjsonReader
from localidades_api.bulk.lines import Dialect
from localidades_api.bulk.rows import Roles, Row

MediaType: TypeAlias = Literal["text/csv", "application/x-ndjson", "application/json"]


class RowReader(Protocol):
    """Reads rows from bytes that come in pieces of any size.

    Its methods raise UnreadableBodyError if no further row can be read, and what they yield has to be taken to the
    end. `layout` is complete with the first row, or at the end if there is none.
    """

    layout: Dialect

    def feed(self, data: bytes) -> Iterator[Row]:
        """Read on, and yield the rows that are complete."""

    def close(self) -> Iterator[Row]:
        """Yield the last rows: nothing follows."""


_READERS: dict[MediaType, type[CsvReader] | type[NdjsonReader] | type[JsonReader]] = {
    "text/csv": CsvReader,
    "application/x-ndjson": NdjsonReader,
    "application/json": JsonReader,
}


def reader(media_type: MediaType, roles: Roles, named: Named | None = None) -> RowReader:
    """Return the reader of a format; `named` has the header of each role that is not to be guessed."""
    return _READERS[media_type](roles, named or {})
