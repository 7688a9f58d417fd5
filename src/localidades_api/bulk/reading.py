"""The formats of rows, and their readers."""

from typing import IO, Literal, TypeAlias

from localidades_api.bulk.columns import Named
from localidades_api.bulk.csv_reader import CsvReader
from localidades_api.bulk.json_reader import JsonReader, NdjsonReader
from localidades_api.bulk.row_reader import RowReader
from localidades_api.bulk.rows import Roles

MediaType: TypeAlias = Literal["text/csv", "application/x-ndjson", "application/json"]

_READERS: dict[MediaType, type[RowReader]] = {
    "text/csv": CsvReader,
    "application/x-ndjson": NdjsonReader,
    "application/json": JsonReader,
}


def reader(media_type: MediaType, file: IO[bytes], roles: Roles, named: Named | None = None) -> RowReader:
    """Return the reader of a format; `named` has the header of each role that is not to be guessed."""
    return _READERS[media_type](file, roles, named or {})
