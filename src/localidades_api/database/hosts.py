"""Chooses among the servers of DATABASE_URL."""

import random
import time
from typing import Any

import asyncpg

from localidades_api.database.dsn import EXAMPLE, Dsn
from localidades_api.database.failures import translate_parameter
from localidades_api.errors import ConfigurationError

_AVOID_INTERVAL = 3.0  # seconds; a server that is back gets connections again within five


class ServerConnection(asyncpg.Connection):
    """A connection that records its server, and closes without waiting for a server that may be gone."""

    server = ""

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109  # asyncpg's signature
        """Close the socket."""
        self.terminate()


class Servers:
    """Connects to the servers in random order, last to those that did not answer or lag.

    asyncpg tries the hosts in the given order, within one deadline for all. Every read would go to the first, and a
    host that drops packets would leave no time for the others.
    """

    def __init__(self, dsn: Dsn) -> None:
        self._dsn = dsn
        self._tls = {"ssl": True} if dsn.trusts_system else {}  # with the default context of Python
        self._avoided: dict[str, float] = {}

    async def connect(self, *, timeout: float, **options: Any) -> ServerConnection:  # noqa: ANN401, ASYNC109  # asyncpg's
        """Connect within about `timeout` seconds; where a standby is preferred, to the primary only if there is none.

        Raises the error of the last server.
        """
        addresses = random.sample(self._dsn.addresses, len(self._dsn.addresses))
        addresses.sort(key=self._is_avoided)
        share = min(self._dsn.connect_timeout or timeout, timeout) / len(addresses)
        spare: ServerConnection | None = None
        fault = Exception()
        try:
            for address in addresses:
                if spare and self._is_avoided(address):
                    break
                try:
                    connection = await _open(address, timeout=share, **self._tls, **options)
                except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
                    self.avoid(address)
                    fault = error
                    continue
                if not self._dsn.prefers_standby or _is_standby(connection):
                    return connection
                if spare:
                    connection.terminate()
                else:
                    spare = connection
            if spare:
                connection, spare = spare, None
                return connection
        finally:
            if spare:
                spare.terminate()
        raise fault

    def avoid(self, address: str) -> bool:
        """Try this server last for a while; return True if there is another to try."""
        self._avoided[address] = time.monotonic() + _AVOID_INTERVAL
        return not all(map(self._is_avoided, self._dsn.addresses))

    def _is_avoided(self, address: str) -> bool:
        return time.monotonic() < self._avoided.get(address, 0)


async def _open(address: str, **options: Any) -> ServerConnection:  # noqa: ANN401  # asyncpg's
    try:
        connection: ServerConnection = await asyncpg.connect(address, connection_class=ServerConnection, **options)
    except asyncpg.ClientConfigurationError as error:
        raise ConfigurationError(f"DATABASE_URL, or a variable such as PGSSLMODE: {error.args[0]}") from None
    except asyncpg.PostgresError as error:
        raise translate_parameter(error, options.get("server_settings", ())) or error from None
    except (asyncpg.InterfaceError, OSError):  # an untrusted certificate is a ValueError too, and a server's fault
        raise
    except (ValueError, LookupError, OverflowError):  # asyncpg can't read the address; its message may quote a password
        raise ConfigurationError(
            f"DATABASE_URL, or a variable such as PGPORT or PGUSER, can't be read: write it like {EXAMPLE}"
        ) from None
    connection.server = address
    return connection


def _is_standby(connection: ServerConnection) -> bool:
    """Return True if the server has reported that it is a standby; a pooler may not pass that on."""
    return getattr(connection.get_settings(), "in_hot_standby", "off") == "on"
