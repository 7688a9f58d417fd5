"""uvicorn's HTTP/1.1 protocol, which asks the response cache first and limits what a client may send and how slowly.

The uvicorn internals that it uses, beside the callbacks of asyncio and httptools (docs/decisions/protocol.md):

- of `HttpToolsProtocol` `app`, `cycle`, `on_response_complete`, `parser`, `scope`, `server_state` and `shutdown`;
- of `RequestResponseCycle` `chunked_encoding`, `disconnected`, `expected_content_length`, `keep_alive`,
  `message_event`, `response_complete` and `response_started`;
- `ServerState.default_headers`.
"""

import asyncio
import logging
import socket
import struct
from functools import lru_cache
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from localidades_api.api.middleware.limits import DirectResponses
from localidades_api.api.middleware.response_cache import HeldResponse, spelling
from localidades_api.api.probes import OPERATIONAL
from localidades_api.api.problems import ResponsePreferences, problem_of
from localidades_api.errors import LocalidadesError, OverloadedError, RequestError, RequestTimeoutError, StatusError
from localidades_api.http.headers import API_HEADERS, on_wire
from localidades_api.http.transfers import TRANSPORT
from localidades_api.observability.metrics import COUNTERS
from localidades_api.server.connections import Connections
from localidades_api.server.deadlines import DRAIN_TIMEOUT, ReadProgress, bytes_received, bytes_unread
from localidades_api.server.heads import (
    FRAMING,
    MAX_HEAD,
    MAX_TARGET,
    check_head,
    has_body,
    head_too_large,
    malformed_request,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn import Config

_log = logging.getLogger(__name__)

_WITHOUT_BODY = frozenset({b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT"})  # RFC 9110 §9.3
_MAX_DISCARDED = 1024**2  # bytes after the last request while its response is sent, which may take minutes
_MAX_REQUESTS = 1000  # on a connection; then the client connects again, perhaps to a worker that has less to do
_MAPPED = "::ffff:"  # before the address of an IPv4 client on an IPv6 socket (RFC 4291 §2.5.5.2)
_OPERATIONAL = frozenset(path.encode() for path in OPERATIONAL)
_END_OF_HEAD = b"\r\n\r\n"
_MAX_UNSENT = 64 * 1024  # bytes of responses that a client has not read, beyond which uvicorn waits for it
_encode = lru_cache(maxsize=1)(on_wire)  # for uvicorn's default headers, whose Date changes once a second


@lru_cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


def _end_of_head(data: bytes) -> int:
    """Return where the first head ends; else where its end may begin, for the rest to come in one piece."""
    if (found := data.find(_END_OF_HEAD)) >= 0:
        return found + len(_END_OF_HEAD)
    return len(data) - next((length for length in (3, 2, 1) if data.endswith(_END_OF_HEAD[:length])), 0)


class _LastRequestError(Exception):
    """Raised in a callback of the parser to stop it after the last request of a connection."""


class _Body:
    """The callbacks of a parser that reads the body of one request."""

    def __init__(self, protocol: "HttpProtocol") -> None:
        self.on_body = protocol.on_body
        self.on_message_complete = protocol.on_message_complete


class HttpProtocol(HttpToolsProtocol):
    """Writes held responses without a task, and closes connections whose clients send too much or are too slow.

    It parses a request when the one before it is answered. A request with a body or an Upgrade is the last on its
    connection: a proxy and this server could disagree on where the next one begins. Anything after it is discarded.
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
        self._root_path = config.root_path
        self._limits = limits
        self._direct: DirectResponses | None = app_state.get("direct_responses")
        self._port: int | None = None  # that the client connected to
        self._is_over_limit = False  # there were too many connections when this one was made
        self._input = b""  # received and not parsed
        self._requests = 0
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._is_receiving = False  # a request has begun and is not complete
        self._is_answered = False  # its response has been written without the application
        self._is_last_request = False
        self._framing: list[bytes] = []  # lines of an Upgrade's head that say where its body ends
        self._has_progressed = False  # the parser has finished a head or got a part of a body
        self._unparsed = 0  # bytes since then, or bytes discarded
        self._discards_input = False
        self._waiting_since = 0.0  # for the client: since connecting, the start of its request, or the last response
        self._read_progress = ReadProgress()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Make room for the connection; without room, refuse its requests."""
        self.socket_transport = transport
        self._now = asyncio.get_running_loop().time
        super().connection_made(cast("asyncio.Transport", _ResponseTransport(self)))
        address = transport.get_extra_info("sockname")
        self._port = address[1] if isinstance(address, tuple) else None
        self._waiting_since = self._now()
        self._is_over_limit = not self._limits.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and its input."""
        self._discard_input()
        self._limits.remove(self)
        super().connection_lost(exc)

    # -- Requests

    def data_received(self, data: bytes) -> None:
        """Parse the data, in pieces no longer than a head may be, unless a request before it is not answered yet."""
        if self._discards_input:
            self._unparsed += len(data)
            if self._unparsed > _MAX_DISCARDED and self.is_answering:
                self.socket_transport.abort()
            return
        self._input += data
        self._parse_input()
        if len(self._input) > MAX_HEAD and not self.socket_transport.is_closing():
            self.socket_transport.pause_reading()

    def _parse_input(self) -> None:
        while self._input and not self._discards_input and (self._is_receiving or not self.is_answering):
            piece = self._input[:MAX_HEAD]
            if not self._is_last_request:  # else this is its body
                piece = piece[: _end_of_head(piece)]
            self._input = self._input[len(piece) :]
            if not piece:
                return
            self._has_progressed = False
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                self._input = piece[upgrade.args[0] :] + self._input
                self._ignore_upgrade()
            except httptools.HttpParserError as error:
                self._handle_parser_error(error.__context__)  # raised by a callback
            else:
                self._unparsed = 0 if self._has_progressed else self._unparsed + len(piece)
                if self._unparsed > MAX_HEAD:
                    self._handle_parser_error(head_too_large())

    def on_message_begin(self) -> None:
        """Prepare for a request; it needs no scope unless the application is called."""
        if self._is_last_request:
            raise _LastRequestError
        self._target = b""
        self._fields = []
        self._is_receiving = True
        self._requests += 1
        self._waiting_since = self._now()

    def on_url(self, url: bytes) -> None:
        """Add a part of the request target; raise StatusError beyond 8 KiB."""
        self._target += url
        if len(self._target) > MAX_TARGET:
            raise StatusError(414, "The address, including its query, is longer than 8 KiB.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field; those after a body, its trailers, are discarded (RFC 9112 §7.1.2)."""
        self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Write a held response, or call the application."""
        began = perf_counter()
        self._has_progressed = True
        direct = self._direct if self._can_respond_early() else None
        if direct and (held := direct.cache.get(spelling(self._port, self._target, self._fields))):
            self._write_held(held, began)
            return
        method, version = self.parser.get_method(), self.parser.get_http_version()
        check_head(method, self._target, version, self._fields)
        if self._is_over_limit and self._limits.is_exceeded and self._target.partition(b"?")[0] not in _OPERATIONAL:
            self._limits.count_closed("refused")
            raise OverloadedError
        body_follows = has_body(self._fields)
        self._is_last_request = body_follows or self.parser.should_upgrade()
        if direct and not self._is_last_request and (refusal := direct.refuse(self._target, self._fields)):
            self._write_held(refusal, began)
            return
        self._make_scope(version)
        super().on_headers_complete()  # makes a cycle, and a task that calls the application
        if self._is_last_request or self._limits.is_draining or self._requests >= _MAX_REQUESTS:
            self.cycle.keep_alive = False
        if body_follows and method not in _WITHOUT_BODY:
            if self.parser.should_upgrade():
                self._framing = [b"%b: %b" % field for field in self._fields if field[0] in FRAMING]
        elif not self.cycle.keep_alive:
            raise _LastRequestError

    def _make_scope(self, version: str) -> None:
        """Make the scope of the request, which uvicorn does before it has the head."""
        super().on_message_begin()
        super().on_url(self._target)
        scope = cast("Scope", self.scope)
        for field in self._fields:
            if field[0] == b"expect" and version != "1.0":  # which has no 100 Continue (RFC 9110 §10.1.1)
                super().on_header(*field)
            else:
                scope["headers"].append(field)
        if version == "1.0":
            self.app = _CloseDelimited(self)
        if scope["client"]:
            scope["client"] = (scope["client"][0].removeprefix(_MAPPED), scope["client"][1])
        scope[TRANSPORT] = self.socket_transport

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
        self._discard_input()

    def _discard_input(self) -> None:
        self._discards_input = True
        self._input = b""
        self._unparsed = 0

    def _refuse_malformed_body(self) -> None:
        """Refuse a request whose body is malformed, unless its response has begun."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        if self.cycle.response_started:
            self.socket_transport.abort()
            return
        self.cycle.response_complete = True
        self._refuse(malformed_request())

    # -- Responses

    def _can_respond_early(self) -> bool:
        """Return whether this is a GET request whose response leaves the connection open."""
        return not (
            self._limits.is_draining
            or self._is_over_limit
            or self._requests >= _MAX_REQUESTS
            or self.parser.get_method() != b"GET"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.socket_transport.get_write_buffer_size() > _MAX_UNSENT
            or self.socket_transport.is_closing()
        )

    def _write_held(self, held: HeldResponse, began: float) -> None:
        defaults = _encode(tuple(self.server_state.default_headers))
        self.socket_transport.write(b"".join((_status_line(held.status), defaults, held.lines, b"\r\n", held.body)))
        self._is_answered = True
        self._waiting_since = self._now()
        COUNTERS.count(held.operation, held.status, perf_counter() - began)

    def on_response_complete(self) -> None:
        """Go on with the input, without uvicorn's timer for each response."""
        if not self.socket_transport.is_closing():
            self._waiting_since = self._now()
            self.socket_transport.resume_reading()
            # Not now: the application may be handling an error, which would become the context of one of the parser.
            if self._input:
                asyncio.get_running_loop().call_soon(self._parse_input)

    @property
    def is_answering(self) -> bool:
        """Whether the response to a request is not complete."""
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]  # at first

    def _refuse(self, error: LocalidadesError) -> None:
        if isinstance(error, RequestError):
            _log.info("Refused a request: %s %s", error.status, error.slug)
        COUNTERS.refused[error.slug] += 1
        problem = problem_of(error, ResponsePreferences(root=self._root_path))
        fields = [*self.server_state.default_headers, *problem.raw_headers, *API_HEADERS, (b"connection", b"close")]
        if not self.socket_transport.is_closing():
            self.socket_transport.write(
                b"".join((_status_line(problem.status_code), on_wire(fields), b"\r\n", bytes(problem.body)))
            )
        self._half_close()

    def close(self) -> None:
        """Close the connection after a response; after the last one, only end the output."""
        if self._is_last_request:
            self._half_close()
        else:
            self.socket_transport.close()

    def _half_close(self) -> None:
        """End the output, and discard the input until the client closes.

        A full close while the client is still sending would reset the connection, and many clients would then never
        read the response (RFC 9112 §9.6).
        """
        self._discard_input()
        self._waiting_since = self._now()
        if not self.socket_transport.is_closing():
            self.socket_transport.write_eof()

    # -- Limits

    @property
    def idle_since(self) -> float:
        """When the wait for the client began; a second earlier if it has never sent a request."""
        return self._waiting_since - (0 if self._requests else 1)

    @property
    def is_idle(self) -> bool:
        """Whether the client would lose nothing if the connection were closed."""
        return not (
            self.is_answering or self.socket_transport.get_write_buffer_size() or self.socket_transport.is_closing()
        )

    @property
    def has_unread_input(self) -> bool:
        """Whether bytes from the client wait in the kernel's receive buffer."""
        return bytes_received(self.socket_transport) > 0

    def close_if_late(self, now: float) -> None:
        """Close the connection if its client takes too long to read, to send a request, or to close.

        uvicorn has a timeout for the next request only.
        """
        stalled = self._read_progress.stalled_for(bytes_unread(self.socket_transport), now)
        if stalled is not None:
            if stalled >= self._limits.timeouts.client:
                self.socket_transport.abort()
        elif not self.is_answering and now - self._waiting_since >= self._timeout:
            if self._is_receiving and not self._discards_input:
                self._refuse(RequestTimeoutError())
            self.socket_transport.close()  # the client is not sending, so it can read the refusal

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
        asyncio.get_running_loop().call_later(DRAIN_TIMEOUT, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self.is_answering:
            self.cycle.keep_alive = False
        else:
            self.socket_transport.close()


class _ResponseTransport:
    """The transport that uvicorn writes responses to and closes after the last one, for which `close` lingers."""

    def __init__(self, protocol: HttpProtocol) -> None:
        transport = protocol.socket_transport
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.write = transport.write
        self.close = protocol.close


class _CloseDelimited:
    """Ends a response of unknown length by closing the connection, for HTTP/1.0 clients, which know no chunks.

    A response that breaks off resets the connection; otherwise they would take it for a whole one (RFC 9112 §6.1).
    """

    def __init__(self, protocol: HttpProtocol) -> None:
        self._app = cast("ASGIApp", protocol.app)
        self._protocol = protocol

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
                cycle = self._protocol.cycle
                cycle.chunked_encoding = False
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, send_unframed)

    def _reset_at_close(self, wanted: bool) -> None:  # noqa: FBT001  # a setting
        """Set whether closing the socket resets the connection: SO_LINGER with a zero timeout."""
        transport = self._protocol.socket_transport
        if not transport.is_closing():
            option = struct.pack("ii", wanted, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
