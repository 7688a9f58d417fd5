"""Plain requests for a page of the served release, answered in front of routing."""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple, get_args

from cachetools import LRUCache
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from localidades_api.cache.pages import PageCache, ReleasePages, raw_headers
from localidades_api.errors import NotAcceptableError
from localidades_api.http.caching import is_fresh
from localidades_api.http.headers import API_HEADERS, RawHeaders, on_wire
from localidades_api.http.html.i18n import LANGUAGES, Language, choose_language
from localidades_api.http.html.renderer import FORMATS, Format
from localidades_api.http.negotiation import choose_media_type
from localidades_api.http.paths import LOCALIDADES, OPERATION
from localidades_api.http.problems import problem_response
from localidades_api.middleware.api_headers import ApiSender
from localidades_api.observability.metrics import COUNTERS

_MAX_MEMOIZED = 256  # bytes: what a client makes up must not fill the memory of what was read before
_PAGE = re.compile(rb"[0-9]{1,15}")  # more is beyond any page there is; routing says what is wrong with it
_MAX_HTML_CACHE = 8 * 1024**2  # bytes of HTML that are kept, some 250 pages; what was asked for least goes
_FORMATS: Mapping[bytes | None, Format | None] = {None: None, **{one.encode(): one for one in get_args(Format)}}
_LANGUAGES: Mapping[bytes | None, Language | None] = {None: None, **{one.encode(): one for one in LANGUAGES}}


class RawResponse(NamedTuple):
    """An answer that needs no waiting; `headers` are lines as they go over the wire."""

    status: int
    headers: bytes
    body: bytes


class Asked(NamedTuple):
    """What a plain query asks for.

    `page` is empty where there is none and None where it is not written in its one way; `format` and `language` are
    None where they are left to headers.
    """

    number: int
    page: str | None
    format: Format | None
    language: Language | None
    names_release: bool


class CachedPages:
    """Answers a GET of a page of the served release; whatever else is asked is routing's.

    What it sends is what routing would: a test holds the two against each other. Pages for people are what routing has
    answered before. A server that can write ready bytes finds the outermost layer in the lifespan's state, as `front`.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._html: LRUCache[tuple[object, ...], RawResponse] = LRUCache(_MAX_HTML_CACHE, getsizeof=_size)

    def ready(self, scope: Scope) -> RawResponse | None:
        """Return the answer if it is at hand: a page that is held, or a 304."""
        plain = self._read(scope)
        if plain is None:
            return None
        shelf, asked, format_ = plain
        if format_ == "api":
            key = _key_for_people(shelf, asked, scope)
            return self._html.get(key) if key else None
        if _is_not_modified(scope, shelf):
            return RawResponse(304, shelf.not_modified_on_wire(asked.number), b"")
        if page := shelf.pages[asked.number]:
            COUNTERS.page_hits += 1
            return RawResponse(200, shelf.page_headers_on_wire(page), page.body)
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "lifespan":
            scope["state"].setdefault("front", self)  # unless a layer stands before it
        if plain := self._read(scope):
            shelf, asked, format_ = plain
            if format_ == "json":
                await self._answer(shelf, asked.number, scope, receive, send)
                return
            if key := _key_for_people(shelf, asked, scope):
                send = self._remembering(key, send)
        await self._app(scope, receive, send)

    def _read(self, scope: Scope) -> tuple[ReleasePages, Asked, Format] | None:
        """Return where the pages have their place, what is asked for, and as what; None where routing has to look."""
        if scope["type"] == "http" and scope["path"] == LOCALIDADES and scope["method"] == "GET":
            shelf, query = self._pages.shelf(), scope["query_string"]
            if shelf is not None and len(query) <= _MAX_MEMOIZED:
                asked = _parse(query, shelf.name)
                if asked is not None and 0 < asked.number < len(shelf.pages):
                    format_ = asked.format or _accepted(scope)
                    return (shelf, asked, format_) if format_ else None
        return None

    async def _answer(self, shelf: ReleasePages, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a page that there is, as JSON."""
        scope[OPERATION] = "list_localities"
        headers: RawHeaders
        try:
            if _is_not_modified(scope, shelf):
                status, headers, body = 304, shelf.not_modified(number), b""
            else:
                page = await self._pages.page(shelf.release, number)
                status, headers, body = 200, raw_headers(shelf.freshness, page), page.body
        except Exception as error:  # noqa: BLE001  # nothing has been sent yet: whatever it is becomes an answer
            await problem_response(Request(scope, receive), error)(scope, receive, ApiSender(send))
            return
        await send({"type": "http.response.start", "status": status, "headers": headers + API_HEADERS})
        await send({"type": "http.response.body", "body": body})

    def _remembering(self, key: tuple[object, ...], send: Send) -> Send:
        """Send what routing answers, and keep it."""
        head: Message = {}

        async def send_and_keep(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
            elif head["status"] == 200 and not message.get("more_body"):  # noqa: PLR2004  # what HTTP calls OK
                self._html[key] = RawResponse(200, on_wire(head["headers"]), message["body"])
            await send(message)

        return send_and_keep

    @cached_property
    def _pages(self) -> PageCache:
        """Look the pages up once: Starlette's state is asked through a method of Python, for each request."""
        pages: PageCache = self._app.state.services.pages
        return pages


def _size(answer: RawResponse) -> int:
    return len(answer.headers) + len(answer.body)


def _is_not_modified(scope: Scope, shelf: ReleasePages) -> bool:
    """Tell whether the client holds the pages of this release as JSON already."""
    if_none_match = _values(scope, b"if-none-match")
    if not if_none_match or if_none_match == [shelf.etag]:
        return bool(if_none_match)
    return is_fresh([value.decode("latin-1") for value in if_none_match], shelf.etag.decode())


def _accepted(scope: Scope) -> Format | None:
    """Return the format that the Accept header chooses; None where routing has to look."""
    accept = b", ".join(_values(scope, b"accept"))
    if not accept:
        return "json"
    return _preferred(accept) if len(accept) <= _MAX_MEMOIZED else None


def _key_for_people(shelf: ReleasePages, asked: Asked, scope: Scope) -> tuple[object, ...] | None:
    """Return all that a page for people depends on; None where routing has to look."""
    if asked.names_release or asked.page is None or _values(scope, b"if-none-match"):
        return None
    accept_language = b", ".join(_values(scope, b"accept-language"))
    if len(accept_language) > _MAX_MEMOIZED:
        return None
    return (shelf.etag, asked.page, asked.language, asked.language or _language(accept_language))


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


@lru_cache(maxsize=8192)
def _parse(query: bytes, release: bytes) -> Asked | None:
    """Read `page`, `format`, `lang` and the served release's name, each once at most; None where there is more.

    However a request is spelled, one page is held for it.
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
    spelled = None if page.startswith("0") else page
    return Asked(int(page or 1), spelled, _FORMATS[format_], _LANGUAGES[language], names_release=b"release" in given)


@lru_cache(maxsize=256)
def _preferred(accept: bytes) -> Format | None:
    """Return the format that an Accept header chooses; clients send a handful of different ones."""
    try:
        return FORMATS[choose_media_type(accept.decode("latin-1").strip() or None, list(FORMATS))]
    except NotAcceptableError:
        return None


@lru_cache(maxsize=256)
def _language(accept_language: bytes) -> Language:
    return choose_language(accept_language.decode("latin-1"))
