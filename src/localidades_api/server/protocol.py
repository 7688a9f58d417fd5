"""HTTP/1.1 on one connection: uvicorn's protocol with limits on what a client may send."""

import logging
from typing import TYPE_CHECKING, Any, cast

import httptools

from localidades_api.errors import (
    HeaderFieldsTooLargeError,
    LocalidadesError,
    OverloadedError,
    RequestError,
    UriTooLongError,
)
from localidades_api.http.clients import TRANSPORT
from localidades_api.http.paths import takes_body
from localidades_api.http.uvicorn_internals import ASGI3Application, RequestResponseCycle, ServerState
from localidades_api.observability.metrics import COUNTERS
from localidades_api.router.probes import OPERATIONAL
from localidades_api.server.bodies import MAX_PIECE, BodyProtocol
from localidades_api.server.close_delimited import CloseDelimited
from localidades_api.server.connection_limit import ConnectionLimit
from localidades_api.server.framing import HeadCheck, NothingFollowsError, malformed
from localidades_api.server.lingering_close import LingeringTransport, refusal

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Scope
    from uvicorn import Config

_MAX_TARGET = 8 * 1024
_MAX_HEAD = 16 * 1024
_MAX_UNREAD = 1024**2  # bytes discarded while a response is sent that may take minutes
_MAPPED = "::ffff:"  # before the IPv4 address of a client at a socket for both (RFC 4291 §2.5.5.2)
_OPERATIONAL = frozenset(path.encode() for path in OPERATIONAL)

_log = logging.getLogger(__name__)


class HttpProtocol(BodyProtocol):
    """Rejects requests that are too large or ambiguous, and ignores bytes that follow a connection's last request.

    A request that announces a body is such a last one. Its body is passed on where the resource takes one.
    """

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: "asyncio.AbstractEventLoop | None" = None,
        *,
        connection_limit: ConnectionLimit,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limit = connection_limit
        self._head_check = HeadCheck()
        self._has_room = True
        self._since = 0.0  # since when the client has been silent or its request unfinished; timeouts count from here
        self._running: RequestResponseCycle | None = None  # the one that the application was called with last
        self._received = 0
        self._last: object = None  # the scope of a request with a body: the connection closes after its response
        self._whole: object = None  # the scope of the last request that has been received completely
        self._unfinished: object = None  # the scope of the request that the latest bytes left incomplete
        self._room = _MAX_HEAD  # bytes that the parser may take before the limits are checked again
        self._refusal: bytes | None = None
        self._leaving = False  # further bytes are discarded
        self._has_left = False

    def connection_made(self, transport: "asyncio.Transport") -> None:  # type: ignore[override]  # as in uvicorn
        """Count the connection."""
        super().connection_made(transport)
        if self.client:
            self.client = (self.client[0].removeprefix(_MAPPED), self.client[1])
        self._since = self.loop.time()
        self._has_room = self._limit.open(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the running request; uvicorn tells only the newest one, which may still be queued behind it."""
        self._limit.close(self)
        if self._running:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    # -- Requests

    def data_received(self, data: bytes) -> None:
        """Parse the data in pieces that end where a head would exceed its limit."""
        if self._leaving:
            self._received += len(data)
            if self._received > _MAX_UNREAD and self._is_answering():
                self.transport.abort()
        while data and not self._leaving:
            piece, data = data[: self._room], data[self._room :]
            self._read(piece)

    def _read(self, data: bytes) -> None:
        whole, rest = self._whole, data
        try:
            while rest:
                try:
                    self.parser.feed_data(rest)
                    break
                except httptools.HttpParserUpgrade as stop:
                    # There is no protocol to upgrade to, so the field is ignored (RFC 9110 §7.8).
                    rest = rest[stop.args[0] :]
        except httptools.HttpParserError as error:
            self._stop_reading(error.__context__)  # raised by a callback
        else:
            if self._is_receiving:
                self._room = MAX_PIECE
                if self._is_framed_at_length(len(data)):
                    self._refuse_body()
            elif self.scope is not self._whole:
                self._await_rest(len(data), alone=whole is self._whole)
            else:
                self._room = _MAX_HEAD

    def _stop_reading(self, reason: BaseException | None) -> None:
        if isinstance(reason, NothingFollowsError):
            self._read_no_more()
        elif self._is_receiving:
            self._refuse_body()
        else:
            self._refuse(reason if isinstance(reason, LocalidadesError) else malformed())

    def _read_no_more(self) -> None:
        """Answer the connection's last request, and discard the bytes that follow it."""
        if self.scope is not self._whole:
            self.on_message_complete()
        self._received = 0
        self._leaving = True
        if self._last is self.scope and not self._is_answering():
            self._leave()

    def _await_rest(self, size: int, *, alone: bool) -> None:
        """Note when an incomplete request began, and how long its head is so far.

        Bytes received together with the end of another request don't count, because the boundary is not known.
        """
        if self._unfinished is not self.scope:
            self._unfinished = self.scope
            self._since = self.loop.time()
            self._received = size if alone else 0
        else:
            self._received += size
        self._room = _MAX_HEAD - self._received
        if self._room <= 0:
            self._refuse(HeaderFieldsTooLargeError())

    def on_url(self, url: bytes) -> None:
        """Add a part of the request target; raise UriTooLongError beyond 8 KiB."""
        self.url += url
        if len(self.url) > _MAX_TARGET:
            raise UriTooLongError

    def on_headers_complete(self) -> None:
        """Check the head before the application is called, and stop the parser if the connection ends with it."""
        if self._head_check.announces_body(self.parser, self.url, self.headers):
            self._last = self.scope
        if not self._has_room and self._limit.is_exceeded and self.url.partition(b"?")[0] not in _OPERATIONAL:
            self._limit.count_refusal()
            raise OverloadedError
        super().on_headers_complete()
        if self._last and takes_body(cast("Scope", self.scope)) and not self.parser.should_upgrade():
            self._begin_body()
        elif self._last or not self.cycle.keep_alive:
            raise NothingFollowsError

    def on_message_complete(self) -> None:
        """Note that the request has been received completely, and stop the parser behind a body."""
        ends_body = self._is_receiving
        if ends_body:
            self._end_body()
        self._whole = self.scope
        if not self.cycle.response_complete:
            super().on_message_complete()
        if ends_body:
            raise NothingFollowsError

    # -- Responses

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: "ASGI3Application") -> None:
        self._running = cycle
        cast("Scope", cycle.scope)[TRANSPORT] = self.transport
        self._limit.mark_busy(self)
        if cycle.scope is self._last:
            cycle.keep_alive = False
            cycle.transport = cast("asyncio.Transport", LingeringTransport(self.transport, self._leave))
        if cycle.scope["http_version"] == "1.0":
            app = cast("ASGI3Application", CloseDelimited(app, cycle, self.transport))
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
        elif self._leaving:
            self._leave()
        else:
            self._limit.mark_idle(self)

    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self._running is not None and not self._running.response_complete)

    def _refuse(self, error: LocalidadesError) -> None:
        """Discard further bytes, and send the problem once the responses before it are complete."""
        if isinstance(error, RequestError):
            _log.info("Refused a request: %s %s", error.status, error.slug)
        COUNTERS.refused[error.slug] += 1
        self._refusal = refusal(error, self.root_path, self.server_state.default_headers)
        self._received = 0
        self._leaving = True
        if not self._is_answering():
            self._leave()

    def _refuse_body(self) -> None:
        if self._abandon_body():
            if self.cycle is not self._running:
                self.pipeline.popleft()  # it came last; those before it are still answered
            self._refuse(malformed())

    def _leave(self) -> None:
        """Send a refusal and half-close: a full close may reset the connection before it is read (RFC 9112 §9.6)."""
        self._leaving = True
        self._since = self.loop.time()
        if self.transport.is_closing() or self._has_left:
            return
        self._has_left = True
        self._limit.mark_idle(self)
        if self._refusal:
            self.transport.write(self._refusal)
        self.transport.write_eof()

    # -- The connection limit

    def make_room(self) -> bool:
        """Close the connection unless unsent data remain, and tell whether it was closed."""
        if self.transport.get_write_buffer_size():
            return False
        self.transport.close()
        return True

    def cut_off(self) -> None:
        """Close at once."""
        self.transport.abort()
