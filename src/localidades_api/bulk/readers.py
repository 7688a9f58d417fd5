"""Reads rows of CSV, NDJSON and JSON, one at a time, from a file of any length (workbooks: `workbook_reader`)."""

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from time import perf_counter
from typing import IO, Any, ClassVar, Literal, TypeVar, cast

from pydantic_core import from_json

from localidades_api.bulk.answer_columns import as_cell
from localidades_api.bulk.columns import (
    SAMPLED_ROWS,
    Assignment,
    Reading,
    assign,
    assign_sampled,
    columns_without_header,
    list_unused,
    name_columns,
    read_heading,
    repeated,
    require,
    unique,
)
from localidades_api.bulk.earlier import FIRST_HEADERS, begin_without_header
from localidades_api.bulk.input_rows import Row, RowError
from localidades_api.bulk.roles import PLACE
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.kinds import START, describe_kind

T = TypeVar("T")

MAX_ROW = 1024**2  # characters of a row
SAMPLE_ROWS = 5
_MAX_NAMED = 100  # columns in a problem
_MAX_SAMPLE = 200  # characters of a cell
_SLICE = 0.004  # seconds
_BOM = b"\xef\xbb\xbf"
_BOMS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # Excel's *Unicode text*, and what PowerShell writes
_KEY_OF_MUNICIPIO = re.compile("[1-9][0-9]{3}|[0-9]{5}")  # without its zero, or with it


@dataclass(slots=True)
class Dialect:
    """The format of a file, as far as the answer repeats it."""

    columns: list[str] | None = None  # the headers of CSV or a sheet; None for objects
    delimiter: str = ","
    line_end: str = "\r\n"  # RFC 4180
    has_bom: bool = False
    is_utf8: bool = True  # as far as it has been read


Sample = dict[str, Any]  # members on the wire: the `columns` of a table, their `roles`, and its first `rows`


def _describe_sample(headers: Sequence[str], roles: Mapping[str, str], rows: Iterable[Sequence[str]]) -> Sample:
    width = len(headers)
    cells = ([cell[:_MAX_SAMPLE] for cell in row[:width]] for row in islice(rows, SAMPLE_ROWS))
    padded = [row + [""] * (width - len(row)) for row in cells]
    return {"columns": unique(headers), "roles": roles, "rows": padded}


def read_columns(
    first: Sequence[str], reading: Reading, rows: Sequence[Sequence[str]], *, has_header: bool
) -> tuple[list[str], Assignment]:
    """Return the headers of a table, and the column of each role.

    Raise UnreadableBodyError if the columns are not enough; it describes them and the first rows, for the sender to
    name some.
    """
    columns, own = list(first), reading if has_header else reading._replace(named={})
    try:
        if has_header:
            assignment = assign_sampled(columns, reading, rows)
        else:
            begin = begin_without_header(rows)
            columns = columns_without_header(first[:begin], reading.named)
            if begin is not None:
                columns += [*[""] * (begin - len(columns)), *FIRST_HEADERS]
            assignment = assign(columns, reading.roles, {})
        require(assignment, own, columns)
    except UnreadableBodyError as error:
        headers, known = first if has_header else [""] * len(first), dict[str, str]()
        with suppress(UnreadableBodyError):
            known = name_columns(assign(headers, own.roles, own.named), headers)
        members = _describe_sample(headers[:_MAX_NAMED], known, rows)
        raise UnreadableBodyError(str(error), members=members) from None
    return columns, assignment


def sample(records: Iterable[T], length: Callable[[T], int]) -> list[T]:
    """Return the first records, of a megabyte at most, up to one that can't be read; whoever reads it says why."""
    first: list[T] = []
    left = MAX_ROW
    with suppress(UnreadableBodyError):
        for record in islice(filter(None, records), SAMPLED_ROWS):
            if (left := left - length(record)) < 0:
                break
            first.append(record)
    return first


class RowReader(ABC):
    """Reads the rows of a file from its current position, as often as it is iterated over.

    Raises UnreadableBodyError, also when it is created, if the file can't be read as a whole. `check` finds out whether
    it can, and how many rows there are (`count`).
    """

    _is_text: ClassVar[bool] = True

    def __init__(self, file: IO[bytes], reading: Reading) -> None:
        self._file = file
        self._start = file.tell()
        self._reading = reading
        self.count = 0
        self.note: str | None = None  # what a person should know of what is read, and of where the answers are
        head = file.read(START)
        self._is_utf16 = head.startswith(_BOMS_OF_UTF16)
        self.layout = Dialect(has_bom=self._is_utf16 or head.startswith(_BOM))
        head = head.decode("utf-16", "ignore").encode() if self._is_utf16 else head.removeprefix(_BOM)
        if self._is_text and (kind := describe_kind((head.lstrip().splitlines() or [b""])[0])):
            raise UnreadableBodyError(f"The file is {kind}.")

    def __iter__(self) -> Iterator[Row]:
        return filter(None, self.rows())

    def check(self) -> Iterator[None]:
        """Read the file to its end, with a pause after some milliseconds of work."""
        end = perf_counter() + _SLICE
        for _ in self._check_rows():
            if perf_counter() > end:
                yield
                end = perf_counter() + _SLICE

    def rows(self) -> Iterator[Row | None]:
        """Yield the rows, and None for each empty line, of which there may be millions."""
        for number, record in self._records():
            yield self._row(number, record) if record else None

    def _check_rows(self) -> Iterator[None]:
        for _, record in self._records():
            self.count += bool(record)
            yield

    @abstractmethod
    def describe(self, rows: Sequence[Row]) -> Sample:
        """Return the columns, their roles, and the first rows, which have been read."""

    @abstractmethod
    def _records(self) -> Iterator[tuple[int, Any]]:
        """Yield records with their numbers, and something empty for each empty line."""

    @abstractmethod
    def _row(self, number: int, record: Any) -> Row:  # noqa: ANN401  # a record of `_records`
        """Return the row of a record."""

    @contextmanager
    def _text(self, errors: str = "surrogateescape") -> Iterator[io.TextIOWrapper]:
        """Lend the file as text, from its start."""
        self._file.seek(self._start)
        if self._is_utf16 and errors == "surrogateescape":
            errors = "replace"  # an escape is of bytes below 0x80, too
        text = io.TextIOWrapper(self._file, "utf-16" if self._is_utf16 else "utf-8-sig", errors, newline="")
        try:
            yield text
        finally:
            with suppress(ValueError):  # the file is closed already
                text.detach()  # it would close the file otherwise

    @contextmanager
    def _lines(self) -> "Iterator[Lines]":
        with self._text() as text:
            yield Lines(text, self.layout)


class TableReader(RowReader):
    """Reads a table: its columns are in `layout`, and `assignment` says which of them have a role."""

    assignment: Assignment

    def describe(self, rows: Sequence[Row]) -> Sample:
        """Return the columns, their roles, and the first rows."""
        headers, cells = self.layout.columns or [], [cast("list[str]", row.sent) for row in rows]
        roles = name_columns(self.assignment, headers)
        claves = [str(row.cells.get("clave") or "") for row in rows] if self.assignment.kind_of_rows is None else []
        is_of_municipios = bool(claves) and all(map(_KEY_OF_MUNICIPIO.fullmatch, claves))
        kind = "municipio" if is_of_municipios else self.assignment.kind
        sample = _describe_sample(headers, roles, cells)
        return {"kind": kind, **sample, "unused": list_unused(self.assignment, headers, sample["rows"])}


class Lines:
    """The lines of a text; one that is not UTF-8 is windows-1252, which old spreadsheets write."""

    def __init__(self, text: io.TextIOWrapper, layout: Dialect) -> None:
        self._text = text
        self._layout = layout
        self.last = ""
        self.number = 0  # of the last line, from 1
        self.start = 1  # the number of the line where the row begins
        self.row_length = 0
        self.has_ended = False

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_ROW + 1)
        if not line:
            self.has_ended = True
            raise StopIteration
        self.number += 1
        self.row_length += len(line)
        if len(line) > MAX_ROW:
            raise UnreadableBodyError("A line is longer than 1 MB: check that the file is text, a row a line.")
        if self.row_length > MAX_ROW:
            raise UnreadableBodyError(
                f"A quote in line {self.start} is not closed within 1 MB: close it, and double every quote within a"
                " cell."
            )
        try:
            line.encode()
        except UnicodeEncodeError:  # it has what the error handler `surrogateescape` makes of bytes
            self._layout.is_utf8 = False
            line = line.encode(errors="surrogateescape").decode("windows-1252", "replace")  # five bytes are undefined
        self.last = line
        return line

    def end_row(self) -> None:
        """Let the next line begin a row."""
        self.start, self.row_length = self.number + 1, 0


def for_a_while(rows: Iterator[Row | None]) -> Iterator[Row]:
    """Yield rows until some milliseconds have passed, so that other requests get their turn."""
    end = perf_counter() + _SLICE
    for row in rows:
        if row is not None:
            yield row
        if perf_counter() > end:
            return


_MAX_COLUMNS = 16_384  # as in Excel; a row of two bytes is answered with all of them
_MAX_EMPTY = 10_000  # lines before the header
_DELIMITERS = ",;\t|"
_NO_DELIMITER = "\x1f"  # of lines that are a cell each

csv.field_size_limit(2 * MAX_ROW)  # the bound is that of a row


class CsvReader(TableReader):
    """Reads CSV with any of four delimiters; empty lines are skipped.

    A list without a header needs no other parameter than `header_row` 0, and not even that if it is evident.
    """

    def __init__(self, file: IO[bytes], reading: Reading) -> None:
        super().__init__(file, reading)
        with self._lines() as lines:
            first = next((line for line in islice(lines, _MAX_EMPTY) if line.strip("\r\n")), "")
        found = [self._header(delimiter) for delimiter in _DELIMITERS] if first else []
        if not any(columns for columns, _, _ in found):
            raise UnreadableBodyError(
                f"The file is empty: begin it with a line such as `{reading.roles.example}`, then a row a line."
            )
        first_record, self.layout.delimiter, self.layout.line_end = max(found, key=self._likeness)
        if len(first_record) > _MAX_COLUMNS:
            raise UnreadableBodyError(f"The first line has more than {_MAX_COLUMNS:,} columns: remove some.")
        self._delimiter = self.layout.delimiter
        heading = read_heading(first_record, reading)
        self.has_header = heading is not None
        is_named = bool(reading.named) or len(first_record) > len(PLACE)
        if heading is None and not is_named and self._delimiter == "," and '"' not in first:
            # People write lines with commas, and some places have no municipio.
            self._delimiter, first_record = _NO_DELIMITER, [first.strip("\r\n")]
        reading = reading._replace(named=heading or reading.named)
        rows = sample((record for _, record in self._records()), lambda row: sum(map(len, row)))
        columns = read_columns(first_record, reading, rows, has_header=self.has_header)
        self.layout.columns, self.assignment = columns

    def _header(self, delimiter: str) -> tuple[list[str], str, str]:
        with self._lines() as lines:
            header = next(filter(None, islice(self._parse(lines, delimiter), 2 * _MAX_EMPTY)), [])
            return header, delimiter, "\n" if lines.last.endswith("\n") and not lines.last.endswith("\r\n") else "\r\n"

    def _likeness(self, found: tuple[list[str], str, str]) -> tuple[int, int]:
        """Rate a line as a header: by the number of columns with a role, then by the number of columns."""
        headers = found[0][:_MAX_COLUMNS]
        named = {role: header for role, header in self._reading.named.items() if header in headers}
        return len(assign(headers, self._reading.roles, named).by_role), len(headers)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        with self._lines() as lines:
            records = self._parse(lines, self._delimiter)
            if self.has_header:
                next(filter(None, records))
            for record in records:
                if len(record) > _MAX_COLUMNS:
                    raise UnreadableBodyError(f"Line {lines.start} has more than {_MAX_COLUMNS:,} cells.")
                yield lines.start, record

    def _parse(self, lines: Lines, delimiter: str) -> Iterator[list[str]]:
        quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == _NO_DELIMITER else csv.QUOTE_MINIMAL
        # The line after the end is empty, unless a quote is open.
        for record in csv.reader(chain(lines, ["\n"]), delimiter=delimiter, quoting=quoting):
            if record and lines.has_ended:
                raise UnreadableBodyError(
                    f"A quote in line {lines.start} is never closed: close it, and double every quote within a cell."
                )
            yield record
            lines.end_row()

    def _row(self, number: int, record: list[str]) -> Row:
        width = self.assignment.width
        problem = None if len(record) == width else _fit(record, width)
        return Row(number, record, {}, problem) if problem else self.assignment.read(number, record, record)


def _fit(record: list[str], width: int) -> str | None:
    """Give a row as many cells as there are columns; return what is wrong with one that has more."""
    if len(record) < width:
        record.extend([""] * (width - len(record)))
    elif any(record[width:]):
        return f"It has {len(record)} cells and the header {width}: quote a cell that has the delimiter in it."
    else:
        del record[width:]
    return None


_MAX_SHAPES = 64  # sets of members whose columns are cached
_MAX_SAMPLED_SHAPES = 8  # those whose cells are looked at
_MAX_MATCHED = 64 * 1024  # characters between rows
_MAX_SHOWN = 200  # characters of a line that is not JSON
_START_OF_ROWS = re.compile(r'\s*\{\s*"rows"\s*:\s*\[\s*')
_COMMA = re.compile(r"\s*,\s*")
_END = re.compile(r"\]\s*\}")
_end_of_value = json.JSONDecoder().raw_decode


class NdjsonReader(RowReader):
    """Reads an object a line; each may have other members, and empty lines are skipped."""

    def __init__(self, file: IO[bytes], reading: Reading) -> None:
        super().__init__(file, reading)
        self._assignment = lru_cache(_MAX_SHAPES)(self._assign)
        self._first = self._first_shapes()
        for members in self._first:  # now, because their cells are matched
            with suppress(RowError):
                self._assignment(members)

    def _first_shapes(self) -> Mapping[tuple[str, ...], list[tuple[Any, ...]]]:
        shapes: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        for record in sample((record for _, record in self._records()), len):
            with suppress(ValueError):
                sent: Any = from_json(record)
                if isinstance(sent, dict) and (tuple(sent) in shapes or len(shapes) < _MAX_SAMPLED_SHAPES):
                    shapes.setdefault(tuple(sent), []).append(tuple(sent.values()))
        return shapes

    def describe(self, rows: Sequence[Row]) -> Sample:
        """Return the members of the first rows, and the roles of those of the first that can be read."""
        objects = [cast("Mapping[str, object]", row.sent) for row in rows if isinstance(row.sent, Mapping)]
        members = list(dict.fromkeys(chain.from_iterable(objects)))
        kind: PlaceKind | None = None
        roles: dict[str, str] = {}
        unused: list[dict[str, str]] = []
        for one in reversed(objects):
            with suppress(RowError):
                found = self._assignment(tuple(one))
                kind, roles = found.kind, name_columns(found, tuple(one))
                unused = list_unused(found, tuple(one), [[as_cell(value) for value in one.values()]])
        cells = [[as_cell(one.get(name)) for name in members] for one in objects]
        return {"kind": kind, **_describe_sample(members, roles, cells), "unused": unused}

    def _records(self) -> Iterator[tuple[int, str]]:
        with self._lines() as lines:
            for line in lines:
                yield lines.number, "" if line.isspace() else line.rstrip("\r\n")
                lines.end_row()

    def _row(self, number: int, record: str) -> Row:
        try:
            sent: Any = from_json(record)
        except ValueError:
            return Row(number, record[:_MAX_SHOWN], {}, "It is not JSON.")
        if not isinstance(sent, dict):
            return Row(number, sent, {}, "It is no object.")
        try:
            return self._assignment(tuple(sent)).read(number, sent, tuple(sent.values()))
        except RowError as error:
            return Row(number, sent, {}, str(error))

    def _assign(self, members: tuple[str, ...]) -> Assignment:
        """Find the columns of rows with these members; raise RowError if they are not enough, or too many."""
        if len(members) > _MAX_COLUMNS:
            raise RowError(f"It has more than {_MAX_COLUMNS:,} members.")
        roles = self._reading.roles
        named = {role: header for role, header in self._reading.named.items() if header in members}
        missing = self._reading.named.keys() - named.keys()
        possible = roles._replace(by_name={name: role for name, role in roles.by_name.items() if name not in missing})
        try:
            found = assign_sampled(
                members, self._reading._replace(roles=possible, named=named), self._first.get(members, [])
            )
        except UnreadableBodyError as error:
            raise RowError(str(error)) from error
        if member := repeated(found, members, named):
            raise RowError(f"It has `{member}` twice: rename or remove one of them.")
        if found.kind is None:
            raise RowError(f"It has no {roles.describe_needed()}.")
        return found


class JsonReader(NdjsonReader):
    """Reads the objects of one document; its only member is `rows`."""

    def _records(self) -> Iterator[tuple[int, str]]:
        try:
            with self._text("strict") as text:
                yield from enumerate(_items(text), 1)
        except UnicodeDecodeError:
            raise UnreadableBodyError("The JSON is not UTF-8 (RFC 8259).") from None


def _items(text: IO[str]) -> Iterator[str]:
    window = text.read(2 * MAX_ROW)
    found = _START_OF_ROWS.match(window, 0, _MAX_MATCHED)
    if not found:
        raise UnreadableBodyError('The JSON does not begin with {"rows": [: send {"rows": [{…}, {…}]}.')
    row, at = 1, found.end()
    has_more = not window.startswith("]", at)
    while has_more:
        # Otherwise a row may continue beyond the window.
        if len(window) - at <= MAX_ROW and (more := text.read(MAX_ROW)):
            window, at = window[at:] + more, 0
        end = _find_end(window, at, row)
        yield window[at:end]
        comma = _COMMA.match(window, end, end + _MAX_MATCHED)
        row, at, has_more = row + 1, comma.end() if comma else end, comma is not None
    rest = (window[at:] + text.read(MAX_ROW)).strip()
    if not _END.fullmatch(rest) or text.read(1):
        if rest in {"", "]"}:
            raise _broken(row, "it ends too early")
        is_closed = rest.startswith("]")
        raise _broken(
            row, "only `rows` may be in it, and nothing behind it" if is_closed else "a comma is missing behind it"
        )


def _find_end(text: str, at: int, row: int) -> int:
    try:
        _, end = _end_of_value(text, at)
    except RecursionError:
        raise _broken(row, "it is nested too deeply") from None
    except ValueError:
        is_long = len(text) - at > MAX_ROW
        raise _broken(row, "it has no end within 1 MB" if is_long else "it is not JSON, or has no end") from None
    if end - at > MAX_ROW:
        raise _broken(row, "it is longer than 1 MB")
    return int(end)


def _broken(row: int, why: str) -> UnreadableBodyError:
    return UnreadableBodyError(f"The JSON is broken at row {row}: {why}.")
