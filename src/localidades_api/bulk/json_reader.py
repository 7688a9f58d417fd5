"""Reads rows of JSON: an object a line, or one document `{"rows": [...]}`."""

import codecs
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

from pydantic_core import from_json

from localidades_api.bulk.cells import RowError
from localidades_api.bulk.columns import Assignment, Named, assign, describe_needed, has_needed, repeated
from localidades_api.bulk.lines import MAX_ROW, Dialect, Lines, decode, refuse_other_formats, without_bom
from localidades_api.bulk.rows import Roles, Row
from localidades_api.errors import UnreadableBodyError

_MAX_SHAPES = 64  # sets of members whose columns are remembered
_MAX_SHOWN = 200  # characters of a line that is not JSON
_STEP = 64 * 1024  # bytes read at once, so that a piece of any size takes little memory
_MAX_START = 1000  # characters before the first row
_START = re.compile(r'\s*\{\s*"rows"\s*:\s*\[')
_SPACE = re.compile(r"[ \t\r\n]*")


class _ObjectReader:
    """Reads rows that are objects; each may have other members."""

    def __init__(self, roles: Roles, named: Named) -> None:
        self.layout = Dialect()
        self._roles = roles
        self._named = named
        self._assignment = lru_cache(_MAX_SHAPES)(self._assign)
        self._number = 0

    def _assign(self, members: tuple[str, ...]) -> Assignment:
        """Find the columns of rows with these members; raise RowError if they are not enough."""
        named = {role: header for role, header in self._named.items() if header in members}
        missing = self._named.keys() - named.keys()
        possible = {name: role for name, role in self._roles.by_name.items() if name not in missing}
        found = assign(members, self._roles._replace(by_name=possible), named)
        if member := repeated(found, members, named):
            raise RowError(f"It has `{member}` twice: rename or remove one of them.")
        if not has_needed(found, self._roles):
            raise RowError(f"It has no {describe_needed(self._roles)}.")
        return found

    def _row(self, text: str) -> Row:
        self._number += 1
        try:
            sent: Any = from_json(text)
        except ValueError:
            return Row(self._number, text[:_MAX_SHOWN], {}, "It is not JSON.")
        if not isinstance(sent, dict):
            return Row(self._number, sent, {}, "It is no object.")
        try:
            return self._assignment(tuple(sent)).read(self._number, sent, tuple(sent.values()))
        except RowError as error:
            return Row(self._number, sent, {}, str(error))


class NdjsonReader(_ObjectReader):
    """Reads an object a line; empty lines are skipped."""

    def __init__(self, roles: Roles, named: Named) -> None:
        super().__init__(roles, named)
        self._lines = Lines()
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[Row]:
        """Read on, and yield the rows that are complete."""
        for at in range(0, len(data), _STEP):
            yield from self._read(self._lines.feed(data[at : at + _STEP]))

    def close(self) -> Iterator[Row]:
        """Yield the last row."""
        yield from self._read(self._lines.close())

    def _read(self, lines: bytes) -> Iterator[Row]:
        if lines and not self._has_begun:
            self._has_begun = True
            lines = without_bom(lines, self.layout)
        for line in lines.splitlines():
            if line and not line.isspace():
                yield self._row(decode(line, self.layout))


class JsonReader(_ObjectReader):
    """Reads one document as it comes; its only member is `rows`."""

    def __init__(self, roles: Roles, named: Named) -> None:
        super().__init__(roles, named)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._end_of_value = json.JSONDecoder().raw_decode
        self._text = ""
        self._waiting: list[str] = []  # what follows the text, and is not long enough yet to be read with it
        self._length = self._retry_at = 0  # characters
        self._next: Literal["start", "row or end", "row", "comma or end", "close"] = "start"

    def feed(self, data: bytes) -> Iterator[Row]:
        """Read on, and yield the rows that are complete."""
        for at in range(0, len(data), _STEP):
            yield from self._read(data[at : at + _STEP])

    def close(self) -> Iterator[Row]:
        """Yield the last rows; raise UnreadableBodyError if the document has no end."""
        yield from self._read(b"", is_last=True)
        if self._next != "close" or self._text != "}":
            raise self._broken("it ends too early")

    def _read(self, data: bytes, *, is_last: bool = False) -> Iterator[Row]:
        try:
            self._waiting.append(self._decode(data, is_last))
        except UnicodeDecodeError:
            refuse_other_formats(data)
            raise UnreadableBodyError("The JSON is not UTF-8 (RFC 8259).") from None
        self._length += len(self._waiting[-1])
        if self._length < self._retry_at and not is_last:
            return
        self._text += "".join(self._waiting)
        self._waiting = []
        if self._next == "start":
            self._begin(is_last=is_last)
        if self._next not in {"start", "close"}:
            yield from self._read_rows(is_last=is_last)
        if self._next == "close":
            self._text = self._text.strip()
            if self._text not in {"", "}"}:
                raise self._broken("only `rows` may be in it, and nothing behind it")
        self._length = len(self._text)

    def _begin(self, *, is_last: bool) -> None:
        if found := _START.match(self._text):
            self._text = self._text[found.end() :]
            self._next = "row or end"
        elif is_last or len(self._text) > _MAX_START:
            raise UnreadableBodyError('The JSON does not begin with {"rows": [: send {"rows": [{…}, {…}]}.')

    def _read_rows(self, *, is_last: bool) -> Iterator[Row]:
        text, at = self._text, 0
        self._retry_at = 0
        while (at := self._skip_space(at)) < len(text) and self._next != "close":
            if text[at] == "]" and self._next != "row":
                self._next = "close"
                at += 1
            elif self._next == "comma or end":
                if text[at] != ",":
                    raise self._broken("a comma is missing behind it")
                self._next = "row"
                at += 1
            elif end := self._find_end(at, is_last=is_last):
                yield self._row(text[at:end])
                self._next = "comma or end"
                at = end
            else:
                self._retry_at = 2 * (len(text) - at)
                break
        self._text = text[at:]

    def _skip_space(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _find_end(self, at: int, *, is_last: bool) -> int | None:
        """Return where the row that begins there ends; None if that is still to come."""
        length = len(self._text) - at
        try:
            value, end = self._end_of_value(self._text, at)
        except RecursionError:
            raise self._broken("it is nested too deeply") from None
        except ValueError:
            if is_last or length > MAX_ROW:
                what = "it has no end within 1 MB" if length > MAX_ROW else "it is not JSON, or has no end"
                raise self._broken(what) from None
            return None
        if end - at > MAX_ROW:
            raise self._broken("it is longer than 1 MB")
        is_number = isinstance(value, int | float)  # it may go on
        return None if is_number and end == len(self._text) and not is_last else int(end)

    def _broken(self, why: str) -> UnreadableBodyError:
        return UnreadableBodyError(f"The JSON is broken at row {self._number + 1}: {why}.")
