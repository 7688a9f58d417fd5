"""From text to values: what INEGI writes in each kind of column, and what it may not write.

The readers of values that repeat remember them: a catalogue has 300,000 rows and some thousand different altitudes.
"""

import re
from functools import lru_cache

NO_DATA = frozenset({"", "-", "*"})
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_MAX_NAME = 200  # INEGI's longest has 86 characters


class RowError(Exception):
    """A row can't be a record; the text says why."""


def read_name(text: str) -> str:
    """Take a name as it is; only a doubled quote, which is CSV's escape, is read as one."""
    if not 0 < len(text) <= _MAX_NAME or text.isspace():
        raise RowError(f"a name is empty or longer than {_MAX_NAME} characters")
    if "\0" in text:
        raise RowError("a name holds a NUL")
    return text.replace('""', '"')


def read_degrees(text: str, column: str, most: int) -> float | None:
    """Take a number of degrees, between `most` below and above zero."""
    if text in NO_DATA:
        return None
    try:
        degrees = float(text)
    except ValueError:
        degrees = most + 1.0
    if not -most <= degrees <= most:  # false for NaN too
        raise RowError(f"{column} is no number of degrees")
    return degrees


@lru_cache
def read_ambito(text: str) -> str | None:
    """Take U (urban) or R (rural)."""
    if text in NO_DATA:
        return None
    if text not in {"U", "R"}:
        raise RowError("AMBITO is neither U nor R")
    return text


@lru_cache(maxsize=4096)
def read_text(text: str) -> str | None:
    """Take any text; a NUL, which Postgres can't hold, makes it no data."""
    return None if text in NO_DATA or "\0" in text else text[:_MAX_NAME]


@lru_cache(maxsize=65536)
def read_integer(text: str, column: str) -> int | None:
    """Take a whole number of up to nine digits."""
    if text in NO_DATA:
        return None
    if not _INTEGER.fullmatch(text):
        raise RowError(f"{column} is no whole number")
    return int(text)


@lru_cache(maxsize=65536)
def read_count(text: str, column: str) -> int | None:
    """Take a whole number from zero."""
    count = read_integer(text, column)
    if count is not None and count < 0:
        raise RowError(f"{column} is negative")
    return count
