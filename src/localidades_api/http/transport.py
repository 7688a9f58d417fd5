"""Measures how much of a response a client has yet to receive."""

import fcntl
import sys
import termios
from asyncio import Transport

TRANSPORT = "localidades.transport"  # key in the ASGI scope of the transport that the response is written to


def bytes_unread(transport: Transport) -> int:
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
