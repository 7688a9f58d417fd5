"""Writes answers beside the rows that were sent, as CSV, NDJSON, JSON or an Excel workbook."""

import csv
import io
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from shutil import copyfileobj
from typing import IO, Any, Protocol, TypeAlias, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import xlsxwriter
from pydantic_core import to_json

from localidades_api.bulk.readers import MAX_SHEET_ROWS, XLSX, Dialect, MediaType, RowReader, XlsxReader
from localidades_api.bulk.rows import Answer, Row, unique
from localidades_api.catalogue.keys import written
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.workbook import MAX_COLUMNS, SheetRow, column_name, escape_controls
from localidades_api.http.sink import Sink
from localidades_api.languages.match_words import name_fault, name_outcome
from localidades_api.languages.translators import LANGUAGES, Language, lenient_translator

# The names of an answer's columns, without their prefix, and how each cell is written.
AnswerColumns: TypeAlias = Mapping[str, Callable[[Answer], str]]


def _plain(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else str(value)


def _certain(name: str, answer: Answer) -> str:
    """Write a member of the matched place; nothing if a person has to choose, since tables are joined on it."""
    return _plain(name, answer) if answer["outcome"] in {"exact", "sure"} else ""


def _number(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else f"{value:g}"


def _faults(answer: Answer, language: Language = LANGUAGES[0]) -> str:
    return "; ".join(_fault(fault, language) for fault in answer["faults"])


def _fault(fault: Mapping[str, Any], language: Language) -> str:
    """Write a fault: `spelling: Guadalajra → Guadalajara (-5.5)`."""
    name = name_fault(fault["code"], language)
    words = " → ".join(filter(None, (fault["given"], fault["found"])))
    return f"{name}: {words} (-{fault['penalty']:g})" if words else f"{name} (-{fault['penalty']:g})"


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


_BETWEEN_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z`])")


def in_language(columns: AnswerColumns, language: Language) -> AnswerColumns:
    """Return the columns with the words of a language; English has the codes, for programs."""
    if language == LANGUAGES[0]:
        return columns
    translate = lenient_translator(language)

    @lru_cache(maxsize=1000)  # many rows have the same problem
    def say(sentences: str) -> str:
        return " ".join(map(translate, _BETWEEN_SENTENCES.split(sentences)))

    words: AnswerColumns = {
        "outcome": lambda answer: name_outcome(answer["outcome"], language),
        "faults": lambda answer: _faults(answer, language),
        "problem": lambda answer: say(_plain("problem", answer)),
    }
    return {name: words.get(name, cell) for name, cell in columns.items()}


_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class AnswerWriter(Protocol):
    """Writes answers; each method returns bytes to send, `begin` none if the layout depends on the first row."""

    def begin(self) -> bytes:
        """Return the bytes before the first row; the reader has read its first row, or its end."""

    def write(self, row: Row, answer: Answer) -> bytes:
        """Return a row with its answer."""

    def end(self) -> bytes:
        """Return the bytes after the last row."""


def writer(
    media_type: MediaType, reader: RowReader, columns: AnswerColumns = MATCH_COLUMNS, prefix: str = "match"
) -> AnswerWriter:
    """Return the writer of a format for the rows of a checked reader; tables get `columns`, with the prefix `prefix`.

    Raises UnreadableBodyError if a sheet has no room for the answers.
    """
    if media_type == XLSX:
        return (_SheetWriter if isinstance(reader, XlsxReader) else _NewSheetWriter)(reader, columns, prefix)
    if media_type == "text/csv":
        return _CsvWriter(reader.layout, columns, prefix)
    return _NdjsonWriter(reader.layout) if media_type == "application/x-ndjson" else _JsonWriter(reader.layout)


class _NdjsonWriter:
    """Writes an object a line: the answer, with the row that was sent as its member `sent`, so that no names clash."""

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


_PIECE_OF_FILE = 48 * 1024  # bytes


class WithFile:
    """Writes lines of NDJSON and, between them, a file with the same answers.

    A line of the file has a member `file`, a piece of it in base64.
    """

    def __init__(self, lines: AnswerWriter, file: AnswerWriter) -> None:
        self._lines = lines
        self._file = file
        self._piece = bytearray()

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

    The answer's columns are `match_outcome` and so on, or `match2_outcome` if the sender has such a column.
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
        # The csv module quotes a CR or LF within a cell only if line ends contain it.
        made = csv.writer(_Line, delimiter=layout.delimiter, lineterminator="\r\n")
        self._writerow = made.writerow
        names = [*columns, *_names(self._prefix, self._answer_columns, columns)]
        # Spreadsheets read text as windows-1252 unless it begins with the byte order mark.
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
    """Return the names of the answer's columns, different from those of the sender."""
    number, names = 1, [f"{prefix}_{column}" for column in columns]
    while not set(names).isdisjoint(taken):
        number += 1
        names = [f"{prefix}{number}_{column}" for column in columns]
    return names


def _as_cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="null").decode()


_LEVEL = 3  # of zlib, as for downloads
_MAX_CELL = 32_767  # characters, as in Excel
_MAX_SHEET = 1900 * 1024**2  # bytes: a zip for files beyond 2 GB is one that Excel may refuse
_NUMBERS = frozenset({"score", "margin", "distancia"})  # columns of numbers
_DIMENSION = re.compile(rb"<(\w+:)?dimension\b[^>]*/>")  # the range of cells that have a value, which grows
_PREFIX = re.compile(rb"<(\w+:)?sheetData\b")
_STYLE = re.compile(rb"<(?:\w+:)?c\b[^>]*\bs=\"(\d+)\"")
_SHEET = "xl/worksheets/sheet1.xml"  # of a new workbook


class _Cells:
    """The XML of cells: texts, but for the numbers of the answer."""

    def __init__(self, columns: AnswerColumns, prefix: str) -> None:
        self._columns = columns
        self._prefix = prefix
        self._cells = tuple((name in _NUMBERS, cell) for name, cell in columns.items())

    def header(self, taken: Sequence[str]) -> list[str]:
        """Return the names of the answer's columns."""
        return _names(self._prefix, self._columns, taken)

    def answered(self, answer: Answer, row: int, at: int, tag: str = "") -> str:
        """Return the cells of an answer, which begin at a column; `tag` is the prefix of XML's names."""
        return "".join(
            f'<{tag}c r="{column_name(column)}{row}"><{tag}v>{value}</{tag}v></{tag}c>'
            if is_number and value
            else self.text(value, row, column, tag)
            for column, (is_number, value) in enumerate(((number, cell(answer)) for number, cell in self._cells), at)
        )

    @staticmethod
    def text(value: str, row: int, column: int, tag: str = "", style: str = "") -> str:
        """Return a cell with a text; nothing for an empty one."""
        if not value:
            return ""
        written = escape(value[:_MAX_CELL], quote=False)
        space = ' xml:space="preserve"' if value != value.strip() else ""
        return (
            f'<{tag}c r="{column_name(column)}{row}"{style} t="inlineStr">'
            f"<{tag}is><{tag}t{space}>{written}</{tag}t></{tag}is></{tag}c>"
        )


class _Archive:
    """A workbook being written; its sheet comes last."""

    def __init__(self) -> None:
        self._sink = Sink()
        self._zip = ZipFile(self._sink, "w", ZIP_DEFLATED, compresslevel=_LEVEL)
        self._sheet: IO[bytes] = io.BytesIO()
        self._size = 0

    def begin(self, source: ZipFile, sheet: str) -> None:
        """Copy everything else, and begin the sheet."""
        for member in source.infolist():
            if member.filename != sheet and not member.is_dir():
                with source.open(member) as old, self._zip.open(_entry(member.filename), "w") as new:
                    copyfileobj(old, new)
        self._sheet = self._zip.open(_entry(sheet), "w")

    def add(self, xml: bytes) -> bytes:
        """Add to the sheet; return the bytes that can be sent."""
        self._size += len(xml)
        if self._size > _MAX_SHEET:
            raise UnreadableBodyError("The answers are more than a workbook can have: ask for CSV.")
        self._sheet.write(xml)
        return self._sink.drain()

    def end(self) -> bytes:
        """Return the rest."""
        self._sheet.close()
        self._zip.close()
        return self._sink.drain()


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    return entry


class _SheetWriter:
    """Writes the columns of the answer into the workbook that was sent, behind all of its columns.

    Everything else stays as it is: the XML of the sheet is copied, and cells are put at the end of its rows.
    """

    def __init__(self, reader: RowReader, columns: AnswerColumns, prefix: str) -> None:
        self._reader = cast("XlsxReader", reader)
        self._at = self._reader.width
        if self._at + len(columns) > MAX_COLUMNS:
            raise UnreadableBodyError(
                f"The sheet has a value in column {column_name(self._at - 1)}, which leaves no room for the answers:"
                " remove it."
            )
        self._cells = _Cells(columns, prefix)
        self._archive = _Archive()
        self._source: IO[bytes] = io.BytesIO()
        self._tag: str | None = None

    def begin(self) -> bytes:
        workbook = self._reader.workbook
        with self._reader.refusing_damage():
            self._archive.begin(workbook.archive, self._reader.sheet.member)
            self._source = workbook.archive.open(self._reader.sheet.member)
        return self._archive.add(b"")

    def write(self, row: Row, answer: Answer) -> bytes:
        sent = cast("SheetRow", row.sent)
        head = self._header()
        before = self._copy(sent)
        cells = self._cells.answered(answer, sent.number, self._at, self._tag or "")
        return self._archive.add(head + before + _as_xml(cells))

    def end(self) -> bytes:
        pieces = [self._archive.add(self._header())]
        while piece := self._source.read(_PIECE):
            pieces.append(self._archive.add(piece))
        return b"".join((*pieces, self._archive.end()))

    def _header(self) -> bytes:
        """Return the sheet up to the end of its header, with the style of the header's last cell; once."""
        if self._tag is not None:
            return b""
        if self._reader.header is None:  # no row has followed it
            next(iter(self._reader), None)
        header = cast("SheetRow", self._reader.header)
        head = _DIMENSION.sub(b"", self._copy(header), 1)
        prefix = _PREFIX.search(head)
        self._tag = (prefix[1] or b"").decode() if prefix else ""
        styles = _STYLE.findall(head, head.rfind(f"<{self._tag}row".encode()))
        style = f' s="{styles[-1].decode()}"' if styles else ""
        names = enumerate(self._cells.header(self._reader.layout.columns or ()), self._at)
        return head + _as_xml(
            "".join(self._cells.text(name, header.number, at, self._tag, style) for at, name in names)
        )

    def _copy(self, row: SheetRow) -> bytes:
        """Return the sheet up to where the answer's cells of a row belong, and go to where the row ends."""
        before = self._source.read(row.cut - self._source.tell())
        self._source.read(row.end - row.cut)
        return before


_PIECE = 1024**2  # bytes


def _as_xml(cells: str) -> bytes:
    return escape_controls(cells.encode(errors="replace"))


class _NewSheetWriter:
    """Writes a workbook with the sender's columns, as text, and those of the answer.

    Rows that came as objects have the members of the first as columns.
    """

    def __init__(self, reader: RowReader, columns: AnswerColumns, prefix: str) -> None:
        if reader.count > MAX_SHEET_ROWS:
            raise UnreadableBodyError(f"A workbook has at most {MAX_SHEET_ROWS:,} rows: ask for CSV.")
        self._layout = reader.layout
        self._members: list[str] | None = None
        self._cells = _Cells(columns, prefix)
        self._archive = _Archive()
        self._number = 1
        self._tail = b""

    def begin(self) -> bytes:
        return b"" if self._layout.columns is None else self._begin(self._layout.columns)

    def write(self, row: Row, answer: Answer) -> bytes:
        begun, sent = b"", row.sent
        if self._layout.columns is None:
            members = sent if isinstance(sent, Mapping) else {}
            if self._members is None:
                begun = self._begin([str(name) for name in members])
            sent = [_as_cell(members.get(name)) for name in self._members or ()]
        self._number += 1
        width = len(self._members or ())
        cells = "".join(
            self._cells.text(value, self._number, at) for at, value in enumerate(cast("list[str]", sent)[:width])
        )
        cells += self._cells.answered(answer, self._number, width)
        return begun + self._archive.add(_as_xml(f'<row r="{self._number}">{cells}</row>'))

    def end(self) -> bytes:
        begun = b"" if self._members is not None else self._begin([])
        return begun + self._archive.add(self._tail) + self._archive.end()

    def _begin(self, columns: list[str]) -> bytes:
        """Begin a workbook whose only sheet has a header that stays in view."""
        self._members, file = columns, io.BytesIO()
        names = [*columns, *self._cells.header(columns)]
        if len(names) > MAX_COLUMNS:
            raise UnreadableBodyError(f"A sheet has at most {MAX_COLUMNS:,} columns: ask for CSV.")
        with xlsxwriter.Workbook(file, {"constant_memory": True}) as workbook:  # writes texts into their cells
            sheet = workbook.add_worksheet("Localidades")
            bold = workbook.add_format({"bold": True})
            for at, name in enumerate(names):
                sheet.write_string(0, at, name[:_MAX_CELL], bold)
            sheet.freeze_panes(1, 0)
        with ZipFile(file) as frame:
            head, end, tail = _DIMENSION.sub(b"", frame.read(_SHEET), 1).partition(b"</sheetData>")
            self._archive.begin(frame, _SHEET)
        self._tail = end + tail
        return self._archive.add(head)
