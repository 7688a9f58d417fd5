"""Connections to Postgres: a bounded pool, a deadline, driver errors in one place."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol, Self, cast

import asyncpg
from sqlalchemy import Executable, Row
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool

from localidades_api.errors import DatabaseUnavailableError
from localidades_api.observability.metrics import COUNTERS, Series
from localidades_api.storage.hosts import Connection, Dsn, Servers

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


_NO_TLS = "rejected SSL upgrade"  # asyncpg's words; the error has no type of its own
_REPLANNED = "0A000"  # a table was altered since the statement was prepared: it is prepared anew
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_TOO_MANY_FILES = (
    "No connection to the database can be opened, for too many files are open here: raise the limit (ulimit -n),"
    " or lower LOCALIDADES_MAX_CONNECTIONS."
)
_CONFLICT = "40001"  # on a standby: replay went before what was being read
# SQLSTATE classes (and codes) that say "not now", each with what an operator is told of it.
_UNAVAILABLE = {
    "08": "The connection to the database was lost.",
    "0A000": "The database's tables were altered meanwhile: try again.",
    "25006": "The database can only be read: it is a standby, or the role may not write.",
    "28": "The database refuses this user or password: correct DATABASE_URL.",
    "3D": "The database that DATABASE_URL names does not exist: create it, or correct the address.",
    "40001": "The database gave up on a conflict; try again.",
    "42P01": "The database lacks the service's tables: run `localidades-api migrate`.",
    "53": "The database has no connection, memory or disk left: give it more.",
    "55000": "The database does not take connections.",
    "55P03": "Somebody else holds a lock on the database's tables for too long: try again.",
    "57": "The database is starting, stopping, or has cancelled the statement: try again.",
    "58": "The database's system is at fault: see its log.",
    "XX": "The database finds a fault of its own, or its files are damaged: see its log.",
}
# What a server says to a SELECT of ours that it does not run, whoever asks.
_REFUSED = {
    "42501": "The database refuses to let the service read: run `localidades-api roles`, or grant the role its rights.",
    "42703": "The database's tables are of another version of the service: run `localidades-api migrate`.",
    "42": "The database refuses a statement of the service; if its tables are of another version, run"
    " `localidades-api migrate`.",
}


def sqlstate_of(error: Exception) -> str | None:
    """Return the SQLSTATE that a server answered with; SQLAlchemy's errors have the driver's below them."""
    below: BaseException | None = error
    while below is not None:
        if sqlstate := getattr(below, "sqlstate", None):
            return str(sqlstate)
        below = below.__cause__
    return None


def _kind(error: Exception) -> str:
    """Return the class of SQLSTATE, or what has one word for it (`metrics`)."""
    if sqlstate := sqlstate_of(error):
        return sqlstate[:2]
    if getattr(error, "errno", None) in _NO_DESCRIPTOR:
        return "descriptors"
    causes = (error, error.orig if isinstance(error, DBAPIError) else None)
    return "timeout" if any(isinstance(one, TimeoutError | PoolTimeoutError) for one in causes) else "connection"


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
            COUNTERS.database_errors[_kind(error)] += 1
            raise _translate_connecting(error) from error
        except (DBAPIError, asyncpg.PostgresError) as error:
            COUNTERS.database_errors[_kind(error)] += 1
            translated = _translate(error)
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
        self, statement: Executable, parameters: Mapping[str, Any] | None = None, *, suits: ReplicaCheck | None = None
    ) -> Sequence[Row[Any]]:
        """Run a SELECT and return its rows, or raise DatabaseUnavailableError, within the deadline.

        A pooled connection may have died since it was last used. Asking it first would double the round trips of
        every request; instead a SELECT that meets a dead one is run again, on a new one. `suits` tells whether the
        server of a connection can be asked; if not, another is.
        """
        try:
            async with asyncio.timeout(self.timeout - already_waited.get()):
                for _ in range(_MAX_ATTEMPTS - 1):
                    try:
                        return await self._fetch_once(statement, parameters, suits)
                    except DatabaseUnavailableError as error:
                        if not error.is_passing:
                            raise
                return await self._fetch_once(statement, parameters, suits)
        except TimeoutError as error:
            COUNTERS.database_errors[_kind(error)] += 1
            raise DatabaseUnavailableError from error
        except DBAPIError as error:
            if (refusal := _translate_refusal(error)) is None:
                raise
            raise refusal from error

    async def _fetch_once(
        self, statement: Executable, parameters: Mapping[str, Any] | None, suits: ReplicaCheck | None
    ) -> Sequence[Row[Any]]:
        """Run a SELECT on the first connection that suits; those to servers that do not are given up for others."""
        while True:
            async with self.connect() as connection:
                if suits is None or await suits(connection):
                    rows = (await connection.execute(statement, parameters)).all()
                    # What has been taken away meanwhile looks as if there were nothing.
                    if suits is None or any(map(any, rows)) or await suits(connection, anew=True):
                        return rows
                driver = (await connection.get_raw_connection()).driver_connection
                if not self._servers.avoid(cast("Connection", driver).server):
                    raise DatabaseUnavailableError("The server has not got what is asked for yet.", is_passing=True)
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


def _translate_connecting(error: Exception) -> DatabaseUnavailableError:
    """Return what is wrong with a server that can't be talked to, if it is more than that it does not answer."""
    if getattr(error, "errno", None) in _NO_DESCRIPTOR:
        return DatabaseUnavailableError(
            _TOO_MANY_FILES, detail="The service has no file descriptor left to ask the database with."
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return DatabaseUnavailableError(
            f"The database's certificate is refused ({error.verify_message.rstrip('.')}): renew it, or correct the"
            " host, sslmode or sslrootcert of DATABASE_URL."
        )
    if isinstance(error, ssl.SSLError):
        return DatabaseUnavailableError(
            f"TLS with the database fails ({error.reason}): see its log, and sslmode and sslcert of DATABASE_URL."
        )
    if _NO_TLS in str(error):
        return DatabaseUnavailableError("The database has no TLS, which sslmode of DATABASE_URL demands.")
    return DatabaseUnavailableError()


def _translate(error: DBAPIError | asyncpg.PostgresError) -> DatabaseUnavailableError | None:
    """Return what a driver's error says of the database, if it says "not now"."""
    sqlstate = sqlstate_of(error)
    is_passing = sqlstate in {_CONFLICT, _REPLANNED} or (isinstance(error, DBAPIError) and error.connection_invalidated)
    if sqlstate is None or isinstance(error, InterfaceError):
        return DatabaseUnavailableError(is_passing=is_passing)
    if sentence := _sentence(_UNAVAILABLE, sqlstate):
        return DatabaseUnavailableError(sentence, is_passing=is_passing)
    return None


def _translate_refusal(error: DBAPIError) -> DatabaseUnavailableError | None:
    """Return what it means that a SELECT was not run: a right, a table or a column is missing."""
    sentence = _sentence(_REFUSED, sqlstate := sqlstate_of(error) or "")
    return DatabaseUnavailableError(sentence, is_unforeseen=sqlstate not in _REFUSED) if sentence else None


def _sentence(sentences: Mapping[str, str], sqlstate: str) -> str | None:
    """Return the first sentence for a SQLSTATE or its class, with the SQLSTATE."""
    found = (sentence for beginning, sentence in sentences.items() if sqlstate.startswith(beginning))
    return f"{sentence[:-1]} ({sqlstate})." if (sentence := next(found, None)) else None
