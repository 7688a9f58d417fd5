"""Plain requests for a page of the served release, answered in front of routing."""

from functools import lru_cache
from typing import NamedTuple, cast

from cachetools import LRUCache
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from localidades_api.census import CENSUS_HEADERS, LOCALIDADES, Exchange
from localidades_api.errors import LocalidadesError, NotAcceptableError
from localidades_api.freshness import is_fresh
from localidades_api.languages import LANGUAGES, Language, choose_language
from localidades_api.negotiation import choose_media_type
from localidades_api.page_cache import PageCache, RawHeaders, Shelf, on_wire, raw_headers
from localidades_api.problems import problem_response
from localidades_api.renderers import JSON, MEDIA_TYPES

_LONGEST_REMEMBERED = 256  # bytes: what a client makes up must not fill the memory of what was read before
_LONGEST_PAGE = len("page=") + 15  # beyond any page there is; routing says what is wrong with it
_PAGES_FOR_PEOPLE = 8 * 1024**2  # bytes of HTML that are kept, some 250 pages; what was asked for least goes


class ReadyAnswer(NamedTuple):
    """An answer that needs no waiting; `headers` are lines as they go over the wire."""

    status: int
    headers: bytes
    body: bytes


class Asked(NamedTuple):
    """What a plain query asks for; page 0 stands for a query that is not plain.

    `page` is None where it is not written in its one way, `language` where it is left to the browser.
    """

    number: int
    page: str | None = None
    format: str | None = None
    language: Language | None = None
    names_release: bool = False


class FastPath:
    """Answers a GET of a page of the served release; whatever else is asked is routing's.

    What it sends is what routing would: a test holds the two against each other. Pages for people are what routing has
    answered before. A server that can write ready bytes finds the outermost layer in the lifespan's state, as `front`.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._for_people: LRUCache[tuple[object, ...], ReadyAnswer] = LRUCache(_PAGES_FOR_PEOPLE, getsizeof=_size)

    def ready(self, scope: Scope) -> ReadyAnswer | None:
        """Return the answer if it is at hand: a page that is held, or a 304."""
        asked, shelf = self._asked(scope)
        if shelf is None:
            return None
        if not _is_json(asked, scope):
            key = _key_for_people(shelf, asked, scope)
            return self._for_people.get(key) if key else None
        if _holds(scope, shelf):
            return ReadyAnswer(304, shelf.not_modified_on_wire(asked.number), b"")
        if page := shelf.pages[asked.number]:
            return ReadyAnswer(200, shelf.page_headers_on_wire(page), page.body)
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "lifespan":
            scope["state"].setdefault("front", self)  # unless a layer stands before it
        asked, shelf = self._asked(scope)
        if shelf is None:
            await self._app(scope, receive, send)
        elif _is_json(asked, scope):
            await self._answer(shelf, asked.number, scope, receive, send)
        elif key := _key_for_people(shelf, asked, scope):
            await self._app(scope, receive, self._remembering(key, send))
        else:
            await self._app(scope, receive, send)

    def _asked(self, scope: Scope) -> tuple[Asked, Shelf | None]:
        """Return what is asked for, and where pages of the release have their place; None where it is not plain."""
        if scope["type"] == "http" and scope["path"] == LOCALIDADES and scope["method"] == "GET":
            shelf, query = self._pages.shelf(), scope["query_string"]
            if shelf is not None and len(query) <= _LONGEST_REMEMBERED:
                asked = _parse(query, shelf.name)
                if 0 < asked.number < len(shelf.pages):
                    return asked, shelf
        return _NOTHING, None

    async def _answer(self, shelf: Shelf, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a page that there is, as JSON."""
        headers: RawHeaders
        try:
            if _holds(scope, shelf):
                status, headers, body = 304, shelf.not_modified(number), b""
            else:
                page = shelf.pages[number] or await self._pages.page(shelf.release, number)
                status, headers, body = 200, raw_headers(shelf.freshness, page), page.body
        except LocalidadesError as error:
            await problem_response(Request(scope, receive), error)(scope, receive, Exchange(send))
            return
        await send({"type": "http.response.start", "status": status, "headers": headers + CENSUS_HEADERS})
        await send({"type": "http.response.body", "body": body})

    def _remembering(self, key: tuple[object, ...], send: Send) -> Send:
        """Send what routing answers, and keep it."""
        head: Message = {}

        async def send_and_keep(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
            elif head["status"] == 200 and not message.get("more_body"):  # noqa: PLR2004  # what HTTP calls OK
                self._for_people[key] = ReadyAnswer(200, on_wire(head["headers"]), message["body"])
            await send(message)

        return send_and_keep

    @property
    def _pages(self) -> PageCache:
        return cast("PageCache", self._app.state.catalogue.pages)


_NOTHING = Asked(0)


def _size(answer: ReadyAnswer) -> int:
    return len(answer.headers) + len(answer.body)


def _holds(scope: Scope, shelf: Shelf) -> bool:
    """Tell whether the client holds the pages of this release as JSON already."""
    if_none_match = _values(scope, b"if-none-match")
    if not if_none_match or if_none_match == [shelf.etag]:
        return bool(if_none_match)
    return is_fresh([value.decode("latin-1") for value in if_none_match], shelf.etag.decode())


def _is_json(asked: Asked, scope: Scope) -> bool:
    """Tell whether JSON is wanted: by `format`, else by Accept."""
    if asked.format is None and (accept := b", ".join(_values(scope, b"accept"))):
        return len(accept) <= _LONGEST_REMEMBERED and _preferred(accept) == JSON.media_type
    return asked.format != "api"


def _key_for_people(shelf: Shelf, asked: Asked, scope: Scope) -> tuple[object, ...] | None:
    """Return all that a page for people depends on; None where routing has to look."""
    accept = b", ".join(_values(scope, b"accept"))
    wanted = asked.format == "api" or (len(accept) <= _LONGEST_REMEMBERED and _preferred(accept) == "text/html")
    if not wanted or asked.names_release or asked.page is None or _values(scope, b"if-none-match"):
        return None
    accept_language = b", ".join(_values(scope, b"accept-language"))
    if len(accept_language) > _LONGEST_REMEMBERED:
        return None
    return (shelf.etag, asked.page, asked.language, asked.language or _language(accept_language))


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


@lru_cache(maxsize=8192)
def _parse(query: bytes, release: bytes) -> Asked:
    """Read `page`, `format`, `lang` and the served release's name, each once at most.

    However a request is spelled, one page is held for it.
    """
    given: dict[bytes, bytes] = {}
    for part in query.split(b"&") if query else ():
        name, _, value = part.partition(b"=")
        if name in given:
            return _NOTHING
        given[name] = value
    page, format_, language = given.pop(b"page", b""), given.pop(b"format", None), given.pop(b"lang", None)
    names_release = given.pop(b"release", None)
    is_plain = not given and format_ in {None, b"json", b"api"} and names_release in {None, release}
    known = {one.encode(): one for one in LANGUAGES}
    if not is_plain or (language is not None and language not in known) or len(page) > _LONGEST_PAGE:
        return _NOTHING
    if page and not page.isdigit():
        return _NOTHING
    if b"page=" in query and not page:
        return _NOTHING
    spelled = None if page.startswith(b"0") else page.decode()
    return Asked(
        int(page or b"1"),
        spelled,
        format_.decode() if format_ else None,
        known[language] if language else None,
        names_release is not None,
    )


@lru_cache(maxsize=256)
def _preferred(accept: bytes) -> str | None:
    """Return the media type that an Accept header chooses; clients send a handful of different ones."""
    try:
        return choose_media_type(accept.decode("latin-1").strip() or None, MEDIA_TYPES)
    except NotAcceptableError:
        return None


@lru_cache(maxsize=256)
def _language(accept_language: bytes) -> Language:
    return choose_language(accept_language.decode("latin-1"))
