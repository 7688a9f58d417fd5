"""Holds the responses of routing by the exact spelling of their requests (docs/decisions/responses.md)."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api.route_table import RouteTable
from localidades_api.http.headers import make_private, on_wire
from localidades_api.http.paths import OPERATION, STATIC, operation_of, path_of
from localidades_api.observability.metrics import COUNTERS
from localidades_api.releases.tracker import ReleaseTracker

MAX_BYTES = 96 * 1024**2  # of responses and their keys; half of it is kept when the other half is full
MAX_BODY = 1024**2
_OVERHEAD = 1000  # bytes per response in addition to its body, head and key
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"upgrade", b"expect"})  # end a connection
# The fields that select a response, and those whose requests are not held. Host is checked where it is new.
_SELECTING = _FRAMING | {
    b"host", b"accept", b"accept-encoding", b"accept-language", b"if-none-match", b"if-range", b"range"
}  # fmt: skip

Field = tuple[bytes, bytes]
Key = tuple[int | None, bytes, tuple[Field, ...]]  # port that was asked, target, fields


class HeldResponse(NamedTuple):
    """A response as it is sent: `lines` are its header fields, each with its CRLF."""

    status: int
    lines: bytes
    body: bytes
    operation: str

    async def send(self, send: Send) -> None:
        """Send the response as an ASGI application does."""
        headers = [line.split(b": ", 1) for line in self.lines.split(b"\r\n")[:-1]]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class ResponseCache:
    """Holds what routing answered, up to `limit` bytes; beyond them the least recent goes. With 0 it holds nothing.

    It forgets everything once another release is served or searched, or a publication has changed the list of releases.
    """

    def __init__(self, releases: ReleaseTracker, limit: int = MAX_BYTES) -> None:
        self.limit = limit
        self._releases = releases
        self._state = releases.state
        self._recent: dict[Key, HeldResponse] = {}
        self._older: dict[Key, HeldResponse] = {}
        self._bytes = 0  # of the recent ones

    @property
    def state(self) -> object:
        """The state of the releases; a response that began under another state is not held."""
        return self._releases.state

    def get(self, key: Key) -> HeldResponse | None:
        """Return what is held for a spelling of a GET request."""
        if self._state != (state := self._releases.state):
            self._recent, self._older, self._bytes, self._state = {}, {}, 0, state
        held = self._recent.get(key)
        if held is None:
            if (held := self._older.pop(key, None)) is None:
                return None
            self.put(key, held)
        COUNTERS.response_hits += 1
        return held

    def put(self, key: Key, held: HeldResponse) -> None:
        """Hold a response for a spelling."""
        if key not in self._recent:
            self._bytes += _size(*key[1:]) + len(held.lines) + len(held.body) + _OVERHEAD
        self._recent[key] = held
        if self._bytes > self.limit // 2:
            self._older, self._recent, self._bytes = self._recent, {}, 0


def _key_of(scope: Scope) -> Key:
    path = scope.get("raw_path") or scope["path"].encode()  # servers may leave the former out
    target = path + b"?" + scope["query_string"] if scope["query_string"] else path
    return spelling(scope["server"][1] if scope.get("server") else None, target, scope["headers"])


def spelling(port: int | None, target: bytes, fields: Iterable[Field]) -> Key:
    """Return the key of a GET request from its fields, whose names are in lower case."""
    return port, target, tuple([field for field in fields if field[0] in _SELECTING])


def _size(target: bytes, fields: Iterable[Field]) -> int:
    return len(target) + sum(len(value) for _, value in fields)


class ResponseCacheMiddleware:
    """Answers a GET request with the response that is held for its spelling, and holds the responses to others.

    `serve` asks the cache first (`server.protocol`), so few held responses are sent from here; under another server,
    all of them. Held is a 200 or 304 that names its release, has a length and an ETag, comes in one piece, and that all
    clients may share. Behind added middleware, which may let some clients pass only, responses leave it as private.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if RouteTable.of(scope).is_private:
            send = _privately(send)
        app: FastAPI = scope["app"]
        cache: ResponseCache | None = getattr(app.state, "response_cache", None)
        # Overrides are set before the application starts, or by a test.
        if scope["method"] != "GET" or cache is None or app.dependency_overrides:
            await self.app(scope, receive, send)
            return
        if held := cache.get(_key_of(scope)):
            scope[OPERATION] = held.operation
            await held.send(send)
        elif path_of(scope).startswith(f"{STATIC}/"):
            await self.app(scope, receive, send)
        else:
            COUNTERS.response_misses += 1
            names = {name for name, _ in scope["headers"]}
            # HTTP/1.0 may leave Host out; the server refuses other requests without it, unless it finds them held.
            may_hold = cache.limit and b"host" in names and not names & _FRAMING
            await self.app(scope, receive, _Holding(cache, scope, send) if may_hold else send)


def _privately(send: Send) -> Send:
    """Return a `send` whose responses no shared cache keeps, since it doesn't know whom middleware lets pass."""

    async def send_private(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] < HTTPStatus.INTERNAL_SERVER_ERROR:
            message = {**message, "headers": list(message["headers"])}
            make_private(MutableHeaders(scope=message))
        await send(message)

    return send_private


class _Holding:
    """The `send` of one request, which also holds the response unless the releases have changed since the request."""

    def __init__(self, cache: ResponseCache, scope: Scope, send: Send) -> None:
        self._cache = cache
        self._scope = scope
        self._send = send
        self._state = cache.state
        self._head: tuple[int, bytes] | None = None  # status and lines, as routing sent them

    async def __call__(self, message: Message) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
            # Encoded now: middleware before the cache may change the message.
            self._head = (status, on_wire(headers)) if _may_be_held(status, headers) else None
        elif self._head:
            body = message.get("body", b"")
            if not message.get("more_body") and len(body) <= MAX_BODY and self._state == self._cache.state:
                # The scope's query lacks what the application has dropped.
                self._cache.put(_key_of(self._scope), HeldResponse(*self._head, body, operation_of(self._scope)))
            self._head = None
        await self._send(message)


def _may_be_held(status: int, headers: Sequence[Field]) -> bool:
    """Return whether a response has a release, a validator and a length, and is the same for every client and host."""
    fields = {name.lower(): value for name, value in headers}
    has_length = status == HTTPStatus.NOT_MODIFIED or (status == HTTPStatus.OK and b"content-length" in fields)
    control = fields.get(b"cache-control", b"")
    is_shared = b"private" not in control and b"no-store" not in control
    return has_length and is_shared and b"etag" in fields and b"catalogue-release" in fields
