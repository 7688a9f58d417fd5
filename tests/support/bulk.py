"""Readers of rows, on bytes."""

import io
from collections.abc import Mapping

from localidades_api.bulk.formats import MediaType, reader
from localidades_api.bulk.input_rows import ROLES, Row
from localidades_api.bulk.readers import RowReader
from localidades_api.catalogue.keys import PlaceKind

CSV: MediaType = "text/csv"
NDJSON: MediaType = "application/x-ndjson"
JSON: MediaType = "application/json"


def open_rows(
    data: bytes,
    media_type: MediaType = CSV,
    *,
    named: Mapping[str, str] | None = None,
    kind: PlaceKind | None = None,
    header_row: int | None = None,
) -> RowReader:
    """Return the reader of a body that has been checked."""
    source = reader(media_type, io.BytesIO(data), ROLES.of_kind(kind), named, header_row=header_row)
    for _ in source.check():
        pass
    return source


def rows_in(
    data: bytes,
    media_type: MediaType = CSV,
    *,
    named: Mapping[str, str] | None = None,
    kind: PlaceKind | None = None,
    header_row: int | None = None,
) -> list[Row]:
    return list(open_rows(data, media_type, named=named, kind=kind, header_row=header_row))
