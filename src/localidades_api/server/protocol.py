"""uvicorn's HTTP/1.1 protocol, which asks the response cache first and limits what a client may send and how slowly.

The uvicorn internals that it uses (docs/decisions/protocol.md):

- of `HttpToolsProtocol` the callbacks of asyncio and the parser, `on_response_complete`, `_start_asgi_task` and
  `shutdown`; `client`, `cycle`, `expect_100_continue`, `flow`, `headers`, `logger`, `loop`, `parser`, `pipeline`,
  `root_path`, `server`, `server_state`, `transport` and `url`;
- of `RequestResponseCycle` `chunked_encoding`, `disconnected`, `expected_content_length`, `keep_alive`,
  `message_event`, `response_complete`, `response_started`, `scope`, `transport` and `waiting_for_100_continue`;
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
from localidades_api.middleware.limits import EarlyAnswers
from localidades_api.middleware.response_cache import HeldResponse, spelling
from localidades_api.observability.metrics import COUNTERS
from localidades_api.server.connections import Connections
from localidades_api.server.deadlines import DRAIN_TIMEOUT, ReadProgress, bytes_received, bytes_unread
from localidades_api.server.heads import FRAMING, MAX_HEAD, MAX_TARGET, check_head, has_body, malformed_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn import Config

_WITHOUT_BODY = frozenset({b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT"})  # RFC 9110 §9.3
_MAX_DISCARDED = 1024**2  # bytes after the last request while its response is sent, which may take minutes
_MAX_REQUESTS = 1000  # on a connection; then the client connects again, perhaps to a worker that has less to do
_MAPPED = "::ffff:"  # before the address of an IPv4 client on an IPv6 socket (RFC 4291 §2.5.5.2)
_OPERATIONAL = frozenset(path.encode() for path in OPERATIONAL)
_encode = lru_cache(maxsize=1)(on_wire)  # for uvicorn's default headers, whose Date changes once a second


class _LastRequestError(Exception):
    """Raised in a callback of the parser to stop it after the last request of a connection."""


class _Body:
    """The callbacks of a parser that reads the body of one request."""

    def __init__(self, protocol: "HttpProtocol") -> None:
        self.on_body = protocol.on_body
        self.on_message_complete = protocol.on_message_complete


class HttpProtocol(HttpToolsProtocol):
    """Writes held responses without a task, and closes connections whose clients send too much or are too slow.

    A request with a body or an Upgrade is the last on its connection: a proxy and this server could disagree on where
    the next one begins. Anything after it is discarded.
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
        self._is_over_limit = False  # there were too many connections when this one was made
        self._requests = 0
        self._is_receiving = False  # a request has begun and is not complete
        self._is_answered = False  # its response has been written without the application
        self._is_last_request = False
        self._framing: list[bytes] = []  # lines of an Upgrade's head that say where its body ends
        self._has_progressed = False  # the parser has finished a head or got a part of a body
        self._unparsed = 0  # bytes since then, or bytes discarded
        self._running: RequestResponseCycle | None = None  # the latest that the application was called with
        self._refusal = b""  # to send once the responses before it are complete
        self._discards_input = False
        self._waiting_since = 0.0  # for the client: since connecting, the start of its request, or the last response
        self._read_progress = ReadProgress()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Make room for the connection; without room, refuse its requests."""
        super().connection_made(transport)
        if self.client:
            self.client = (self.client[0].removeprefix(_MAPPED), self.client[1])
        self._port = self.server[1] if self.server else None
        self._waiting_since = self.loop.time()
        self._is_over_limit = not self._limits.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the running request; uvicorn notifies only the newest one, which may be queued behind it."""
        if self._running:
            self._running.disconnected = True
            self._running.message_event.set()
        self._limits.remove(self)
        super().connection_lost(exc)

    # -- Requests

    def data_received(self, data: bytes) -> None:
        """Parse the data, in pieces no longer than a head may be."""
        if self._discards_input:
            self._unparsed += len(data)
            if self._unparsed > _MAX_DISCARDED and self.is_answering:
                self.transport.abort()
        while data and not self._discards_input:
            piece, data = data[:MAX_HEAD], data[MAX_HEAD:]
            self._has_progressed = False
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                data = piece[upgrade.args[0] :] + data
                self._ignore_upgrade()
            except httptools.HttpParserError as error:
                self._handle_parser_error(error.__context__)  # raised by a callback
            else:
                self._unparsed = 0 if self._has_progressed else self._unparsed + len(piece)
                if self._unparsed > MAX_HEAD:
                    self._handle_parser_error(HeaderFieldsTooLargeError())

    def on_message_begin(self) -> None:
        """Prepare for a request; it needs no scope unless the application is called."""
        if self._is_last_request:
            raise _LastRequestError
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._is_receiving = True
        self._requests += 1
        self._waiting_since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        """Add a part of the request target; raise UriTooLongError beyond 8 KiB."""
        self.url += url
        if len(self.url) > MAX_TARGET:
            raise UriTooLongError

    def on_headers_complete(self) -> None:
        """Write a held response, or call the application."""
        began = perf_counter()
        self._has_progressed = True
        if held := self._find_cached_response():
            self._write_held(held, began)
            return
        check_head(self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers)
        if self._is_over_limit and self._limits.is_exceeded and self.url.partition(b"?")[0] not in _OPERATIONAL:
            self._limits.count_closed("refused")
            raise OverloadedError
        body_follows = has_body(self.headers)
        self._is_last_request = body_follows or self.parser.should_upgrade()
        if refusal := self._find_overload_refusal():
            self._write_held(refusal, began)
            return
        self._make_scope()
        super().on_headers_complete()  # makes a cycle, and starts or queues it
        if self._requests >= _MAX_REQUESTS:
            self.cycle.keep_alive = False
        if body_follows and self.parser.get_method() not in _WITHOUT_BODY:
            if self.parser.should_upgrade():
                self._framing = [b"%b: %b" % field for field in self.headers if field[0] in FRAMING]
            self.headers = []  # trailers are discarded (RFC 9112 §7.1.2)
        elif self._is_last_request or not self.cycle.keep_alive:
            raise _LastRequestError

    def _make_scope(self) -> None:
        """Make the scope of the request, which uvicorn does before it has the head."""
        url, fields, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(fields)

    def _ignore_upgrade(self) -> None:
        """Read the body of a request as if it had no Upgrade (RFC 9110 §7.8), which httptools leaves to the caller.

        Java's client sends one with each first request, to change to HTTP/2.
        """
        if not self._framing:
            self._complete_last_request()
            return
        head = [self.parser.get_method() + b" / HTTP/1.1", *self._framing, b"\r\n"]
        self._framing = []
        self.parser = httptools.HttpRequestParser(_Body(self))
        self.parser.feed_data(b"\r\n".join(head))

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._has_progressed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Mark the request as complete; for httptools that is an Upgrade whose body has not been read."""
        if self._framing:
            return
        self._is_receiving = False
        if self._is_answered:
            self._is_answered = False
        else:
            super().on_message_complete()

    def _handle_parser_error(self, error: BaseException | None) -> None:
        """Complete or refuse the request; `error` was raised in a callback, or is None if the parser can't go on."""
        if isinstance(error, _LastRequestError):
            self._complete_last_request()
        elif self._is_last_request and self._is_receiving:
            self._refuse_malformed_body()
        else:
            self._refuse(error if isinstance(error, LocalidadesError) else malformed_request())

    def _complete_last_request(self) -> None:
        """Answer the last request of the connection without its body."""
        if self._is_receiving:
            self.on_message_complete()
        self._end_input()

    def _end_input(self) -> None:
        """Discard all further input, and half-close once every response is complete."""
        self._discards_input = True
        self._unparsed = 0
        if not self.is_answering:
            self._half_close()

    def _refuse_malformed_body(self) -> None:
        """Refuse a request whose body is malformed, after the responses to the requests before it."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        if self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        self.cycle.response_complete = True
        if self.cycle is not self._running:
            self.pipeline.popleft()
        self._refuse(malformed_request())

    # -- Responses

    def _find_cached_response(self) -> HeldResponse | None:
        """Return the response that the cache holds for a GET request."""
        if self._early is not None and self._can_respond_early():
            return self._early.cache.get(spelling(self._port, self.url, self.headers))
        return None

    def _find_overload_refusal(self) -> HeldResponse | None:
        """Return the refusal of a GET request if the service is at capacity."""
        if self._early is not None and not self._is_last_request and self._can_respond_early():
            return self._early.refuse(self.url, self.headers)
        return None

    def _can_respond_early(self) -> bool:
        """Return whether this is a GET request whose response is next and leaves the connection open."""
        return not (
            self.is_answering
            or self.flow.write_paused
            or self._limits.is_draining
            or self._is_over_limit
            or self._requests >= _MAX_REQUESTS
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.transport.is_closing()
        )

    def _write_held(self, held: HeldResponse, began: float) -> None:
        defaults = _encode(tuple(self.server_state.default_headers))
        self.transport.write(b"".join((STATUS_LINE[held.status], defaults, held.lines, b"\r\n", held.body)))
        self._is_answered = True
        self._waiting_since = self.loop.time()
        self.server_state.total_requests += 1
        COUNTERS.count(held.operation, held.status, perf_counter() - began)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        cast("Scope", cycle.scope)[TRANSPORT] = self.transport
        if self._limits.is_draining:
            cycle.keep_alive = False
        if self._is_last_request and cycle is self.cycle:
            cycle.keep_alive = False
            cycle.transport = cast("asyncio.Transport", _LingeringTransport(self))
        if cycle.scope["http_version"] == "1.0":
            app = cast("ASGI3Application", _CloseDelimited(app, cycle, self.transport))
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Start the next pipelined request, as uvicorn does, but without a timer for each response."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._waiting_since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._discards_input:
            self._half_close()

    @property
    def is_answering(self) -> bool:
        """Whether the response to a request is not complete."""
        return bool(self.pipeline) or (self._running is not None and not self._running.response_complete)

    def _refuse(self, error: LocalidadesError) -> None:
        """Send a problem once the responses before it are complete, and close the connection."""
        if isinstance(error, RequestError):
            self.logger.info("Refused a request: %s %s", error.status, error.slug)
        COUNTERS.refused[error.slug] += 1
        problem = problem_of(error, ResponsePreferences(root=self.root_path))
        fields = [*self.server_state.default_headers, *problem.raw_headers, *API_HEADERS, (b"connection", b"close")]
        self._refusal = b"".join((STATUS_LINE[problem.status_code], on_wire(fields), b"\r\n", bytes(problem.body)))
        self._end_input()

    def _half_close(self) -> None:
        """Send the refusal, if there is one, and end the output.

        A full close while the client is still sending would reset the connection, and many clients would then never
        read the response (RFC 9112 §9.6).
        """
        self._discards_input = True
        self._waiting_since = self.loop.time()
        if self.transport.is_closing():
            return
        if self._refusal:
            self.transport.write(self._refusal)
            self._refusal = b""
        self.transport.write_eof()

    # -- Limits

    @property
    def idle_since(self) -> float:
        """When the wait for the client began; a second earlier if it has never sent a request."""
        return self._waiting_since - (0 if self._requests else 1)

    @property
    def is_idle(self) -> bool:
        """Whether the client would lose nothing if the connection were closed."""
        return not (self.is_answering or self.transport.get_write_buffer_size() or self.transport.is_closing())

    @property
    def has_unread_input(self) -> bool:
        """Whether bytes from the client wait in the kernel's receive buffer."""
        return bytes_received(self.transport) > 0

    def close_if_late(self, now: float) -> None:
        """Close the connection if its client takes too long to read, to send a request, or to close.

        uvicorn has a timeout for the next request only.
        """
        stalled = self._read_progress.stalled_for(bytes_unread(self.transport), now)
        if stalled is not None:
            if stalled >= self._limits.timeouts.client:
                self.transport.abort()
        elif not self.is_answering and now - self._waiting_since >= self._timeout:
            if self._is_receiving and not self._discards_input:
                self._refuse(RequestTimeoutError())
            self.transport.close()  # the client is not sending, so it can read the refusal

    @property
    def _timeout(self) -> float:
        """Seconds to wait for the client to close, to send a head, or to send its next request."""
        timeouts = self._limits.timeouts
        if self._discards_input:
            return timeouts.lingering
        return timeouts.head if self._is_receiving or not self._requests else timeouts.keep_alive

    def shutdown(self) -> None:
        """Close after the next response, which says so, or after a second without a request.

        A request may be on its way on an idle connection, and would be lost if that were closed at once.
        """
        self._limits.is_draining = True
        self.loop.call_later(DRAIN_TIMEOUT, super().shutdown)


class _LingeringTransport:
    """The transport of the last response: closing it only ends the output, as the client may still be sending."""

    def __init__(self, protocol: HttpProtocol) -> None:
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing
        self.close = protocol._half_close  # noqa: SLF001  # of this module


class _CloseDelimited:
    """Ends a response of unknown length by closing the connection, for HTTP/1.0 clients.

    They know neither chunks (RFC 9112 §6.1) nor 100 Continue (RFC 9110 §10.1.1). A response that breaks off resets the
    connection; otherwise they would take it for a whole one.
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
