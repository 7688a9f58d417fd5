"""How long a client may take to send a request, to read a response, and to close its connection."""

import asyncio
import fcntl
import sys
import termios

HEAD_TIMEOUT = 10.0  # seconds for a head, or for the first request to begin, which are a packet or two
DRAIN_TIMEOUT = 1.0  # seconds that a connection stays open for another request once shutdown begins
LINGERING_TIMEOUT = 5.0  # seconds for a client that is still sending to read the last response (RFC 9112 §9.6)


def bytes_unread(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not acknowledged; 0 if the kernel's send buffer holds all the rest.

    That buffer holds up to a few megabytes and accepts more only when a third of it is free: a slow reader's
    progress shows there first.
    """
    waiting = transport.get_write_buffer_size()
    if not waiting:
        return 0
    try:
        descriptor = transport.get_extra_info("socket").fileno()
        unacknowledged = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
    except OSError:
        return waiting
    return waiting + int.from_bytes(unacknowledged, sys.byteorder)
