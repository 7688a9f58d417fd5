"""Plain requests for a page of the served release, answered in front of routing."""

from functools import lru_cache

from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from localidades_api.census import CENSUS_HEADERS, LOCALIDADES, Exchange
from localidades_api.errors import LocalidadesError, NotAcceptableError
from localidades_api.freshness import is_fresh
from localidades_api.negotiation import choose_media_type
from localidades_api.page_cache import PageCache, RawHeaders, Shelf, raw_headers
from localidades_api.problems import problem_response
from localidades_api.renderers import JSON, MEDIA_TYPES

_LONGEST_REMEMBERED = 256  # bytes: what a client makes up must not fill the memory of what was read before
_LONGEST_PAGE = len("page=") + 15  # beyond any page there is; routing says what is wrong with it


class FastPath:
    """Answers a GET of a page of the served release as JSON; whatever else is asked is routing's.

    What it sends is what routing would: a test holds the two against each other.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "http" and scope["path"] == LOCALIDADES and scope["method"] == "GET":
            pages: PageCache = self._app.state.catalogue.pages
            shelf = pages.shelf()
            if shelf is not None and (number := _asked(shelf, scope)):
                try:
                    status, headers, body = await _answer(pages, shelf, number, scope)
                except LocalidadesError as error:
                    await problem_response(Request(scope, receive), error)(scope, receive, Exchange(send))
                    return
                await send({"type": "http.response.start", "status": status, "headers": headers + CENSUS_HEADERS})
                await send({"type": "http.response.body", "body": body})
                return
        await self._app(scope, receive, send)


async def _answer(pages: PageCache, shelf: Shelf, number: int, scope: Scope) -> tuple[int, RawHeaders, bytes]:
    """Return the status, headers and body for a page that there is."""
    if_none_match = _values(scope, b"if-none-match")
    if if_none_match and is_fresh([value.decode("latin-1") for value in if_none_match], shelf.etag):
        return 304, shelf.not_modified(number), b""
    page = shelf.pages[number] or await pages.page(shelf.release, number)
    return 200, raw_headers(shelf.freshness, page), page.body


def _asked(shelf: Shelf, scope: Scope) -> int | None:
    """Return the number of the page that a plain request asks for, if there is such a page and JSON is wanted."""
    query = scope["query_string"]
    if len(query) > _LONGEST_REMEMBERED:
        return None
    number, names_json = _parse(query, shelf.name)
    if number >= len(shelf.pages):
        return None
    if not names_json and (accept := b", ".join(_values(scope, b"accept"))):
        return number if len(accept) <= _LONGEST_REMEMBERED and _prefers_json(accept) else None
    return number


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


@lru_cache(maxsize=8192)
def _parse(query: bytes, release: bytes) -> tuple[int, bool]:
    """Read `page`, `format=json` and the served release's name, each once at most; page 0 stands for any other query.

    Returns the page's number and whether JSON is named. However a request is spelled, one page is held for it.
    """
    number, names_json, names_release = None, False, False
    for part in query.split(b"&") if query else ():
        if number is None and part.startswith(b"page=") and part[5:].isdigit() and len(part) <= _LONGEST_PAGE:
            number = int(part[5:])
        elif part == b"format=json" and not names_json:
            names_json = True
        elif part == b"release=" + release and not names_release:
            names_release = True
        else:
            return 0, False
    return (1 if number is None else number), names_json


@lru_cache(maxsize=256)
def _prefers_json(accept: bytes) -> bool:
    """Tell whether an Accept header chooses JSON; clients send a handful of different ones."""
    try:
        return choose_media_type(accept.decode("latin-1").strip() or None, MEDIA_TYPES) == JSON.media_type
    except NotAcceptableError:
        return False
