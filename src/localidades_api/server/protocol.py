"""HTTP/1.1 on a connection: uvicorn's protocol, with limits on what a client may send."""

import logging
from collections.abc import Callable
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
from localidades_api.http.headers import API_HEADERS, on_wire
from localidades_api.http.problems import Wanted, problem_of
from localidades_api.http.uvicorn_internals import (
    STATUS_LINE,
    ASGI3Application,
    HttpToolsProtocol,
    RequestResponseCycle,
    ServerState,
)
from localidades_api.observability.metrics import COUNTERS
from localidades_api.router.probes import OPERATIONAL
from localidades_api.server.connection_limit import ConnectionLimit
from localidades_api.server.framing import NothingFollowsError, announces_body, malformed

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Scope
    from uvicorn import Config

_MAX_TARGET = 8 * 1024
_MAX_HEAD = 16 * 1024
_MAX_UNREAD = 1024**2  # of what nobody reads, while an answer is made that may take minutes
_OPERATIONAL = frozenset(path.encode() for path in OPERATIONAL)

_log = logging.getLogger(__name__)


class _LingeringTransport:
    """What an answer is written to that is the last on its connection while the client may still be sending."""

    def __init__(self, transport: "asyncio.Transport", leave: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = leave


class HttpProtocol(HttpToolsProtocol):
    """Refuses what is too large or ambiguous, and reads nothing behind the last request of a connection.

    uvicorn takes heads of any size.
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
        self._has_room = True
        self._since = 0.0  # when the client came to owe what it owes
        self._running: RequestResponseCycle | None = None  # the last that was given to the application
        self._received = 0
        self._last: object = None  # the scope of a request behind which nothing is read, for it has a body
        self._whole: object = None  # the scope of the last request that has come to its end
        self._unfinished: object = None  # the scope of one that had not, when last it was read from
        self._room = _MAX_HEAD  # bytes that may come before the limits have to be looked at
        self._refusal: bytes | None = None
        self._leaving = False  # what still comes is passed over
        self._has_left = False

    def connection_made(self, transport: "asyncio.Transport") -> None:  # type: ignore[override]  # as in uvicorn
        """Count the connection."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._has_room = self._limit.open(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing behind: uvicorn tells the last request that came, which may wait behind the one that runs."""
        self._limit.close(self)
        if self._running:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    # -- What comes in

    def data_received(self, data: bytes) -> None:
        """Read what has come, in pieces that end where a head would become too large."""
        if self._leaving:
            self._received += len(data)
            if self._received > _MAX_UNREAD and self._is_answering():
                self.transport.abort()
            return
        start = 0
        while start < len(data) and not self._leaving:
            end = start + self._room
            self._read(data[start:end])
            start = end

    def _read(self, data: bytes) -> None:
        whole, rest = self._whole, data
        try:
            while rest:
                try:
                    self.parser.feed_data(rest)
                    break
                except httptools.HttpParserUpgrade as stop:
                    # There is nothing to upgrade to: it is answered as if it had not asked (RFC 9110 §7.8).
                    rest = rest[stop.args[0] :]
        except httptools.HttpParserError as error:
            ours = error.__context__  # what a callback raised
            if isinstance(ours, NothingFollowsError):
                self._read_no_more()
            else:
                self._refuse(ours if isinstance(ours, LocalidadesError) else malformed())
        else:
            if self.scope is not self._whole:
                self._await_rest(len(data), alone=whole is self._whole)
            else:
                self._room = _MAX_HEAD

    def _read_no_more(self) -> None:
        """Have the last request answered; what follows it is nobody's request."""
        self.on_message_complete()
        self._received = 0
        self._leaving = True
        if self._last is self.scope and not self._is_answering():
            self._leave()

    def _await_rest(self, size: int, *, alone: bool) -> None:
        """Note when a request that is not whole began, and how long its head is.

        Bytes that came together with the end of another request are not counted: where it began is not known.
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
        """Take a part of the target."""
        self.url += url
        if len(self.url) > _MAX_TARGET:
            raise UriTooLongError

    def on_headers_complete(self) -> None:
        """Check a head before it is answered, and read nothing behind that of a connection's last request."""
        if announces_body(self.parser, self.url, self.headers):
            self._last = self.scope
        if not self._has_room and self._limit.is_exceeded and not self._is_operational():
            self._limit.count_refusal()
            raise OverloadedError
        super().on_headers_complete()
        if self._last or not self.cycle.keep_alive:
            raise NothingFollowsError

    def on_message_complete(self) -> None:
        """Note that the client owes no more of this request."""
        self._whole = self.scope
        if not self.cycle.response_complete:
            super().on_message_complete()

    # -- Turns

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: "ASGI3Application") -> None:
        self._running = cycle
        cast("Scope", cycle.scope)[TRANSPORT] = self.transport
        self._limit.mark_busy(self)
        if cycle.scope is self._last:
            cycle.keep_alive = False
            cycle.transport = cast("asyncio.Transport", _LingeringTransport(self.transport, self._leave))
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Go on to what waits, as uvicorn does, but without a timer of its own for the silence after each answer."""
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

    def _has_asked(self) -> bool:
        """Tell whether the head of a request has come: until then there is no cycle, whatever its annotation says."""
        return bool(self.cycle)

    def _is_answering(self) -> bool:
        return self._has_asked() and not self.cycle.response_complete

    def _is_operational(self) -> bool:
        return self.url.partition(b"?")[0] in _OPERATIONAL

    def _refuse(self, error: LocalidadesError) -> None:
        """Say, when it is its turn, why nothing more is read."""
        if isinstance(error, RequestError):
            _log.info("Refused a request: %s %s", error.status, error.slug)
        COUNTERS.refused[error.slug] += 1
        self._refusal = self._problem(error)
        self._received = 0
        self._leaving = True
        if not self._is_answering():
            self._leave()

    def _problem(self, error: LocalidadesError) -> bytes:
        answer = problem_of(error, Wanted(root=self.root_path))
        headers = [*self.server_state.default_headers, *answer.raw_headers, *API_HEADERS, (b"connection", b"close")]
        return b"".join((STATUS_LINE[answer.status_code], on_wire(headers), b"\r\n", bytes(answer.body)))

    def _leave(self) -> None:
        """Say the last there is to say; a client that is still sending would lose it if the connection were closed."""
        self._leaving = True
        self._since = self.loop.time()
        if self.transport.is_closing() or self._has_left:
            return
        self._has_left = True
        self._limit.mark_idle(self)
        if self._refusal:
            self.transport.write(self._refusal)
        self.transport.write_eof()

    # -- Room for others

    def make_room(self) -> bool:
        """Close, unless there is more for the client to read."""
        if self.transport.get_write_buffer_size():
            return False
        self.transport.close()
        return True

    def cut_off(self) -> None:
        """Close at once."""
        self.transport.abort()
