"""Reads the sheets of an Excel workbook row by row, without running, fetching or extracting anything.

Libraries hold a sheet as a rectangle, python-calamine in twice the memory that an import takes, and a stray cell at the
end of the sheet, which takes 5 kB of a file, as one of 17 billion cells. This reader takes the memory of a row and of
the workbook's texts, and knows where in the sheet's XML each row ends, so that cells can be written beside it.

A stranger's workbook takes time and memory in proportion to its rows: parts, single tags, nesting and the XML between
two rows are bounded (docs/decisions/rows.md).
"""

import posixpath
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple, NoReturn
from xml.parsers import expat
from zipfile import ZipFile, ZipInfo

from xlsxwriter.utility import xl_col_to_name

MAX_COLUMNS = 16_384
_WORKBOOK = "xl/workbook.xml"
CONTENT_TYPES = "[Content_Types].xml"
# ECMA-376 part 1, 22.9.2.19: ST_Xstring. Half of a character beyond U+FFFF stays an escape: no encoding has it.
_ESCAPED = re.compile("_x((?![Dd][89A-Fa-f])[0-9A-Fa-f]{4})_")
# Characters that XML 1.0 can't contain, and text that looks like their escapes.
_CONTROLS = bytes({*range(32)} - {*b"\t\n"})
_LIKE_ESCAPE = re.compile(rb"_(?=x[0-9A-Fa-f]{4}_)")
_PIECE = 32 * 1024  # bytes of XML, some milliseconds
_MAX_PART = 1024**2  # bytes of a part that is neither a sheet nor texts nor formats
_MAX_RATIO = 50  # of unpacked to packed size of such a part, if it is larger
_MAX_TAG = 16 * 1024  # bytes at the beginning of a table's part, which have its range
_MAX_STYLES = 16 * 1024**2  # bytes
_MAX_TOKEN = 128 * 1024  # bytes of a tag or comment; expat takes time squared for a longer one
_MAX_DEPTH = 100  # elements within each other, of which expat keeps each in memory
_MAX_ROW = 1024**2  # characters
_MAX_GAP = 16 * 1024**2  # bytes of XML between the ends of two rows with a value, or of two texts
_MAX_TEXT = 64 * 1024  # characters of a text; a cell of Excel has half of them
_MAX_NAME = 255  # characters of a sheet's name or a format, as in Excel or more
_MAX_REFERENCE = 10  # characters of a cell's: XFD1048576
_MAX_TEXTS = 256 * 1024**2  # bytes of memory for the texts that cells refer to
_TEXT_OVERHEAD = 60  # bytes for each, in addition to its characters
_TABLE = re.compile(rb"<(?:\w+:)?table\b[^<>]*?\bref=[\"']([^\"']*)")
_RANGE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})(?::([A-Z]{1,3})([0-9]{1,7}))?")
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")  # first bytes

_DAYS_TO_1904 = 1462  # between the first days of the two calendars
_DAY_ZERO = datetime(1899, 12, 30)  # noqa: DTZ001  # a cell has no time zone
_FALSE_LEAP_DAY = 60  # 29 February 1900, which Excel takes over from Lotus 1-2-3
_LAST_SECOND = 2_958_466 - 1 / 86_400  # in days, of 9999-12-31
_MAX_KNOWN_NAMES = 100
_MAX_ERROR = 20  # characters of an error such as #DIV/0!

# Errors of these functions for a damaged workbook, in addition to those of zipfile.
DAMAGE = (expat.ExpatError, KeyError, ValueError, IndexError)


class WorkbookError(Exception):
    """A workbook can't be read; its text is a sentence for whoever made it."""


class SheetRow(list[str]):
    """The cells of a row as text, without empty ones at its end.

    In the sheet's XML, cells without a value from the column `edge` on begin at the byte `cut`, and the row's element
    closes at `end`. `unvalued` has the columns of formulas without a value, and of errors such as `#N/A`; `merged` has
    the values that columns get from merged ranges that begin above.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number  # Excel's, from 1
        self.cut = self.end = -1
        self.unvalued: dict[int, str] = {}
        self.merged: dict[int, str] = {}


class Sheet(NamedTuple):
    """A sheet of a workbook, and the member of the zip with it."""

    name: str
    number: int  # among all sheets, from 0
    is_visible: bool
    member: str


class Range(NamedTuple):
    """A range of cells: its rows, from 1, and its columns, from 0."""

    first: int
    last: int
    left: int
    right: int


# Takes the ranges of a sheet, each with the name of its element: `mergeCell` or `autoFilter`.
TakeRange = Callable[[str, Range], None]


class Workbook:
    """The sheets of a workbook. Call `load` before `rows`."""

    def __init__(self, archive: ZipFile) -> None:
        """List the sheets; raise KeyError if there is none."""
        self.archive = archive
        self._members = {canonical_name(member.filename): member.filename for member in archive.infolist()}
        self._parts = {self.find(CONTENT_TYPES): CONTENT_TYPES}
        books = (one.part for one in filter(None, self._relations("")) if one.kind.endswith("/officeDocument"))
        part = next(books, _WORKBOOK)
        self.member = self.find(part)
        self._relations_of_book = {one.id: one for one in filter(None, self._relations(part))}
        self._is_1904 = False
        listed: list[Mapping[str, str]] = []
        for name, attributes in filter(None, _elements(archive, self.member, _MAX_PART)):
            if name == "sheet":
                listed.append(attributes)
            elif name == "workbookPr":
                self._is_1904 = attributes.get("date1904") in {"1", "true"}
        ids = {sheet.get("sheetId") for sheet in listed}
        self.free_id = next(number for number in count(1) if str(number) not in ids)
        # Each part is read once, however often it is listed: no real workbook has two sheets in one part.
        sheets: dict[str, Sheet] = {}
        for number, sheet in enumerate(listed):
            relation = self._relations_of_book.get(sheet.get("id", ""))
            if relation and relation.kind.endswith("/worksheet") and (member := self.find(relation.part)):
                is_visible = sheet.get("state", "visible") == "visible"
                sheets.setdefault(member, Sheet(sheet.get("name", "")[:_MAX_NAME], number, is_visible, member))
        self.sheets = list(sheets.values())
        if not self.sheets:
            raise KeyError(part)
        self._parts |= {self.find(one): one for one in (part, *(one.part for one in self._relations_of_book.values()))}
        self._texts: list[str] = []
        self._formats: list[str] = []  # of each style of cells: what its numbers are, as `_kind_of_format` says

    def load(self) -> Iterator[None]:
        """Read the texts and the formats of numbers that cells refer to, with pauses.

        Raise WorkbookError if another part is too large; pictures, which hardly shrink, may have more bytes.
        """
        texts, formats = map(self._find_first, ("/sharedStrings", "/styles"))
        large = {texts, formats, *(sheet.member for sheet in self.sheets)}
        for info in self.archive.infolist():
            if info.filename not in large:
                _check_size(info, max(_MAX_PART, _MAX_RATIO * info.compress_size))
        if texts:
            yield from _feed(self.archive, texts, _TextsParser(self._texts))
        if formats:
            yield from self._load_formats(formats)

    def _load_formats(self, member: str) -> Iterator[None]:
        codes: dict[str, str] = {}
        is_of_cells = False
        for element in _elements(self.archive, member, _MAX_STYLES):
            if element is None:
                yield
                continue
            name, attributes = element
            if name == "numFmt":
                codes[attributes.get("numFmtId", "")] = _kind_of_format(attributes.get("formatCode", "")[:_MAX_NAME])
            elif name.endswith("Xfs"):
                is_of_cells = name == "cellXfs"
            elif name == "xf" and is_of_cells:
                number = attributes.get("numFmtId", "0")
                self._formats.append(codes.get(number) or _NUMBERED_FORMATS.get(int(number), ""))

    def rows(self, sheet: Sheet, edge: int = MAX_COLUMNS, take: TakeRange | None = None) -> Iterator[SheetRow | None]:
        """Yield the rows that have a value, and None as a pause; give `take` the ranges below them."""
        parser = _SheetParser(self, edge, take)
        for _ in _feed(self.archive, sheet.member, parser):
            yield from parser.done
            parser.done.clear()
            yield None

    def tables(self, sheet: Sheet) -> Generator[None, None, dict[str, Range]]:
        """Return the ranges of a sheet's tables by the members that describe them, after pauses."""
        members = set[str]()
        for related in self._relations(sheet.member):
            if related is None:
                yield
            elif related.kind.endswith("/table"):
                members.add(self.find(related.part))
        tables: dict[str, Range] = {}
        for member in filter(None, members):
            yield
            with self.archive.open(member) as file:
                found = _TABLE.search(file.read(_MAX_TAG))
            if found and (cells := _range_of(found[1].decode(errors="replace"))):
                tables[member] = cells
        return tables

    def find(self, part: str) -> str:
        """Return the member with a part, which programs write in other letters, or with backslashes; or no name."""
        return self._members.get(canonical_name(part), "")

    def read(self, member: str) -> bytes:
        """Return a part that is neither a sheet nor texts; raise WorkbookError if it is too large."""
        _check_size(self.archive.getinfo(member), _MAX_PART)
        return self.archive.read(member)

    def part_of(self, member: str) -> str:
        """Return the name of a member as the relations of the workbook spell it, which most programs need."""
        return member and self._parts.get(member, member.replace("\\", "/"))

    def text(self, number: str) -> str:
        """Return a text that a cell refers to."""
        return self._texts[int(number)]

    def number(self, written: str, style: str | None) -> str:
        """Return a number as people see it: a date as 2026-03-01, `21.880833000000001` as 21.880833."""
        value = float(written)
        kind = self._formats[int(style)] if style and int(style) < len(self._formats) else ""
        days = value + _DAYS_TO_1904 * self._is_1904
        if kind and value >= 0 and days <= _LAST_SECOND:
            return _date(days, kind)
        return str(int(value)) if value.is_integer() else f"{value:.15g}"

    def _find_first(self, kind: str) -> str:
        return next((self.find(one.part) for one in self._relations_of_book.values() if one.kind.endswith(kind)), "")

    def _relations(self, part: str) -> "Iterator[_Relation | None]":
        """Yield the relations of a part to others of the workbook, and None as a pause."""
        folder, name = posixpath.split(part)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        member = self.find(listed)
        self._parts[member] = listed
        for found in _elements(self.archive, member, _MAX_PART) if member else ():
            if found is None:
                yield None
                continue
            element, attributes = found
            if element == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.join("/", folder, attributes.get("Target", ""))
                related = posixpath.normpath(target).lstrip("/")
                yield _Relation(attributes.get("Id", ""), attributes.get("Type", ""), related)


class _Relation(NamedTuple):
    """A relation of a part to another one of the workbook."""

    id: str
    kind: str  # a URI
    part: str


def is_workbook(archive: ZipFile) -> bool:
    """Return whether a zip is an Excel workbook."""
    return any(canonical_name(name) == _WORKBOOK for name in archive.namelist())


def find_sheet(workbook: Workbook, name: str | None) -> Sheet:
    """Return the sheet of a name, or the first visible one; raise WorkbookError if there is none of the name."""
    if name is None:
        return next((one for one in workbook.sheets if one.is_visible), workbook.sheets[0])
    for sheet in workbook.sheets:
        if sheet.name == name:
            return sheet
    raise WorkbookError(f"The workbook has no such sheet; it has {list_sheets(workbook.sheets)}.")


_MAX_NAMES = 10  # sheets that are named


def list_sheets(sheets: "list[Sheet]") -> str:
    """Return the names of sheets for a sentence."""
    return ", ".join(f"`{one.name}`" for one in sheets[:_MAX_NAMES])


def refusal_of_cell(column: int, row: int, fault: str) -> str:
    """Return the sentence about a cell with a formula that has no value (an empty `fault`), or with an error."""
    letters = xl_col_to_name(column)
    if fault:
        return f"Cell {letters}{row} has the error {fault}: correct it, or leave the cell empty."
    return (
        f"Cell {letters}{row} has a formula without its value: open the workbook in Excel or LibreOffice and save it."
    )


def canonical_name(name: str) -> str:
    """Return the name of a part in the spelling that all its spellings share."""
    return name.replace("\\", "/").lstrip("/").casefold()


def _feed(archive: ZipFile, member: str, parser: "_Parser") -> Iterator[None]:
    fed = 0
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            if not fed and piece.startswith(_UTF16):
                raise WorkbookError("The workbook is written in UTF-16: open it in Excel or LibreOffice and save it.")
            parser.expat.Parse(piece)
            fed += len(piece)
            if fed - parser.expat.CurrentByteIndex > _MAX_TOKEN:
                raise WorkbookError("The workbook has a tag or a comment of more than 128 kB: save it as a new one.")
            parser.check_gap()
            yield
        parser.expat.Parse(b"", True)  # noqa: FBT003  # takes no keywords
    yield


def _check_size(info: ZipInfo, limit: int) -> None:
    if info.file_size > limit:
        raise WorkbookError(
            f"A part of the workbook is larger than {limit // 1024**2} MB: copy the table into a new workbook."
        )


def _elements(archive: ZipFile, member: str, limit: int) -> "Iterator[_Element | None]":
    """Yield the elements of a part in the order of their starts, and None as a pause; raise as `_check_size` does."""
    _check_size(archive.getinfo(member), limit)
    parser = _Parser()
    for _ in _feed(archive, member, parser):
        yield from parser.started
        parser.started.clear()
        yield None


_Element = tuple[str, Mapping[str, str]]  # name and attributes, without prefixes


class _Parser:
    """Calls `start` and `end` with the names of elements, and bounds how deep they are nested.

    Without a `start` of its own, it keeps the elements in `started`.
    """

    def __init__(self) -> None:
        self.expat = expat.ParserCreate("UTF-8")
        self.expat.buffer_text = True
        # Since expat 2.6 it may look at an unfinished tag only once twice as much has come, so it seems twice as long.
        if hasattr(self.expat, "SetReparseDeferralEnabled"):
            self.expat.SetReparseDeferralEnabled(False)  # noqa: FBT003  # takes no keywords
        self.expat.StartDoctypeDeclHandler = _refuse_doctype  # so no custom entities either
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self._depth = 0
        self.started: list[_Element] = []

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            _refuse_depth()
        self.start(name.rpartition(":")[2], {key.rpartition(":")[2]: value for key, value in attributes.items()})

    def _end(self, name: str) -> None:
        self._depth -= 1
        self.end(name.rpartition(":")[2])

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read the start of an element; names have no prefix."""
        self.started.append((name, attributes))

    def end(self, name: str) -> None:
        """Read the end of an element."""

    def check_gap(self) -> None:
        """Raise WorkbookError if too much XML follows the last row or text."""


def _refuse_doctype(*_: object) -> NoReturn:
    raise ValueError("a workbook has no document type")


def _refuse_depth() -> NoReturn:
    raise ValueError("a workbook has no elements nested so deep")


# ECMA-376 part 1, 18.8.30
_NUMBERED_FORMATS = {
    **dict.fromkeys([*range(14, 18), *range(27, 32), 36, *range(50, 59)], "date"),
    **dict.fromkeys([*range(18, 22), *range(32, 36), *range(45, 48)], "time"),
    22: "date time",
}
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\[\]]*\]|am/pm|a/p')  # in a format: not letters of a date


def _kind_of_format(code: str) -> str:
    """Return whether a format shows a `date`, a `time`, a `date time` or neither: an empty text."""
    letters = set(_LITERAL.sub("", code.lower().partition(";")[0]))
    has_time = bool(letters & set("hs")) or "[h" in code.lower()
    has_date = bool(letters & set("yd")) or ("m" in letters and not has_time)
    return " ".join(kind for kind, has in (("date", has_date), ("time", has_time)) if has)


def _date(days: float, kind: str) -> str:
    """Return a date, a time or both; `days` are counted from the day before 1900 began."""
    if days < _FALSE_LEAP_DAY:
        days += 1
    moment = _DAY_ZERO + timedelta(seconds=round(days * 86_400))
    time = f"{moment:%H:%M:%S}".removesuffix(":00") if moment.second == 0 else f"{moment:%H:%M:%S}"
    return " ".join({"date": f"{moment:%Y-%m-%d}", "time": time}[one] for one in kind.split())


class _TextsParser(_Parser):
    """Reads the texts that cells refer to; raises WorkbookError if they are too many."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._texts = texts
        self._size = 0
        self._parts: list[str] = []
        self._is_phonetic = False
        self._ended_at = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002  # texts have none that count
        if name == "si":
            self._parts.clear()
        elif name == "rPh":  # how Japanese is pronounced
            self._is_phonetic = True
        elif name == "t" and not self._is_phonetic:
            self.expat.CharacterDataHandler = self._parts.append

    def end(self, name: str) -> None:
        if name == "t":
            self.expat.CharacterDataHandler = None
        elif name == "rPh":
            self._is_phonetic = False
        elif name == "si":
            self._texts.append(_unescape("".join(self._parts)))
            self._size += _TEXT_OVERHEAD + len(self._texts[-1])
            self._ended_at = self.expat.CurrentByteIndex
            if self._size > _MAX_TEXTS:
                raise WorkbookError("The workbook has too many different texts: save its sheet as CSV (UTF-8).")

    def check_gap(self) -> None:
        if self.expat.CurrentByteIndex - self._ended_at > _MAX_GAP:
            raise WorkbookError("The workbook has 16 MB of XML without a text: copy the table into a new workbook.")


_DEPTH_OF_FILTER = 2  # <worksheet><autoFilter>


class _SheetParser(_Parser):
    """Reads rows into `done`, and then the ranges of merged cells and of the filter."""

    def __init__(self, workbook: Workbook, edge: int, take: TakeRange | None) -> None:
        super().__init__()
        self._workbook = workbook
        self._edge = edge
        self._take = take
        self.done: list[SheetRow] = []
        self._number = 0
        self._row = SheetRow(0)
        self._size = 0  # characters of the row
        self._closed = 0  # the byte where the last row with a value ends
        self._ended_at = 0  # the byte where the last row ends

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheetData":
            self._read_rows()
        # Deeper are the filters of custom views, which are not shown.
        elif name == "mergeCell" or (name == "autoFilter" and self._depth == _DEPTH_OF_FILTER):
            cells = _range_of(attributes.get("ref", ""))
            if cells and self._take:
                self._take(name, cells)

    def _read_rows(self) -> None:  # noqa: C901, PLR0915  # the elements of a sheet, one by one
        """Handle the elements of rows; there are millions of them, so closures are worth it."""
        at, kind, style, has_formula = -1, "n", None, False
        is_phonetic = False
        depth = self._depth
        chars: list[str] = []
        local = _LocalNames()

        def start(prefixed: str, attributes: dict[str, str]) -> None:
            nonlocal at, kind, style, has_formula, is_phonetic, depth
            depth += 1
            if depth > _MAX_DEPTH:
                _refuse_depth()
            name = local[prefixed]
            if name == "c":
                reference = attributes.get("r")
                at = _column_of(reference) if reference else at + 1
                kind, style, has_formula = attributes.get("t", "n"), attributes.get("s"), False
                chars.clear()
                self._check_order(at)
            elif name == "v" or (name == "t" and not is_phonetic):
                self.expat.CharacterDataHandler = take
            elif name == "f":
                has_formula = True
            elif name == "row":
                at = -1
                self._begin_row(attributes.get("r"))
            elif name == "rPh":
                is_phonetic = True

        def end(prefixed: str) -> None:
            nonlocal depth, is_phonetic
            depth -= 1
            name = local[prefixed]
            if name in {"v", "t"}:
                self.expat.CharacterDataHandler = None
            elif name == "c":
                written = "".join(chars)
                if kind == "e" or (has_formula and not written and kind != "str"):
                    self._row.unvalued[at] = written[:_MAX_ERROR]
                    self._add(at, "")
                elif written:
                    self._add(at, self._read(kind, style, written))
            elif name == "row":
                self._end_row()
            elif name == "rPh":
                is_phonetic = False
            elif name == "sheetData":
                self._depth -= 1
                self.expat.StartElementHandler, self.expat.EndElementHandler = self._start, self._end

        def take(text: str) -> None:
            self._grow(len(text))
            chars.append(text)

        self.expat.StartElementHandler, self.expat.EndElementHandler = start, end

    def _check_order(self, at: int) -> None:
        """Cut the row at its first cell beyond the edge; raise WorkbookError if a cell before the edge follows."""
        if self._row.cut < 0 <= at - self._edge:
            self._row.cut = self.expat.CurrentByteIndex
        elif self._row.cut >= 0 > at - self._edge:
            raise WorkbookError(
                f"The cells of row {self._number} are not in order: open the workbook in Excel or"
                " LibreOffice and save it."
            )

    def _grow(self, by: int) -> None:
        self._size += by
        if self._size > _MAX_ROW:
            raise WorkbookError(f"Row {self._number} of the sheet is longer than 1 MB: check what is in it.")

    def _begin_row(self, number: str | None) -> None:
        self._number = int(number) if number else self._number + 1
        self._row, self._size = SheetRow(self._number), 0

    def _end_row(self) -> None:
        self._ended_at = self.expat.CurrentByteIndex
        if self._row:
            self._row.end = self._ended_at
            self._row.cut = self._row.end if self._row.cut < 0 else self._row.cut
            if self._row.end - self._closed > _MAX_GAP and self._closed:
                raise WorkbookError(f"Too many empty rows come before row {self._number}: remove them.")
            self._closed = self._row.end
            self.done.append(self._row)

    def check_gap(self) -> None:
        if self.expat.CurrentByteIndex - self._ended_at > _MAX_GAP:
            raise WorkbookError("The sheet has 16 MB of XML without a row: copy the table into a new workbook.")

    def _add(self, at: int, value: str) -> None:
        row = self._row
        if at < len(row):
            row[at] = value
        elif at < MAX_COLUMNS:
            row.extend([""] * (at - len(row)))
            row.append(value)

    def _read(self, kind: str, style: str | None, written: str) -> str:
        if kind == "n":
            return self._workbook.number(written, style)
        if kind == "s":
            text = self._workbook.text(written)
            self._grow(len(text))
            return text
        if kind == "b":
            return "FALSE" if written == "0" else "TRUE"
        text = _unescape(written)
        return text.removesuffix("T00:00:00") if kind == "d" else text


class _LocalNames(dict[str, str]):
    """The names of elements without their prefix."""

    def __missing__(self, name: str) -> str:
        local = name.rpartition(":")[2]
        if len(self) < _MAX_KNOWN_NAMES:
            self[name] = local
        return local


def _column_of(reference: str) -> int:
    column = 0
    for letter in reference[:_MAX_REFERENCE].rstrip("0123456789"):
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1


def _range_of(reference: str) -> Range | None:
    """Return a range such as `A1:C6`, or None for what is none."""
    found = _RANGE.fullmatch(reference)
    if not found:
        return None
    left, first, right, last = found[1], found[2], found[3] or found[1], found[4] or found[2]
    return Range(int(first), int(last), _column_of(left), _column_of(right))


def put_last(xml: bytes, name: str, *children: str) -> bytes:
    """Return a part with children, without the brackets of their tags, at the end of an element; or ValueError."""
    root = xml[xml.rindex(b"</") + 2 :]
    prefix = root[: root.find(b":") + 1].decode()
    end = xml.rindex(f"</{prefix}{name}".encode())
    return xml[:end] + escape_controls("".join(f"<{prefix}{child}/>" for child in children).encode()) + xml[end:]


def _unescape(text: str) -> str:
    if len(text) <= _MAX_TEXT:  # escapes in a longer one, which Excel can't have written, stay
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return text.replace("\n", " ").replace("\r", " ")


def escape_controls(xml: bytes) -> bytes:
    """Escape control characters as Excel does; there are hardly ever any, so a quick look comes first."""
    if b"_x" in xml or b"\xef\xbf" in xml or len(xml.translate(None, _CONTROLS)) < len(xml):
        xml = _LIKE_ESCAPE.sub(b"_x005F_", xml)
        for code in (*_CONTROLS, 0xFFFE, 0xFFFF):  # a pattern that calls a function takes ten times as long
            xml = xml.replace(chr(code).encode(), b"_x%04X_" % code)
    return xml
