"""The listening sockets: one for each worker, on one port (decision 0014)."""

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from localidades_api.errors import ConfigurationError

BACKLOG = 2048
_LAST_PORT = 65_535


@contextmanager
def listen(host: str, port: int, *, workers: int = 1, setting: str = "--port") -> Iterator[list[socket.socket]]:
    """Open a socket for each worker.

    An IPv6 address may be in brackets, as in a URL; `::` listens on IPv4 too. Raises ConfigurationError, which names
    the setting of the port, if it can't listen on the address.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listeners = _open(family, (host, port), workers)
    except OSError as error:
        raise ConfigurationError(_explain(error, host, port, setting)) from error
    except UnicodeError as error:
        raise ConfigurationError("Can't listen: --host is not a valid host name.") from error
    with ExitStack() as stack:
        yield [stack.enter_context(listener) for listener in listeners]


def _explain(error: OSError, host: str, port: int, setting: str) -> str:
    """Return what is wrong with an address, and what to do."""
    if error.errno == errno.EADDRINUSE and setting == "--port":
        other = port + 1 if port < _LAST_PORT else port - 1
        return (
            f"Port {port} is in use. Choose another: `localidades-api serve --port {other}`"
            f" (in a clone, `make run PORT={other}`)."
        )
    remedies = {
        errno.EADDRINUSE: f"another server uses it, so choose another {setting}",
        errno.EACCES: f"choose a {setting} above 1023",
    }
    remedy = remedies.get(error.errno or 0, "choose a --host that is an address of this machine")
    reason = str(error.strerror).partition(" (")[0]
    return f"Can't listen on {host} port {port} ({reason}): {remedy}."


def open_another(listener: socket.socket) -> socket.socket:
    """Return another socket on the port of `listener`; on systems other than Linux, `listener` itself."""
    if sys.platform != "linux":
        return listener
    address, family = listener.getsockname(), listener.family
    return socket.create_server(
        address, family=family, backlog=BACKLOG, reuse_port=True, dualstack_ipv6=_takes_both(family, address)
    )


def _open(family: socket.AddressFamily, address: tuple[str, int], count: int) -> list[socket.socket]:
    """Open sockets on one port, among which Linux distributes new connections."""
    takes_both = _takes_both(family, address)
    if count == 1 or sys.platform != "linux":
        only = socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=takes_both)
        return [only] * count
    with ExitStack() as opened:
        first = opened.enter_context(socket.socket(family))
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            first.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not takes_both))
        first.bind(address)  # without SO_REUSEPORT yet: it must fail if another server has the port
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        first.listen(BACKLOG)
        others = [opened.enter_context(open_another(first)) for _ in range(1, count)]
        opened.pop_all()
    return [first, *others]


def _takes_both(family: socket.AddressFamily | int, address: tuple[str, int]) -> bool:
    """Return whether a socket listens on every address, of IPv6 and of IPv4."""
    return family == socket.AF_INET6 and address[0] == "::" and socket.has_dualstack_ipv6()
