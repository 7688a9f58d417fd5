"""Writes answers as Excel workbooks: into the one that was sent, or a new one."""

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from html import escape
from itertools import islice
from shutil import copyfileobj
from typing import IO, NamedTuple, cast
from zipfile import ZIP_DEFLATED, ZipExtFile, ZipFile, ZipInfo

import xlsxwriter
from xlsxwriter.utility import xl_col_to_name

from localidades_api.bulk.answer_columns import AnswerColumns, SentColumns, numbered, quote_names, say_sentences
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.readers import RowReader
from localidades_api.bulk.workbook_reader import MAX_SHEET_ROWS, XlsxReader
from localidades_api.catalogue.columns import EVERY_COLUMN, MATCHED
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.archive import is_folder
from localidades_api.files.workbook import (
    CONTENT_TYPES,
    DAMAGE,
    MAX_COLUMNS,
    Range,
    Sheet,
    SheetRow,
    Workbook,
    escape_controls,
    put_last,
)
from localidades_api.html.languages.match_words import OUTCOMES, name_outcome
from localidades_api.html.languages.translators import LANGUAGES, Language, translator
from localidades_api.http.sink import Sink

_CENTRAL_TIME = timezone(timedelta(hours=-6))  # of most of Mexico, which has no summer time since 2022
_LEVEL = 3  # of zlib, as for downloads
_MAX_CELL = 32_767  # characters, as in Excel
_MAX_SHEET = 1900 * 1024**2  # bytes: a zip for files beyond 2 GB is one that Excel may refuse
# The columns of numbers; a key is text, or it would lose its zeros.
_NUMBERS = frozenset(
    {"score", "margin", "distancia", *(name for name in MATCHED if EVERY_COLUMN[name].kind in {"integer", "number"})}
)
# Widths of columns, in characters. Where a text is longer than the last column, Excel shows the rest beside it.
_WIDTHS = {
    "outcome": 20,
    "label": 50,
    "score": 14,
    "margin": 16,
    "faults": 45,
    "candidates": 60,
    "withdrawn": 20,
    "problem": 70,
}
_WIDTH = 24  # of other columns, among them those of the sender in a new workbook
_MAX_WIDTH = 60
_ROOM = 4  # characters beside a header, for the arrow of a filter
_DIMENSION = re.compile(rb"<(\w+:)?dimension\b[^<>]*/>")  # the range of cells that have a value, which grows
_PREFIX = re.compile(rb"</?(\w+:)?(?:row|c)\b")
_STYLE = re.compile(rb"<(?:\w+:)?c\b[^<>]*\bs=\"(\d+)\"")
_SHEET = "xl/worksheets/sheet1.xml"  # of a new workbook
_LIST = "Localidades"  # the name of that sheet


class _Cells:
    """The XML of cells: texts, but for the numbers of the answer."""

    def __init__(self, columns: AnswerColumns) -> None:
        self._cells = tuple((name in _NUMBERS, cell) for name, cell in _for_people(columns.cells).items())

    def answered(self, answer: Answer, row: int, at: int, tag: str = "") -> str:
        """Return the cells of an answer, which begin at a column; `tag` is the prefix of XML's names."""
        return "".join(
            f'<{tag}c r="{xl_col_to_name(column)}{row}"><{tag}v>{value}</{tag}v></{tag}c>'
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
            f'<{tag}c r="{xl_col_to_name(column)}{row}"{style} t="inlineStr">'
            f"<{tag}is><{tag}t{space}>{written}</{tag}t></{tag}is></{tag}c>"
        )


def _for_people(cells: Mapping[str, Callable[[Answer], str]]) -> Mapping[str, Callable[[Answer], str]]:
    problem = cells.get("problem")
    return {**cells, "problem": lambda answer: quote_names(problem(answer))} if problem else cells


def _widths(columns: AnswerColumns, headers: Sequence[str]) -> list[int]:
    """Return the widths of the answer's columns, none of which cuts its header."""
    return [
        max(_WIDTHS.get(name, _WIDTH), len(header) + _ROOM) for name, header in zip(columns.cells, headers, strict=True)
    ]


class Summary(NamedTuple):
    """The facts on a summary sheet: the release, the credit of its data, and how the rows were matched."""

    release: str
    credit: str
    sure: float  # the probability of certain rows
    areas: Mapping[str, str] = {}  # the estado and the municipio of rows that give none


class _SummarySheet:
    """The summary sheet of a workbook that is being written: the facts, and how many rows have each outcome.

    It is drawn at the end, because telephones, mail and pandas show only the values of its formulas; these agree with
    what a person changes in the workbook. `static/workbook.js` replaces the values.
    """

    def __init__(self, summary: Summary, reader: RowReader, columns: AnswerColumns, sheet: str, at: int) -> None:
        self._summary = summary
        self._note = reader.note
        self._columns = columns
        self._say = _say(columns.language)
        quoted, letters = sheet.replace("'", "''"), xl_col_to_name(at)
        self._range = f"'{quoted}'!{letters}:{letters}"
        self._outcomes = Counter[str]()
        self.member = ""  # that it is written to; none in a workbook of the strict kind, or with damaged lists of parts

    def count(self, answer: Answer) -> None:
        """Count the outcome of a row."""
        self._outcomes[answer["outcome"]] += 1

    def draw(self) -> bytes:
        """Return the sheet, when all rows have been counted."""
        summary, language = self._summary, self._columns.language
        note = say_sentences(self._note, language) if self._note else ""
        facts = [
            ("Release", summary.release), ("Date", datetime.now(_CENTRAL_TIME).date().isoformat()),
            ("Source", summary.credit), ("Minimum certainty", f"{100 * summary.sure:g} %"),
            *((name, summary.areas.get(role, "")) for role, name in _OF_ALL.items()), ("Note", note),
        ]  # fmt: skip
        # Formulas stay in their rows: a spreadsheet that has saved the workbook lists them elsewhere, too.
        lines = {at: (self._say(name), _Cells.text(fact, at, 1)) for at, (name, fact) in enumerate(facts, 1) if fact}
        first = len(facts) + 2
        rest, total = first + len(OUTCOMES), first + len(OUTCOMES) + 1
        for at, code in enumerate(OUTCOMES, first):
            word = name_outcome(code, language)
            given = f"{word}*" if code == "accepted" else word  # a percentage follows
            formula = escape(f'COUNTIF({self._range},"{given}")', quote=False)
            lines[at] = word, f'<c r="B{at}"><f>{formula}</f><v>{self._outcomes[code]}</v></c>'
        others = f"B{total}-SUM(B{first}:B{rest - 1})"  # which only a person knows
        lines[rest] = self._say("no place, unchanged"), f'<c r="B{rest}"><f>{others}</f><v>0</v></c>'
        lines[total] = self._say("Rows"), f'<c r="B{total}"><v>{self._outcomes.total()}</v></c>'
        data = "".join(f'<row r="{at}">{_Cells.text(name, at, 0)}{cell}</row>' for at, (name, cell) in lines.items())
        widths = '<cols><col min="1" max="1" width="32" customWidth="1"/></cols>'
        return _as_xml(f'<worksheet xmlns="{_MAIN}">{widths}<sheetData>{data}</sheetData></worksheet>')

    def add(self, workbook: Workbook, sheet: str, changed: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return the members of a workbook that change when it gets the summary of a sheet."""
        book = workbook.member
        listed = changed.get(book) or workbook.read(book)
        if b"purl.oclc.org" in listed:
            return {}
        earlier = (one.member for one in workbook.sheets if _is_summary(workbook, one))
        if former := next(earlier, workbook.find(_SUMMARY)):
            self.member = former if former != sheet else ""
            return {}
        taken = {one.name.casefold() for one in workbook.sheets}
        name = next(one for one in numbered(self._say("Summary")) if one.casefold() not in taken)
        folder, _, file = workbook.part_of(book).rpartition("/")
        relation = f'xmlns:r="{_RELATIONS}" r:id="rIdSummary"'
        added = {
            CONTENT_TYPES: ("Types", f'Override PartName="/{_SUMMARY}" ContentType="{_SHEET_TYPE}"'),
            f"{folder}/_rels/{file}.rels".lstrip("/"): (
                "Relationships",
                f'Relationship Id="rIdSummary" Type="{_RELATIONS}/worksheet" Target="/{_SUMMARY}"',
            ),
            book: ("sheets", f'sheet name="{escape(name)}" sheetId="{workbook.free_id}" {relation}'),
        }
        members: dict[str, bytes] = {}
        with suppress(*DAMAGE):
            for part, element in added.items():
                member = workbook.find(part)
                members[member] = put_last(changed.get(member) or workbook.read(member), *element)
            self.member = _SUMMARY
            return members
        return {}


def _is_summary(workbook: Workbook, sheet: Sheet) -> bool:
    """Return whether a sheet is the summary of an earlier answer, which spreadsheets move to another part."""
    names, starts = ({_say(language)(word) for language in LANGUAGES} for word in ("Summary", "Release"))
    if sheet.name.partition(" (")[0] not in names:
        return False
    first = next(filter(None, workbook.rows(sheet)), [""])
    return first[0] in starts


# The areas of rows that give none, and what the summary calls them.
_OF_ALL = {"estado": "Estado of all rows", "municipio": "Municipio of all rows"}


def _say(language: Language) -> Callable[[str], str]:
    return str if language == LANGUAGES[0] else translator(language)


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_SUMMARY = "xl/worksheets/summary_of_answers.xml"


class _Archive:
    """A workbook being written; its sheet comes last, and then the summary if it gets one."""

    def __init__(self, summary: _SummarySheet | None) -> None:
        self._summary = summary
        self._sink = Sink()
        self._zip = ZipFile(self._sink, "w", ZIP_DEFLATED, compresslevel=_LEVEL)
        self._sheet: IO[bytes] = io.BytesIO()
        self._size = 0

    def begin(
        self, workbook: Workbook, sheet: str, changed: Mapping[str, bytes], name: Callable[[str], str] = str
    ) -> None:
        """Copy everything else, with the members that are changed, and begin the sheet; `name` names the copies."""
        source, later = workbook.archive, {sheet}
        if self._summary:
            changed = {**changed, **self._summary.add(workbook, sheet, changed)}
            later |= {self._summary.member} - {""}
        for member in source.infolist():
            if member.filename in changed:
                self._zip.writestr(_entry(name(member.filename)), changed[member.filename])
            elif member.filename not in later and not is_folder(member):
                with source.open(member) as old, self._zip.open(_entry(name(member.filename)), "w") as new:
                    copyfileobj(old, new)
        for added in changed.keys() - set(source.namelist()):
            self._zip.writestr(_entry(added), changed[added])
        self._sheet = self._zip.open(_entry(name(sheet)), "w")

    def add(self, xml: bytes, answer: Answer | None = None) -> bytes:
        """Add to the sheet, a row with its answer if there is one; return the bytes that can be sent."""
        if answer and self._summary:
            self._summary.count(answer)
        self._size += len(xml)
        if self._size > _MAX_SHEET:
            raise UnreadableBodyError("The answers are more than a workbook can have: ask for CSV.")
        self._sheet.write(xml)
        return self._sink.drain()

    def end(self) -> bytes:
        """Return the rest."""
        self._sheet.close()
        if self._summary and self._summary.member:
            entry = _entry(self._summary.member)
            entry.comment = b"summary"  # for `static/workbook.js`
            self._zip.writestr(entry, self._summary.draw())
        self._zip.close()
        return self._sink.drain()


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    return entry


class SheetWriter:
    """Writes the columns of the answer into the workbook that was sent, behind all of its columns.

    Everything else stays as it is: the XML of the sheet is copied, and cells are put at the end of its rows. The filter
    or the table of the list grows, or sorting by its arrows would part the answers from their rows.
    """

    def __init__(self, reader: RowReader, columns: AnswerColumns, summary: Summary | None = None) -> None:
        self._reader = cast("XlsxReader", reader)
        self._reader.make_room(len(columns.cells))
        self._at = self._reader.width
        placing = self._reader.placing
        self._said = [say_sentences(placing, columns.language)] if placing else []  # in the sheet, behind the answers
        if self._at + len(columns.cells) + len(self._said) > MAX_COLUMNS:
            raise UnreadableBodyError(
                f"The sheet has a value in column {xl_col_to_name(self._at - 1)}, which leaves no room for the answers:"
                " remove it."
            )
        self.positions = columns.positions(self._at)
        self._cells = _Cells(columns)
        self._names = columns.headers((self._reader.layout.columns or ())[: self._at])
        self._widths = _widths(columns, self._names)
        self._growth = _Growth(*self._reader.grown, self._at, self._names) if self._reader.grown else None
        drawn = _SummarySheet(summary, reader, columns, self._reader.sheet.name, self._at) if summary else None
        self._archive = _Archive(drawn)
        self._source: IO[bytes] = io.BytesIO()
        self._tag = ""  # the prefix of XML's names

    def begin(self) -> bytes:
        """See `AnswerWriter`."""
        workbook, sheet = self._reader.workbook, self._reader.sheet
        with self._reader.refusing_damage():
            changed: dict[str, bytes] = {}
            if self._growth and self._growth.member == sheet.member:  # a filter has a name in the list of sheets
                changed[workbook.member] = self._growth.grow_name(workbook.read(workbook.member), sheet.number)
            elif self._growth:
                changed[self._growth.member] = self._growth.grow_table(workbook.read(self._growth.member))
            self._archive.begin(workbook, sheet.member, changed, workbook.part_of)
            self._source = workbook.archive.open(sheet.member)
            first = next(iter(self._reader), None)
            row = self._reader.header or (cast("SheetRow", first.sent) if first else None)
            return self._archive.add(self._begin_rows(row) if row else b"")

    def write(self, row: Row, answer: Answer) -> bytes:
        """See `AnswerWriter`."""
        sent = cast("SheetRow", row.sent)
        before = self._copy(sent)
        return self._archive.add(
            before + _as_xml(self._cells.answered(answer, sent.number, self._at, self._tag)), answer
        )

    def end(self) -> bytes:
        """See `AnswerWriter`."""
        pieces, rest = list[bytes](), b""
        growth = self._growth if self._growth and self._growth.member == self._reader.sheet.member else None
        while piece := self._source.read(_MAX_MATCHED // 2):
            whole, bracket, rest = (rest + piece).rpartition(b">")
            if len(rest) > _MAX_MATCHED // 2:  # a text, or a tag that no program writes
                whole, bracket, rest = whole + bracket, rest, b""
            whole += bracket
            pieces.append(self._archive.add(growth.grow(whole) if growth else whole))
        return b"".join((*pieces, self._archive.add(rest), self._archive.end()))

    def _begin_rows(self, row: SheetRow) -> bytes:
        """Return the sheet up to the answer's cells of its first row, with the widths of the new columns.

        A header gets their names, in the style of its last cell. Where a stranger's XML is so long that the rows do not
        begin in it, the columns keep their widths.
        """
        head = self._source.read(row.cut)
        prefix = _PREFIX.match(cast("ZipExtFile", self._source).peek(_MAX_MATCHED))
        self._tag = (prefix[1] or b"").decode() if prefix else ""
        styles = _STYLE.findall(head, max(head.rfind(f"<{self._tag}row".encode()), len(head) - _MAX_MATCHED))
        head, rest = _DIMENSION.sub(b"", head[:_MAX_MATCHED], 1), head[_MAX_MATCHED:]
        head = _widen(head, self._at, self._widths, self._tag) + rest
        if not self._reader.header_row:
            return head
        self._copy(row)
        style = f' s="{styles[-1].decode()}"' if styles else ""
        names = enumerate([*self._names, *self._said], self._at)
        return head + _as_xml("".join(self._cells.text(name, row.number, at, self._tag, style) for at, name in names))

    def _copy(self, row: SheetRow) -> bytes:
        """Return the sheet up to where the answer's cells of a row belong, and go to where the row ends."""
        before = self._source.read(row.cut - self._source.tell())
        self._source.read(row.end - row.cut)
        return before


_MAX_MATCHED = 64 * 1024  # bytes of XML that a pattern is looked for in: it holds the interpreter meanwhile


def _as_xml(cells: str) -> bytes:
    return escape_controls(cells.encode(errors="replace"))


_GROWING = re.compile(
    rb'(<(?:\w+:)?(?:table|autoFilter|sortState)\b[^<>]*?\bref=["\'])([A-Z]+)(\d{1,7}):([A-Z]+)(\d{1,7})(?=["\'])'
)
_MAX_NAME = 2048  # bytes of an element with a name; the pattern takes time squared
_FILTER_NAME = re.compile(
    rb'\A((?:\w+:)?definedName\b[^>]*?\bname="_xlnm\._FilterDatabase"[^>]*>.*?)'
    rb"\$([A-Z]+)\$(\d{1,7}):\$([A-Z]+)\$(\d{1,7})\Z",
    re.DOTALL,
)
_SHEET_NUMBER = re.compile(rb'\blocalSheetId="(\d+)"')
_TABLE_COLUMNS = re.compile(rb'(<(?:\w+:)?tableColumns\b[^<>]*?\bcount=["\'])(\d+)(["\'])')
_TABLE_COLUMN_ID = re.compile(rb'<(?:\w+:)?tableColumn\b[^<>]*?\bid=["\'](\d+)["\']')


_COLUMNS = re.compile(rb"<(?:\w+:)?cols\b[^<>]*>")
_COLUMN = re.compile(rb"<(?:\w+:)?col\b[^<>]*?(?=/?>)")  # without its end: some close it with a tag
_FIRST = re.compile(rb'\bmin="(\d{1,5})"')
_LAST = re.compile(rb'\bmax="(\d{1,5})"')


def _widen(head: bytes, at: int, widths: Sequence[int], tag: str) -> bytes:
    """Give widths to the columns from `at`, from 0, in the XML of a sheet up to its rows; others keep theirs."""
    before, rows, after = head.partition(f"<{tag}sheetData".encode())
    if not rows:
        return head
    closing = f"</{tag}cols>".encode()
    found = _COLUMNS.search(before)
    start, end = found.span() if found else (len(before), len(before))
    if found and not found[0].endswith(b"/>") and (closed := before.find(closing, end)) >= 0:
        end = closed + len(closing)
    first, last = at + 1, at + len(widths)
    left, right = [], []
    for column in (one[0] for one in islice(_COLUMN.finditer(before, start, end), MAX_COLUMNS)):
        least, most = _FIRST.search(column), _LAST.search(column)
        if least and most and int(least[1]) < first:
            left.append(_LAST.sub(b'max="%d"' % min(int(most[1]), first - 1), column))
        if least and most and int(most[1]) > last:
            right.append(_FIRST.sub(b'min="%d"' % max(int(least[1]), last + 1), column))
    new = [
        f'<{tag}col min="{number}" max="{number}" width="{width}" customWidth="1"'.encode()
        for number, width in enumerate(widths, first)
    ]
    written = b"".join(column + b"/>" for column in (*left, *new, *right))
    columns = f"<{tag}cols>".encode() + written + closing
    return before[:start] + columns + before[end:] + rows + after


class _Growth:
    """Grows the table or the filter of a list, in a member, by the columns of the answer, which begin at `at`."""

    def __init__(self, member: str, cells: Range, at: int, names: Sequence[str]) -> None:
        self.member = member
        self._rows = range(cells.first, cells.last + 1)
        self._columns = xl_col_to_name(cells.left).encode(), xl_col_to_name(cells.right).encode()
        self._last = xl_col_to_name(max(cells.right, at + len(names) - 1)).encode()
        self._names = names

    def grow(self, xml: bytes) -> bytes:
        """Grow the range, and its sort order, in the part of the XML that contains it."""
        return _GROWING.sub(lambda found: self._grow(found, b"%b%b%b:%b%b"), xml)

    def grow_name(self, workbook: bytes, sheet: int) -> bytes:
        """Grow the hidden name of a sheet's filter in the list of the workbook's sheets."""

        def grow(found: re.Match[bytes]) -> bytes:
            number = _SHEET_NUMBER.search(found[1])
            is_of_sheet = number is not None and int(number[1]) == sheet
            return self._grow(found, b"%b$%b$%b:$%b$%b") if is_of_sheet else found[0]

        elements = workbook.split(b"<")
        return b"<".join(one if len(one) > _MAX_NAME else _FILTER_NAME.sub(grow, one) for one in elements)

    def grow_table(self, table: bytes) -> bytes:
        """Grow the range of a table, and add its columns."""
        first = max((int(id_) for id_ in _TABLE_COLUMN_ID.findall(table)), default=0) + 1
        columns = (f'tableColumn id="{id_}" name="{escape(name)}"' for id_, name in enumerate(self._names, first))
        table = _TABLE_COLUMNS.sub(
            lambda one: b"%b%d%b" % (one[1], int(one[2]) + len(self._names), one[3]), self.grow(table), 1
        )
        return put_last(table, "tableColumns", *columns)

    def _grow(self, found: re.Match[bytes], written: bytes) -> bytes:
        _, left, first, right, last = found.groups()
        is_own = (left, right) == self._columns and int(first) in self._rows and int(last) in self._rows
        return written % (found[1], left, first, self._last, last) if is_own else found[0]


class NewSheetWriter:
    """Writes a workbook with the sender's columns, as text, and those of the answer."""

    def __init__(self, reader: RowReader, columns: AnswerColumns, summary: Summary | None = None) -> None:
        self._summary = summary
        if reader.count > MAX_SHEET_ROWS:
            raise UnreadableBodyError(f"A workbook has at most {MAX_SHEET_ROWS:,} rows: ask for CSV.")
        self._reader = reader
        self._sent = SentColumns(reader.layout.columns)
        self._width = 0  # columns of the sender, once the sheet has begun
        self.positions: Mapping[str, int] = {}
        self._answer_columns = columns
        self._cells = _Cells(columns)
        self._archive = _Archive(None)
        self._number = 1
        self._tail = b""

    def begin(self) -> bytes:
        """Return the beginning of a workbook whose only sheet has a header that stays in view."""
        columns, file = self._sent.begin(self._reader), io.BytesIO()
        self._width = len(columns)
        headers = self._answer_columns.headers(columns)
        names = [*columns, *headers]
        if len(names) > MAX_COLUMNS:
            raise UnreadableBodyError(f"A sheet has at most {MAX_COLUMNS:,} columns: ask for CSV.")
        self.positions = self._answer_columns.positions(self._width)
        widths = [min(max(_WIDTH, len(name) + _ROOM), _MAX_WIDTH) for name in columns]
        widths += _widths(self._answer_columns, headers)
        with xlsxwriter.Workbook(file, {"constant_memory": True}) as workbook:  # writes texts into their cells
            sheet = workbook.add_worksheet(_LIST)
            bold = workbook.add_format({"bold": True})
            for at, (name, width) in enumerate(zip(names, widths, strict=True)):
                sheet.write_string(0, at, name[:_MAX_CELL], bold)
                sheet.set_column(at, at, width)
            sheet.freeze_panes(1, 0)
        with ZipFile(file) as frame:
            head, end, tail = _DIMENSION.sub(b"", frame.read(_SHEET), 1).partition(b"</sheetData>")
            if self._summary:
                drawn = _SummarySheet(self._summary, self._reader, self._answer_columns, _LIST, self._width)
                self._archive = _Archive(drawn)
            self._archive.begin(Workbook(frame), _SHEET, {})
        self._tail = end + tail
        return self._archive.add(head)

    def write(self, row: Row, answer: Answer) -> bytes:
        """See `AnswerWriter`."""
        sent = self._sent.cells(row.sent)
        self._number += 1
        cells = "".join(self._cells.text(value, self._number, at) for at, value in enumerate(sent[: self._width]))
        cells += self._cells.answered(answer, self._number, self._width)
        return self._archive.add(_as_xml(f'<row r="{self._number}">{cells}</row>'), answer)

    def end(self) -> bytes:
        """See `AnswerWriter`."""
        return self._archive.add(self._tail) + self._archive.end()
