"""Connections to Postgres: a bounded pool, and a deadline for each statement."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol, Self, cast

import asyncpg
from sqlalchemy import Executable, Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool

from localidades_api.errors import DatabaseUnavailableError
from localidades_api.observability.metrics import COUNTERS, Series
from localidades_api.storage.hosts import Dsn, ServerConnection, Servers
from localidades_api.storage.sqlstate import error_kind, translate, translate_connecting, translate_refusal

_MAX_ATTEMPTS = 3  # of a SELECT, on as many connections
_MAX_CONNECTION_AGE = (
    600  # seconds of a connection to one of several servers: one that has come back gets its part again
)
# The server ends a statement a little before the deadline: its connection stays sound, and is not made anew.
_STATEMENT_SHARE = 0.9

# Seconds that a request has waited for its turn before: they are a part of the deadline.
already_waited: ContextVar[float] = ContextVar("already_waited", default=0.0)


class ReplicaCheck(Protocol):
    """The question whether the server of a connection can answer; `anew` asks even one that said yes before."""

    async def __call__(self, connection: AsyncConnection, *, anew: bool = False) -> bool:
        """Ask it."""


class Database:
    """A pool of connections to one Postgres, or to several that hold the same."""

    def __init__(self, engine: AsyncEngine, servers: Servers, timeout: float = 10) -> None:
        self.engine = engine
        self.timeout = timeout  # seconds within which it should answer
        self.waiting = 0  # for a connection
        self._servers = servers

    @classmethod
    def for_reading(cls, url: str, *, pool_size: int, timeout: float) -> Self:
        """Open a pool whose sessions can only read, each statement on its own, within `timeout` seconds.

        No lock is waited for longer than half of that, so that the log tells a lock from a slow statement.
        """
        dsn = Dsn.parse(url)
        servers = Servers(dsn)

        async def connect() -> asyncpg.Connection:
            return await servers.connect(
                timeout=timeout,
                server_settings={
                    "default_transaction_read_only": "on",
                    "statement_timeout": str(int(timeout * _STATEMENT_SHARE * 1000)),
                    "lock_timeout": str(int(timeout * 500)),
                    "idle_in_transaction_session_timeout": str(int(timeout * 1000)),
                    # A plan for any release looks dear, since Postgres counts what a run leaves out: with several it
                    # would plan each run anew, and compile what takes a millisecond (decision 0015).
                    "plan_cache_mode": "force_generic_plan",
                    "jit": "off",
                },
            )

        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            isolation_level="AUTOCOMMIT",  # one statement is one round trip, without BEGIN and COMMIT
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=timeout / 2,  # whoever gets a connection at last has time to use it, or to make it anew
            pool_recycle=_MAX_CONNECTION_AGE if len(dsn.addresses) > 1 else -1,
            hide_parameters=True,  # what a client sent goes into no log
        )
        return cls(engine, servers, timeout)

    @classmethod
    def for_writing(cls, url: str) -> Self:
        """Open a single connection at a time, for migrations and imports; of several servers, to the primary."""
        dsn = Dsn.parse(url)
        servers = Servers(dsn)
        wishes = {"target_session_attrs": "primary"} if len(dsn.addresses) > 1 else {}

        async def connect() -> asyncpg.Connection:
            return await servers.connect(timeout=dsn.connect_timeout or 10, **wishes)

        engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, pool_size=1, max_overflow=0)
        return cls(engine, servers)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection; a database that can't answer now is raised as DatabaseUnavailableError."""
        try:
            async with AsyncExitStack() as stack:
                yield await self._lend(stack)
        except (OSError, TimeoutError, PoolTimeoutError) as error:
            COUNTERS.database_errors[error_kind(error)] += 1
            raise translate_connecting(error) from error
        except (DBAPIError, asyncpg.PostgresError) as error:
            COUNTERS.database_errors[error_kind(error)] += 1
            translated = translate(error)
            if translated is None:
                raise
            raise translated from error

    async def _lend(self, stack: AsyncExitStack) -> AsyncConnection:
        self.waiting += 1
        try:
            return await stack.enter_async_context(self.engine.connect())
        finally:
            self.waiting -= 1

    async def fetch(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | None = None,
        *,
        replica_check: ReplicaCheck | None = None,
    ) -> Sequence[Row[Any]]:
        """Run a SELECT and return its rows, or raise DatabaseUnavailableError, within the deadline.

        A pooled connection may have died since it was last used. Asking it first would double the round trips of
        every request; instead a SELECT that meets a dead one is run again, on a new one. `replica_check` tells whether
        the server of a connection has what is read; if not, another server is asked.
        """
        try:
            async with asyncio.timeout(self.timeout - already_waited.get()):
                for _ in range(_MAX_ATTEMPTS - 1):
                    try:
                        return await self._fetch_once(statement, parameters, replica_check)
                    except DatabaseUnavailableError as error:
                        if not error.is_passing:
                            raise
                return await self._fetch_once(statement, parameters, replica_check)
        except TimeoutError as error:
            COUNTERS.database_errors[error_kind(error)] += 1
            raise DatabaseUnavailableError from error
        except DBAPIError as error:
            if (refusal := translate_refusal(error)) is None:
                raise
            raise refusal from error

    async def _fetch_once(
        self, statement: Executable, parameters: Mapping[str, Any] | None, replica_check: ReplicaCheck | None
    ) -> Sequence[Row[Any]]:
        """Run a SELECT on the first connection that passes the check; one that fails is given up for another."""
        while True:
            async with self.connect() as connection:
                if replica_check is None or await replica_check(connection):
                    rows = (await connection.execute(statement, parameters)).all()
                    # What has been taken away meanwhile looks as if there were nothing.
                    if replica_check is None or any(map(any, rows)) or await replica_check(connection, anew=True):
                        return rows
                driver = (await connection.get_raw_connection()).driver_connection
                if not self._servers.avoid(cast("ServerConnection", driver).server):
                    sentence = "The database server does not have the requested release yet."
                    raise DatabaseUnavailableError(sentence, is_passing=True)
                await connection.invalidate()

    def gauges(self) -> dict[Series, float]:
        """Return how its connections are used."""
        gauges: dict[Series, float] = {("database_waiting",): self.waiting}
        pool = self.engine.pool
        if isinstance(pool, QueuePool):
            gauges["database_connections", "in_use"] = pool.checkedout()
            gauges["database_connections", "idle"] = pool.checkedin()
            gauges["database_connections_limit",] = pool.size()
        return gauges

    async def dispose(self) -> None:
        """Close every connection."""
        await self.engine.dispose()
