"""Identifies clients, and measures how much of a response they have yet to receive."""

import fcntl
import sys
import termios
from asyncio import Transport
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

MAX_CLIENTS = 65_536  # clients remembered at one time
TRANSPORT = "localidades.transport"  # key in the ASGI scope of the transport that the response is written to


def client_of(scope: Scope) -> bytes | str:
    """Return a client's identity: its IPv4 address or IPv6 /64, which is one household or server; "" if unknown."""
    return _client_at(scope["client"][0]) if scope.get("client") else ""


@lru_cache(maxsize=MAX_CLIENTS)
def _client_at(host: str) -> bytes | str:
    try:
        address = ip_address(host)
    except ValueError:
        return ""  # a proxy may report a word instead of an address; these clients count as one
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.packed[:8]
    return str(getattr(address, "ipv4_mapped", None) or address)


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
