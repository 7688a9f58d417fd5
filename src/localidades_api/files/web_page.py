"""Reads the tables of a web page, which portals and reports call `.xls`, into the sheets of a workbook."""

import re
from html.parser import HTMLParser
from typing import IO

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from localidades_api.files.workbook import MAX_COLUMNS

_MAX_PAGE = 5 * 1024**2  # bytes, two seconds of a thread
_PIECE = 32 * 1024  # characters
_MAX_TAG = 128 * 1024  # characters that are not read yet: the parser begins again with each piece
_MAX_TABLES = 50
_MAX_CELLS = 300_000  # a cell may be that of many rows
_NUMBER = re.compile("[0-9]{1,5}")
_MAX_CELL = 32_767  # characters, as in Excel


class WebPageError(Exception):
    """A page has no table, or more than is read."""


def write_workbook(page: IO[bytes], out: IO[bytes]) -> None:
    """Write the tables of a page, from its current position, as sheets of texts; raise WebPageError."""
    data = page.read(_MAX_PAGE + 1)
    if len(data) > _MAX_PAGE:
        raise WebPageError
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("windows-1252", "replace")
    with xlsxwriter.Workbook(out, {"constant_memory": True}) as workbook:
        tables = _Tables(workbook)
        for at in range(0, len(text), _PIECE):
            tables.feed(text[at : at + _PIECE])
            if len(tables.rawdata) > _MAX_TAG:
                raise WebPageError
        tables.close()
        if not tables.cells:
            raise WebPageError


class _Table:
    """A table that is being read: its sheet, the row, and cells that reach down from the rows above, by column."""

    def __init__(self, sheet: Worksheet) -> None:
        self.sheet = sheet
        self.number = 0
        self.has_row = False
        self.row: dict[int, str] = {}
        self.column = 0
        self.cell: list[str] | None = None
        self.spans: dict[int, tuple[int, str]] = {}  # how many rows are left, and the text


class _Tables(HTMLParser):
    """Writes each table into a sheet; one within another is a table of its own. End tags may be missing."""

    def __init__(self, workbook: xlsxwriter.Workbook) -> None:
        super().__init__()
        self._workbook = workbook
        self._open: list[_Table] = []
        self._span = 1, 1  # columns and rows of the cell
        self.cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            if len(self._workbook.worksheets()) == _MAX_TABLES:
                raise WebPageError
            self._open.append(_Table(self._workbook.add_worksheet()))
        elif self._open and tag == "tr":
            self._end_row()
            self._open[-1].has_row = True
        elif self._open and tag in {"td", "th"}:
            self._end_cell()
            self._open[-1].cell, self._open[-1].has_row = [], True
            given = dict(attrs)
            self._span = _whole(given.get("colspan")), _whole(given.get("rowspan"))
        elif tag in {"br", "p", "div"}:
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        if not self._open:
            return
        if tag in {"td", "th"}:
            self._end_cell()
        elif tag in {"tr", "table"}:
            self._end_row()
        if tag == "table":
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and (cell := self._open[-1].cell) is not None:
            cell.append(data)

    def close(self) -> None:
        super().close()
        while self._open:
            self.handle_endtag("table")

    def _end_cell(self) -> None:
        table = self._open[-1]
        if table.cell is None:
            return
        text, table.cell = " ".join("".join(table.cell).split())[:_MAX_CELL], None
        while table.column in table.spans:
            table.column += 1
        columns, rows = self._span
        if text and table.column < MAX_COLUMNS:
            table.row[table.column] = text
            if rows > 1:
                table.spans[table.column] = rows, text
        table.column += columns

    def _end_row(self) -> None:
        self._end_cell()
        table = self._open[-1]
        if not table.has_row:
            return
        row = {at: text for at, (_, text) in table.spans.items()} | table.row
        self.cells += len(row)
        if self.cells > _MAX_CELLS:
            raise WebPageError
        for at in sorted(row):
            table.sheet.write_string(table.number, at, row[at])
        table.spans = {at: (rows - 1, text) for at, (rows, text) in table.spans.items() if rows > 1}
        table.number, table.has_row, table.row, table.column = table.number + 1, False, {}, 0


def _whole(text: str | None) -> int:
    return min(max(int(text), 1), MAX_COLUMNS) if text and _NUMBER.fullmatch(text) else 1
