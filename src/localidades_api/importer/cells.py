"""From text to values: what INEGI writes in each kind of column, and what it may not write."""

import re
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from localidades_api.domain.locality import Attribute

NO_DATA = frozenset({"", "-", "*"})
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_DEGREES = re.compile(r"-?[0-9]{1,3}(?:\.[0-9]+)?")  # of what float() takes, only what a catalogue may write
_MAX_NAME = 200  # INEGI's longest has 86 characters

Text = TypeVar("Text", bound=Hashable)
Value = TypeVar("Value")


class RowError(Exception):
    """A row can't be a record; the text says why."""


class Memo(dict[Text, Value]):
    """The values of a column that repeat, each read once: 300,000 rows have some thousand different altitudes.

    It spares memory too, since equal values become one object.
    """

    def __init__(self, read: Callable[[Text], Value]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: Text) -> Value:
        value = self[text] = self._read(text)
        return value


def read_clave(text: str) -> str:
    """Take a locality's clave: four digits from 0001."""
    if not re.fullmatch(r"[0-9]{4}", text) or text == "0000":
        raise RowError("CVE_LOC is not four digits from 0001")
    return text


def read_key(cve_ent: str, cve_mun: str, cve_loc: str, cvegeo: str) -> int:
    """Make the key of its three parts, which are sound, and hold it against CVEGEO where there is one."""
    key = cve_ent + cve_mun + cve_loc
    if cvegeo and cvegeo != key and not _is_number(cvegeo, key):
        raise RowError("CVEGEO does not match CVE_ENT, CVE_MUN and CVE_LOC")
    return int(key)


def _is_number(cvegeo: str, key: str) -> bool:
    """Tell whether CVEGEO is the key as a number, without its leading zero."""
    return len(cvegeo) <= len(key) and cvegeo.isascii() and cvegeo.isdecimal() and int(cvegeo) == int(key)


def read_name(text: str) -> str:
    """Take a name as it is; only a doubled quote, which is CSV's escape, is read as one."""
    if not 0 < len(text) <= _MAX_NAME or text.isspace():
        raise RowError(f"a name is empty or longer than {_MAX_NAME} characters")
    if "\0" in text:
        raise RowError("a name contains a NUL character")
    return text.replace('""', '"')


def read_degrees(text: str, column: str, most: int) -> float | None:
    """Take a number of degrees, between `most` below and above zero."""
    if text in NO_DATA:
        return None
    degrees = float(text) if _DEGREES.fullmatch(text) else most + 1.0
    if not -most <= degrees <= most:
        raise RowError(f"{column} is not a number of degrees")
    return degrees


def pair(latitude: float | None, longitude: float | None) -> tuple[float | None, float | None]:
    """Take a position as a whole: half of one is none."""
    return (None, None) if latitude is None or longitude is None else (latitude, longitude)


def read_ambito(text: str) -> str | None:
    """Take U (urban) or R (rural)."""
    if text in NO_DATA:
        return None
    if text not in {"U", "R"}:
        raise RowError("AMBITO is neither U nor R")
    return text


def read_text(text: str) -> str | None:
    """Take any text; a NUL, which Postgres can't hold, makes it no data."""
    return None if text in NO_DATA or "\0" in text else text[:_MAX_NAME]


def read_integer(text: str, column: str) -> int | None:
    """Take a whole number of up to nine digits."""
    if text in NO_DATA:
        return None
    if not _INTEGER.fullmatch(text):
        raise RowError(f"{column} is not a whole number")
    return int(text)


def read_count(text: str, column: str) -> int | None:
    """Take a whole number from zero."""
    count = read_integer(text, column)
    if count is not None and count < 0:
        raise RowError(f"{column} is negative")
    return count


def reader_of(attribute: Attribute) -> Callable[[str], object]:
    """Return what reads the texts of a column; raises RowError."""
    match attribute.content:
        case "latitude":
            return partial(read_degrees, column=attribute.header, most=90)
        case "longitude":
            return partial(read_degrees, column=attribute.header, most=180)
        case "integer":
            return Memo(partial(read_integer, column=attribute.header)).__getitem__
        case "count":
            return Memo(partial(read_count, column=attribute.header)).__getitem__
        case "ambito":
            return Memo(read_ambito).__getitem__
        case "text":
            return Memo(read_text).__getitem__
