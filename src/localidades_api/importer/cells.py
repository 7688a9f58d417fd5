"""Reads the values of each kind of column, and rejects invalid rows."""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial

from localidades_api.catalogue import coordinates
from localidades_api.catalogue.columns import LocalityColumn
from localidades_api.catalogue.coordinates import BOUNDS, DECIMAL, Axis

NO_DATA = frozenset({"", "-", "*"})
# Claves of the census for rows that sum up localities, with the reason for rejecting them.
_SUMS = {
    "0000": "it is a total of the census, not a locality",
    "9998": "it sums up the localities of one dwelling, as the census does, and is not a locality",
    "9999": "it sums up the localities of two dwellings, as the census does, and is not a locality",
}
_DIGITS_OF_DEGREES = 6  # decimals in INEGI's files: 11 cm
_INTEGER = re.compile(r"-?[0-9]{1,9}")
_MAX_NAME = 200  # INEGI's longest has 86 characters


class InvalidRowError(Exception):
    """A row is not a valid record; the text says why."""


class InvalidFileError(Exception):
    """A row invalidates the whole file; the text continues a sentence that begins with its position."""


def read_clave(text: str, column: str, digits: int, described: str) -> str:
    """Read a part of a key, which a spreadsheet may have shortened."""
    if len(text) != digits or not (text.isascii() and text.isdecimal()):
        raise InvalidRowError(f"{column} is not {described}")
    return text


def refuse_sums(claves: Iterable[str]) -> None:
    """Raise InvalidRowError for the claves of rows that sum up localities."""
    for clave in _SUMS.keys() & set(claves):
        raise InvalidRowError(_SUMS[clave])


def read_key(cve_ent: str, cve_mun: str, cve_loc: str, cvegeo: str) -> int:
    """Build the key from its three parts, which are valid, and compare it with CVEGEO if that is given."""
    key = cve_ent + cve_mun + cve_loc
    if cvegeo and cvegeo != key:
        raise InvalidRowError("CVEGEO does not match CVE_ENT, CVE_MUN and CVE_LOC")
    return int(key)


def read_name(text: str) -> str:
    """Read a name unchanged, except that a doubled quote, the escape of CSV, becomes one."""
    if not 0 < len(text) <= _MAX_NAME or text.isspace():
        raise InvalidRowError(f"a name is empty or longer than {_MAX_NAME} characters")
    if "\0" in text:
        raise InvalidRowError("a name contains a NUL character")
    return text.replace('""', '"')


def read_degrees(text: str, axis: Axis) -> float | None:
    """Read degrees: decimal, or in degrees, minutes and seconds."""
    if text in NO_DATA:
        return None
    if re.fullmatch(DECIMAL, text) and abs(number := float(text)) <= BOUNDS[axis]:  # nearly always
        return number
    try:
        return round(coordinates.read_degrees(text, axis), _DIGITS_OF_DEGREES)
    except ValueError:
        raise InvalidRowError(f"its {axis} can't be read as degrees") from None


def pair(latitude: float | None, longitude: float | None) -> tuple[float | None, float | None]:
    """Return the coordinates; if one is missing, neither."""
    return (None, None) if latitude is None or longitude is None else (latitude, longitude)


def read_text(text: str) -> str | None:
    """Read any text; one with a NUL, which Postgres can't store, counts as missing."""
    return None if text in NO_DATA or "\0" in text else text[:_MAX_NAME]


def _read_ambito(text: str) -> str | None:
    if text in NO_DATA:
        return None
    if text not in {"U", "R"}:
        raise InvalidRowError("AMBITO is neither U nor R")
    return text


def _read_integer(text: str, column: LocalityColumn) -> int | None:
    if text in NO_DATA:
        return None
    if not _INTEGER.fullmatch(text):
        raise InvalidRowError(f"{column.header} is not a whole number")
    if column.type == "count" and int(text) < 0:
        raise InvalidRowError(f"{column.header} is negative")
    return int(text)


def reader_of(column: LocalityColumn) -> Callable[[str], object]:
    """Return the function that reads the values of a column; it raises InvalidRowError.

    Values that recur are cached: 300,000 rows have a few thousand different altitudes, which become one object each.
    """
    match column.type:
        case "latitude":
            return partial(read_degrees, axis="latitud")
        case "longitude":
            return partial(read_degrees, axis="longitud")
        case "integer" | "count":
            return cache(partial(_read_integer, column=column))
        case "ambito":
            return cache(_read_ambito)
        case _:
            return cache(read_text)
