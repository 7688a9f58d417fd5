"""The settings of the sessions that serve.

A connection to Postgres itself brings them along. A pooler shares its sessions among clients, so there they are set on
the role, by `localidades-api roles`, and a new connection checks that they are in force.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import asyncpg

from localidades_api.errors import ConfigurationError
from localidades_api.storage.sqlstate import NO_POOLER_EXPECTED

# The server cancels a statement a little before the deadline, so the connection stays usable.
_STATEMENT_SHARE = 0.9
_MAX_TIMEOUT = 60_000  # milliseconds; the longest LOCALIDADES_DATABASE_TIMEOUT
_BOUNDED = ("statement_timeout", "idle_in_transaction_session_timeout")

_NOTIFICATION_TIMEOUT = 2.0  # seconds; one takes a few milliseconds

_IN_FORCE = """
    SELECT name, setting, coalesce(unit, '') AS unit, quote_ident(current_user) AS role,
           quote_ident(current_database()) AS database
      FROM pg_settings WHERE name = ANY($1::text[])
"""


def limits(timeout: float) -> dict[str, str]:
    """Return the timeouts of a session whose statements end within `timeout` seconds, in milliseconds.

    A session waits for a lock for half of that, so that the log tells a lock from a slow statement.
    """
    return {
        "statement_timeout": str(int(timeout * _STATEMENT_SHARE * 1000)),
        "lock_timeout": str(int(timeout * 500)),
        "idle_in_transaction_session_timeout": str(int(timeout * 1000)),
    }


def set_limits(limits: Mapping[str, str]) -> str:
    """Return statements that set limits for one transaction."""
    return "; ".join(f"SET LOCAL {name} = {value}" for name, value in limits.items())


def direct_settings(timeout: float) -> dict[str, str]:
    """Return what a connection to Postgres itself sends."""
    return {
        "default_transaction_read_only": "on",
        **limits(timeout),
        # Postgres overestimates the cost of a generic plan, because it counts partitions that execution prunes. With
        # several releases it would plan every execution, and compile statements of a millisecond (decision 0015).
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
    }


def role_settings(timeout: float) -> dict[str, str]:
    """Return what is set on the reader's role.

    Behind a pooler no plan outlives its execution. One for the given values leaves out the other releases' partitions
    at once, and a generic one would have to consider them all.
    """
    return {**direct_settings(timeout), "plan_cache_mode": "force_custom_plan"}


async def check_session(connection: asyncpg.Connection) -> int:
    """Return the session's statement_timeout in milliseconds, once it is certain that the role's settings are in force.

    Raises ConfigurationError with the way out if they are not.

    Any timeout of up to a minute will do: requests have a deadline of their own, and what counts is that a statement or
    a transaction whose client is gone ends.
    """
    expected = role_settings(1)
    found = {row["name"]: row for row in await connection.fetch(_IN_FORCE, list(expected))}
    wrong = [name for name, row in found.items() if not _is_acceptable(name, row["setting"], expected)]
    if not wrong:
        return int(found["statement_timeout"]["setting"])
    row = found[wrong[0]]
    shown = ", ".join(f"{name} = {found[name]['setting']}{found[name]['unit']}" for name in sorted(wrong))
    raise ConfigurationError(
        f"The pooler's sessions lack settings that the service needs ({shown}): name the reader that `localidades-api"
        f" roles` makes in DATABASE_URL, or set them with ALTER ROLE {row['role']} IN DATABASE {row['database']} SET …;"
        " then have the pooler reconnect (RECONNECT in PgBouncer's console)."
    )


def _is_acceptable(name: str, setting: str, expected: Mapping[str, str]) -> bool:
    if name in _BOUNDED:
        return 0 < int(setting) <= _MAX_TIMEOUT
    return name == "lock_timeout" or setting == expected[name]  # statement_timeout bounds the wait for a lock too


async def refuse_pooler(connection: asyncpg.Connection) -> None:
    """Raise ConfigurationError if a pooler stands between: it may have ignored the settings that it was sent."""
    if await _is_pooled(connection):
        raise ConfigurationError(NO_POOLER_EXPECTED)


async def _is_pooled(connection: asyncpg.Connection) -> bool:
    """Return whether a pooler stands between: it makes up the process id that a connection gets at its start."""
    return bool(connection.get_server_pid() != await connection.fetchval("SELECT pg_backend_pid()"))


async def require_own_session(
    connection: asyncpg.Connection, connect: Callable[[], Awaitable[asyncpg.Connection]]
) -> None:
    """Raise ConfigurationError if a pooler gives the connection another session for each transaction.

    The locks and settings of writing commands belong to a session. A notification arrives only if the session that
    listens for it is still the connection's; `connect` opens another connection, which sends it.
    """
    if not await _is_pooled(connection):
        return
    heard = asyncio.Event()
    channel = f"localidades_{secrets.token_hex(8)}"
    await connection.add_listener(channel, lambda *_: heard.set())
    other = await connect()
    try:
        await other.execute("SELECT pg_notify($1, '')", channel)
    finally:
        other.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(_NOTIFICATION_TIMEOUT):
            await heard.wait()
    if not heard.is_set():
        raise ConfigurationError(
            "DATABASE_URL leads through a pooler that gives each transaction another session (PgBouncer's"
            " pool_mode = transaction). Commands that write need one session: give this command the address of Postgres"
            " itself, or of a pooler in session mode."
        )
    await connection.execute("UNLISTEN *")


def pooled_options(connect: Callable[[], Awaitable[asyncpg.Connection]]) -> dict[str, Any]:
    """Return options of an engine that describes each statement anew.

    asyncpg would misread a statement whose columns have changed since. SQLAlchemy drops these arguments beside its own
    option `async_creator`.
    """

    async def connect_anywhere(**_: object) -> asyncpg.Connection:
        return await connect()

    return {"connect_args": {"async_creator_fn": connect_anywhere, "prepared_statement_cache_size": 0}}
