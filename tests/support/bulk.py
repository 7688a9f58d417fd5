"""Rows that a reader reads from bytes, in pieces of any size."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from localidades_api.bulk.reading import MediaType, RowReader, reader
from localidades_api.bulk.rows import ROLES, Row

CSV: MediaType = "text/csv"
NDJSON: MediaType = "application/x-ndjson"
JSON: MediaType = "application/json"


def rows_in(
    data: bytes, media_type: MediaType = CSV, *, cuts: Iterable[int] = (), named: Mapping[str, str] | None = None
) -> list[Row]:
    """Return the rows of a body that comes in pieces, cut where `cuts` say."""
    return read_with(reader(media_type, ROLES, named), data, cuts)


def read_with(source: RowReader, data: bytes, cuts: Iterable[int] = ()) -> list[Row]:
    """Return the rows that a reader reads from a body."""
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[begin:end] for begin, end in pairwise(bounds)]
    return [row for piece in pieces for row in source.feed(piece)] + list(source.close())
