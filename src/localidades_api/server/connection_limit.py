"""The limit on a worker's open connections, which keeps some file descriptors free for the worker itself.

Without a limit, clients that keep their connections open take every descriptor. The worker can then neither accept
another client, not even a probe, nor connect to the database.
"""

import asyncio
import itertools
import logging
import math
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from localidades_api.errors import ConfigurationError
from localidades_api.observability.metrics import COUNTERS

_log = logging.getLogger(__name__)

_DEFAULT_LIMIT = 4096  # or fewer, if the limit of open files is lower
_PROBE_RESERVE = 16  # connections beyond the limit: probes are answered on them, other requests refused with a reason
_OWN_FILES = 96  # listening sockets, log, metrics, static files being sent, connections to a tracer
_FILES_PER_DATABASE_CONNECTION = 2  # asyncpg opens a second one to cancel a statement
_IDLE_TIMEOUT = 1.0  # seconds without a request after which a connection is closed before more active ones
_MAX_CANDIDATES = 8  # connections tried in each pass to make room
_LOG_BATCH_INTERVAL = 0.5  # seconds for which events are collected into one log line
_LOG_INTERVAL = 10.0  # seconds between two log lines


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


class Client(Protocol):
    """A client's connection, as the limit sees it."""

    def make_room(self) -> bool:
        """Close if the client would lose nothing, and return whether the connection was closed."""

    def cut_off(self) -> None:
        """Close at once, even if the client loses data."""


class ConnectionLimit:
    """Closes the connection that has been idle longest when a new one exceeds the limit.

    If none is idle, a few more are accepted: probes are answered on them, other requests refused. Not thread-safe:
    only the event loop's thread may use it.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.is_draining = False  # during shutdown, each response is the last on its connection
        self._open: set[Client] = set()
        self._silent: dict[Client, float] = {}  # without any request yet: since when; oldest first
        self._idle: dict[Client, float] = {}  # without a request since the last response: since when; oldest first
        self._closed = self._refused = 0
        self._next_log = 0.0
        self._scheduled: asyncio.TimerHandle | None = None
        COUNTERS.connections_limit = maximum

    def open(self, client: Client) -> bool:
        """Add a connection, and return whether there is room for it."""
        self._open.add(client)
        has_room = not self.is_exceeded or self._make_room()
        if len(self._open) > self.maximum + _PROBE_RESERVE:
            self._forget(client)
            client.cut_off()
            self.count_refusal()
        else:
            self._silent[client] = time.monotonic()
        COUNTERS.connections = len(self._open)
        return has_room

    @property
    def is_exceeded(self) -> bool:
        """Whether more connections are open than the limit allows."""
        return len(self._open) > self.maximum

    def mark_busy(self, client: Client) -> None:
        """Keep a connection open while its request is in flight."""
        self._silent.pop(client, None)
        self._idle.pop(client, None)

    def mark_idle(self, client: Client) -> None:
        """Move a connection to the end of the idle queue, which is closed from the front."""
        if self._silent:
            self._silent.pop(client, None)
        self._idle.pop(client, None)
        self._idle[client] = time.monotonic()

    def close(self, client: Client) -> None:
        """Remove a connection."""
        self._forget(client)
        COUNTERS.connections = len(self._open)

    def _forget(self, client: Client) -> None:
        self._open.discard(client)
        self.mark_busy(client)

    def _make_room(self) -> bool:
        """Close one connection whose client loses nothing, and return whether there was one."""
        for client in self._candidates():
            if client.make_room():
                return self._count_closed(client)
        return False

    def _candidates(self) -> Iterator[Client]:
        """Yield candidates: connections without a request for over a second, then the others; oldest first.

        In both groups, those that never sent a request come first: a flood of them must not cut off active clients.
        """
        quiet_since = time.monotonic() - _IDLE_TIMEOUT
        for waiting, latest in (
            (self._silent, quiet_since),
            (self._idle, quiet_since),
            (self._silent, math.inf),
            (self._idle, math.inf),
        ):
            for client, since in itertools.islice(waiting.items(), _MAX_CANDIDATES):
                if since <= latest:
                    yield client

    def _count_closed(self, client: Client) -> bool:
        self._forget(client)
        self._closed += 1
        COUNTERS.connections_closed["idle"] += 1
        self._schedule_log()
        return True

    def count_refusal(self) -> None:
        """Count a connection that was closed without serving its request."""
        self._refused += 1
        COUNTERS.connections_closed["refused"] += 1
        self._schedule_log()

    def _schedule_log(self) -> None:
        """Schedule the log line about closed connections, unless one is scheduled already."""
        if self._scheduled is None:
            delay = max(_LOG_BATCH_INTERVAL, self._next_log - time.monotonic())
            self._scheduled = asyncio.get_running_loop().call_later(delay, self._log_closed)

    def _log_closed(self) -> None:
        _log.warning(
            "Reached the limit of %d connections: closed %d idle ones to make room, refused %d."
            " See LOCALIDADES_MAX_CONNECTIONS.",
            self.maximum,
            self._closed,
            self._refused,
        )
        self._scheduled = None
        self._closed = self._refused = 0
        self._next_log = time.monotonic() + _LOG_INTERVAL
