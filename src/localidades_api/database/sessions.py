"""Settings of the sessions that read, and checks for a pooler."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import asyncpg
from sqlalchemy import Select, func, select

from localidades_api.database.failures import NO_POOLER_EXPECTED
from localidades_api.errors import ConfigurationError

# The server cancels a statement a little before the deadline, so the connection stays usable.
_STATEMENT_SHARE = 0.9

_NOTIFICATION_TIMEOUT = 2.0  # seconds; a notification takes a few milliseconds


def session_settings(timeout: float) -> dict[str, str]:
    """Return the settings of a connection to Postgres itself, which end statements within `timeout` seconds.

    A session waits for a lock for half of that, so that the log distinguishes a lock from a slow statement.
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
    """Return a statement that gives its transaction the settings of a session, without cached plans."""
    settings = {**session_settings(timeout), "transaction_read_only": "on", "plan_cache_mode": "force_custom_plan"}
    return set_locally(settings)


def set_locally(settings: Mapping[str, str]) -> Select[Any]:
    """Return a statement that gives its transaction these settings."""
    return select(*(func.set_config(name, value, True) for name, value in settings.items()))  # noqa: FBT003  # is_local


async def refuse_pooler(connection: asyncpg.Connection) -> None:
    """Raise ConfigurationError if the connection goes through a pooler, which may have ignored the settings."""
    if await _is_pooled(connection):
        raise ConfigurationError(NO_POOLER_EXPECTED)


async def _is_pooled(connection: asyncpg.Connection) -> bool:
    """Return True if the connection goes through a pooler, which makes up the process id that it sends at the start."""
    return bool(connection.get_server_pid() != await connection.fetchval("SELECT pg_backend_pid()"))


async def require_own_session(
    connection: asyncpg.Connection, connect: Callable[[], Awaitable[asyncpg.Connection]]
) -> None:
    """Raise ConfigurationError if a pooler gives the connection another session for each transaction.

    Commands that write need the locks and settings of their session. A notification, sent over a connection of
    `connect`, arrives only if the connection still has the session that listens for it.
    """
    if not await _is_pooled(connection):
        return
    notified = asyncio.Event()
    channel = f"localidades_{secrets.token_hex(8)}"
    await connection.add_listener(channel, lambda *_: notified.set())
    other = await connect()
    try:
        await other.execute("SELECT pg_notify($1, '')", channel)
    finally:
        other.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(_NOTIFICATION_TIMEOUT):
            await notified.wait()
    if not notified.is_set():
        raise ConfigurationError(
            "DATABASE_URL leads through a pooler that gives each transaction another session (PgBouncer's"
            " pool_mode = transaction). Commands that write need one session: give this command the address of Postgres"
            " itself, or of a pooler in session mode."
        )
    await connection.execute("UNLISTEN *")
