"""The settings of the sessions that serve, and what a pooler does to sessions."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg
from sqlalchemy import Select, func, select

from localidades_api.database.failures import NO_POOLER_EXPECTED
from localidades_api.errors import ConfigurationError

# The server cancels a statement a little before the deadline, so the connection stays usable.
_STATEMENT_SHARE = 0.9

_NOTIFICATION_TIMEOUT = 2.0  # seconds; one takes a few milliseconds


def session_settings(timeout: float) -> dict[str, str]:
    """Return what a connection to Postgres itself sends, so that statements end within `timeout` seconds.

    A session waits for a lock for half of that, so that the log tells a lock from a slow statement.
    """
    return {
        "default_transaction_read_only": "on",
        "statement_timeout": str(int(timeout * _STATEMENT_SHARE * 1000)),
        "lock_timeout": str(int(timeout * 500)),
        "idle_in_transaction_session_timeout": str(int(timeout * 1000)),
        # Postgres overestimates the cost of a generic plan, because it counts partitions that execution prunes. With
        # several releases it would plan every execution, and compile statements of a millisecond
        # (docs/decisions/releases.md).
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
    }


def transaction_settings(timeout: float) -> Select[Any]:
    """Return a statement that makes its transaction what `session_settings` make a session; no plan of it is kept."""
    settings = {**session_settings(timeout), "transaction_read_only": "on", "plan_cache_mode": "force_custom_plan"}
    return select(*(func.set_config(name, value, True) for name, value in settings.items()))  # noqa: FBT003  # is_local


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
