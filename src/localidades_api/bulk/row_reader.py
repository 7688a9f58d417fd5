"""What the readers of all formats have in common: a file that is read as often as need be, and its lines."""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import IO, Any

from localidades_api.bulk.columns import Named
from localidades_api.bulk.rows import Roles, Row
from localidades_api.errors import UnreadableBodyError
from localidades_api.importer.file_kinds import START, describe_kind

MAX_ROW = 1024**2  # characters of a row
_SLICE = 0.004  # seconds
_BOM = b"\xef\xbb\xbf"
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what the error handler `surrogateescape` makes of bytes


@dataclass(slots=True)
class Dialect:
    """How a file is written, as far as its answer keeps to it."""

    columns: list[str] | None = None  # the headers of CSV; None for objects
    delimiter: str = ","
    line_end: str = "\r\n"  # RFC 4180
    has_bom: bool = False
    is_utf8: bool = True  # as far as it has been read


class RowReader(ABC):
    """Reads the rows of a file, from where it stands, as often as it is iterated over.

    Raises UnreadableBodyError, also when it is created, if the file can't be read as a whole. `check` finds out whether
    it can, and how many rows there are (`count`).
    """

    def __init__(self, file: IO[bytes], roles: Roles, named: Named) -> None:
        self._file = file
        self._start = file.tell()
        self._roles = roles
        self._named = named
        self.count = 0
        head = file.read(START)
        self.layout = Dialect(has_bom=head.startswith(_BOM))
        if kind := describe_kind(head.splitlines()[0] if head else b""):
            raise UnreadableBodyError(f"The file is {kind}.")

    def __iter__(self) -> Iterator[Row]:
        return filter(None, self.rows())

    def check(self) -> Iterator[None]:
        """Read the file to its end, with a pause after some milliseconds of work."""
        end = perf_counter() + _SLICE
        for record in self._records():
            self.count += bool(record)
            if perf_counter() > end:
                yield
                end = perf_counter() + _SLICE

    def rows(self) -> Iterator[Row | None]:
        """Yield the rows, and None for each empty line, of which there may be millions."""
        number = 0
        for record in self._records():
            number += bool(record)
            yield self._row(number, record) if record else None

    @abstractmethod
    def _records(self) -> Iterator[Any]:
        """Yield what becomes rows, and something empty for each empty line."""

    @abstractmethod
    def _row(self, number: int, record: Any) -> Row:  # noqa: ANN401  # what `_records` yields
        """Return the row of a record."""

    @contextmanager
    def _text(self, errors: str = "surrogateescape") -> Iterator[io.TextIOWrapper]:
        """Lend the file as text, from its start."""
        self._file.seek(self._start)
        text = io.TextIOWrapper(self._file, "utf-8-sig", errors, newline="")
        try:
            yield text
        finally:
            with suppress(ValueError):  # the file is closed already
                text.detach()  # or it would close the file

    @contextmanager
    def _lines(self) -> "Iterator[Lines]":
        with self._text() as text:
            yield Lines(text, self.layout)


class Lines:
    """The lines of a text; one that is not UTF-8 is windows-1252, which old spreadsheets write."""

    def __init__(self, text: io.TextIOWrapper, layout: Dialect) -> None:
        self._text = text
        self._layout = layout
        self.last = ""
        self.row = 1  # its number, for errors
        self.row_length = 0
        self.has_ended = False

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_ROW + 1)
        if not line:
            self.has_ended = True
            raise StopIteration
        self.row_length += len(line)
        if len(line) > MAX_ROW:
            raise UnreadableBodyError("A line is longer than 1 MB: check that the file is text, a row a line.")
        if self.row_length > MAX_ROW:
            raise UnreadableBodyError(
                f"A quote in row {self.row} is not closed within 1 MB: close it, and double every quote within a cell."
            )
        if not line.isascii() and _NOT_UTF8.search(line):
            self._layout.is_utf8 = False
            line = line.encode(errors="surrogateescape").decode("windows-1252", "replace")  # five bytes are undefined
        self.last = line
        return line


def for_a_while(rows: Iterator[Row | None]) -> Iterator[Row]:
    """Yield rows until some milliseconds have passed, so that other requests get their turn."""
    end = perf_counter() + _SLICE
    for row in rows:
        if row is not None:
            yield row
        if perf_counter() > end:
            return
