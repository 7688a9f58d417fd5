"""The socket that the service listens on, which all workers share (docs/decisions/workers.md)."""

import errno
import socket

from localidades_api.errors import ConfigurationError

BACKLOG = 2048
_LAST_PORT = 65_535


def listen(host: str, port: int, *, setting: str = "--port") -> socket.socket:
    """Open a listening socket.

    An IPv6 address may be in brackets, as in a URL; `::` listens on IPv4 too. Raises ConfigurationError, which names
    the setting of the port, if it can't listen on the address.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        takes_both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=takes_both)
    except OSError as error:
        raise ConfigurationError(_explain(error, host, port, setting)) from error
    except UnicodeError as error:
        raise ConfigurationError("Can't listen: --host is not a valid host name.") from error


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
