"""Plain requests for a page of the served release, answered before routing."""

from functools import cached_property, lru_cache

from cachetools import LRUCache
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from localidades_api.cache.pages import ReleasePages
from localidades_api.errors import NotAcceptableError
from localidades_api.http.caching import is_fresh
from localidades_api.http.headers import on_wire
from localidades_api.http.html.i18n import Language, choose_language
from localidades_api.http.html.renderer import FORMATS, Format
from localidades_api.http.negotiation import choose_media_type
from localidades_api.http.paths import LOCALIDADES, OPERATION, allowed
from localidades_api.http.problems import problem_response
from localidades_api.http.query import PlainQuery, parse_plain_query
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.api_headers import ApiSender
from localidades_api.middleware.interface import Middleware
from localidades_api.observability.metrics import COUNTERS
from localidades_api.router import Services

_MAX_MEMOIZED = 256  # bytes: longer input is not memoized, so that clients can't fill the memory
MAX_HTML_CACHE = 8 * 1024**2  # bytes of cached HTML, some 250 pages; the least recently used are evicted
_OK = 200


class CachedPages:
    """Answers GET requests for a page of the served release, and passes all others on.

    It sends what routing would send, which a test checks by comparing both. HTML pages are cached from routing's own
    responses.
    """

    def __init__(self, inner: Middleware, app: FastAPI) -> None:
        self._inner = inner
        self._app = app
        self._html: LRUCache[tuple[object, ...], RawResponse] = LRUCache(MAX_HTML_CACHE, getsizeof=_size)

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Return a cached page, or a 304, or ask the inner middleware."""
        plain = self._read(scope)
        if plain is None:
            return self._inner.try_respond(scope)
        held, query, format_, if_none_match = plain
        if format_ == "api":
            key = None if if_none_match else _html_key(held, query, scope)
            return self._html.get(key) if key else None
        page = held.pages[query.page]
        if if_none_match and _is_fresh(if_none_match, held):
            page = held.encoder.not_modified(query.page, page)
        elif page:
            COUNTERS.page_hits += 1
        return held.encoder.pin(page) if page and query.names_release else page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Fetch the JSON page and send it, or pass on to routing."""
        if plain := self._read(scope):
            held, query, format_, if_none_match = plain
            if format_ == "json":
                scope[OPERATION] = "list_localities"
                await self._send_page(held, query, scope, receive, send)
                return
            if not if_none_match and (key := _html_key(held, query, scope)):
                send = self._remembering(key, send)
        await self._inner(scope, receive, send)

    def _read(self, scope: Scope) -> tuple[ReleasePages, PlainQuery, Format, list[bytes]] | None:
        """Return a release's pages, the query, the format and If-None-Match, or None unless a page is asked for."""
        if scope["type"] == "http" and scope["path"] == LOCALIDADES and scope["method"] == "GET":
            served, query = self._services.releases.served, scope["query_string"]
            held = self._services.pages.of(served) if served else None
            if held is not None and len(query) <= _MAX_MEMOIZED:
                asked = parse_plain_query(query, held.name)
                if asked is not None and 0 < asked.page < len(held.pages):
                    accept, if_none_match = [], []
                    for name, value in scope["headers"]:  # one plain loop, for speed
                        if name == b"accept":
                            accept.append(value)
                        elif name == b"if-none-match":
                            if_none_match.append(value)
                    format_ = asked.format or accepted_format(accept)
                    return (held, asked, format_, if_none_match) if format_ else None
        return None

    async def _send_page(
        self, held: ReleasePages, query: PlainQuery, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Fetch an existing page, and send it as JSON."""
        try:
            page = await self._services.pages.page(held.release, query.page)
        except Exception as error:  # noqa: BLE001  # nothing has been sent yet, so any error becomes a response
            await problem_response(scope, error)(scope, receive, ApiSender(allowed(LOCALIDADES), send))
            return
        await (held.encoder.pin(page) if query.names_release else page)(scope, receive, send)

    def _remembering(self, key: tuple[object, ...], send: Send) -> Send:
        """Return a `send` that also caches routing's response."""
        head: Message = {}

        async def send_and_keep(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
            elif head["status"] == _OK and not message.get("more_body"):
                self._html[key] = RawResponse(_OK, (on_wire(head["headers"]),), message["body"])
            await send(message)

        return send_and_keep

    @cached_property
    def _services(self) -> Services:
        """Look them up once: each access to Starlette's `State` calls a method written in Python."""
        services: Services = self._app.state.services
        return services


def _size(response: RawResponse) -> int:
    return sum(map(len, response.headers)) + len(response.body)


def _is_fresh(if_none_match: list[bytes], held: ReleasePages) -> bool:
    """Return whether the client already has this release's pages as JSON."""
    etag = held.encoder.etag
    return if_none_match == [etag] or is_fresh([value.decode("latin-1") for value in if_none_match], etag.decode())


def accepted_format(lines: list[bytes]) -> Format | None:
    """Return the format that the lines of Accept select, or None if the request needs routing."""
    if not lines:
        return "json"
    accept = b", ".join(lines)
    return _preferred(accept) if len(accept) <= _MAX_MEMOIZED else None


def _html_key(held: ReleasePages, query: PlainQuery, scope: Scope) -> tuple[object, ...] | None:
    """Return the cache key of an HTML page, all that it depends on, or None if the request needs routing."""
    if query.names_release or query.page_text is None:
        return None
    accept_language = b", ".join([value for name, value in scope["headers"] if name == b"accept-language"])
    if len(accept_language) > _MAX_MEMOIZED:
        return None
    return (held.encoder.etag, query.page_text, query.language, query.language or _language(accept_language))


@lru_cache(maxsize=256)
def _preferred(accept: bytes) -> Format | None:
    """Return the format that an Accept header selects; clients send only a handful of different headers."""
    try:
        return FORMATS[choose_media_type(accept.decode("latin-1").strip() or None, list(FORMATS))]
    except NotAcceptableError:
        return None


@lru_cache(maxsize=256)
def _language(accept_language: bytes) -> Language:
    return choose_language(accept_language.decode("latin-1"))
