"""Reads rows of JSON: an object a line, or one document `{"rows": [...]}`."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import IO, Any

from pydantic_core import from_json

from localidades_api.bulk.cells import RowError
from localidades_api.bulk.columns import Assignment, Named, assign, describe_needed, has_needed, repeated
from localidades_api.bulk.row_reader import MAX_ROW, RowReader
from localidades_api.bulk.rows import Roles, Row
from localidades_api.errors import UnreadableBodyError

_MAX_SHAPES = 64  # sets of members whose columns are remembered
_MAX_SHOWN = 200  # characters of a line that is not JSON
_START_OF_ROWS = re.compile(r'\s*\{\s*"rows"\s*:\s*\[\s*')
_COMMA = re.compile(r"\s*,\s*")
_END = re.compile(r"\]\s*\}")
_end_of_value = json.JSONDecoder().raw_decode


class NdjsonReader(RowReader):
    """Reads an object a line; each may have other members, and empty lines are skipped."""

    def __init__(self, file: IO[bytes], roles: Roles, named: Named) -> None:
        super().__init__(file, roles, named)
        self._assignment = lru_cache(_MAX_SHAPES)(self._assign)

    def _records(self) -> Iterator[str]:
        with self._lines() as lines:
            for line in lines:
                lines.row_length = 0
                yield "" if line.isspace() else line.rstrip("\r\n")

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


class JsonReader(NdjsonReader):
    """Reads the objects of one document; its only member is `rows`."""

    def _records(self) -> Iterator[str]:
        try:
            with self._text("strict") as text:
                yield from _items(text)
        except UnicodeDecodeError:
            raise UnreadableBodyError("The JSON is not UTF-8 (RFC 8259).") from None


def _items(text: IO[str]) -> Iterator[str]:
    """Yield each row of a document as it stands there."""
    window = text.read(2 * MAX_ROW)
    found = _START_OF_ROWS.match(window)
    if not found:
        raise UnreadableBodyError('The JSON does not begin with {"rows": [: send {"rows": [{…}, {…}]}.')
    row, at = 1, found.end()
    has_more = not window.startswith("]", at)
    while has_more:
        if len(window) - at <= MAX_ROW:  # or a row may end beyond it
            window, at = window[at:] + text.read(MAX_ROW), 0
        end = _find_end(window, at, row)
        yield window[at:end]
        comma = _COMMA.match(window, end)
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
