"""Connections to Postgres: DATABASE_URL in any spelling, a bounded pool, driver errors in one place."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import asyncpg
from sqlalchemy import Executable, Row
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from localidades_api.metrics import DATABASE_ERRORS

# What other drivers and hosts put into a query that asyncpg would send to the server as a setting.
_FOREIGN_OPTIONS = frozenset(
    {
        "channel_binding",
        "client_encoding",
        "connection_limit",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "pgbouncer",
        "pool_timeout",
        "prepared_statement_cache_size",
        "schema",
    }
)
_NO_ADDRESS = "DATABASE_URL is no Postgres address; write postgresql://user:password@host:5432/database"
_TIMEOUT_OPTIONS = frozenset({"connect_timeout", "timeout"})

# SQLSTATE classes (and codes) that say "not now", each with what an operator is told of it.
_UNAVAILABLE = {
    "08": "The connection to the database was lost.",
    "25006": "The database can only be read: it is a standby, or the role may not write.",
    "28": "The database refuses this user or password: correct DATABASE_URL.",
    "3D": "The database that DATABASE_URL names does not exist: create it, or correct the address.",
    "40001": "The database gave up on a conflict; try again.",
    "42P01": "The database lacks the service's tables: run `alembic upgrade head`.",
    "53": "The database has no connection, memory or disk left: give it more.",
    "55000": "The database does not take connections.",
    "55P03": "Somebody else holds a lock on the database's tables for too long: try again.",
    "57": "The database is starting, stopping, or has cancelled the statement: try again.",
    "58": "The database's system is at fault: see its log.",
}


@dataclass(frozen=True, slots=True)
class Dsn:
    """A database address as asyncpg reads it."""

    address: str
    connect_timeout: float | None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read any common spelling of a Postgres URL.

        Takes the schemes `postgres`, `postgresql` and `postgresql+driver`; `ssl` for `sslmode`; several hosts in
        libpq's spelling or SQLAlchemy's (`?host=a:5432&host=b:5432`); options of other drivers are dropped.
        Raises ConfigurationError, without the address: it may hold a password.
        """
        try:
            parts = urlsplit(url.strip())
        except ValueError:  # a bracket that is not closed
            raise ConfigurationError(_NO_ADDRESS) from None
        if parts.scheme.partition("+")[0] not in {"postgres", "postgresql"}:
            raise ConfigurationError(_NO_ADDRESS)
        options: dict[str, str] = {"application_name": "localidades-api"}
        hosts: list[str] = []
        connect_timeout = None
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name == "host":
                hosts.append(value)
            elif name in _TIMEOUT_OPTIONS:
                connect_timeout = _seconds(name, value)
            elif name not in _FOREIGN_OPTIONS:
                options["sslmode" if name == "ssl" else name] = value
        if hosts:
            options["host"] = ",".join(hosts)
        query = urlencode(options, quote_via=quote)
        return cls(urlunsplit(("postgresql", parts.netloc, parts.path, query, "")), connect_timeout)


def _seconds(name: str, value: str) -> float | None:
    try:
        return float(value) or None  # libpq: 0 waits for ever, and so does None
    except ValueError:
        raise ConfigurationError(f"DATABASE_URL: {name} is a number of seconds") from None


async def _connect(dsn: Dsn, **options: Any) -> asyncpg.Connection:  # noqa: ANN401  # asyncpg's
    try:
        return await asyncpg.connect(dsn.address, **options)
    except asyncpg.InterfaceError:
        raise
    except (ValueError, IndexError):  # of a host or port that asyncpg can't read; it may quote a password
        raise ConfigurationError(_NO_ADDRESS) from None


def _sqlstate(error: Exception) -> str | None:
    return getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)


def _kind(error: Exception) -> str:
    """Return the class of SQLSTATE, or what has one word for it (`metrics`)."""
    if sqlstate := _sqlstate(error):
        return sqlstate[:2]
    causes = (error, error.orig if isinstance(error, DBAPIError) else None)
    return "timeout" if any(isinstance(one, TimeoutError | PoolTimeoutError) for one in causes) else "connection"


class Database:
    """A pool of connections to one Postgres (or to one of several hosts)."""

    def __init__(self, engine: AsyncEngine, timeout: float = 10) -> None:
        self.engine = engine
        self.timeout = timeout  # seconds within which it should answer
        self.waiting = 0  # for a connection

    @classmethod
    def for_reading(cls, url: str, *, pool_size: int, timeout: float) -> Self:
        """Open a pool whose sessions can only read, each statement on its own, within `timeout` seconds.

        No lock is waited for longer than half of that, so that the log tells a lock from a slow statement.
        """
        dsn = Dsn.parse(url)

        async def connect() -> asyncpg.Connection:
            return await _connect(
                dsn,
                timeout=min(dsn.connect_timeout or timeout, timeout),
                command_timeout=timeout,
                server_settings={
                    "default_transaction_read_only": "on",
                    "statement_timeout": str(int(timeout * 1000)),
                    "lock_timeout": str(int(timeout * 500)),
                    "idle_in_transaction_session_timeout": str(int(timeout * 1000)),
                },
            )

        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            isolation_level="AUTOCOMMIT",  # one statement is one round trip, without BEGIN and COMMIT
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=timeout,
            hide_parameters=True,  # what a client sent goes into no log
        )
        return cls(engine, timeout)

    @classmethod
    def for_writing(cls, url: str) -> Self:
        """Open a single connection at a time, for migrations and imports."""
        dsn = Dsn.parse(url)

        async def connect() -> asyncpg.Connection:
            return await _connect(dsn, timeout=dsn.connect_timeout or 10)

        return cls(create_async_engine("postgresql+asyncpg://", async_creator=connect, pool_size=1, max_overflow=0))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection; a database that can't answer now is raised as DatabaseUnavailableError."""
        try:
            async with AsyncExitStack() as stack:
                yield await self._lend(stack)
        except (OSError, TimeoutError, PoolTimeoutError, InterfaceError) as error:
            DATABASE_ERRORS.labels(_kind(error)).inc()
            raise DatabaseUnavailableError from error
        except (DBAPIError, asyncpg.PostgresError) as error:
            DATABASE_ERRORS.labels(_kind(error)).inc()
            sqlstate = _sqlstate(error)
            if sqlstate is None:
                raise DatabaseUnavailableError from error
            for beginning, sentence in _UNAVAILABLE.items():
                if sqlstate.startswith(beginning):
                    raise DatabaseUnavailableError(sentence) from error
            raise

    async def _lend(self, stack: AsyncExitStack) -> AsyncConnection:
        self.waiting += 1
        try:
            return await stack.enter_async_context(self.engine.connect())
        finally:
            self.waiting -= 1

    async def fetch(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        """Run a SELECT and return its rows.

        A pooled connection may have died since it was last used. Asking it first would double the round trips of
        every request; instead a SELECT that meets a dead one is run once more, on a new one.
        """
        try:
            async with self.connect() as connection:
                return (await connection.execute(statement, parameters)).all()
        except DatabaseUnavailableError as error:
            cause = error.__cause__
            if not (isinstance(cause, DBAPIError) and cause.connection_invalidated):
                raise
        async with self.connect() as connection:
            return (await connection.execute(statement, parameters)).all()

    async def dispose(self) -> None:
        """Close every connection."""
        await self.engine.dispose()
