"""Who reads an answer, and how much of what was sent is still to be read."""

import fcntl
import sys
import termios
from asyncio import Transport
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

MAX_CLIENTS = 65_536  # that are remembered at one time
TRANSPORT = "localidades.transport"  # in the scope: what the server writes the answer to


def client_of(scope: Scope) -> bytes | str:
    """Return what a client is known by: its address, or of IPv6 the /64, which is one household's or server's own."""
    return _client_at(scope["client"][0]) if scope.get("client") else ""


@lru_cache(maxsize=MAX_CLIENTS)
def _client_at(host: str) -> bytes | str:
    try:
        address = ip_address(host)
    except ValueError:
        return ""  # what a proxy tells may be a word; all of them are one
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.packed[:8]
    return str(getattr(address, "ipv4_mapped", None) or address)


def bytes_unread(transport: Transport) -> int:
    """Return how much the client has not taken yet; 0 where the kernel holds all of it.

    The kernel holds up to some megabytes and asks for more only when a third of them has gone: a slow reader's
    progress is seen there first.
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
