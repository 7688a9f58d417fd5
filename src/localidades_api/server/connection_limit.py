"""How many connections a worker keeps open: fewer than its file descriptors allow, so that some are left for itself.

Without a bound, clients that keep their connections take every descriptor: nobody else is accepted, not even a probe,
and no connection to the database can be opened.
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

_DEFAULT_LIMIT = 4096  # where the limit of open files allows as many
_PROBE_RESERVE = 16  # connections beyond the limit, so that probes are answered and others are refused with a reason
_OWN_FILES = 96  # listening sockets, log, metrics, static files that are being sent, connections to a tracer
_FILES_PER_DATABASE_CONNECTION = 2  # asyncpg opens a second one to cancel a statement
_SILENT_AFTER = 1.0  # seconds without a request after which a connection may be closed to make room
_MAX_CANDIDATES = 8  # connections that are asked to make room
_LOG_DELAY = 0.5  # seconds in which more may come to be said in one line
_LOG_INTERVAL = 10.0  # seconds between two lines


def max_connections(wanted: int | None, *, pool_size: int) -> int:
    """Return how many connections a worker may keep open, and raise the limit of open files as far as that takes.

    Raises ConfigurationError where the system allows too few open files.
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
    """Raise the soft limit of open files to `wanted` or as near as the system lets, and return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        with suppress(OSError, ValueError):  # macOS has another limit below an infinite one
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return allowed
    return soft


class Client(Protocol):
    """A connection, as far as the limit knows it."""

    def make_room(self) -> bool:
        """Close if nothing is lost by it, and tell whether it was so."""

    def cut_off(self) -> None:
        """Close, whatever is lost by it."""


class ConnectionLimit:
    """Closes the connection that has been idle longest when one more is opened than there may be.

    Where none is idle a few more are accepted: probes are answered there, other requests refused. Only the event
    loop's thread may use it.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.is_draining = False  # the process stops: each response is the last of its connection
        self._open: set[Client] = set()
        self._silent: dict[Client, float] = {}  # those that have asked for nothing yet, since when; longest first
        self._idle: dict[Client, float] = {}  # those that were answered and have not asked again, since when
        self._closed = self._refused = 0
        self._next_line = 0.0
        self._line: asyncio.TimerHandle | None = None
        COUNTERS.connections_limit = maximum

    def open(self, client: Client) -> bool:
        """Count a connection, and tell whether there is room for it."""
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
        """Whether more connections are open than there may be."""
        return len(self._open) > self.maximum

    def mark_busy(self, client: Client) -> None:
        """Keep a connection while its request is answered."""
        self._silent.pop(client, None)
        self._idle.pop(client, None)

    def mark_idle(self, client: Client) -> None:
        """Have a connection be the last that is closed to make room."""
        if self._silent:
            self._silent.pop(client, None)
        self._idle.pop(client, None)
        self._idle[client] = time.monotonic()

    def close(self, client: Client) -> None:
        """Count a connection no more."""
        self._forget(client)
        COUNTERS.connections = len(self._open)

    def _forget(self, client: Client) -> None:
        self._open.discard(client)
        self.mark_busy(client)

    def _make_room(self) -> bool:
        """Close a connection that nobody misses, and tell whether there was one."""
        for client in self._candidates():
            if client.make_room():
                return self._count_closed(client)
        return False

    def _candidates(self) -> Iterator[Client]:
        """Yield connections to close, those first that have asked for nothing for longest.

        Of those that were busy a moment ago the silent come first: a flood must not cut off clients that ask.
        """
        quiet_since = time.monotonic() - _SILENT_AFTER
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
        self._say()
        return True

    def count_refusal(self) -> None:
        """Count a connection that was closed without the answer that it asked for."""
        self._refused += 1
        COUNTERS.connections_closed["refused"] += 1
        self._say()

    def _say(self) -> None:
        """Have the log say soon what has been closed, and then for a while no more."""
        if self._line is None:
            delay = max(_LOG_DELAY, self._next_line - time.monotonic())
            self._line = asyncio.get_running_loop().call_later(delay, self._write_line)

    def _write_line(self) -> None:
        _log.warning(
            "Reached the limit of %d connections: closed %d idle ones to make room, refused %d."
            " See LOCALIDADES_MAX_CONNECTIONS.",
            self.maximum,
            self._closed,
            self._refused,
        )
        self._line = None
        self._closed = self._refused = 0
        self._next_line = time.monotonic() + _LOG_INTERVAL
