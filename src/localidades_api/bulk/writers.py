"""Writes answers beside the rows that were sent, as CSV, NDJSON, JSON or a workbook (`workbook_writers`)."""

import csv
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from pydantic_core import to_json

from localidades_api.bulk.answer_columns import MATCH_COLUMNS, AnswerColumns, SentColumns
from localidades_api.bulk.columns import unique
from localidades_api.bulk.formats import XLSX, MediaType
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.readers import Dialect, RowReader
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.bulk.workbook_writers import NewSheetWriter, SheetWriter, Summary

_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class AnswerWriter(Protocol):
    """Writes answers; each method returns bytes to send."""

    @property
    def positions(self) -> Mapping[str, int]:
        """The column, from 1, of each member of the answer in a table that has begun."""

    def begin(self) -> bytes:
        """Return the bytes before the first row, which may be read for it: nobody else reads rows meanwhile."""

    def write(self, row: Row, answer: Answer) -> bytes:
        """Return a row with its answer."""

    def end(self) -> bytes:
        """Return the bytes after the last row."""


def writer(
    media_type: MediaType, reader: RowReader, columns: AnswerColumns = MATCH_COLUMNS, summary: Summary | None = None
) -> AnswerWriter:
    """Return the writer of a format for the rows of a checked reader; tables get `columns`, workbooks the `summary`.

    Raises UnreadableBodyError if a sheet has no room for the answers.
    """
    if media_type == XLSX:
        return (SheetWriter if isinstance(reader, XlsxReader) else NewSheetWriter)(reader, columns, summary)
    if media_type == "text/csv":
        return _CsvWriter(reader, columns)
    return _NdjsonWriter(reader.layout) if media_type == "application/x-ndjson" else _JsonWriter(reader.layout)


class _NdjsonWriter:
    """Writes an object a line: the answer, with the row that was sent as its member `sent`, so that no names clash.

    `row` is the number of the row.
    """

    def __init__(self, layout: Dialect) -> None:
        self.positions: Mapping[str, int] = {}  # only tables have columns
        self._layout = layout
        self._headers = unique(layout.columns or ())

    def begin(self) -> bytes:
        return b""

    def write(self, row: Row, answer: Answer) -> bytes:
        return to_json({"row": row.number, "sent": self._sent(row), **answer}, inf_nan_mode="null") + b"\n"

    def end(self) -> bytes:
        return b""

    def _sent(self, row: Row) -> object:
        if self._layout.columns is None:
            return row.sent
        cells = cast("list[str]", row.sent)
        more = len(cells) - len(self._headers)
        headers = unique([*self._layout.columns, *[""] * more]) if more > 0 else self._headers
        return dict(zip(headers, cells, strict=False))


_PIECE_OF_FILE = 48 * 1024  # bytes


class WithFile:
    """Writes lines of NDJSON and, between them, a file with the same answers.

    A line of the file has a member `file`, a piece of it in base64.
    """

    def __init__(self, lines: AnswerWriter, file: AnswerWriter) -> None:
        self._lines = lines
        self._file = file
        self._piece = bytearray()

    @property
    def positions(self) -> Mapping[str, int]:
        """Return the columns of the answer in the file."""
        return self._file.positions

    def begin(self) -> bytes:
        """Return the beginning of the lines; the file begins with the first piece."""
        self._piece += self._file.begin()
        return self._lines.begin()

    def write(self, row: Row, answer: Answer) -> bytes:
        """Return the line of a row, and the file so far if there is a piece."""
        line = self._lines.write(row, answer)
        self._piece += self._file.write(row, answer)
        return line if len(self._piece) < _PIECE_OF_FILE else line + self._flush()

    def end(self) -> bytes:
        """Return the rest of both."""
        self._piece += self._file.end()
        return self._lines.end() + self._flush()

    def _flush(self) -> bytes:
        line = to_json({"file": b64encode(self._piece).decode()}) + b"\n"
        self._piece.clear()
        return line


class _JsonWriter(_NdjsonWriter):
    """Writes one document `{"results": [...]}` with the objects of NDJSON."""

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
    """A file for the csv module that stores nothing: `writerow` returns the value of `write`."""

    @staticmethod
    def write(text: str) -> str:
        return text


class _CsvWriter:
    """Writes the sender's columns and cells as they are, and the columns of the answer beside them.

    Cells beyond the headers come after all of these. Of rows that came as objects, members that are not in the first
    are left out.
    """

    def __init__(self, reader: RowReader, columns: AnswerColumns) -> None:
        self.positions: Mapping[str, int] = {}
        self._reader = reader
        self._layout = layout = reader.layout
        self._sent = SentColumns(layout.columns)
        self._last = len(layout.columns or ())  # cells beyond have no header
        self._answer_columns = columns
        self._cells = tuple(columns.cells.values())
        self._width = 0  # columns of the sender, once the header is written
        # The csv module quotes a CR or LF within a cell only if line ends contain it.
        self._writerow: Callable[[Sequence[str]], str] = csv.writer(
            _Line, delimiter=layout.delimiter, lineterminator="\r\n"
        ).writerow

    def begin(self) -> bytes:
        headers = self._sent.begin(self._reader)
        self._width = len(headers)
        self.positions = self._answer_columns.positions(self._width)
        # Spreadsheets read text as windows-1252 unless it begins with the byte order mark.
        mark = _BOM if self._layout.has_bom or not self._layout.is_utf8 else ""
        return mark.encode() + self._line([*headers, *self._answer_columns.headers(headers)])

    def write(self, row: Row, answer: Answer) -> bytes:
        sent = self._sent.cells(row.sent)
        missing = [""] * (self._width - len(sent))
        answered = [cell(answer) for cell in self._cells]
        return self._line([*sent[: self._width], *missing, *answered, *sent[max(self._last, self._width) :]])

    def end(self) -> bytes:
        return b""

    def _line(self, cells: Sequence[str]) -> bytes:
        return (self._writerow(cells)[:-2] + self._layout.line_end).encode()
