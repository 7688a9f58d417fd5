"""Connections to Postgres: a bounded pool, and a deadline for each statement."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, Self, cast

import asyncpg
from sqlalchemy import Connection, Executable, Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import greenlet_spawn

from localidades_api.database.dsn import Dsn
from localidades_api.database.hosts import ServerConnection, Servers
from localidades_api.database.sessions import refuse_pooler, require_own_session, session_settings, transaction_settings
from localidades_api.database.sqlstate import (
    error_kind,
    translate,
    translate_connecting,
    translate_refusal,
)
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from localidades_api.observability.metrics import COUNTERS, Series

_KEPT_STATEMENTS = 100  # of a connection to Postgres itself; SQLAlchemy's default
_MAX_ATTEMPTS = 3  # of a SELECT, on as many connections
# Seconds after which a connection to one of several servers is replaced, so that a server that has come back is used.
MAX_CONNECTION_AGE = 600

# Seconds that a request has spent in the queue, which count towards the deadline.
already_waited: ContextVar[float] = ContextVar("already_waited", default=0.0)


class ReplicaCheck(Protocol):
    """Tells whether the server of a connection can answer; `anew` asks again even if it has said yes before."""

    def __call__(self, connection: Connection, *, anew: bool = False) -> bool:
        """Return whether it can."""


class Database:
    """A pool of connections to one Postgres, or to a primary and its standbys."""

    def __init__(self, engine: AsyncEngine, servers: Servers, timeout: float = 10, *, is_pooled: bool = False) -> None:
        self.engine = engine
        self._is_pooled = is_pooled
        self._transaction_settings = transaction_settings(timeout)
        self.timeout = timeout  # seconds
        self.waiting = 0  # requests that wait for a connection
        self._servers = servers

    @classmethod
    def for_reading(cls, url: str, *, pool_size: int, timeout: float) -> Self:
        """Open a pool of read-only sessions, whose statements end within `timeout` seconds.

        They are in autocommit: a statement is one round trip, without BEGIN and COMMIT. Behind a pooler, which may give
        each transaction another session, it is a transaction, and no statement is kept for the next
        (docs/decisions/standbys.md).
        """
        dsn = Dsn.parse(url)
        servers = Servers(dsn)
        wishes = {"statement_cache_size": 0} if dsn.is_pooled else {"server_settings": session_settings(timeout)}

        async def connect(**_: object) -> asyncpg.Connection:
            while True:
                connection = await servers.connect(timeout=timeout, **wishes)
                try:
                    if dsn.is_pooled:  # a pooler lets clients in while it reaches no server
                        await connection.execute("SELECT 1")
                    else:
                        await refuse_pooler(connection)
                except BaseException as error:
                    connection.terminate()
                    if isinstance(error, asyncpg.PostgresError | OSError) and servers.avoid(connection.server):
                        continue
                    raise
                return connection

        engine = create_async_engine(
            "postgresql+asyncpg://",
            connect_args={
                "async_creator_fn": connect,
                "prepared_statement_cache_size": 0 if dsn.is_pooled else _KEPT_STATEMENTS,
            },
            isolation_level=None if dsn.is_pooled else "AUTOCOMMIT",
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=timeout / 2,  # leaves time to use the connection, or to replace it
            pool_recycle=MAX_CONNECTION_AGE if len(dsn.addresses) > 1 else -1,
            hide_parameters=True,  # keep what clients send out of the log
        )
        return cls(engine, servers, timeout, is_pooled=dsn.is_pooled)

    @classmethod
    def for_writing(cls, url: str) -> Self:
        """Open one connection at a time, for migrations and imports; with several servers, to the primary.

        Connecting through a pooler that shares sessions among transactions raises ConfigurationError.
        """
        dsn = Dsn.parse(url)
        servers = Servers(dsn)
        wishes = {"target_session_attrs": "primary"} if len(dsn.addresses) > 1 else {}

        async def open_one() -> asyncpg.Connection:
            return await servers.connect(timeout=dsn.connect_timeout or 10, statement_cache_size=0, **wishes)

        async def connect() -> asyncpg.Connection:
            connection = await open_one()
            try:
                await require_own_session(connection, open_one)
            except BaseException:
                connection.terminate()
                raise
            return connection

        engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, pool_size=1, max_overflow=0)
        return cls(engine, servers)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection; raise DatabaseUnavailableError if the database can't answer now."""
        with _translated():
            async with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def _lend(self) -> Iterator[Connection]:
        """Do as `connect`, within a greenlet."""
        with _translated():
            self.waiting += 1
            try:
                connection = self.engine.sync_engine.connect()
            finally:
                self.waiting -= 1
            with connection:
                yield connection

    async def fetch(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | None = None,
        *,
        replica_check: ReplicaCheck | None = None,
    ) -> Sequence[Row[Any]]:
        """Run a SELECT and return its rows, or raise DatabaseUnavailableError, within the deadline.

        A pooled connection may have died since it was last used. A ping before each use would double the round trips
        of every request, so a SELECT that meets a dead connection is run again on a new one. A connection whose server
        fails the `replica_check` is replaced by one to another server.
        """
        try:
            async with asyncio.timeout(self.timeout - already_waited.get()):
                for _ in range(_MAX_ATTEMPTS - 1):
                    try:
                        return await greenlet_spawn(self._fetch_once, statement, parameters, replica_check)
                    except DatabaseUnavailableError as error:
                        if not error.is_passing:
                            raise
                return await greenlet_spawn(self._fetch_once, statement, parameters, replica_check)
        except TimeoutError as error:
            COUNTERS.database_errors[error_kind(error)] += 1
            raise DatabaseUnavailableError from error
        except ConfigurationError as error:  # a pooler stands between
            raise DatabaseUnavailableError(str(error)) from error
        except DBAPIError as error:
            if (refusal := translate_refusal(error)) is None:
                raise
            raise refusal from error

    def _fetch_once(
        self, statement: Executable, parameters: Mapping[str, Any] | None, replica_check: ReplicaCheck | None
    ) -> Sequence[Row[Any]]:
        """Run a SELECT on the first connection that passes the check; close those that fail.

        All of it is one greenlet: SQLAlchemy's asynchronous connection takes one for each step, and a task to close.
        """
        while True:
            with self._lend() as connection:
                if self._is_pooled:
                    connection.info.pop("releases", None)  # another server may have had them
                    connection.execute(self._transaction_settings)
                if replica_check is None or replica_check(connection):
                    rows = connection.execute(statement, parameters).all()
                    # Rows that were removed in the meantime look like an empty result.
                    if replica_check is None or any(map(any, rows)) or replica_check(connection, anew=True):
                        return rows
                if not self._servers.avoid(cast("ServerConnection", connection.connection.driver_connection).server):
                    sentence = "The database server does not have the requested release yet."
                    raise DatabaseUnavailableError(sentence, is_passing=True)
                connection.invalidate()

    def gauges(self) -> dict[Series, float]:
        """Return how many connections are in use, idle, and waited for."""
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


@contextmanager
def _translated() -> Iterator[None]:
    """Count errors of the database, and raise DatabaseUnavailableError for those that can pass."""
    try:
        yield
    except (OSError, TimeoutError, PoolTimeoutError) as error:
        COUNTERS.database_errors[error_kind(error)] += 1
        raise translate_connecting(error) from error
    except (DBAPIError, asyncpg.PostgresError) as error:
        COUNTERS.database_errors[error_kind(error)] += 1
        translated = translate(error)
        if translated is None:
            raise
        raise translated from error
