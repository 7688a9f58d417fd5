"""The connections of a worker: how many there may be, and how long each may keep the worker waiting.

Without a limit, clients that keep their connections open take every file descriptor. The worker can then neither accept
another client, not even a probe, nor connect to the database.
"""

import asyncio
import heapq
import logging
import resource
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, cast

from localidades_api.errors import ConfigurationError
from localidades_api.http.headers import RawHeaders, on_wire
from localidades_api.observability.metrics import COUNTERS

if TYPE_CHECKING:
    from localidades_api.server.protocol import HttpProtocol

_log = logging.getLogger(__name__)

_DEFAULT_LIMIT = 4096  # or fewer, if the limit of open files is lower
_PROBE_RESERVE = 16  # connections beyond the limit: probes are answered on them, other requests refused with a reason
_OWN_FILES = 96  # listening sockets, log, metrics, static files being sent, connections to a tracer
_FILES_PER_DATABASE_CONNECTION = 2  # asyncpg opens a second one to cancel a statement
_BATCHES = 64  # a part of the limit that makes room at a time
_SWEEP_INTERVAL = 1.0  # seconds
_SWEEPS_PER_LOG = 10  # between two log lines about closed connections


def max_connections(wanted: int | None, *, pool_size: int) -> int:
    """Return how many connections a worker may keep open, after raising the limit of open files as needed.

    Raises ConfigurationError if the system allows too few open files.
    """
    reserve = _OWN_FILES + _PROBE_RESERVE + pool_size * _FILES_PER_DATABASE_CONNECTION
    files = _raise_file_limit(reserve + (wanted or _DEFAULT_LIMIT))
    room = files - reserve
    if room < (wanted or 1):
        raise ConfigurationError(
            f"The limit of open files ({files}) leaves room for only {max(room, 0)} client connections: raise it"
            f" (ulimit -n), or lower {'LOCALIDADES_MAX_CONNECTIONS' if wanted else 'LOCALIDADES_POOL_SIZE'}."
        )
    return wanted or min(room, _DEFAULT_LIMIT)


def _raise_file_limit(wanted: int) -> int:
    """Raise the soft limit of open files to `wanted`, or as far as the system allows, and return the result."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        with suppress(OSError, ValueError):  # macOS has a lower limit of its own if this one is infinite
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return allowed
    return soft


@dataclass(eq=False)
class Connections:
    """Makes the protocol of each connection of a worker, and closes those that are too many or too slow.

    uvicorn takes it in place of a protocol's class, and hands it to every worker. The times are seconds. With
    `answers_early` held responses and refusals of work are written without the application, which would log them.
    """

    maximum: int
    client_timeout: float
    keep_alive_timeout: float
    answers_early: bool = True
    is_draining: bool = field(default=False, init=False)  # during shutdown, each response is the last on its connection
    _open: "set[HttpProtocol] | None" = field(default=None, init=False)  # uvicorn's own, once there is a connection
    _closed: Counter[str] = field(default_factory=Counter, init=False)  # since the last log line
    _sweeps: int = field(default=0, init=False)  # since then
    _default_headers: RawHeaders = field(default_factory=list, init=False)
    _default_lines: bytes = field(default=b"", init=False)

    def __call__(self, **options: Any) -> "HttpProtocol":  # noqa: ANN401  # uvicorn's, passed on
        """Return the protocol of a new connection; the first one starts the sweeps."""
        # The supervisor of workers has no use for what is imported here.
        from localidades_api.server.protocol import HttpProtocol  # noqa: PLC0415  # see above

        protocol = HttpProtocol(**options, limits=self)
        if self._open is None:
            COUNTERS.connections_limit = self.maximum
            self._open = cast("set[HttpProtocol]", protocol.connections)
            self._sweep(protocol.loop)
        return protocol

    def encode(self, default_headers: RawHeaders) -> bytes:
        """Return the header fields that uvicorn replaces once a second, such as Date, as they are sent."""
        if default_headers is not self._default_headers:
            self._default_headers, self._default_lines = default_headers, on_wire(default_headers)
        return self._default_lines

    def admit(self, connection: "HttpProtocol") -> bool:
        """Return whether there is room for a new connection, after closing the idlest ones beyond the limit.

        A few that find none stay open: probes are answered on them, other requests refused.
        """
        open_ = self._open or set()
        has_room = len(open_) <= self.maximum or self._make_room(connection)
        COUNTERS.connections = len(open_)
        if has_room:
            return True
        if len(open_) > self.maximum + _PROBE_RESERVE:
            connection.transport.abort()
            self.count("refused")
        return False

    @property
    def is_exceeded(self) -> bool:
        """Whether more connections are open than the limit allows."""
        return len(self._open or ()) > self.maximum

    def count(self, reason: Literal["idle", "refused"]) -> None:
        """Count a connection that was closed, for one of two reasons."""
        COUNTERS.connections_closed[reason] += 1
        self._closed[reason] += 1

    def _make_room(self, new: "HttpProtocol") -> bool:
        """Close some of the connections that have been idle longest: looking for them takes a while."""
        open_ = self._open or set()
        idle = [one for one in open_ if one.is_idle and one is not new]
        for connection in heapq.nsmallest(max(1, self.maximum // _BATCHES), idle, key=attrgetter("idle_since")):
            connection.transport.close()
            open_.discard(connection)  # the event loop tells uvicorn later
            self.count("idle")
        return bool(idle)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections of clients that take too long, now and once a second."""
        now, open_ = loop.time(), self._open or set()
        for connection in list(open_):
            connection.close_if_late(now)
        COUNTERS.connections = len(open_)
        self._sweeps += 1
        if self._closed and self._sweeps >= _SWEEPS_PER_LOG:
            _log.warning(
                "Reached the limit of %d connections: closed %d idle ones to make room, refused %d."
                " See LOCALIDADES_MAX_CONNECTIONS.",
                self.maximum,
                self._closed["idle"],
                self._closed["refused"],
            )
            self._closed.clear()
            self._sweeps = 0
        loop.call_later(_SWEEP_INTERVAL, self._sweep, loop)
