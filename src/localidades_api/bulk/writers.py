"""Writes answers beside the rows that were sent, as CSV, NDJSON or JSON."""

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from pydantic_core import to_json

from localidades_api.bulk.readers import Dialect, MediaType, RowReader
from localidades_api.bulk.rows import Answer, Row, unique
from localidades_api.catalogue.keys import written

# The names of an answer's columns, without their prefix, and how each cell is written.
AnswerColumns: TypeAlias = Mapping[str, Callable[[Answer], str]]


def _plain(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else str(value)


def _certain(name: str, answer: Answer) -> str:
    """Write a member of the place that a row means; nothing if a person has to choose, as tables are joined on it."""
    return _plain(name, answer) if answer["outcome"] in {"exact", "sure"} else ""


def _number(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else f"{value:g}"


def _faults(answer: Answer) -> str:
    return "; ".join(map(_fault, answer["faults"]))


def _fault(fault: Mapping[str, Any]) -> str:
    """Write a fault: `spelling: Guadalajra → Guadalajara (-5.5)`."""
    words = " → ".join(filter(None, (fault["given"], fault["found"])))
    return f"{fault['code']}: {words} (-{fault['penalty']:g})" if words else f"{fault['code']} (-{fault['penalty']:g})"


def _candidates(answer: Answer) -> str:
    """Write candidates: `140390001 Guadalajara, Guadalajara, Jalisco (97) | …`."""
    return " | ".join(f"{one['cvegeo']} {one['label']} ({one['score']:g})" for one in answer["candidates"])


MATCH_COLUMNS: AnswerColumns = {
    "outcome": lambda answer: str(answer["outcome"]),
    "cvegeo": lambda answer: _certain("cvegeo", answer),
    "label": lambda answer: _certain("label", answer),
    "score": lambda answer: _number("score", answer),
    "margin": lambda answer: _number("margin", answer),
    "faults": _faults,
    "candidates": _candidates,
    "withdrawn": lambda answer: _plain("withdrawn", answer),
    "problem": lambda answer: _plain("problem", answer),
}


def _nearest(name: str, answer: Answer) -> str:
    return str(answer["results"][0][name]) if answer["results"] else ""


# Of several places, the nearest.
NEAREST_COLUMNS: AnswerColumns = {
    "cvegeo": lambda answer: written("localidad", answer["results"][0]["id"]) if answer["results"] else "",
    "label": lambda answer: _nearest("label", answer),
    "distancia": lambda answer: _nearest("distancia", answer),
    "problem": lambda answer: _plain("problem", answer),
}


_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class AnswerWriter(Protocol):
    """Writes answers; each method returns bytes to send, `begin` none if only the first row shows the layout."""

    def begin(self) -> bytes:
        """Return what comes before the first row; the reader has read its first row, or its end."""

    def write(self, row: Row, answer: Answer) -> bytes:
        """Return a row with its answer."""

    def end(self) -> bytes:
        """Return what comes after the last row."""


def writer(
    media_type: MediaType, reader: RowReader, columns: AnswerColumns = MATCH_COLUMNS, prefix: str = "match"
) -> AnswerWriter:
    """Return the writer of a format for what a reader reads; `columns` and `prefix` are those of CSV."""
    if media_type == "text/csv":
        return _CsvWriter(reader.layout, columns, prefix)
    return _NdjsonWriter(reader.layout) if media_type == "application/x-ndjson" else _JsonWriter(reader.layout)


class _NdjsonWriter:
    """Writes an object a line: the answer, and what was sent as its member `sent`, so that no names clash."""

    def __init__(self, layout: Dialect) -> None:
        self._layout = layout
        self._headers: list[str] | None = None

    def begin(self) -> bytes:
        return b""

    def write(self, row: Row, answer: Answer) -> bytes:
        return to_json({"sent": self._sent(row), **answer}, inf_nan_mode="null") + b"\n"

    def end(self) -> bytes:
        return b""

    def _sent(self, row: Row) -> object:
        if self._layout.columns is None:
            return row.sent
        if self._headers is None:
            self._headers = unique(self._layout.columns)
        cells = cast("list[str]", row.sent)
        more = len(cells) - len(self._headers)
        headers = unique([*self._layout.columns, *[""] * more]) if more > 0 else self._headers
        return dict(zip(headers, cells, strict=False))


class _JsonWriter(_NdjsonWriter):
    """Writes one document `{"results": [...]}`, each result as a line of NDJSON has it."""

    def __init__(self, layout: Dialect) -> None:
        super().__init__(layout)
        self._is_first = True

    def begin(self) -> bytes:
        return b'{"results":['

    def write(self, row: Row, answer: Answer) -> bytes:
        comma = b"" if self._is_first else b","
        self._is_first = False
        return comma + super().write(row, answer)

    def end(self) -> bytes:
        return b"]}\n"


class _Line:
    """A file for the csv module that keeps nothing: `writerow` returns what `write` does."""

    @staticmethod
    def write(text: str) -> str:
        return text


class _CsvWriter:
    """Writes the sender's columns and cells as they are, and the columns of the answer beside them.

    The answer's columns are `match_outcome` and so on, or `match2_outcome` if a column of the sender's is called so.
    Cells beyond the headers come after all of these. Rows that came as objects have the members of the first as
    columns; other members are left out.
    """

    def __init__(self, layout: Dialect, columns: AnswerColumns, prefix: str) -> None:
        self._layout = layout
        self._answer_columns = columns
        self._cells = tuple(columns.values())
        self._prefix = prefix
        self._members: list[str] | None = None
        self._is_begun = False
        self._writerow: Callable[[Sequence[str]], str]

    def begin(self) -> bytes:
        return b"" if self._layout.columns is None else self._header(self._layout.columns)

    def write(self, row: Row, answer: Answer) -> bytes:
        answered = [cell(answer) for cell in self._cells]
        if self._layout.columns is not None:
            sent = cast("list[str]", row.sent)
            width = len(self._layout.columns)
            cells = [*sent, *answered] if len(sent) == width else self._aligned(sent, answered, width)
            return self._line(cells)
        return self._write_object(row.sent, answered)

    def end(self) -> bytes:
        return b"" if self._is_begun else self._header([])

    def _header(self, columns: Sequence[str]) -> bytes:
        self._is_begun = True
        layout = self._layout
        # The csv module quotes a CR or LF within a cell only if the end of a line has it.
        made = csv.writer(_Line, delimiter=layout.delimiter, lineterminator="\r\n")
        self._writerow = made.writerow
        names = [*columns, *_names(self._prefix, self._answer_columns, columns)]
        # Spreadsheets take text for windows-1252 unless it begins with the mark.
        mark = _BOM if layout.has_bom or not layout.is_utf8 else ""
        return mark.encode() + self._line(names)

    def _line(self, cells: Sequence[str]) -> bytes:
        return (self._writerow(cells)[:-2] + self._layout.line_end).encode()

    @staticmethod
    def _aligned(sent: list[str], answered: list[str], width: int) -> list[str]:
        missing = [""] * (width - len(sent))
        return [*sent[:width], *missing, *answered, *sent[width:]]

    def _write_object(self, sent: object, answered: list[str]) -> bytes:
        members = sent if isinstance(sent, Mapping) else {}
        header = b""
        if self._members is None:
            self._members = [str(name) for name in members]
            header = self._header(self._members)
        cells = [_as_cell(members.get(name)) for name in self._members]
        return header + self._line([*cells, *answered])


def _names(prefix: str, columns: AnswerColumns, taken: Sequence[str]) -> list[str]:
    """Return the names of the answer's columns: none is a column of the sender's."""
    number, names = 1, [f"{prefix}_{column}" for column in columns]
    while not set(names).isdisjoint(taken):
        number += 1
        names = [f"{prefix}{number}_{column}" for column in columns]
    return names


def _as_cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="null").decode()
