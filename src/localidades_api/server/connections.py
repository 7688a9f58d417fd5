"""The open connections of a worker, and the limit on their number.

Without a limit, clients that keep their connections open take every file descriptor. The worker then can't accept
another client, not even a probe, or connect to the database.
"""

import asyncio
import heapq
import logging
import resource
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from localidades_api.errors import ConfigurationError
from localidades_api.observability.metrics import COUNTERS
from localidades_api.server.deadlines import Timeouts

if TYPE_CHECKING:
    from localidades_api.server.protocol import HttpProtocol  # takes the supervisor 47 MB and 0.8 s

_log = logging.getLogger(__name__)

_DEFAULT_LIMIT = 4096  # or fewer, if the limit of open files is lower
_PROBE_RESERVE = 16  # connections beyond the limit, on which probes are answered and other requests refused
_OWN_FILES = 96  # listening sockets, log, metrics, static files being sent, connections to a tracer
_FILES_PER_DATABASE_CONNECTION = 2  # asyncpg opens a second one to cancel a statement
_ROOM_FRACTION = 64  # one connection in so many is closed to make room
_CANDIDATES = 4  # connections that are looked at for each to be closed: asking the kernel takes a microsecond
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
        with suppress(OSError, ValueError):  # macOS has another, lower limit if this one is infinite
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return allowed
    return soft


@dataclass(eq=False)
class Connections:
    """Closes the idlest connections of a worker beyond `maximum`, and those whose clients are too slow.

    The supervisor hands each worker a copy.
    """

    maximum: int
    timeouts: Timeouts
    is_draining: bool = field(default=False, init=False)  # at shutdown each response is the last on its connection
    _open: "set[HttpProtocol]" = field(default_factory=set, init=False)
    _closed: Counter[str] = field(default_factory=Counter, init=False)  # since the last log line
    _is_sweeping: bool = field(default=False, init=False)
    _sweeps: int = field(default=0, init=False)  # since the last log line

    def admit(self, connection: "HttpProtocol") -> bool:
        """Add a new connection and return whether there is room for it, once the idlest have been closed if need be.

        A few connections without room stay open, for probes.
        """
        if not self._is_sweeping:
            self._is_sweeping = True
            COUNTERS.connections_limit = self.maximum
            self._sweep(asyncio.get_running_loop())
        self._open.add(connection)
        has_room = not self.is_exceeded or self._make_room(connection)
        COUNTERS.connections = len(self._open)
        if has_room:
            return True
        if len(self._open) > self.maximum + _PROBE_RESERVE:
            connection.socket_transport.abort()
            self.count_closed("refused")
        return False

    def remove(self, connection: "HttpProtocol") -> None:
        """Remove a closed connection."""
        self._open.discard(connection)

    @property
    def is_exceeded(self) -> bool:
        """Whether more connections are open than the limit allows."""
        return len(self._open) > self.maximum

    def count_closed(self, reason: Literal["idle", "refused"]) -> None:
        """Count a connection that was closed because of the limit."""
        COUNTERS.connections_closed[reason] += 1
        self._closed[reason] += 1

    def _make_room(self, new: "HttpProtocol") -> bool:
        """Close the connections that have been idle longest, several at once because finding them takes a while.

        A busy worker may not have read the next request of such a connection yet; it stays open then.
        """
        count = max(1, self.maximum // _ROOM_FRACTION)
        idle = (connection for connection in self._open if connection is not new and connection.is_idle)
        candidates = heapq.nsmallest(count * _CANDIDATES, idle, key=attrgetter("idle_since"))
        closed = [connection for connection in candidates if not connection.has_unread_input][:count]
        for connection in closed:
            connection.socket_transport.close()
            self.remove(connection)  # the event loop calls `connection_lost` later
            self.count_closed("idle")
        return bool(closed)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections of clients that are too slow, now and once a second."""
        now = loop.time()
        for connection in list(self._open):
            connection.close_if_late(now)
        COUNTERS.connections = len(self._open)
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
