"""Connections to Postgres: a bounded pool, and a deadline for each statement."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol, Self, cast

import asyncpg
from sqlalchemy import Connection, Executable, Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import greenlet_spawn

from localidades_api.catalogue.schemas import Release
from localidades_api.database.dsn import Dsn
from localidades_api.database.hosts import ServerConnection, Servers
from localidades_api.database.pooler import (
    POOLED_OPTIONS,
    PooledConnection,
    add_checks,
    engine_options,
    fetch_checked,
    one_transaction,
)
from localidades_api.database.sessions import check_session, refuse_pooler, require_own_session, session_settings
from localidades_api.database.sqlstate import (
    error_kind,
    translate,
    translate_connecting,
    translate_refusal,
)
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from localidades_api.observability.metrics import COUNTERS, Series

_log = logging.getLogger("uvicorn.error")

_MAX_ATTEMPTS = 3  # of a SELECT, on as many connections
# Seconds after which a connection to one of several servers is replaced, so that a server that has come back is used;
# one to a pooler, so that it knows the version of the schema, and whether statements are kept.
MAX_CONNECTION_AGE = 600

# Seconds that a request has spent in the queue, which count towards the deadline.
already_waited: ContextVar[float] = ContextVar("already_waited", default=0.0)


class ReplicaCheck(Protocol):
    """Tells whether the server of a connection can answer; `anew` asks again even if it has said yes before."""

    @property
    def releases(self) -> Sequence[Release]:
        """Return the releases that the server has to have."""

    def __call__(self, connection: Connection, *, anew: bool = False) -> bool:
        """Return whether it can."""


class Database:
    """A pool of connections to one Postgres, or to a primary and its standbys."""

    def __init__(
        self, engine: AsyncEngine, servers: Servers, timeout: float = 10, *, shares_sessions: bool = False
    ) -> None:
        self.engine = engine
        self._shares_sessions = shares_sessions
        self.timeout = timeout  # seconds
        self.waiting = 0  # requests that wait for a connection
        self._servers = servers

    @classmethod
    def for_reading(cls, url: str, *, pool_size: int, timeout: float) -> Self:
        """Open a pool of read-only sessions, whose statements end within `timeout` seconds.

        They are in autocommit: a statement is one round trip, without BEGIN and COMMIT.
        """
        dsn = Dsn.parse(url)
        servers = Servers(dsn)
        wishes = POOLED_OPTIONS if dsn.is_pooled else {"server_settings": session_settings(timeout)}

        async def connect() -> asyncpg.Connection:
            while True:
                connection = await servers.connect(timeout=timeout, **wishes)
                try:
                    if dsn.is_pooled:  # isinstance() takes any connection of asyncpg for one of each of its subclasses
                        cast("PooledConnection", connection).sessions = await check_session(connection)
                    else:
                        await refuse_pooler(connection)
                except BaseException as error:
                    connection.terminate()
                    # A pooler lets clients in while it reaches no server; another one may reach its own.
                    if isinstance(error, asyncpg.PostgresError | OSError) and servers.avoid(connection.server):
                        continue
                    raise
                return connection

        engine = create_async_engine(
            "postgresql+asyncpg://",
            **(engine_options(connect) if dsn.is_pooled else {"async_creator": connect}),
            isolation_level="AUTOCOMMIT",
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=timeout / 2,  # leaves time to use the connection, or to replace it
            pool_recycle=MAX_CONNECTION_AGE if dsn.is_pooled or len(dsn.addresses) > 1 else -1,
            hide_parameters=True,  # keep what clients send out of the log
        )
        if dsn.is_pooled:
            add_checks(engine)
        return cls(engine, servers, timeout, shares_sessions=dsn.is_pooled)

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
        except ConfigurationError as error:  # the pooler's sessions have lost their settings since the start
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
        if replica_check and self._shares_sessions:
            with self._lend() as connection:
                rows = fetch_checked(connection, statement, parameters, replica_check.releases, self.timeout)
            if any(map(any, rows)):
                return rows
        while True:
            with self._lend() as connection, self._one_server(connection):
                if replica_check is None or replica_check(connection):
                    rows = connection.execute(statement, parameters).all()
                    # Rows that were removed in the meantime look like an empty result.
                    if replica_check is None or any(map(any, rows)) or replica_check(connection, anew=True):
                        return rows
                if not self._servers.avoid(cast("ServerConnection", connection.connection.driver_connection).server):
                    sentence = "The database server does not have the requested release yet."
                    raise DatabaseUnavailableError(sentence, is_passing=True)
                connection.invalidate()

    async def check_sessions(self) -> None:
        """Raise ConfigurationError if a pooler's sessions lack settings; log what costs time only.

        What gives no session now is checked later, with each connection.
        """
        if not self._shares_sessions:
            return
        try:
            async with self.connect() as connection:
                driver = (await connection.get_raw_connection()).driver_connection
                remark = cast("PooledConnection", driver).sessions.remark
        except DatabaseUnavailableError as error:
            remark = f"The pooler gives no session: its settings are checked once it gives one. {error}"
        if remark:
            _log.warning(remark)

    def _one_server(self, connection: Connection) -> AbstractContextManager[None]:
        """Stay with one server, as a connection to Postgres itself always does."""
        return one_transaction(connection, self.timeout) if self._shares_sessions else nullcontext()

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
