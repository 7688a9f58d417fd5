"""Content negotiation by Accept, which a `format` parameter overrides, and by Accept-Encoding (RFC 9110 §12.5)."""

import gzip
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import brotli  # type: ignore[import-untyped]
from starlette.datastructures import Headers

from localidades_api.errors import NotAcceptableError

_TCHARS = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = rf'\s*;\s*{_TCHARS}=(?:{_TCHARS}|"(?:[^"\\]|\\.)*")'
_RANGE = re.compile(rf"\s*({_TCHARS})(?:/({_TCHARS}))?((?:{_PARAMETER})*)\s*", re.ASCII)
# An element ends at a comma outside quoted strings; an unterminated string runs to the end.
_ELEMENT = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUALITY = re.compile(r"(?i);\s*q=([^;\s]*)")
# Java's HttpURLConnection has sent `.2` for decades, although RFC 9110 does not allow it.
_QVALUE = re.compile(r"0?\.[0-9]{1,3}|[01](?:\.0{0,3})?|0\.[0-9]{0,3}")
_MAX_HEADER = 4096
_ALIASES = {"x-gzip": "gzip"}  # RFC 9110 §8.4.1.3


class _MediaRange(NamedTuple):
    type: str
    subtype: str
    quality: float

    def precedence(self, media_type: str) -> int:
        """Return how specifically this range matches a media type: 3 exactly, 2 by type, 1 as `*/*`, 0 not at all."""
        type_, _, subtype = media_type.partition("/")
        if (self.type, self.subtype) == (type_, subtype):
            return 3
        if (self.type, self.subtype) == (type_, "*"):
            return 2
        return int((self.type, self.subtype) == ("*", "*"))


def accept_header(headers: Headers) -> str | None:
    """Return the Accept header, its lines joined by commas; None if it is absent or empty."""
    return ", ".join(value for value in headers.getlist("accept") if value.strip()) or None


def choose_media_type(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that the header prefers; without a header or among equals, the first offered.

    Parameters of a media range other than `q` are ignored: `application/json; charset=utf-8` is JSON. Raises
    NotAcceptableError if no offered type is acceptable, or the header is not a list of media ranges.
    """
    if accept is None:
        return offered[0]
    ranges = _parse(accept) if len(accept) <= _MAX_HEADER else ()
    qualities = [_quality(media_type, ranges) for media_type in offered]
    best = max(qualities)
    if best <= 0:
        raise NotAcceptableError(list(offered))
    return offered[qualities.index(best)]


def choose_coding(lines: Sequence[str], offered: Sequence[str]) -> str | None:
    """Return the offered content coding that Accept-Encoding prefers; among equals the first (RFC 9110 §12.5.3).

    It is None if the header prefers that nothing is coded, allows none of the offered, or is absent. A coding whose
    quality is malformed is not allowed.
    """
    qualities: dict[str, float] = {}
    for element in ",".join(lines).lower().split(","):
        coding, *parameters = (part.strip() for part in element.split(";"))
        quality = next((value[2:] for value in parameters if value.startswith("q=")), "1")
        qualities[_ALIASES.get(coding, coding)] = float(quality) if _QVALUE.fullmatch(quality) else 0.0
    offers = [qualities.get(coding, qualities.get("*", 0.0)) for coding in offered]
    best = max(offers)
    return offered[offers.index(best)] if best > 0 and best >= qualities.get("identity", 0.0) else None


def _quality(media_type: str, ranges: Sequence[_MediaRange]) -> float:
    precedence, quality = max(((range_.precedence(media_type), range_.quality) for range_ in ranges), default=(0, 0.0))
    return quality if precedence else 0.0


@lru_cache(maxsize=256)  # clients send a few dozen
def _parse(accept: str) -> Sequence[_MediaRange]:
    """Parse a header; one that is malformed has no media ranges, so nothing is acceptable."""
    ranges = []
    for element in _ELEMENT.findall(accept):
        if not element.strip():
            continue  # RFC 9110 §5.6.1.2: empty elements are ignored
        matched = _RANGE.fullmatch(element)
        quality = _QUALITY.search(_QUOTED.sub('""', element))  # a quoted string may contain `;q=`
        if matched is None or (quality and not _QVALUE.fullmatch(quality[1])):
            return []
        type_, subtype = matched[1].lower(), (matched[2] or "").lower()
        if not subtype:
            if type_ != "*":
                return []
            subtype = "*"  # HttpURLConnection also sends a lone `*`
        ranges.append(_MediaRange(type_, subtype, float(quality[1]) if quality else 1.0))
    return ranges


CODINGS = ("br", "gzip")  # the smallest first
_LEVEL = 4  # of either: a list of 1,000 records takes half a millisecond, and a seventh of its bytes is left


def compress(body: bytes, coding: str) -> bytes:
    """Return a body in one of the codings."""
    if coding == "br":
        compressed: bytes = brotli.compress(body, quality=_LEVEL)
        return compressed
    return gzip.compress(body, _LEVEL, mtime=0)
