"""A bounded pool of connections to Postgres: deadlines, retries, and servers that have the release."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Self, cast

import asyncpg
from sqlalchemy import Connection, Executable, Row, bindparam, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import greenlet_spawn

from localidades_api.catalogue.schemas import Release
from localidades_api.database.dsn import Dsn
from localidades_api.database.failures import error_kind, translate, translate_connecting, translate_refusal
from localidades_api.database.hosts import ServerConnection, Servers
from localidades_api.database.models import releases
from localidades_api.database.sessions import refuse_pooler, require_own_session, session_settings, transaction_settings
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError, OverloadedError
from localidades_api.observability.metrics import COUNTERS, Series

_MAX_PREPARED_STATEMENTS = 100  # per connection to Postgres itself; SQLAlchemy's default
_MAX_ATTEMPTS = 3  # of a SELECT, each on another connection
# Seconds until a connection to one of several servers is replaced, so that a server that is back is used again.
MAX_CONNECTION_AGE = 600

# Seconds that a request has spent in the queue; they count towards its deadline.
already_waited: ContextVar[float] = ContextVar("already_waited", default=0.0)
# Whether a request may use the database. One that got no slot may not, but is answered if the caches suffice.
may_use_database: ContextVar[bool] = ContextVar("may_use_database", default=True)

# A recreated database numbers its releases from 1 again, so the time of publication is compared as well.
_PUBLISHED = select(
    releases.c.id,
    releases.c.retired_at,
    text(
        "EXISTS (SELECT FROM pg_inherits WHERE inhparent = to_regclass('localities')"
        " AND inhrelid = to_regclass('localities_r' || releases.id) AND NOT inhdetachpending) AS is_attached"
    ),
).where(releases.c.id == bindparam("release_id"), releases.c.published_at == bindparam("moment"))


class Database:
    """A pool of connections to one Postgres, or to a primary and its standbys."""

    def __init__(
        self, url: str, engine: AsyncEngine, servers: Servers, timeout: float, *, is_pooled: bool = False
    ) -> None:
        self.url = url
        self.engine = engine
        self._is_pooled = is_pooled
        self._transaction_settings = transaction_settings(timeout)
        self.timeout = timeout  # seconds
        self.waiting = 0  # requests that wait for a connection
        self._servers = servers

    @classmethod
    def for_reading(cls, url: str, *, pool_size: int, timeout: float) -> Self:
        """Open a pool of read-only sessions, whose statements end within `timeout` seconds.

        Sessions are in autocommit, so a statement takes one round trip, without BEGIN and COMMIT. A pooler may give
        each transaction another session: behind one, each statement is a transaction, and none is prepared
        (docs/decisions/standbys.md).
        """
        dsn = Dsn.parse(url)
        servers = Servers(dsn)
        options = {"statement_cache_size": 0} if dsn.is_pooled else {"server_settings": session_settings(timeout)}

        async def connect(**_: object) -> asyncpg.Connection:
            while True:
                connection = await servers.connect(timeout=timeout, **options)
                try:
                    if dsn.is_pooled:  # a pooler accepts clients while it reaches no server
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
                "prepared_statement_cache_size": 0 if dsn.is_pooled else _MAX_PREPARED_STATEMENTS,
            },
            isolation_level=None if dsn.is_pooled else "AUTOCOMMIT",
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=timeout / 2,  # leaves time to use the connection, or to replace it
            pool_recycle=MAX_CONNECTION_AGE if len(dsn.addresses) > 1 else -1,
            hide_parameters=True,  # keep clients' values out of the log
        )
        return cls(url, engine, servers, timeout, is_pooled=dsn.is_pooled)

    @classmethod
    def for_writing(cls, url: str, timeout: float = 10) -> Self:
        """Open a pool of one connection, for migrations and imports; of several servers, to the primary.

        Connecting raises ConfigurationError through a pooler that shares sessions among transactions.
        """
        dsn = Dsn.parse(url)
        servers = Servers(dsn)
        options = {"target_session_attrs": "primary"} if len(dsn.addresses) > 1 else {}

        async def open_connection() -> asyncpg.Connection:
            return await servers.connect(timeout=dsn.connect_timeout or 10, statement_cache_size=0, **options)

        async def connect() -> asyncpg.Connection:
            connection = await open_connection()
            try:
                await require_own_session(connection, open_connection)
            except BaseException:
                connection.terminate()
                raise
            return connection

        engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, pool_size=1, max_overflow=0)
        return cls(url, engine, servers, timeout)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection; raise DatabaseUnavailableError if the database can't answer now."""
        with _translate_errors():
            async with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def _lend(self) -> Iterator[Connection]:
        with _translate_errors():
            self.waiting += 1
            try:
                connection = self.engine.sync_engine.connect()
            finally:
                self.waiting -= 1
            with connection:
                yield connection

    async def fetch(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        """Run a SELECT within the deadline and return its rows, or raise DatabaseUnavailableError.

        The server may lack the newest release; use `fetch_from` to read a release.
        """
        return await self.fetch_from((), statement, parameters)

    async def fetch_from(
        self, release: Release | Sequence[Release], statement: Executable, parameters: Mapping[str, Any] | None = None
    ) -> Sequence[Row[Any]]:
        """Read one or several releases as `fetch` does, on a server that has all of them; `:release_id` is the first.

        A server that lags, or that was promoted without the last publication, would return no rows, which looks like a
        right answer. Raises DatabaseUnavailableError if no server has the releases.

        A pooled connection may have died since it was last used. A ping before each use would double the round trips
        of every request, so a SELECT that meets a dead connection is run again on a new one.
        """
        wanted = (release,) if isinstance(release, Release) else release
        parameters = {"release_id": wanted[0].id if wanted else None, **(parameters or {})}
        try:
            async with asyncio.timeout(self.timeout - already_waited.get()):
                for _ in range(_MAX_ATTEMPTS - 1):
                    try:
                        return await greenlet_spawn(self._fetch_once, wanted, statement, parameters)
                    except DatabaseUnavailableError as error:
                        if not error.is_passing:
                            raise
                return await greenlet_spawn(self._fetch_once, wanted, statement, parameters)
        except TimeoutError as error:
            COUNTERS.database_errors[error_kind(error)] += 1
            raise DatabaseUnavailableError from error
        except ConfigurationError as error:  # the connection goes through a pooler
            raise DatabaseUnavailableError(str(error)) from error
        except DBAPIError as error:
            if (refusal := translate_refusal(error)) is None:
                raise
            raise refusal from error

    def _fetch_once(
        self, wanted: Sequence[Release], statement: Executable, parameters: Mapping[str, Any] | None
    ) -> Sequence[Row[Any]]:
        """Run a SELECT on the first connection whose server has these releases, and close the connections to others.

        It runs in one greenlet; SQLAlchemy's asynchronous connection takes one for each step, and a task to close.
        """
        if not may_use_database.get():
            raise OverloadedError
        while True:
            with self._lend() as connection:
                if self._is_pooled:
                    connection.info.pop("releases", None)  # another server may have been behind the pooler then
                    connection.execute(self._transaction_settings)
                if _has_releases(connection, wanted):
                    rows = connection.execute(statement, parameters).all()
                    # Rows that were removed in the meantime look like an empty result.
                    if any(map(any, rows)) or _has_releases(connection, wanted, recheck=True):
                        return rows
                if not self._servers.avoid(cast("ServerConnection", connection.connection.driver_connection).server):
                    message = "The database server does not have the requested release yet."
                    raise DatabaseUnavailableError(message, is_passing=True)
                connection.invalidate()

    def gauges(self) -> dict[Series, float]:
        """Return how many connections are in use and idle, and how many requests wait for one."""
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


def _has_releases(connection: Connection, wanted: Sequence[Release], *, recheck: bool = False) -> bool:
    """Return True if the connection's server has these releases.

    Each connection checks each release once, and remembers those that its server has. It has to `recheck` them when a
    statement returns no rows: a retired release is read for another moment, and then its rows are removed. A partition
    that is still attached now was attached when the statement ran.
    """
    known = connection.info.setdefault("releases", set())
    for release in wanted:
        key = (release.id, release.published_at)
        if recheck or key not in known:
            parameters = {"release_id": release.id, "moment": release.published_at}
            found = connection.execute(_PUBLISHED, parameters).first()
            if found is None or (recheck and found.retired_at and not found.is_attached):
                known.discard(key)
                return False
            known.add(key)
    return True


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Count errors of the database, and raise DatabaseUnavailableError for those that may be temporary."""
    try:
        yield
    except (OSError, TimeoutError, PoolTimeoutError) as error:
        COUNTERS.database_errors[error_kind(error)] += 1
        raise translate_connecting(error) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # SQLAlchemy does not wrap the driver's errors while it sets a connection up, which was lost then.
        COUNTERS.database_errors[error_kind(error)] += 1
        raise DatabaseUnavailableError(is_passing=True) from error
    except (DBAPIError, asyncpg.PostgresError) as error:
        COUNTERS.database_errors[error_kind(error)] += 1
        translated = translate(error)
        if translated is None:
            raise
        raise translated from error
