"""Reads a sheet of an Excel workbook row by row, without running, fetching or extracting anything.

Libraries hold a sheet as a rectangle, python-calamine in twice the memory that an import takes, and a stray cell at the
end of the sheet, which takes 5 kB of a file, as one of 17 billion cells. This reader takes the memory of a row and of
the workbook's texts, and knows where in the sheet's XML each row ends, so that cells can be written beside it.
"""

import csv
import io
import posixpath
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NoReturn
from xml.parsers import expat
from zipfile import ZipFile

WORKBOOK = "xl/workbook.xml"
MAX_COLUMNS = 16_384
_RELATIONS = "xl/_rels/workbook.xml.rels"
_TEXTS = "xl/sharedStrings.xml"
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # ECMA-376 part 1, 22.9.2.19: ST_Xstring
# Characters that XML 1.0 can't contain, and text that looks like their escapes.
_CONTROLS = bytes({*range(32)} - {*b"\t\n"})
_TO_ESCAPE = re.compile(rb"[\x00-\x08\x0b-\x1f]|\xef\xbf[\xbe\xbf]|_(?=x[0-9A-Fa-f]{4}_)")
_PIECE = 32 * 1024  # bytes of XML, some milliseconds
_MAX_ROW = 1024**2  # characters
_MAX_GAP = 16 * 1024**2  # bytes of XML from one row that has a value to the end of the next
_MAX_NAMES = 10  # sheets that are named
_MAX_TEXTS = 256 * 1024**2  # bytes of memory for the texts that cells refer to
_TEXT_OVERHEAD = 60  # bytes for each, in addition to its characters

# Errors of these functions for a damaged workbook, in addition to those of zipfile.
DAMAGE = (expat.ExpatError, ET.ParseError, KeyError, ValueError, IndexError)


class WorkbookError(Exception):
    """A workbook can't be read; its text is a sentence for whoever made it."""


class SheetRow(list[str]):
    """The cells of a row as text, without empty ones at its end.

    In the sheet's XML, cells without a value from the column `edge` on begin at the byte `cut`, and the row's element
    closes at `end`.
    """

    number: int  # Excel's, from 1
    cut: int
    end: int


class Workbook:
    """A sheet of a workbook: the first, or a named one. Call `load` before `rows`."""

    def __init__(self, archive: ZipFile, sheet: str | None = None) -> None:
        """Find the sheet; raise WorkbookError if there is none of this name."""
        self.archive = archive
        self.member = _find_sheet(archive, sheet)
        self._texts: list[str] = []

    def load(self) -> Iterator[None]:
        """Read the texts that cells refer to, with pauses."""
        if _TEXTS in self.archive.namelist():
            yield from _feed(self.archive, _TEXTS, _TextsParser(self._texts).expat)

    def rows(self, edge: int = MAX_COLUMNS) -> Iterator[SheetRow | None]:
        """Yield the rows that have a value, and None as a pause."""
        parser = _SheetParser(self._texts, edge)
        for _ in _feed(self.archive, self.member, parser.expat):
            yield from parser.done
            parser.done.clear()
            yield None


def write_csv(archive: ZipFile, sheet: str | None, out: IO[bytes]) -> None:
    """Write a sheet as CSV in UTF-8, every value quoted, and every row as wide as the first."""
    workbook = Workbook(archive, sheet)
    for _ in workbook.load():
        pass
    text = io.TextIOWrapper(out, "utf-8", newline="")
    rows = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    width = 0
    for row in filter(None, workbook.rows()):
        width = width or len(row)
        rows.writerow([*row, *[""] * (width - len(row))])
    text.detach()  # writes the buffered rows


def _find_sheet(archive: ZipFile, name: str | None) -> str:
    """Return the name of the member with a sheet."""
    sheets: dict[str, str] = {}
    for sheet in _elements(archive, WORKBOOK, "sheet"):
        id_ = next((value for key, value in sheet.items() if key.endswith("}id")), "")
        sheets.setdefault(sheet.get("name", ""), id_)
    if not sheets:
        raise KeyError(WORKBOOK)
    wanted = next(iter(sheets)) if name is None else name
    if wanted not in sheets:
        listed = ", ".join(f"`{one}`" for one in list(sheets)[:_MAX_NAMES])
        raise WorkbookError(f"The workbook has no such sheet; it has {listed}.")
    for relation in _elements(archive, _RELATIONS, "Relationship"):
        if relation.get("Id") == sheets[wanted] and relation.get("TargetMode") != "External":
            return posixpath.normpath(posixpath.join("/xl", relation.get("Target", ""))).lstrip("/")
    raise KeyError(wanted)


def _elements(archive: ZipFile, member: str, name: str) -> Iterator[ET.Element]:
    """Yield the elements of a name as they are read; each is emptied afterwards."""
    with archive.open(member) as file:
        # Expat bounds what entities expand to, and ElementTree fetches none.
        for _, element in ET.iterparse(file, events=("end",)):  # noqa: S314
            if element.tag.rpartition("}")[2] == name:
                yield element
                element.clear()


def _feed(archive: ZipFile, member: str, parser: expat.XMLParserType) -> Iterator[None]:
    """Parse a member, with a pause after each piece."""
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            parser.Parse(piece)
            yield
        parser.Parse(b"", True)  # noqa: FBT003  # takes no keywords
    yield


def _new_parser() -> expat.XMLParserType:
    """Return a parser of UTF-8 that refuses document types, and so custom entities; no workbook has them."""
    parser = expat.ParserCreate("UTF-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    return parser


def _refuse_doctype(*_: object) -> NoReturn:
    raise ValueError("a workbook has no document type")


class _Parser:
    """Calls `start` and `end` with the names of elements, less the prefix that the first of them has."""

    def __init__(self) -> None:
        self.expat = _new_parser()
        self.expat.StartElementHandler = self._begin
        self._chars: list[str] | None = None  # where the text is taken to

    def _begin(self, name: str, _: object) -> None:
        prefix = name[: name.rfind(":") + 1]
        self._bind(lambda local: f"{prefix}{local}")

    def _bind(self, named: Callable[[str], str]) -> None:
        raise NotImplementedError

    def _take(self, text: str) -> None:
        if self._chars is not None:
            self._chars.append(text)


class _TextsParser(_Parser):
    """Reads the texts that cells refer to; raises WorkbookError if they are too many."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._texts = texts
        self._size = 0

    def _bind(self, named: Callable[[str], str]) -> None:
        item, text = named("si"), named("t")
        parts: list[str] = []

        def start(name: str, _: object) -> None:
            if name == item:
                parts.clear()
            elif name == text:
                self._chars = parts

        def end(name: str) -> None:
            if name == text:
                self._chars = None
            elif name == item:
                self._texts.append(_unescape("".join(parts)))
                self._size += _TEXT_OVERHEAD + len(self._texts[-1])
                if self._size > _MAX_TEXTS:
                    raise WorkbookError("The workbook has too many different texts: save its sheet as CSV (UTF-8).")

        self.expat.StartElementHandler, self.expat.EndElementHandler = start, end
        self.expat.CharacterDataHandler = self._take


class _SheetParser(_Parser):
    """Reads rows into `done`; raises WorkbookError for a formula that has no value."""

    def __init__(self, texts: Sequence[str], edge: int) -> None:
        super().__init__()
        self._texts = texts
        self._edge = edge
        self.done: list[SheetRow] = []
        self._number = 0
        self._row = SheetRow()
        self._size = 0  # characters of the row
        self._closed = 0  # the byte where the last row with a value ends

    def _bind(self, named: Callable[[str], str]) -> None:  # noqa: C901  # the elements of a sheet, one by one
        cell, value, text, formula = named("c"), named("v"), named("t"), named("f")
        row, rows = named("row"), named("sheetData")
        at, kind, has_formula = -1, "n", False
        chars: list[str] = []

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal at, kind, has_formula
            if name == cell:
                reference = attributes.get("r")
                at = _column_of(reference) if reference else at + 1
                kind, has_formula = attributes.get("t", "n"), False
                chars.clear()
                if at >= self._edge and self._row.cut < 0:
                    self._row.cut = self.expat.CurrentByteIndex
            elif name in (value, text):
                self._chars = chars
            elif name == formula:
                has_formula = True
            elif name == row:
                at = -1
                self._begin_row(attributes.get("r"))

        def end(name: str) -> None:
            if name in (value, text):
                self._chars = None
            elif name == cell:
                written = "".join(chars)
                if written:
                    self._add(at, self._read(kind, written))
                elif has_formula and kind != "str":
                    self._refuse_formula(at)
            elif name == row:
                self._end_row()
            elif name == rows:
                self.expat.StartElementHandler = self.expat.EndElementHandler = self.expat.CharacterDataHandler = None

        self.expat.StartElementHandler, self.expat.EndElementHandler = start, end
        self.expat.CharacterDataHandler = self._take

    def _take(self, text: str) -> None:
        if self._chars is not None:
            self._grow(len(text))
            self._chars.append(text)

    def _grow(self, by: int) -> None:
        self._size += by
        if self._size > _MAX_ROW:
            raise WorkbookError(f"Row {self._number} of the sheet is longer than 1 MB: check what is in it.")

    def _begin_row(self, number: str | None) -> None:
        self._number = int(number) if number else self._number + 1
        self._row, self._size = SheetRow(), 0
        self._row.number, self._row.cut = self._number, -1

    def _end_row(self) -> None:
        if self._row:
            self._row.end = self.expat.CurrentByteIndex
            self._row.cut = self._row.end if self._row.cut < 0 else self._row.cut
            if self._row.end - self._closed > _MAX_GAP and self._closed:
                raise WorkbookError(f"Too many empty rows come before row {self._number}: remove them.")
            self._closed = self._row.end
            self.done.append(self._row)

    def _add(self, at: int, value: str) -> None:
        row = self._row
        if value and len(row) <= at < MAX_COLUMNS:
            row.extend([""] * (at - len(row)))
            row.append(value)

    def _read(self, kind: str, written: str) -> str:
        if kind == "s":
            text = self._texts[int(written)]
            self._grow(len(text))
            return text
        return _number(written) if kind == "n" else _unescape(written)

    def _refuse_formula(self, at: int) -> NoReturn:
        raise WorkbookError(
            f"Cell {column_name(at)}{self._number} has a formula without its value: open the workbook in Excel or"
            " LibreOffice and save it."
        )


def _column_of(reference: str) -> int:
    """Return the column of a cell such as `AB12`, from 0."""
    column = 0
    for letter in reference.rstrip("0123456789"):
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1


def column_name(column: int) -> str:
    """Return the letters of a column, from 0."""
    name, column = "", column + 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _number(text: str) -> str:
    """Return a number as people write it: `21.880833000000001` is 21.880833."""
    number = float(text)
    return str(int(number)) if number.is_integer() else f"{number:.15g}"


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).replace("\n", " ").replace("\r", " ")


def escape_controls(xml: bytes) -> bytes:
    """Escape control characters as Excel does; there are hardly ever any, so a quick look comes first."""
    if b"_x" in xml or b"\xef\xbf" in xml or len(xml.translate(None, _CONTROLS)) < len(xml):
        return _TO_ESCAPE.sub(lambda found: b"_x%04X_" % ord(found[0].decode()), xml)
    return xml
