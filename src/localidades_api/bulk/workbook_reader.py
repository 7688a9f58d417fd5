"""Reads the rows of a sheet of an Excel workbook, one at a time."""

import io
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import IO, NamedTuple, cast

from xlsxwriter.utility import xl_col_to_name

from localidades_api.bulk.answer_columns import width_without_answers
from localidades_api.bulk.columns import SAMPLED_ROWS, Assignment, Reading, assign, read_heading, require
from localidades_api.bulk.earlier import begin_of_answers, begin_without_header
from localidades_api.bulk.input_rows import Row
from localidades_api.bulk.readers import TableReader, read_columns
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.errors import CatalogueError, UnreadableBodyError
from localidades_api.files.archive import DAMAGED_ZIP, find_excess, limit_reads
from localidades_api.files.kinds import describe_zip
from localidades_api.files.workbook import (
    DAMAGE,
    MAX_COLUMNS,
    Range,
    Sheet,
    SheetRow,
    Workbook,
    WorkbookError,
    canonical_name,
    find_sheet,
    is_workbook,
    list_sheets,
    refusal_of_cell,
)

_MAX_WORKBOOK = 20 * 1024**2  # bytes
_MAX_UNPACKED = 512 * 1024**2  # bytes; a million rows of ten columns
_ROOM = 2  # times as many of both has a workbook that comes back with the columns of an earlier answer
MAX_SHEET_ROWS = 1_000_000
_MAX_MERGES = 100_000  # merged ranges of several rows
_MAX_SAMPLED = 20_000  # cells
_MAX_TABLE = 64 * 1024  # bytes of a table's part, which patterns are looked for in
_MAX_NAMED = 100  # sheets in a problem
_MAX_OTHERS = 10  # other sheets that are searched for a list
_MAX_TITLES = 20  # rows, the header among them
_TOO_LARGE = "The workbook is larger than 20 MB: save its sheet as CSV (UTF-8)."
_UNPACKS_TOO_LARGE = (
    "The workbook unpacks to more than 512 MB, to 200 times its size, or to 1,000 files: save its sheet as CSV (UTF-8)."
)
# Workbook parts that are rejected, with the error message for each.
_REFUSED_MEMBERS = {
    "xl/vbaProject": "The workbook has macros: save it as .xlsx, which has none.",
    "xl/externalLinks/": "The workbook has links to other files: break them, or save its sheet as CSV (UTF-8).",
}


class XlsxReader(TableReader):
    """Reads a sheet of a workbook, with or without titles above the header.

    It is the one that is named, or the first visible one that has the required columns. The header is the row with
    the most columns that are known, among the first; `header_row` names another. The first cell of a merged range
    counts for all its rows.
    """

    _is_text = False

    def __init__(self, file: IO[bytes], reading: Reading) -> None:
        super().__init__(file, reading)
        self.width = 0  # columns up to the last that is in use: the answers follow
        self._whole_width = 0  # with the columns of an earlier answer
        self.header: SheetRow | None = None
        self.header_row = 0  # of the sheet, from 1; 0 if there is none
        self.grown: tuple[str, Range] | None = None  # the range that grows by the answers, and the member with it
        self.placing: str | None = None  # what a person should know of where the answers are
        self._others: str | None = None  # and of the other sheets
        self._filled = set[int]()  # columns with a value in the rows of the list up to the first empty one
        self._filter: Range | None = None
        self._merges: list[Range] = []
        self._merged: dict[int, int] = {}  # the last column of merged ranges, by their first
        with self.refusing_damage():
            archive, self._excess = _open_workbook(file)
            self.workbook = Workbook(archive)
            self.sheet = find_sheet(self.workbook, self._reading.sheet)

    @contextmanager
    def refusing_damage(self) -> Iterator[None]:
        """Turn any error of a damaged or hostile workbook into UnreadableBodyError."""
        try:
            yield
        except WorkbookError as error:
            raise UnreadableBodyError(str(error)) from error
        except (*DAMAGED_ZIP, *DAMAGE, CatalogueError) as error:
            raise UnreadableBodyError(
                "The workbook can't be read: save it as .xlsx, without a password, or save its sheet as CSV (UTF-8)."
            ) from error

    @property
    def sheets(self) -> list[str]:
        """The names of the sheets that can be read."""
        return [sheet.name for sheet in self._visible]

    @property
    def _visible(self) -> Sequence[Sheet]:
        return [sheet for sheet in self.workbook.sheets if sheet.is_visible] or self.workbook.sheets

    def _check_rows(self) -> Iterator[None]:
        with self.refusing_damage():
            yield from chain(self.workbook.load(), self._find_header(), self._measure())

    def _find_header(self) -> Iterator[None]:
        """Find the sheet and the row of the header; raise UnreadableBodyError if no sheet has one.

        The error is that of the first sheet; its `columns` are those of the widest row, for the sender to name some.
        """
        refusal: UnreadableBodyError | None = None
        found: list[_Header] = []
        others: Sequence[Sheet] = ()
        kinds = list(self._reading.roles.needed)
        sheets = [self.sheet] if self._reading.sheet else self._visible
        for number, sheet in enumerate(sheets, 1):
            rows = yield from self._first_rows(sheet)
            try:
                found.append(self._read_header(sheet, rows, is_alone=len(sheets) == 1))
            except UnreadableBodyError as error:
                refusal = refusal or error
                continue
            if found[-1].number and found[-1].assignment.kind == kinds[0]:
                others = sheets[number:][:_MAX_OTHERS]
                break
        if self._excess and not any(begin_of_answers(header.columns) is not None for header in found):
            raise UnreadableBodyError(self._excess)
        if not found:
            raise cast("UnreadableBodyError", refusal)
        # A sheet with a header comes before one without, whose first row may be of a cover.
        chosen = min(found, key=lambda one: (not one.number, kinds.index(cast("PlaceKind", one.assignment.kind))))
        self.sheet, self.header_row, self.assignment, self.layout.columns = chosen
        yield from self._mention_lists(others)

    def _mention_lists(self, sheets: Sequence[Sheet]) -> Iterator[None]:
        lists: list[Sheet] = []
        for sheet in sheets:
            with suppress(WorkbookError, *DAMAGE):  # it is only copied
                rows = yield from self._first_rows(sheet)
                header = self._find_known(rows[:_MAX_TITLES])
                if header and header[1].kind == self.assignment.kind and rows[-1].number > header[0].number:
                    lists.append(sheet)
        if lists:
            names = list_sheets(lists)
            self._others = f"Only the sheet `{self.sheet.name}` is read, although there is a list in {names} as well."

    def _first_rows(self, sheet: Sheet) -> Generator[None, None, list[SheetRow]]:
        rows: list[SheetRow] = []
        cells = 0
        for row in self.workbook.rows(sheet):
            yield
            if row is not None and row.number >= (self._reading.header_row or 0):
                rows.append(row)
                cells += len(row)
                if len(rows) == _MAX_TITLES + SAMPLED_ROWS or (cells > _MAX_SAMPLED and len(rows) > _MAX_TITLES):
                    break
        return rows

    def _read_header(self, sheet: Sheet, rows: Sequence[SheetRow], *, is_alone: bool) -> "_Header":
        """Return the row with the most columns that are known as the header, by default the widest row.

        Raise UnreadableBodyError if none can be it. A text alone is a place only in the only sheet, above texts alone:
        it may be a title.
        """
        place: dict[str, object] = {"sheets": self.sheets[:_MAX_NAMED], "sheet": sheet.name}
        if self._reading.header_row and (not rows or rows[0].number != self._reading.header_row):
            sentence = f"Row {self._reading.header_row} of the sheet is empty: choose another as the header."
            raise UnreadableBodyError(sentence, members=place)
        if not rows:
            sentence = f"The sheet is empty: begin it with the columns `{self._reading.roles.example}`."
            raise UnreadableBodyError(sentence, members=place)
        first = rows[: 1 if self._reading.header_row else _MAX_TITLES]
        known = self._find_known(first)
        begin = None if known or self._reading.header_row else begin_without_header(rows)
        is_place = known is None and (begin is not None or read_heading(rows[0], self._reading) is None)
        may_be_title = len(rows[0]) == 1 and not (is_alone and all(len(row) == 1 for row in first))
        has_header = self._reading.header_row != 0 and (not is_place or may_be_title)
        header = (known[0] if known else max(first, key=len)) if has_header else rows[0]
        below = [row for row in rows if row.number >= header.number + has_header][:SAMPLED_ROWS]
        reading = self._reading._replace(named=read_heading(header, self._reading) or self._reading.named)
        number = header.number if has_header else 0
        try:
            columns, assignment = read_columns(header, reading, below, has_header=has_header)
        except UnreadableBodyError as error:
            place |= {"header_row": number, **error.members} if has_header else error.members
            raise UnreadableBodyError(str(error), members=place) from None
        return _Header(sheet, number, assignment, columns)

    def _find_known(self, rows: Sequence[SheetRow]) -> tuple[SheetRow, Assignment] | None:
        known: list[tuple[SheetRow, Assignment]] = []
        for row in rows:
            with suppress(UnreadableBodyError):
                assignment = assign(row, self._reading.roles, self._reading.named)
                require(assignment, self._reading, row)
                known.append((row, assignment))
        return max(known, key=lambda one: len(one[1].by_role), default=None)

    def _measure(self) -> Iterator[None]:
        used = {at for at, _ in self.assignment.by_role.values()}
        is_below = not self.header_row
        end = self.header_row  # of the rows without an empty one between, which spreadsheets sort as a list
        for row in self.workbook.rows(self.sheet, take=self._take_range):
            yield
            if row is None or row.number < self.header_row:
                continue
            self.width = max(self.width, len(row))
            if row.number == (end or row.number):
                self._filled.update(at for at, value in enumerate(row) if value)
                end = row.number + 1
            if not is_below:
                is_below = row.number == self.header_row
                continue
            self.count += 1
            if self.count > MAX_SHEET_ROWS:
                raise UnreadableBodyError(f"The sheet has more than {MAX_SHEET_ROWS:,} rows: save it as CSV (UTF-8).")
            for at, fault in row.unvalued.items():
                if at in used and not fault:
                    raise UnreadableBodyError(refusal_of_cell(at, row.number, fault))
        self._merges = [merge for merge in self._merges if merge.left in used]
        yield from self._place_answers(min(used), max(used))
        self.note = " ".join(filter(None, (self.placing, self._others))) or None

    def _take_range(self, element: str, cells: Range) -> None:
        if element == "autoFilter":
            self._filter = cells
            return
        if cells.last >= self.header_row:
            self._merged[cells.left] = max(cells.right, self._merged.get(cells.left, 0))
        if cells.last > cells.first:
            if len(self._merges) == _MAX_MERGES:
                raise WorkbookError(f"The sheet has more than {_MAX_MERGES:,} merged ranges: save it as CSV (UTF-8).")
            self._merges.append(cells)

    def _place_answers(self, first: int, last: int) -> Iterator[None]:
        """Find the column of the answers, and the table or the filter of the list, if it can grow up to there.

        That of the list begins at the header, and has all columns that are read, from `first` to `last`.
        """
        tables = yield from self.workbook.tables(self.sheet)
        filters = {self.sheet.member: self._filter} if self._filter else {}
        ranges = {name: one for name, one in (tables | filters).items() if one.last >= self.header_row}
        # A merged range that begins before the last column is a title or a note across the list, not one of its cells.
        merged = [right for left, right in self._merged.items() if left >= self.width - 1]
        tabled = [one.right for name, one in ranges.items() if name in tables]
        self.width = self._whole_width = max(self.width - 1, *merged, *tabled, 0) + 1
        headers = self.layout.columns or []
        own = begin_of_answers(headers)
        kept = width_without_answers(headers)
        is_whole = self.width == len(headers) or not self.header_row
        if kept < len(headers) and is_whole and all(right < kept for right in tabled):
            self.width = kept  # the new answers replace those of an earlier one
        begun = {name: one for name, one in ranges.items() if one.first == self.header_row and one.right >= first}
        for name, one in begun.items():
            if one.left <= first and last <= one.right and self._can_grow(name, one, tables):
                self.grown = name, one
                return
        self._filled.update(
            *(range(left, right + 1) for left, right in self._merged.items() if last <= left in self._filled)
        )
        is_apart = not self._filled.issuperset(range(first, self.width))
        if is_apart and own is None:
            self.width = min(self.width + 1, MAX_COLUMNS)  # or the answers would be sorted with what is beside the list
        if is_apart or begun or any(one.left > last for one in ranges.values()):
            self.placing = (
                f"The answers begin in column {xl_col_to_name(self.width)}, with other cells between them and the list,"
                " and don't move when the list is sorted: move those cells to another sheet, and send the workbook"
                " again."
            )

    def make_room(self, count: int) -> None:
        """Keep an earlier answer without a header if it is wider than a new one of `count` columns.

        Only headers tell which of its columns somebody has added.
        """
        if not self.header_row and self._whole_width - self.width > count:
            self.width = self._whole_width

    def _can_grow(self, member: str, cells: Range, tables: Mapping[str, Range]) -> bool:
        """Return whether no cells are between a range and the answers; a filter may lack columns of the list."""
        between = range(cells.right + 1, self.width)
        if member in tables:
            return not between and self.workbook.archive.getinfo(member).file_size <= _MAX_TABLE
        headers = self.layout.columns or []
        return all(at < len(headers) and headers[at] for at in between) and not any(
            one.right in between for one in tables.values()
        )

    def _records(self) -> Iterator[tuple[int, SheetRow | None]]:
        is_below, merged = not self.header_row, _MergedCells(self._merges)
        with self.refusing_damage():
            for row in self.workbook.rows(self.sheet, edge=self.width):
                if row is None:
                    yield 0, None
                    continue
                merged.fill(row)
                if is_below:
                    yield row.number, row
                elif row.number == self.header_row:
                    self.header, is_below = row, True

    def _row(self, number: int, record: SheetRow) -> Row:
        width = len(self.layout.columns or ())
        del record[width:]  # cells without a header, such as notes beside the table
        record.extend([""] * (width - len(record)))
        values = [record.merged.get(at, value) for at, value in enumerate(record)] if record.merged else record
        return self.assignment.read(number, record, values)


class _Header(NamedTuple):
    """The row that names the columns of a sheet: its number, from 1, or 0 if no row does."""

    sheet: Sheet
    number: int
    assignment: Assignment
    columns: list[str]


class _MergedCells:
    """Gives the rows of merged ranges the value of their first cell."""

    def __init__(self, merges: Sequence[Range]) -> None:
        self._coming = sorted(merges, key=lambda merge: -merge.first)
        self._current: dict[int, tuple[Range, str]] = {}  # by column, with the value

    def fill(self, row: SheetRow) -> None:
        """Add to a row the values of ranges that began above it; rows come in order."""
        while self._coming and self._coming[-1].first <= row.number:
            merge = self._coming.pop()
            value = row[merge.left] if merge.first == row.number and merge.left < len(row) else ""
            self._current[merge.left] = merge, value
        row.merged = {
            at: value
            for at, (merge, value) in self._current.items()
            if merge.first < row.number <= merge.last and value
        }


def _open_workbook(file: IO[bytes]) -> tuple[zipfile.ZipFile, str | None]:
    """Open a workbook; return also why it is too large, unless it has the columns of an earlier answer.

    Raise UnreadableBodyError if it is larger than that, or has what is not read.
    """
    if (size := file.seek(0, io.SEEK_END)) > _ROOM * _MAX_WORKBOOK:
        raise UnreadableBodyError(_TOO_LARGE)
    file.fileno()  # moves a file that is still in memory to the disk
    file.flush()
    archive = zipfile.ZipFile(limit_reads(file))
    members = archive.infolist()
    if find_excess(members, size, _ROOM * _MAX_UNPACKED):
        raise UnreadableBodyError(_UNPACKS_TOO_LARGE)
    if not is_workbook(archive):
        raise UnreadableBodyError(f"The file is {describe_zip(archive)}.")
    for start, sentence in _REFUSED_MEMBERS.items():
        if any(canonical_name(member.filename).startswith(canonical_name(start)) for member in members):
            raise UnreadableBodyError(sentence)
    if size > _MAX_WORKBOOK:
        return archive, _TOO_LARGE
    return archive, _UNPACKS_TOO_LARGE if find_excess(members, size, _MAX_UNPACKED) else None
