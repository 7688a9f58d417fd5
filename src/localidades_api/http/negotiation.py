"""Which representation a request gets: `format` decides, else the Accept header (RFC 9110 §12.5.1), else JSON."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from starlette.datastructures import Headers

from localidades_api.errors import NotAcceptableError

_TCHARS = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = rf'\s*;\s*{_TCHARS}=(?:{_TCHARS}|"(?:[^"\\]|\\.)*")'
_RANGE = re.compile(rf"\s*({_TCHARS})(?:/({_TCHARS}))?((?:{_PARAMETER})*)\s*", re.ASCII)
# An element ends at a comma, but not at one within a quoted string; an unfinished one runs to the end.
_ELEMENT = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUALITY = re.compile(r"(?i);\s*q=([^;\s]*)")
# `.2`, which RFC 9110 does not allow, is what Java's HttpURLConnection has sent for decades.
_QVALUE = re.compile(r"0?\.[0-9]{1,3}|[01](?:\.0{0,3})?|0\.[0-9]{0,3}")
_MAX_HEADER = 4096


class _MediaRange(NamedTuple):
    type: str
    subtype: str
    quality: float

    def precedence(self, media_type: str) -> int:
        """Return how narrowly this range names a media type: 3 exactly, 2 by its type, 1 as anything, 0 not."""
        type_, _, subtype = media_type.partition("/")
        if (self.type, self.subtype) == (type_, subtype):
            return 3
        if (self.type, self.subtype) == (type_, "*"):
            return 2
        return int((self.type, self.subtype) == ("*", "*"))


def accept_header(headers: Headers) -> str | None:
    """Return the Accept header, several lines joined; None where it is absent or empty."""
    return ", ".join(value for value in headers.getlist("accept") if value.strip()) or None


def choose_media_type(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that the header prefers; among equals, the first offered.

    Parameters of a media range other than `q` are passed over: `application/json; charset=utf-8` is JSON. Raises
    NotAcceptableError where nothing offered is allowed, or the header is no list of media ranges.
    """
    if accept is None:
        return offered[0]
    ranges = _parse(accept)
    qualities = [_quality(media_type, ranges) for media_type in offered]
    best = max(qualities)
    if best <= 0:
        raise NotAcceptableError(list(offered))
    return offered[qualities.index(best)]


def _quality(media_type: str, ranges: Sequence[_MediaRange]) -> float:
    """Return the quality that the narrowest range gives a media type, 0 where none names it."""
    precedence, quality = max(((range_.precedence(media_type), range_.quality) for range_ in ranges), default=(0, 0.0))
    return quality if precedence else 0.0


def _parse(accept: str) -> list[_MediaRange]:
    """Read a header; one that does not follow the grammar names nothing."""
    if len(accept) > _MAX_HEADER:
        return []
    ranges = []
    for element in _ELEMENT.findall(accept):
        if not element.strip():
            continue  # RFC 9110 §5.6.1.2: empty elements are ignored
        matched = _RANGE.fullmatch(element)
        quality = _QUALITY.search(_QUOTED.sub('""', element))  # what is quoted may look like a quality
        if matched is None or (quality and not _QVALUE.fullmatch(quality[1])):
            return []
        type_, subtype = matched[1].lower(), (matched[2] or "").lower()
        if not subtype:
            if type_ != "*":
                return []
            subtype = "*"  # a lone `*`, Java's again
        ranges.append(_MediaRange(type_, subtype, float(quality[1]) if quality else 1.0))
    return ranges
