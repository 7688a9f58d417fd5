"""Plain requests for a page that is held, answered in front of routing."""

from functools import lru_cache

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from localidades_api.census import CENSUS_HEADERS, LOCALIDADES
from localidades_api.errors import NotAcceptableError
from localidades_api.freshness import is_fresh
from localidades_api.negotiation import choose_media_type
from localidades_api.page_cache import Shelf, StoredPage
from localidades_api.renderers import JSON, MEDIA_TYPES

_LONGEST_PAGE = len("page=") + 15  # beyond any page there is; routing says what is wrong with it


class FastPath:
    """Answers a GET of a held page as JSON; everything else, and every error, is routing's.

    What it sends is what routing would: a test holds the two against each other.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "http" and scope["path"] == LOCALIDADES and scope["method"] == "GET":
            shelf = self._app.state.catalogue.pages.shelf()
            if shelf is not None and (page := _find(shelf, scope)) is not None:
                await _answer(page, shelf, scope, send)
                return
        await self._app(scope, receive, send)


async def _answer(page: StoredPage, shelf: Shelf, scope: Scope, send: Send) -> None:
    if_none_match = [value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"]
    if if_none_match and is_fresh(if_none_match, shelf.etag):
        status, headers, body = 304, page.not_modified, b""
    else:
        status, headers, body = 200, page.headers, page.body
    await send({"type": "http.response.start", "status": status, "headers": headers + CENSUS_HEADERS})
    await send({"type": "http.response.body", "body": body})


def _find(shelf: Shelf, scope: Scope) -> StoredPage | None:
    """Return the page that a request asks for, if it is held and JSON is what the client wants."""
    asked = _parse(scope["query_string"], shelf.name)
    if asked is None:
        return None
    number, names_json = asked
    if number >= len(shelf.pages):
        return None
    if not names_json:
        accept = [value for name, value in scope["headers"] if name == b"accept"]
        if accept and not (len(accept) == 1 and _prefers_json(accept[0])):
            return None
    return shelf.pages[number]


def _parse(query: bytes, release: bytes) -> tuple[int, bool] | None:
    """Read `page`, `format=json` and the served release's name, each once at most; None for any other query.

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
            return None
    return (1 if number is None else number), names_json


@lru_cache(maxsize=256)
def _prefers_json(accept: bytes) -> bool:
    """Tell whether an Accept header chooses JSON; clients send a handful of different ones."""
    try:
        return choose_media_type(accept.decode("latin-1").strip() or None, MEDIA_TYPES) == JSON.media_type
    except NotAcceptableError:
        return False
