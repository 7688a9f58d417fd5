"""Rows as they are sent and read: the cells of each by role, or a sentence that says why it can't be answered."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from localidades_api.bulk.earlier import EarlierAnswer
from localidades_api.bulk.roles import POINT
from localidades_api.catalogue.coordinates import (
    BOUNDS,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    read_degrees,
    read_point,
)
from localidades_api.catalogue.keys import PlaceKind

_MAX_NUMBER = 1e15


class RowError(ValueError):
    """A row can't be answered; its text is a sentence for whoever sent the row. The next row is not affected."""


Cells: TypeAlias = Mapping[str, str | float | None]
# A row as it was sent: members of an object, cells of a line of CSV, or any JSON value in its place.
Sent: TypeAlias = Mapping[str, Any] | Sequence[str] | object

Answer: TypeAlias = Mapping[str, Any]  # the members of an answer on the wire, without the row that was sent


class Row(NamedTuple):
    """A row: its number; what was sent; its cells by role; or a sentence that says why it can't be read.

    People count as its number says: it is that of the sheet's row, or of the line where the row begins, or its place
    among the rows of JSON. `note` says which cells of a readable row are ignored. `kind` is what the row is about; None
    if its key says it. `earlier` is an answer in a file that comes back.
    """

    number: int
    sent: Sent
    cells: Cells
    problem: str | None = None
    note: str | None = None
    kind: PlaceKind | None = None
    earlier: EarlierAnswer | None = None


def unquoted(text: str) -> str:
    """Return the text of a cell such as `="010010001"`, the formula that keeps zeros in CSV for Excel."""
    return text[2:-1].replace('""', '"') if text.startswith('="') and text.endswith('"') else text


def as_text(role: str, value: object) -> str:
    """Return a value of JSON as the text that a cell of CSV would have; raise RowError if it is neither."""
    if value is None or value != value:  # noqa: PLR0124  # NaN, which programs write for a missing value
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError(f"`{role}` must be a text or a number.")
    if not -_MAX_NUMBER < value < _MAX_NUMBER:
        raise RowError(f"`{role}` is a number beyond any key or degree.")
    return str(int(value)) if value == int(value) else str(value)


def read_degrees_of(cells: Cells) -> tuple[Sequence[float | None], str | None]:
    """Return the degrees of a row's point, None for one that is not given, and a sentence if they can't be read."""
    texts = ["" if cells.get(axis) is None else str(cells[axis]) for axis in POINT]
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        return read_point(*texts), None
    degrees: list[float | None] = []
    for axis, text in zip(POINT, texts, strict=True):
        try:
            degrees.append(read_degrees(text, axis) if text else None)
        except UnreadableDegreesError:
            return (None, None), f"`{axis}` can't be read as degrees, such as 20.6736."
        except DegreesOutOfRangeError:
            sentence = f"`{axis}` must be decimal degrees from {-BOUNDS[axis]} to {BOUNDS[axis]}, such as 20.6736."
            return (None, None), sentence
    return degrees, None
