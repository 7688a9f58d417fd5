"""Timeouts of a client: to send a request, to read a response, and to close its connection.

The timeouts are checked once a second (`Connections`), so a client may have up to a second more. Rows that are sent in
a body have another timeout (`http.body`).
"""

import asyncio
import fcntl
import sys
import termios
from dataclasses import dataclass

DRAIN_TIMEOUT = 1.0  # seconds that a connection stays open for another request once shutdown begins
_HEAD_TIMEOUT = 10.0  # seconds; a head is a packet or two
_LINGERING_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds after which a client's connection is closed, unless it goes on."""

    client: float  # to read another part of its response
    keep_alive: float  # to begin its next request
    lingering: float = _LINGERING_TIMEOUT  # to read its last response and close, while it is still sending

    @property
    def head(self) -> float:
        """To finish the head of a request, or to begin the first one."""
        return min(_HEAD_TIMEOUT, self.client)


class ReadProgress:
    """Whether a client reads its responses."""

    def __init__(self) -> None:
        self._unread = 0
        self._since = 0.0

    def stalled_for(self, unread: int, now: float) -> float | None:
        """Return how many seconds the client has read nothing for; None if there is nothing left to read."""
        if unread != self._unread:
            self._unread, self._since = unread, now
        return now - self._since if unread else None


def bytes_unread(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not acknowledged; 0 if the kernel's send buffer holds all the rest.

    That buffer holds up to a few megabytes and accepts more only when a third of it is free: a slow reader's
    progress shows there first.
    """
    waiting = transport.get_write_buffer_size()
    if not waiting:
        return 0
    return waiting + _queued(transport, termios.TIOCOUTQ)


def bytes_received(transport: asyncio.Transport) -> int:
    """Return how many bytes from the client wait in the kernel's receive buffer."""
    return _queued(transport, termios.FIONREAD)


def _queued(transport: asyncio.Transport, request: int) -> int:
    """Return the length of a queue of the kernel; 0 for a socket that is closed."""
    try:
        length = fcntl.ioctl(transport.get_extra_info("socket").fileno(), request, bytes(4))
    except (OSError, ValueError):  # both event loops set the descriptor of a closed socket to -1
        return 0
    return int.from_bytes(length, sys.byteorder)
