"""Parses plain queries, for responses before routing; a query that is accepted here means the same to the router.

The router validates queries with Pydantic (`router.params`).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, get_args
from urllib.parse import unquote_to_bytes

from localidades_api.domain.pagination import MAX_DIGITS
from localidades_api.http.html.i18n import LANGUAGES, Language
from localidades_api.http.html.renderer import Format

_PAGE = re.compile(rb"[0-9]{1,%d}" % MAX_DIGITS)
_FORMATS: Mapping[bytes | None, Format | None] = {None: None, **{one.encode(): one for one in get_args(Format)}}
_LANGUAGES: Mapping[bytes | None, Language | None] = {None: None, **{one.encode(): one for one in LANGUAGES}}


class PlainQuery(NamedTuple):
    """The parameters of a plain query.

    `page_text` is the page as written: empty if the query has none, None if it begins with a zero. `format` and
    `language` are None if the query leaves them to the headers.
    """

    page: int
    page_text: str | None
    format: Format | None
    language: Language | None
    names_release: bool


@lru_cache(maxsize=8192)
def parse_plain_query(query: bytes, release: bytes) -> PlainQuery | None:
    """Parse the query of a list, which has `page`, `format`, `lang` and `release`, each at most once, in any order.

    Return None unless it is plain and names no release other than `release`, the served one.
    """
    parts = query.split(b"&") if query else []
    given = dict(part.partition(b"=")[::2] for part in parts)
    if len(given) < len(parts) or not given.keys() <= {b"page", b"format", b"lang", b"release"}:
        return None
    format_, language = given.get(b"format"), given.get(b"lang")
    if format_ not in _FORMATS or language not in _LANGUAGES or given.get(b"release", release) != release:
        return None
    if not _PAGE.fullmatch(given.get(b"page", b"1")):
        return None
    page = given.get(b"page", b"").decode()
    text = None if page.startswith("0") else page
    return PlainQuery(int(page or 1), text, _FORMATS[format_], _LANGUAGES[language], names_release=b"release" in given)


def parse_parameters(query: bytes) -> dict[str, str] | None:
    """Return the parameters of a query, not validated; None if one is repeated, or it isn't UTF-8 or has a NUL."""
    parts = query.split(b"&")
    given = dict(part.partition(b"=")[::2] for part in parts)
    if len(given) < len(parts) or not query.isascii() or b"%00" in query:
        return None
    try:
        return {name.decode(): unquote_to_bytes(value.replace(b"+", b" ")).decode() for name, value in given.items()}
    except UnicodeDecodeError:
        return None
