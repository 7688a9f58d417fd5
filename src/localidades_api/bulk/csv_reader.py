"""Reads rows of CSV: any of four delimiters, a header, quotes as spreadsheets write them."""

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO

from localidades_api.bulk.cells import RowError
from localidades_api.bulk.columns import Named, assign, require
from localidades_api.bulk.row_reader import MAX_ROW, Lines, RowReader
from localidades_api.bulk.rows import Roles, Row
from localidades_api.errors import UnreadableBodyError

_MAX_COLUMNS = 16_384  # as in Excel; a row of two bytes is answered with all of them
_MAX_EMPTY = 10_000  # lines before the header
_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?(?:\r\n?|\n)', re.IGNORECASE)  # for Excel, before the header

csv.field_size_limit(2 * MAX_ROW)  # the bound is that of a row


class CsvReader(RowReader):
    """Reads CSV with any of four delimiters; empty lines are skipped."""

    def __init__(self, file: IO[bytes], roles: Roles, named: Named) -> None:
        super().__init__(file, roles, named)
        with self._lines() as lines:
            first = next((line for line in islice(lines, _MAX_EMPTY) if line.strip("\r\n")), None)
        separator = _SEPARATOR_LINE.match(first or "")
        self._separator_lines = 1 if separator else 0
        found = [self._header(delimiter) for delimiter in (separator[1] if separator else _DELIMITERS) if first]
        if not any(columns for columns, _, _ in found):
            raise UnreadableBodyError(
                f"The file is empty: begin it with a line such as `{roles.example}`, then a row a line."
            )
        self.layout.columns, self.layout.delimiter, self.layout.line_end = max(found, key=self._likeness)
        if len(self.layout.columns) > _MAX_COLUMNS:
            raise UnreadableBodyError(f"The first line has more than {_MAX_COLUMNS:,} columns: remove some.")
        self._assignment = assign(self.layout.columns, roles, named)
        require(self._assignment, roles, self.layout.columns, named)

    def _header(self, delimiter: str) -> tuple[list[str], str, str]:
        """Return the columns with a delimiter, the delimiter, and how their line ends; no columns without a header."""
        with self._lines() as lines:
            header = next(filter(None, islice(self._parse(lines, delimiter), 2 * _MAX_EMPTY)), [])
            return header, delimiter, "\n" if lines.last.endswith("\n") and not lines.last.endswith("\r\n") else "\r\n"

    def _likeness(self, found: tuple[list[str], str, str]) -> tuple[int, int]:
        """Rate how much a line looks like a header: by its columns with a role, then by all of its columns."""
        headers = found[0][:_MAX_COLUMNS]
        named = {role: header for role, header in self._named.items() if header in headers}
        return len(assign(headers, self._roles, named).by_role), len(headers)

    def _records(self) -> Iterator[list[str]]:
        with self._lines() as lines:
            records = self._parse(lines, self.layout.delimiter)
            next(filter(None, records))
            for record in records:
                yield record
                lines.row += bool(record)

    def _parse(self, lines: Lines, delimiter: str) -> Iterator[list[str]]:
        """Yield what follows the line that names the delimiter: the header, and the rows, all among empty records."""
        separators = self._separator_lines
        # The line after the end is empty, unless a quote is open.
        for record in csv.reader(chain(lines, ["\n"]), delimiter=delimiter):
            if record and lines.has_ended:
                raise UnreadableBodyError(
                    f"A quote in row {lines.row} is never closed: close it, and double every quote within a cell."
                )
            lines.row_length = 0
            if record and separators:
                separators -= 1
            else:
                yield record

    def _row(self, number: int, record: list[str]) -> Row:
        width = self._assignment.width
        problem = None if len(record) == width else _fit(record, width)
        if problem is None:
            try:
                return self._assignment.read(number, record, record)
            except RowError as error:
                problem = str(error)
        return Row(number, record, {}, problem)


def _fit(record: list[str], width: int) -> str | None:
    """Give a row as many cells as there are columns; return what is wrong with one that has more."""
    if len(record) < width:
        record.extend([""] * (width - len(record)))
    elif any(record[width:]):
        return f"It has {len(record)} cells and the header {width}: quote a cell that has the delimiter in it."
    else:
        del record[width:]
    return None
