"""HTTP/1.1 on one connection: uvicorn's protocol, which asks the response cache first and bounds what a client may do.

All that it uses of uvicorn's inside (docs/decisions/responses.md):

- of `HttpToolsProtocol` the callbacks of asyncio and the parser, `on_response_complete`, `_start_asgi_task` and
  `shutdown`; `client`, `cycle`, `expect_100_continue`, `flow`, `headers`, `logger`, `loop`, `parser`, `pipeline`,
  `root_path`, `scope`, `server`, `server_state`, `transport` and `url`;
- of `RequestResponseCycle` what it knows of its request, its response and its transport;
- `ServerState.default_headers` and `total_requests`, and `STATUS_LINE`.
"""

import asyncio
import socket
import struct
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from localidades_api.api.probes import OPERATIONAL
from localidades_api.api.problems import ResponsePreferences, problem_of
from localidades_api.errors import (
    HeaderFieldsTooLargeError,
    LocalidadesError,
    OverloadedError,
    RequestError,
    RequestTimeoutError,
    UriTooLongError,
)
from localidades_api.http.headers import API_HEADERS, on_wire
from localidades_api.http.transfers import TRANSPORT
from localidades_api.middleware import EarlyAnswers
from localidades_api.observability.metrics import COUNTERS
from localidades_api.response_cache import HeldResponse, spelling
from localidades_api.server.connections import Connections
from localidades_api.server.deadlines import DRAIN_TIMEOUT, ReadProgress, bytes_unread
from localidades_api.server.heads import MAX_HEAD, MAX_TARGET, check_head, has_body, malformed

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn import Config

_WITHOUT_BODY = frozenset({b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT"})  # methods, whose bodies mean nothing
_MAX_UNREAD = 1024**2  # bytes discarded while a response is sent that may take minutes
_MAX_REQUESTS = 1000  # on a connection; as nginx does, so that connections move to workers that have fewer
_MAPPED = "::ffff:"  # before the IPv4 address of a client at a socket for both (RFC 4291 §2.5.5.2)
_OPERATIONAL = frozenset(path.encode() for path in OPERATIONAL)
_encode = lru_cache(maxsize=1)(on_wire)  # uvicorn's default headers, which change once a second, with Date


class _NothingFollowsError(Exception):
    """Stops the parser behind a connection's last request."""


class HttpProtocol(HttpToolsProtocol):
    """Writes held responses at once, and closes the connections of clients that send too much or take too long.

    A request with a body or an Upgrade is the last on its connection, so that a proxy and the server can't disagree on
    where the next one begins; what follows it is discarded.
    """

    def __init__(
        self,
        config: "Config",
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None,
        limits: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._early: EarlyAnswers | None = app_state.get("early_answers")
        self._port: int | None = None  # that the client connected to
        self._since = 0.0  # when the connection, its unfinished request, or its silence began
        self._must_refuse = False  # there are too many connections
        self._requests = 0
        self._is_reading = False  # a request has begun that has not been received completely
        self._is_held = False  # it has been answered with a held response
        self._is_last = False  # it is the connection's last one
        self._has_progressed = False  # the parser has finished a head or received a part of a body
        self._unparsed = 0  # bytes since it did
        self._running: RequestResponseCycle | None = None  # the one that the application was called with last
        self._refusal: bytes | None = None  # to be sent once the responses before it are complete
        self._is_leaving = False  # further bytes are discarded
        self._has_left = False
        self._reading = ReadProgress()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Make room for the connection, or refuse what it will ask for."""
        super().connection_made(transport)
        if self.client:
            self.client = (self.client[0].removeprefix(_MAPPED), self.client[1])
        self._port = self.server[1] if self.server else None
        self._since = self.loop.time()
        self._must_refuse = not self._limits.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the running request; uvicorn tells only the newest one, which may still be queued behind it."""
        if self._running:
            self._running.disconnected = True
            self._running.message_event.set()
        self._limits.remove(self)
        super().connection_lost(exc)

    # -- Requests

    def data_received(self, data: bytes) -> None:
        """Parse the data in pieces, none of which is longer than a head may be."""
        if self._is_leaving:
            self._unparsed += len(data)
            if self._unparsed > _MAX_UNREAD and self.is_answering:
                self.transport.abort()
        while data and not self._is_leaving:
            piece, data = data[:MAX_HEAD], data[MAX_HEAD:]
            self._has_progressed = False
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade:
                self._read_no_more()
            except httptools.HttpParserError as error:
                self._stop_reading(error.__context__)  # raised by a callback
            else:
                self._unparsed = 0 if self._has_progressed else self._unparsed + len(piece)
                if self._unparsed > MAX_HEAD:
                    self._stop_reading(HeaderFieldsTooLargeError())

    def on_message_begin(self) -> None:
        """Prepare for a request; its scope is made once it is known that the cache does not hold its response."""
        if self._is_last:
            raise _NothingFollowsError
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._is_reading = True
        self._requests += 1
        self._since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        """Add a part of the request target; raise UriTooLongError beyond 8 KiB."""
        self.url += url
        if len(self.url) > MAX_TARGET:
            raise UriTooLongError

    def on_headers_complete(self) -> None:
        """Write the response that is held, or have the application called."""
        began = perf_counter()
        self._has_progressed = True
        if held := self._find_held():
            self._write(held, began)
            return
        check_head(self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers)
        if self._must_refuse and self._limits.is_exceeded and self.url.partition(b"?")[0] not in _OPERATIONAL:
            self._limits.count("refused")
            raise OverloadedError
        self._is_last = has_body(self.headers) or self.parser.should_upgrade()
        if refusal := self._find_refusal():
            self._write(refusal, began)
            return
        url, fields, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(fields)
        super().on_headers_complete()
        if self._requests >= _MAX_REQUESTS:
            self.cycle.keep_alive = False
        if has_body(fields) and self._may_read_body():
            self.headers = []  # trailers are discarded (RFC 9112 §7.1.2)
        elif self._is_last or not self.cycle.keep_alive:
            raise _NothingFollowsError

    def _may_read_body(self) -> bool:
        """Return whether the application gets the body of the request; any other is discarded."""
        return self.parser.get_method() not in _WITHOUT_BODY and not self.parser.should_upgrade()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._has_progressed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request has been received completely."""
        self._is_reading = False
        if self._is_held:
            self._is_held = False
        else:
            super().on_message_complete()

    def _stop_reading(self, reason: BaseException | None) -> None:
        if isinstance(reason, _NothingFollowsError):
            self._read_no_more()
        elif self._is_last and self._is_reading:
            self._refuse_body()
        else:
            self._refuse(reason if isinstance(reason, LocalidadesError) else malformed())

    def _read_no_more(self) -> None:
        """Answer the connection's last request, and discard the bytes that follow it."""
        if self._is_reading:
            self.on_message_complete()
        self._unparsed = 0
        self._is_leaving = True
        if not self.is_answering:
            self._leave()

    def _refuse_body(self) -> None:
        """End a request whose body is framed wrongly; those before it are still answered."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        if self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        self.cycle.response_complete = True
        if self.cycle is not self._running:
            self.pipeline.popleft()
        self._refuse(malformed())

    # -- Responses

    def _find_held(self) -> HeldResponse | None:
        """Return what the cache holds for a GET request, if it can be written at once."""
        if self._early is None or not self._may_write_at_once():
            return None
        return self._early.cache.get(spelling(self._port, self.url, self.headers))

    def _find_refusal(self) -> HeldResponse | None:
        """Return the refusal of a GET request where the service has as much to do as it may."""
        if self._early is None or self._is_last or not self._may_write_at_once():
            return None
        return self._early.refuse(self.url, self.headers)

    def _may_write_at_once(self) -> bool:
        """Return whether this is a GET request, nothing comes first, and its response does not end the connection."""
        return not (
            self.is_answering
            or self.flow.write_paused
            or self._limits.is_draining
            or self._must_refuse
            or self._requests >= _MAX_REQUESTS
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.transport.is_closing()
        )

    def _write(self, held: HeldResponse, began: float) -> None:
        defaults = _encode(tuple(self.server_state.default_headers))
        self.transport.write(b"".join((STATUS_LINE[held.status], defaults, held.lines, b"\r\n", held.body)))
        self._is_held = True
        self._since = self.loop.time()
        self.server_state.total_requests += 1
        COUNTERS.count(held.operation, held.status, perf_counter() - began)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        cast("Scope", cycle.scope)[TRANSPORT] = self.transport
        if self._limits.is_draining:
            cycle.keep_alive = False
        if self._is_last and cycle is self.cycle:
            cycle.keep_alive = False
            cycle.transport = cast("asyncio.Transport", _LingeringTransport(self))
        if cycle.scope["http_version"] == "1.0":
            app = cast("ASGI3Application", _CloseDelimited(app, cycle, self.transport))
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Start the next pipelined request as uvicorn does, but without a keep-alive timer for each response."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._is_leaving:
            self._leave()

    @property
    def is_answering(self) -> bool:
        """Whether the response to a request is not complete."""
        return bool(self.pipeline) or (self._running is not None and not self._running.response_complete)

    def _refuse(self, error: LocalidadesError) -> None:
        """Discard further bytes, and send the problem once the responses before it are complete."""
        if isinstance(error, RequestError):
            self.logger.info("Refused a request: %s %s", error.status, error.slug)
        COUNTERS.refused[error.slug] += 1
        problem = problem_of(error, ResponsePreferences(root=self.root_path))
        fields = [*self.server_state.default_headers, *problem.raw_headers, *API_HEADERS, (b"connection", b"close")]
        self._refusal = b"".join((STATUS_LINE[problem.status_code], on_wire(fields), b"\r\n", bytes(problem.body)))
        self._unparsed = 0
        self._is_leaving = True
        if not self.is_answering:
            self._leave()

    def _leave(self) -> None:
        """Send a refusal and half-close: a full close may reset the connection before it is read (RFC 9112 §9.6)."""
        self._is_leaving = True
        self._since = self.loop.time()
        if self.transport.is_closing() or self._has_left:
            return
        self._has_left = True
        if self._refusal:
            self.transport.write(self._refusal)
        self.transport.write_eof()

    # -- Limits

    @property
    def idle_since(self) -> float:
        """When the client was last heard of; a second earlier where it has never asked for anything."""
        return self._since - (not self._requests)

    @property
    def is_idle(self) -> bool:
        """Whether the client would lose nothing if the connection were closed."""
        return not (self.is_answering or self.transport.get_write_buffer_size() or self.transport.is_closing())

    def close_if_late(self, now: float) -> None:
        """Close the connection if its client takes too long to read, to send a request, or to close.

        uvicorn waits for ever for the rest of a request, and for a client that does not read.
        """
        stalled = self._reading.stalled_for(bytes_unread(self.transport), now)
        if stalled is not None:
            if stalled >= self._limits.timeouts.client:
                self.transport.abort()
        elif not self.is_answering and now - self._since >= self._timeout:
            if self._is_reading and not self._is_leaving:
                self._refuse(RequestTimeoutError())
            self.transport.close()  # a client that has sent so little can read the refusal even without lingering

    @property
    def _timeout(self) -> float:
        """Seconds to wait for the client to close, or to send a head or its next request."""
        timeouts = self._limits.timeouts
        if self._is_leaving:
            return timeouts.lingering
        return timeouts.head if self._is_reading or not self._requests else timeouts.keep_alive

    def shutdown(self) -> None:
        """Close after the next response, which says so, or after a second without a request.

        A connection that looks idle may have a request on its way. Closing it at once would lose that request.
        """
        self._limits.is_draining = True
        self.loop.call_later(DRAIN_TIMEOUT, super().shutdown)


class _LingeringTransport:
    """The transport of a connection's last response: closing it waits for a client that is still sending."""

    def __init__(self, protocol: HttpProtocol) -> None:
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing
        self.close = protocol._leave  # noqa: SLF001  # of this module


class _CloseDelimited:
    """Ends a response of unknown length to HTTP/1.0, which has neither chunks nor interim responses, by closing.

    The client can't tell such an end from that of a response that breaks off, so the latter resets the connection
    (RFC 9112 §6.1, RFC 9110 §10.1.1).
    """

    def __init__(self, app: ASGI3Application, cycle: RequestResponseCycle, transport: asyncio.Transport) -> None:
        self._app = cast("ASGIApp", app)
        self._cycle = cycle
        self._transport = transport
        cycle.waiting_for_100_continue = False

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        has_length = True

        async def send_unframed(message: "Message") -> None:
            nonlocal has_length
            is_start = message["type"] == "http.response.start"
            if is_start:
                has_length = any(name.lower() == b"content-length" for name, _ in message["headers"])
            if not has_length:
                is_last = not is_start and not message.get("more_body", False)
                if is_start or is_last:
                    self._reset_at_close(not is_last)
                self._cycle.chunked_encoding = False
                self._cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, send_unframed)

    def _reset_at_close(self, wanted: bool) -> None:  # noqa: FBT001  # a setting
        """Set whether closing the socket resets the connection: SO_LINGER with a zero timeout."""
        if not self._transport.is_closing():
            option = struct.pack("ii", wanted, 0)
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
