"""Reads degrees: decimal, or in degrees, minutes and seconds as in INEGI's files."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

Axis = Literal["latitud", "longitud"]

EARTH_RADIUS = 6_371_008.8  # metres, the mean one (IUGG)
METRES_A_DEGREE = math.radians(EARTH_RADIUS)  # of a meridian
BOUNDS: dict[Axis, int] = {"latitud": 90, "longitud": 180}
DECIMAL = r"-?[0-9]{1,3}(\.[0-9]{1,25})?"  # a decimal as programs write it; stricter than float()

_SIGN = "([+-]?)"
_NUMBER = r"[0-9]{1,20}(?:[.,][0-9]{0,30})?|[.,][0-9]{1,30}"
_DECIMAL = re.compile(rf"{_SIGN}({_NUMBER})(e[+-][0-9]{{1,2}})?\s*[°º]?", re.IGNORECASE)
_DIGITS = re.compile(rf"{_SIGN}([0-9]{{2,3}})([0-9]{{2}})([0-9]{{2}})(?:\.0)?")  # `1021745`: 102°17'45"
_BETWEEN = r"[^0-9.,/_+-]{1,8}"  # a sign, a letter, a space, or what a wrong encoding turned them into
_PART = r"([0-9]{1,2}(?:[.,][0-9]{0,9})?)"
_END = "s?[^0-9a-z.,/_+-]{0,4}"
_PARTS = re.compile(rf"{_SIGN}([0-9]{{1,3}}){_BETWEEN}{_PART}(?:{_BETWEEN}{_PART})?{_END}", re.IGNORECASE)
_IN_MEXICO: dict[Axis, range] = {"latitud": range(14, 34), "longitud": range(86, 120)}
_SIDES: dict[Axis, tuple[str, str]] = {"latitud": ("N", "S"), "longitud": ("E", "WO")}  # O for oeste
_WORD_OF_SIDE = re.compile(r"\b(n)orte?h?\b|\b(s)(?:ur|outh)\b|\b(e)(?:ste|ast)\b|\b([ow])est?e?\b", re.IGNORECASE)
_MINUS = str.maketrans(dict.fromkeys("\N{MINUS SIGN}\N{EN DASH}\N{FIGURE DASH}\N{NON-BREAKING HYPHEN}", "-"))
_GEOPOINT = re.compile(
    r"(-?[0-9]{1,3}\.[0-9]{1,25}) (-?[0-9]{1,3}\.[0-9]{1,25})(?: -?[0-9.]{1,25}){1,2}"
)  # of ODK and Kobo
_MAX_POINT = 100  # characters


class UnreadableDegreesError(ValueError):
    """A text can't be read as degrees."""


class DegreesOutOfRangeError(ValueError):
    """A number is outside the range of its axis."""


def read_degrees(text: str, axis: Axis) -> float:
    """Return decimal degrees, positive to the north and the east.

    Raise UnreadableDegreesError, also for a sign that contradicts the letter, or DegreesOutOfRangeError. A longitude in
    minutes and seconds without a sign or a letter is west, because INEGI's older files leave out both.
    """
    text, side = _without_side(text.translate(_MINUS).strip().rstrip(",;"), axis)
    if found := _DIGITS.fullmatch(text):
        sign, whole, *parts = found.groups()
        if int(whole) not in _IN_MEXICO[axis]:  # only INEGI writes digits without signs, for places in Mexico
            raise DegreesOutOfRangeError
    elif found := _DECIMAL.fullmatch(text):
        sign, whole, parts = found[1], found[2].replace(",", ".") + (found[3] or ""), []
    elif found := _PARTS.fullmatch(text):
        sign, whole, *parts = found.groups()
    else:
        raise UnreadableDegreesError
    minutes, seconds = (float((part or "0").replace(",", ".")) for part in parts or ("0", "0"))
    degrees = float(whole) + minutes / 60 + seconds / 3600
    if max(minutes, seconds) >= 60 or degrees > BOUNDS[axis]:  # noqa: PLR2004  # minutes of a degree
        raise DegreesOutOfRangeError
    is_west = axis == "longitud" and bool(parts) and not sign
    is_negative = side in _SIDES[axis][1] if side else sign == "-" or is_west
    if side and sign and is_negative != (sign == "-"):  # -103.35 E
        raise UnreadableDegreesError
    return -degrees if is_negative else degrees


def is_in_mexico(latitud: float, longitud: float) -> bool:
    """Return whether a point is in the rectangle of Mexico, with its islands; NaN and infinity are not."""
    north, west = _IN_MEXICO["latitud"], _IN_MEXICO["longitud"]
    return north.start <= latitud < north.stop and west.start <= -longitud < west.stop


def in_mexico(latitud: float, longitud: float) -> tuple[float, float] | None:
    """Return a point in Mexico, whose longitude may lack its minus; None for one that is elsewhere."""
    return next((point for point in ((latitud, longitud), (latitud, -longitud)) if is_in_mexico(*point)), None)


def read_point(latitud: str, longitud: str) -> tuple[float, float]:
    """Return a point in decimal degrees; raise as `read_degrees` does.

    Outside of Mexico, a longitude without its minus, two swapped texts, and both degrees in one of the texts are
    understood if the point is then in it.
    """
    given = (latitud, longitud), (longitud, latitud), *_split_pair(latitud), *_split_pair(longitud)
    for north, west in given:
        with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
            if point := in_mexico(read_degrees(north, "latitud"), read_degrees(west, "longitud")):
                return point
    return read_degrees(latitud, "latitud"), read_degrees(longitud, "longitud")


def _split_pair(text: str) -> Iterator[tuple[str, str]]:
    """Yield the halves of a text that may have both degrees of a point, in both orders: `19.43 -99.13 2240 5`."""
    text = " ".join(text[:_MAX_POINT].translate(_MINUS).strip(" ()[]").split())
    found = _GEOPOINT.fullmatch(text)
    for separator in (";", ", ", ",", "/", " "):
        parts = found.groups() if found else text.split(separator)
        if len(parts) % 2 == 0:
            half = len(parts) // 2
            one, other = separator.join(parts[:half]), separator.join(parts[half:])
            yield from ((one, other), (other, one))


def angle_between(latitude: float, longitude: float, other_latitude: float, other_longitude: float) -> float:
    """Return the angle in radians between two points in degrees, by the haversine."""
    phi, other_phi = math.radians(latitude), math.radians(other_latitude)
    across = math.sin((other_phi - phi) / 2) ** 2
    along = math.cos(phi) * math.cos(other_phi) * math.sin(math.radians(other_longitude - longitude) / 2) ** 2
    return 2 * math.asin(math.sqrt(min(1.0, max(0.0, across + along))))


def _without_side(text: str, axis: Axis) -> tuple[str, str]:
    """Split off the letter of the compass, which comes before or after the degrees."""
    letters = "".join(_SIDES[axis])
    text = _WORD_OF_SIDE.sub(lambda word: next(filter(None, word.groups())), text)
    if text[-1:].upper() in letters and text:
        return text[:-1].rstrip(), text[-1].upper()
    if text[:1].upper() in letters and text:
        return text[1:].lstrip(), text[0].upper()
    return text, ""
