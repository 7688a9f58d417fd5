"""The settings of the sessions that serve.

A connection to Postgres itself brings them along. A pooler shares its sessions among clients, so there they are set on
the role, by `localidades-api roles`, and a new connection checks that they are in force.
"""

import asyncio
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import asyncpg

from localidades_api.database.models import VERSION_TABLE
from localidades_api.database.sqlstate import NO_POOLER_EXPECTED
from localidades_api.errors import ConfigurationError

# The server cancels a statement a little before the deadline, so the connection stays usable.
_STATEMENT_SHARE = 0.9
_MAX_TIMEOUT = 60_000  # milliseconds; the longest LOCALIDADES_DATABASE_TIMEOUT
# statement_timeout bounds the wait for a lock too; the choice of plans changes no answer.
_COSTING_TIME = frozenset({"lock_timeout", "plan_cache_mode"})
_BOUNDED = ("statement_timeout", "idle_in_transaction_session_timeout")

_NOTIFICATION_TIMEOUT = 2.0  # seconds; one takes a few milliseconds

_IN_FORCE = f"""
    SELECT name, setting, coalesce(unit, '') AS unit, quote_ident(current_user) AS role,
           quote_ident(current_database()) AS database, (SELECT version_num FROM {VERSION_TABLE}) AS schema_version,
           EXISTS (SELECT FROM pg_prepared_statements WHERE name = $2) AS has_own_name
      FROM pg_settings WHERE name = ANY($1::text[])
"""  # noqa: S608  # a constant
_NOT_READABLE = "The reader may not read the version of the schema: run `localidades-api roles` again."


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


def session_settings(timeout: float) -> dict[str, str]:
    """Return what a connection to Postgres itself sends, and what is set on the reader's role."""
    return {
        "default_transaction_read_only": "on",
        **limits(timeout),
        # Postgres overestimates the cost of a generic plan, because it counts partitions that execution prunes. With
        # several releases it would plan every execution, and compile statements of a millisecond (decision 0015).
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
    }


class SharedSessions(NamedTuple):
    """What a connection has found out about a pooler's sessions."""

    statement_timeout: int  # milliseconds
    keep_statements: bool  # prepared statements of a client outlive its transaction
    schema_version: str
    remark: str  # what their settings cost; empty if nothing

    def have_limits(self, timeout: float) -> bool:
        """Return whether the limits of the role are those of this deadline."""
        return self.statement_timeout == int(limits(timeout)["statement_timeout"])


def unique_name() -> str:
    """Return a name for a prepared statement: under one that another client uses too, its statement might run."""
    return f"localidades_{uuid.uuid4().hex}"


async def check_session(connection: asyncpg.Connection) -> SharedSessions:
    """Return what the sessions are like, once it is certain that the role's settings are in force.

    Raises ConfigurationError with the way out if they are not.

    A pooler that keeps prepared statements for its clients gives them names of its own; another one leaves the name,
    which the session then has to forget.

    Any timeout of up to a minute will do: requests have a deadline of their own, and what counts is that a statement or
    a transaction whose client is gone ends.
    """
    expected, own_name = session_settings(1), unique_name()
    await connection.execute("BEGIN")
    statement = await connection.prepare(_IN_FORCE, name=own_name)
    try:
        found = {row["name"]: row for row in await statement.fetch(list(expected), own_name)}
    except asyncpg.InsufficientPrivilegeError:
        raise ConfigurationError(_NOT_READABLE) from None
    row = found["statement_timeout"]
    await connection.execute(f"DEALLOCATE {own_name}; ROLLBACK" if row["has_own_name"] else "ROLLBACK")
    wrong = [name for name, row in found.items() if not _is_acceptable(name, row["setting"], expected)]
    if not wrong:
        remark = _remark(found)
        return SharedSessions(int(row["setting"]), not row["has_own_name"], str(row["schema_version"]), remark)
    raise ConfigurationError(
        f"The pooler's sessions lack settings that the service needs ({_shown(found, wrong)}): name the reader that"
        f" `localidades-api roles` makes in DATABASE_URL, or set them with ALTER ROLE {row['role']}"
        f" IN DATABASE {row['database']} SET …; then have the pooler reconnect (RECONNECT in PgBouncer's console)."
    )


def _is_acceptable(name: str, setting: str, expected: Mapping[str, str]) -> bool:
    if name in _BOUNDED:
        return 0 < int(setting) <= _MAX_TIMEOUT
    return name in _COSTING_TIME or setting == expected[name]


def _remark(found: Mapping[str, asyncpg.Record]) -> str:
    """Return a sentence about the settings without which sessions answer the same, but later; empty for none."""
    longest = int(found["statement_timeout"]["setting"])
    costly = {
        "lock_timeout": not 0 < int(found["lock_timeout"]["setting"]) < longest,
        "plan_cache_mode": found["plan_cache_mode"]["setting"] == "auto",
    }
    if not any(costly.values()):
        return ""
    return (
        "The pooler's sessions lack settings without which statements wait longer for locks, or are planned again and"
        f" again ({_shown(found, [name for name in costly if costly[name]])}). Run `localidades-api roles` again, then"
        " have the pooler reconnect (RECONNECT in PgBouncer's console)."
    )


def _shown(found: Mapping[str, asyncpg.Record], names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {found[name]['setting']}{found[name]['unit']}" for name in sorted(names))


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
