"""Reads through a pooler, which may give each transaction another session, even on another server.

A statement is one round trip all the same: it contains the check of its releases, and a connection remembers what the
driver has to know of it (decision 0031).
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement
from sqlalchemy import Connection, Executable, Row, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only

from localidades_api.catalogue.schemas import Release
from localidades_api.database.hosts import ServerConnection
from localidades_api.database.models import VERSION_TABLE
from localidades_api.database.sessions import SharedSessions, limits, set_limits, unique_name
from localidades_api.database.sqlstate import sqlstate_of
from localidades_api.errors import DatabaseUnavailableError

_MAX_DESCRIBED = 100  # statements, as many as SQLAlchemy keeps for a connection to Postgres itself
_CHECKED = "/* checked */ SELECT * FROM ("
# The pooler no longer knows the statement, or a session knows it with other columns.
_NOT_AS_DESCRIBED = frozenset({"0A000", "26000", "42P05"})


class PooledConnection(ServerConnection):
    """A connection that remembers the descriptions of checked statements.

    Where the pooler keeps prepared statements for its clients, they have names, and Postgres keeps their plans.
    """

    sessions: SharedSessions  # set once it is connected

    def __init__(self, *given: Any) -> None:  # noqa: ANN401  # asyncpg's
        super().__init__(*given)
        self._described: dict[str, PreparedStatement[Any]] = {}

    async def prepare(self, query: str, *, name: str | None = None, **options: Any) -> "PreparedStatement[Any]":  # noqa: ANN401  # asyncpg's
        """Describe a statement, unless it is a checked one that has been described."""
        if not query.startswith(_CHECKED):
            described: PreparedStatement[Any] = await super().prepare(query, name=name, **options)
            return described
        if query not in self._described:
            if len(self._described) == _MAX_DESCRIBED:
                del self._described[next(iter(self._described))]
            self._described[query] = await self._describe(query)
        return self._described[query]

    async def _describe(self, query: str) -> "PreparedStatement[Any]":
        """Describe a checked statement, which then returns rows only where its columns have the types described.

        The types are those of a version of the schema. A statement that is parsed keeps migrations waiting until the
        end of its transaction, so the version that is read after it is that of the description. The text names the
        version, so no session has a plan of it from an earlier one.
        """
        is_described = f"EXISTS (SELECT FROM {VERSION_TABLE} WHERE version_num = '{self.sessions.schema_version}')"
        name = unique_name() if self.sessions.keep_statements else ""
        try:
            await self.execute("BEGIN")
            described: PreparedStatement[Any] = await super().prepare(f"{query} AND {is_described}", name=name)
            found = await self.execute(f"SELECT WHERE {is_described}")
            await self.execute("ROLLBACK")
        except BaseException:
            self.terminate()
            raise
        if found != "SELECT 1":
            raise asyncpg.InvalidCachedStatementError("a migration has changed the schema")
        return described


POOLED_OPTIONS: Mapping[str, Any] = {"connection_class": PooledConnection, "statement_cache_size": 0}


def engine_options(connect: Callable[[], Awaitable[asyncpg.Connection]]) -> dict[str, Any]:
    """Return options of an engine that leaves it to its connections what they remember of statements.

    SQLAlchemy drops these arguments beside its own option `async_creator`.
    """

    async def connect_anywhere(**_: object) -> asyncpg.Connection:
        return await connect()

    return {"connect_args": {"async_creator_fn": connect_anywhere, "prepared_statement_cache_size": 0}}


def add_checks(engine: AsyncEngine) -> None:
    """Have statements with the execution option `releases` return no rows on a server that lacks one of them."""
    event.listen(engine.sync_engine, "before_cursor_execute", _with_checks, retval=True)


def _with_checks(
    _connection: object,
    _cursor: object,
    statement: str,
    values: tuple[Any, ...],
    context: Any,  # noqa: ANN401  # its type lacks execution_options
    _many: object,
) -> tuple[str, tuple[Any, ...]]:
    releases: Sequence[Release] = context.execution_options.get("releases", ())
    if not releases:
        return statement, values
    checks = []
    for release in releases:
        number = len(values)
        checks.append(f"EXISTS (SELECT FROM releases WHERE id = ${number + 1} AND published_at = ${number + 2})")
        values = (*values, release.id, release.published_at)
    return f"{_CHECKED}{statement}) AS found WHERE {' AND '.join(checks)}", values


def fetch_checked(
    connection: Connection,
    statement: Executable,
    parameters: Mapping[str, Any] | None,
    releases: Sequence[Release],
    deadline: float,
) -> Sequence[Row[Any]]:
    """Run a SELECT where the server has these releases. Rows are its answer; the lack of rows may have another reason.

    The server lacks a release, a migration has changed the schema, or the pooler no longer knows the statement.
    """
    if not _driver_of(connection).sessions.have_limits(deadline):
        return ()
    try:
        return connection.execute(statement, parameters, execution_options={"releases": releases}).all()
    except DBAPIError as error:
        if sqlstate_of(error) not in _NOT_AS_DESCRIBED:
            raise
        connection.invalidate()
        return ()


@contextmanager
def one_transaction(connection: Connection, deadline: float) -> Iterator[None]:
    """Stay with one session, in a transaction whose limits are those of the deadline.

    It begins and ends in the driver, which costs a worker less than in SQLAlchemy. After an error the connection is
    closed, and the pooler ends the transaction.
    """
    connection.info.pop("releases", None)  # another server may have had them
    connection.info["is_shared"] = True
    driver = _driver_of(connection)
    begin = "BEGIN" if driver.sessions.have_limits(deadline) else f"BEGIN; {set_limits(limits(deadline))}"
    try:
        await_only(driver.execute(begin))
        yield
        await_only(driver.execute("ROLLBACK"))
    except asyncpg.InterfaceError as error:  # the connection is closed
        connection.invalidate()
        raise DatabaseUnavailableError(is_passing=True) from error
    except BaseException:
        connection.invalidate()
        raise


def _driver_of(connection: Connection) -> PooledConnection:
    return cast("PooledConnection", connection.connection.driver_connection)
