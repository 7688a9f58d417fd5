"""Responses of routing, held by the exact spelling of their requests and sent again without it."""

from functools import cached_property
from typing import NamedTuple

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from localidades_api.http.headers import on_wire
from localidades_api.http.paths import OPERATION, operation_of
from localidades_api.http.raw_response import RawResponse
from localidades_api.observability.metrics import COUNTERS
from localidades_api.releases.tracker import ReleaseTracker

MAX_BYTES = 96 * 1024**2  # of responses and their keys; half of it is kept when the other half is full
MAX_BODY = 256 * 1024
_OVERHEAD = 1000  # bytes per response besides its body, head and key
_STATUSES = frozenset({200, 304})
_STATIC = "/static/"  # whose files may be edited while the service runs
# The fields that a response may depend on; Host, because some name the address that was asked.
_SELECTING = frozenset(
    {b"host", b"accept", b"accept-encoding", b"accept-language", b"if-none-match", b"if-range", b"range"}
)

_Key = tuple[str, bytes, str | None, tuple[tuple[bytes, bytes], ...]]
_State = tuple[object, ...]


class _Held(NamedTuple):
    response: RawResponse
    operation: str


class ResponseCache:
    """Answers a GET request with the response that routing gave to the same spelling, and passes all others on.

    It holds a 200 or 304 with an ETag that came in one piece. It forgets everything once another release is served or
    searched, or a publication has changed the list of releases, and the least recent beyond `limit` bytes. With 0 it
    holds nothing.
    """

    def __init__(self, app: FastAPI, limit: int = MAX_BYTES) -> None:
        self._app = app
        self._limit = limit
        self._state: _State = ()
        self._recent: dict[_Key, _Held] = {}
        self._older: dict[_Key, _Held] = {}
        self._bytes = 0  # of the recent ones

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Return a held response."""
        if scope["method"] != "GET":
            return None
        if self._state != (state := self._releases.state):
            self._recent, self._older, self._bytes, self._state = {}, {}, 0, state
        key = _key(scope)
        held = self._recent.get(key)
        if held is None:
            if (held := self._older.pop(key, None)) is None:
                return None
            self._put(key, held)
        COUNTERS.response_hits += 1
        scope[OPERATION] = held.operation
        return held.response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on to routing, and hold its response."""
        if (
            self._limit
            and scope["type"] == "http"
            and scope["method"] == "GET"
            and not scope["path"].startswith(_STATIC)
        ):
            COUNTERS.response_misses += 1
            send = self._holding(scope, send)
        await self._app(scope, receive, send)

    def _holding(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that also holds the response, unless the releases have changed since the request."""
        state, key = self._releases.state, _key(scope)
        head: Message | None = None

        async def send_and_hold(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message if _may_be_held(message) else None
            elif head:
                body = message.get("body", b"")
                is_whole = not message.get("more_body") and len(body) <= MAX_BODY
                if is_whole and state == self._state == self._releases.state:
                    response = RawResponse(head["status"], (on_wire(head["headers"]),), body)
                    self._put(key, _Held(response, operation_of(scope)))
                head = None
            await send(message)

        return send_and_hold

    def _put(self, key: _Key, held: _Held) -> None:
        if key not in self._recent:
            self._bytes += _size(key, held.response)
        self._recent[key] = held
        if self._bytes > self._limit // 2:
            self._older, self._recent, self._bytes = self._recent, {}, 0

    @cached_property
    def _releases(self) -> ReleaseTracker:
        """Look them up once: each access to Starlette's `State` calls a method written in Python."""
        releases: ReleaseTracker = self._app.state.services.releases
        return releases


def _key(scope: Scope) -> _Key:
    selecting = tuple([field for field in scope["headers"] if field[0] in _SELECTING])
    return scope["path"], scope["query_string"], scope.get("scheme"), selecting


def _size(key: _Key, response: RawResponse) -> int:
    path, query, _, fields = key
    spelling = len(path) + len(query) + sum(len(value) for _, value in fields)
    return spelling + sum(map(len, response.headers)) + len(response.body) + _OVERHEAD


def _may_be_held(head: Message) -> bool:
    return head["status"] in _STATUSES and any(name.lower() == b"etag" for name, _ in head["headers"])
