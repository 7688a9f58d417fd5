"""Reads rows of CSV: any of four delimiters, a header, quotes as spreadsheets write them."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from localidades_api.bulk.cells import RowError
from localidades_api.bulk.columns import Assignment, Named, assign, require
from localidades_api.bulk.lines import MAX_ROW, Dialect, Lines, decode, without_bom
from localidades_api.bulk.rows import Roles, Row
from localidades_api.errors import UnreadableBodyError

_DELIMITERS = ",;\t|"
_END = "\0end of the lines that are complete\0"  # parsed after them: an open quote would swallow it
_STEP = 64 * 1024  # bytes parsed at once, so that a piece of any size takes little memory
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?(?:\r\n?|\n)', re.IGNORECASE)  # for Excel, before the header

csv.field_size_limit(4 * MAX_ROW)  # more than is parsed at once: the bound is that of a row


class CsvReader:
    """Reads CSV; empty lines are skipped."""

    def __init__(self, roles: Roles, named: Named) -> None:
        self.layout = Dialect()
        self._roles = roles
        self._named = named
        self._lines = Lines()
        self._open: list[str] = []  # the lines of a record whose quotes are open
        self._open_length = self._retry_at = 0
        self._assignment: Assignment | None = None
        self._has_begun = False
        self._delimiters = _DELIMITERS
        self._number = 0

    def feed(self, data: bytes) -> Iterator[Row]:
        """Read on, and yield the rows that are complete."""
        for at in range(0, len(data), _STEP):
            if lines := self._lines.feed(data[at : at + _STEP]):
                yield from self._read(lines)

    def close(self) -> Iterator[Row]:
        """Yield the last rows; raise UnreadableBodyError if there was no header, or quotes are open."""
        self._retry_at = 0
        yield from self._read(self._lines.close())
        if self._open:
            row = self._number + 1
            raise UnreadableBodyError(
                f"A quote in row {row} is never closed: close it, and double every quote within a cell."
            )
        if self._assignment is None:
            raise UnreadableBodyError(
                f"The file is empty: begin it with a line such as `{self._roles.example}`, then a row a line."
            )

    def _read(self, lines: bytes) -> Iterator[Row]:
        if not self._has_begun and lines:
            self._has_begun = True
            lines = without_bom(lines, self.layout)
        text = decode(lines, self.layout)
        if self._open:
            self._open.append(text)
            self._open_length += len(text)
            if self._open_length < self._retry_at:  # or each piece would parse all that came before
                return
            text = "".join(self._open)
            self._open = []
        if self._assignment is None:
            text = self._read_header(text)
        if text and self._assignment is not None:
            for record in self._parse(text):
                if record:
                    self._number += 1
                    yield self._row(record, self._assignment)

    def _read_header(self, text: str) -> str:
        """Find the delimiter and the columns; return the text after the header."""
        text = text.lstrip("\r\n")
        if separator := _SEPARATOR_LINE.match(text):
            self._delimiters = separator[1]
            text = text[separator.end() :].lstrip("\r\n")
        headers = {delimiter: _first_record(text, delimiter) for delimiter in self._delimiters}
        delimiter = max(self._delimiters, key=lambda one: self._likeness(headers[one][0]))
        columns, end = headers[delimiter]
        if end > len(text) or not text:
            self._keep_open(text)
            return ""
        self.layout.columns, self.layout.delimiter = columns, delimiter
        self.layout.line_end = "\n" if text[:end].endswith("\n") and not text[:end].endswith("\r\n") else "\r\n"
        self._assignment = assign(columns, self._roles, self._named)
        require(self._assignment, self._roles, columns, self._named)
        return text[end:]

    def _likeness(self, headers: Sequence[str]) -> tuple[int, int]:
        """Rate how much a line looks like a header: by its columns with a role, then by all of its columns."""
        named = {role: header for role, header in self._named.items() if header in headers}
        return len(assign(headers, self._roles, named).by_role), len(headers)

    def _parse(self, text: str) -> list[list[str]]:
        """Return the records of a text; one whose quotes are still open is kept for the next lines."""
        lines = list(io.StringIO(text, newline=""))
        parser = csv.reader(chain(lines, [_END]), delimiter=self.layout.delimiter)
        records: list[list[str]] = []
        begin = end = 0  # the lines of the last record
        for record in parser:
            begin, end = end, parser.line_num
            if len(text) > MAX_ROW < sum(map(len, record)):
                raise UnreadableBodyError(self._open_too_long(records))
            records.append(record)
        if records.pop() != [_END]:
            self._keep_open("".join(lines[begin:]), records)
        return records

    def _keep_open(self, text: str, before: Sequence[Sequence[str]] = ()) -> None:
        if len(text) > MAX_ROW:
            raise UnreadableBodyError(self._open_too_long(before))
        self._open = [text] if text else []
        self._open_length = len(text)
        self._retry_at = 2 * len(text)

    def _open_too_long(self, before: Sequence[Sequence[str]]) -> str:
        row = self._number + sum(1 for record in before if record) + 1
        return f"A quote in row {row} is not closed within 1 MB: close it, and double every quote within a cell."

    def _row(self, record: list[str], assignment: Assignment) -> Row:
        problem = None if len(record) == assignment.width else _fit(record, assignment.width)
        if problem is None:
            try:
                return assignment.read(self._number, record, record)
            except RowError as error:
                problem = str(error)
        return Row(self._number, record, {}, problem)


def _fit(record: list[str], width: int) -> str | None:
    """Give a row as many cells as there are columns; return what is wrong with one that has more."""
    if len(record) < width:
        record.extend([""] * (width - len(record)))
    elif any(record[width:]):
        return f"It has {len(record)} cells and the header {width}: quote a cell that has the delimiter in it."
    else:
        del record[width:]
    return None


def _first_record(text: str, delimiter: str) -> tuple[list[str], int]:
    """Return the first record of a text and where it ends: after the text if a quote is open."""
    lines = io.StringIO(text, newline="")
    record = next(csv.reader(chain(lines, [_END]), delimiter=delimiter))
    is_open = bool(record) and record[-1].endswith(_END)
    return record, len(text) + 1 if is_open else lines.tell()
