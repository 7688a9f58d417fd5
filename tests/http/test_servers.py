"""The choice among several servers of DATABASE_URL, and deadlines."""

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from alembic import command
from sqlalchemy import Connection, Dialect, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.caches.tiles import TileCache
from localidades_api.catalogue.schemas import Release
from localidades_api.database import pool
from localidades_api.database.dsn import Dsn
from localidades_api.database.failures import error_kind, sqlstate_of, translate
from localidades_api.database.hosts import Servers
from localidades_api.database.import_lock import begin_import, begin_publication
from localidades_api.database.pool import Database, already_waited
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.embedded_postgres import run_embedded
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from localidades_api.observability.metrics import Series
from tests.support.application import running_app
from tests.support.database import connected
from tests.support.machine import reachable_folder
from tests.support.postgres import alembic_config, execute, name_of
from tests.support.waiting import eventually_async, in_thread


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u@h/d", ["u@h"]),
        ("postgresql:///d", [""]),
        ("postgresql://u:p%40@a:1,b:2/d", ["u:p%40@a:1", "u:p%40@b:2"]),
        ("postgresql://u@a,[::1]:5/d", ["u@a", "u@[::1]:5"]),
        ("postgresql://u@%2Frun:1,b/d", ["u@%2Frun:1", "u@b"]),
        ("postgresql://u@a,b/d?port=1,2", ["u@a port=1", "u@b port=2"]),
        ("postgresql://u@a,b/d?port=1", ["u@a port=1", "u@b port=1"]),
        ("postgresql://u@/d?host=a:1&host=b:2", ["u@ host=a:1", "u@ host=b:2"]),
        ("postgresql://u@/d?host=/run/a,/run/b&port=1,2", ["u@ host=/run/a port=1", "u@ host=/run/b port=2"]),
        ("postgresql://u@/d?host=/run/a&port=1", ["u@ host=/run/a port=1"]),
    ],
)
def test_address_with_several_hosts_is_split(url: str, hosts: list[str]) -> None:
    found = []
    for address in Dsn.parse(url).addresses:
        parts = urlsplit(address)
        options = parse_qs(parts.query)
        assert options.pop("application_name") == ["localidades-api"]
        found.append(" ".join([parts.netloc, *(f"{name}={value}" for name, (value,) in sorted(options.items()))]))
    assert found == hosts


def several(url: str, *, options: str = "", second: tuple[str, str] | None = None) -> str:
    """Return a URL with two hosts: a server and `second`, by default the same server spelled differently."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    folder, port = query["host"][0], query["port"][0]
    other, its_port = second or (f"{folder}/.", port)
    return f"postgresql://{parts.netloc}{parts.path}?host={folder},{other}&port={port},{its_port}{options}"


async def test_connections_are_spread_over_servers(seeded: str) -> None:
    servers = Servers(Dsn.parse(several(seeded)))
    used: Counter[str] = Counter()
    for _ in range(30):
        connection = await servers.connect(timeout=5)
        used[connection.server] += 1
        await connection.close()
    assert len(used) == 2


async def test_failed_server_is_avoided_while_another_works(seeded: str) -> None:
    servers = Servers(Dsn.parse(several(seeded)))
    first, second = Dsn.parse(several(seeded)).addresses
    assert servers.avoid(first)
    for _ in range(10):
        connection = await servers.connect(timeout=5)
        assert connection.server == second
        await connection.close()
    assert not servers.avoid(second)
    await (await servers.connect(timeout=5)).close()


async def test_primary_serves_if_no_preferred_standby_is_available(seeded: str) -> None:
    servers = Servers(Dsn.parse(several(seeded, options="&target_session_attrs=prefer-standby")))
    connection = await servers.connect(timeout=5)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


async def test_unresponsive_standby_is_avoided_while_the_primary_answers(seeded: str) -> None:
    asked: list[None] = []

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(None)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as broken:
        second = "127.0.0.1", str(broken.sockets[0].getsockname()[1])
        options = "&target_session_attrs=prefer-standby"
        servers = Servers(Dsn.parse(several(seeded, options=options, second=second)))
        await (await servers.connect(timeout=5)).close()
        before = len(asked)
        await (await servers.connect(timeout=5)).close()
    assert len(asked) == before > 0


async def test_missing_required_standby_is_unavailable(seeded: str) -> None:
    database = Database.for_reading(several(seeded, options="&target_session_attrs=standby"), pool_size=1, timeout=5)
    with pytest.raises(DatabaseUnavailableError, match="target_session_attrs in DATABASE_URL"):
        await database.fetch(text("SELECT 1"))
    await database.dispose()


@pytest.mark.parametrize("attributes", ["any", "primary", "read-write", "prefer-standby"])
async def test_primary_is_used_for_reading_and_for_writing(seeded: str, attributes: str) -> None:
    address = f"{seeded}&target_session_attrs={attributes}"
    for database in (Database.for_reading(address, pool_size=1, timeout=5), Database.for_writing(address)):
        assert [row[0] for row in await database.fetch(text("SELECT 1"))] == [1]
        await database.dispose()


@pytest.mark.parametrize(
    ("parameter", "named"),
    [
        ("statement_cache_size=0", 'unrecognized configuration parameter "statement_cache_size"'),
        ("options=endpoint%3Dsilent-sea", "invalid command-line argument for server process: endpoint=silent-sea"),
        ("max_connections=5", 'parameter "max_connections" cannot be changed without restarting the server'),
    ],
)
async def test_parameter_that_the_server_refuses_is_named(seeded: str, parameter: str, named: str) -> None:
    address = f"{seeded}&{parameter}"
    sentence = f"The server refuses a parameter of DATABASE_URL ({named}): correct or remove it."
    reading, writing = Database.for_reading(address, pool_size=1, timeout=5), Database.for_writing(address)
    with pytest.raises(DatabaseUnavailableError) as unavailable:
        await reading.fetch(text("SELECT 1"))
    with pytest.raises(ConfigurationError) as refused:
        async with writing.connect():
            pass
    assert (str(unavailable.value), str(refused.value)) == (sentence, sentence)
    assert unavailable.value.detail == "The database does not answer."


async def test_bad_port_is_refused_without_the_password() -> None:
    with pytest.raises(ConfigurationError) as caught:
        await Servers(Dsn.parse("postgresql://u:s3cr3t@h:port/d")).connect(timeout=1)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("callers", [1, 6])
async def test_statement_is_cancelled_at_the_deadline(seeded: str, callers: int) -> None:
    database = Database.for_reading(seeded, pool_size=2, timeout=1)
    try:
        slow = (database.fetch(text("SELECT pg_sleep(200)")) for _ in range(callers))  # longer than the test lasts
        for outcome in await asyncio.gather(*slow, return_exceptions=True):
            assert isinstance(outcome, DatabaseUnavailableError)
        assert [row[0] for row in await database.fetch(text("SELECT 1"))] == [1]
    finally:
        await database.dispose()


@pytest.mark.parametrize("is_always", [False, True])
async def test_connection_that_is_lost_while_it_is_set_up_is_replaced(seeded: str, *, is_always: bool) -> None:
    database = Database.for_reading(seeded, pool_size=1, timeout=5)
    lost: list[DBAPIConnection] = []

    def connect(dialect: Dialect, _record: object, args: tuple[Any, ...], options: dict[str, Any]) -> DBAPIConnection:
        connection = dialect.connect(*args, **options)
        if is_always or not lost:
            connection.driver_connection.terminate()
            lost.append(connection)
        return connection

    event.listen(database.engine.sync_engine, "do_connect", connect)
    try:
        if is_always:
            with pytest.raises(DatabaseUnavailableError):
                await database.fetch(text("SELECT 1"))
        else:
            assert [row[0] for row in await database.fetch(text("SELECT 1"))] == [1]
        assert len(lost) == (3 if is_always else 1)
    finally:
        await database.dispose()


async def test_deadline_includes_time_spent_waiting(seeded: str) -> None:
    database = Database.for_reading(seeded, pool_size=1, timeout=20)
    before = already_waited.set(19.5)
    try:
        with pytest.raises(DatabaseUnavailableError):
            await database.fetch(text("SELECT pg_sleep(15)"))  # within the deadline, without the time before it
    finally:
        already_waited.reset(before)
        await database.dispose()


@pytest.fixture(scope="module")
def lagging(seeded: str) -> Iterator[tuple[str, str]]:
    """Yield the folder and port of another server, whose database has the same name and no release."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    with reachable_folder() as folder, run_embedded(folder / "data", Path(chosen) if chosen else None) as server:
        execute(server, f"CREATE DATABASE {name_of(seeded)}")
        url = server.replace("/localidades?", f"/{name_of(seeded)}?")
        in_thread(lambda: command.upgrade(alembic_config(url), "head"))
        options = parse_qs(urlsplit(url).query)
        yield options["host"][0], options["port"][0]


RELEASES = text("SELECT id FROM releases")


async def release_of(url: str) -> Release:
    """Return the current release."""
    database = Database.for_reading(url, pool_size=1, timeout=5)
    try:
        release = (await get_release_snapshot(database)).current
        assert release is not None
        return release
    finally:
        await database.dispose()


async def connect_to_the_lagging(database: Database) -> None:
    """Fill a pool of one with a connection to the server without a release."""
    while await database.fetch(RELEASES):
        await database.engine.dispose()


async def test_connection_to_a_server_without_the_release_is_replaced(seeded: str, lagging: tuple[str, str]) -> None:
    release = await release_of(seeded)
    database = Database.for_reading(several(seeded, second=lagging), pool_size=1, timeout=5)
    try:
        await connect_to_the_lagging(database)
        assert await database.fetch_from(release, text("SELECT 1"))
        assert await database.fetch(RELEASES)
        for _ in range(5):
            await database.engine.dispose()
            assert await database.fetch(RELEASES)  # the server without it is avoided
    finally:
        await database.dispose()


async def test_refused_statement_is_an_unexpected_error(seeded: str) -> None:
    database = Database.for_reading(seeded, pool_size=1, timeout=5)
    try:
        with pytest.raises(DatabaseUnavailableError, match=r"\(42883\)") as caught:
            await database.fetch(text("SELECT nonesuch(1)"))
        assert caught.value.is_unforeseen
    finally:
        await database.dispose()


async def refused(url: str, sqlstate: str) -> DatabaseUnavailableError:
    """Return the error for a statement that the server ends with this SQLSTATE."""
    database = Database.for_reading(url, pool_size=1, timeout=5)
    try:
        with pytest.raises(DatabaseUnavailableError) as caught:
            await database.fetch(text(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{sqlstate}'; END $$"))
    finally:
        await database.dispose()
    return caught.value


@pytest.mark.parametrize(
    ("sqlstate", "sentence"),
    [
        ("08006", "connection to the database was lost"),
        ("25006", "is read-only"),
        ("28P01", "refuses this user or password"),
        ("3D000", "does not exist"),
        ("40001", "because of a conflict"),
        ("42501", "run `localidades-api roles`"),
        ("42601", "rejects one of the service's statements"),
        ("42703", "from another version of the service"),
        ("42P01", "run `localidades-api migrate`"),
        ("53100", "run out of connections, memory or disk"),
        ("55000", "does not accept connections"),
        ("55P03", "locked the database's tables for too long"),
        ("57014", "starting, stopping, or has cancelled"),
        ("58030", "system error"),
        ("XX001", "its files are damaged"),
    ],
)
async def test_error_of_the_server_is_unavailable_and_says_what_to_do(
    seeded: str, sqlstate: str, sentence: str
) -> None:
    error = await refused(seeded, sqlstate)
    assert sentence in str(error)
    assert f"{sqlstate})" in str(error)
    assert error.is_passing == (sqlstate == "40001")
    assert error.is_unforeseen == (sqlstate == "42601")


@pytest.mark.parametrize("sqlstate", ["22012", "P0001"])
async def test_error_of_a_statement_alone_is_not_unavailable(seeded: str, sqlstate: str) -> None:
    database = Database.for_reading(seeded, pool_size=1, timeout=5)
    try:
        with pytest.raises(DBAPIError) as caught:
            await database.fetch(text(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{sqlstate}'; END $$"))
    finally:
        await database.dispose()
    assert sqlstate_of(caught.value) == sqlstate
    assert error_kind(caught.value) == sqlstate[:2]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), "timeout"),
        (PoolTimeoutError(), "timeout"),
        (DBAPIError("SELECT 1", None, TimeoutError()), "timeout"),
        (DBAPIError("SELECT 1", None, OSError()), "connection"),
        (ConnectionRefusedError(), "connection"),
        (OSError(errno.EMFILE, "too many open files"), "descriptors"),
        (OSError(errno.ENFILE, "too many open files"), "descriptors"),
    ],
)
def test_error_without_a_sqlstate_is_counted_by_its_kind(error: Exception, kind: str) -> None:
    assert error_kind(error) == kind


def test_error_of_the_driver_without_a_sqlstate_is_unavailable() -> None:
    error = translate(DBAPIError("SELECT 1", None, OSError("the connection broke")))
    assert error is not None
    assert not error.is_passing


async def test_altered_table_is_still_read(seeded_database: str) -> None:
    database = Database.for_reading(seeded_database, pool_size=1, timeout=5)
    try:
        for type_ in ("integer", "bigint"):
            await asyncio.to_thread(
                execute, seeded_database, f"ALTER TABLE releases ALTER COLUMN localities TYPE {type_}"
            )
            assert await database.fetch(text("SELECT localities FROM releases"))
    finally:
        await database.dispose()


async def test_release_missing_on_every_server_is_unavailable(seeded: str) -> None:
    release = await release_of(seeded)
    database = Database.for_reading(several(seeded), pool_size=1, timeout=5)
    try:
        with pytest.raises(DatabaseUnavailableError, match="does not have the requested") as caught:
            await database.fetch_from((release, release.model_copy(update={"id": 99})), text("SELECT 1"))
        assert caught.value.is_passing
        assert await database.fetch_from(release, text("SELECT 1"))
    finally:
        await database.dispose()


async def test_release_is_checked_once_per_connection_and_after_empty_results(seeded: str) -> None:
    release = await release_of(seeded)
    database = Database.for_reading(seeded, pool_size=1, timeout=5)
    asked: list[str] = []

    def note(connection: Connection, cursor: object, statement: str, *rest: object) -> None:  # noqa: ARG001  # an event's
        asked.append("check" if "pg_inherits" in statement else "statement")

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        for _ in range(2):
            await database.fetch_from((release, release), text("SELECT 1"))
        await database.fetch_from(release, text("SELECT NULL, 0, ''"))
        await database.fetch_from(release, text("SELECT 1 WHERE false"))
        await database.fetch(text("SELECT 1 WHERE false"))
        await database.engine.dispose()
        await database.fetch_from(release, text("SELECT 1"))
    finally:
        await database.dispose()
    assert asked == [
        *("check", "statement", "statement"),
        *("statement", "check"),
        *("statement", "check"),
        "statement",
        *("check", "statement"),
    ]


async def test_read_sessions_have_timeouts(seeded: str) -> None:
    """The server cancels the statement shortly before the deadline, so the connection stays usable."""
    database = Database.for_reading(seeded, pool_size=1, timeout=20)
    expected = {
        "statement_timeout": "18s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "20s",
        "default_transaction_read_only": "on",
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
    }
    try:
        found = await database.fetch(
            text("SELECT name, current_setting(name) AS value FROM unnest(CAST(:names AS text[])) AS name"),
            {"names": [*expected]},
        )
        assert {row.name: row.value for row in found} == expected
    finally:
        await database.dispose()


async def test_session_that_writes_keeps_no_statement(seeded: str) -> None:
    """The check for a pooler runs first, and a pooler may not know a statement that another session has prepared."""
    database = Database.for_writing(seeded)
    try:
        async with database.connect() as lent:
            session = (await lent.get_raw_connection()).driver_connection
            assert session is not None
            for _ in range(2):
                await session.fetch("SELECT 1")
            assert await session.fetch("SELECT name FROM pg_prepared_statements") == []
    finally:
        await database.dispose()


@pytest.mark.parametrize(("begin", "lock_timeout"), [(begin_import, "10s"), (begin_publication, "1s")])
async def test_transactions_that_write_have_limits(
    seeded: str, begin: Callable[[AsyncConnection], Awaitable[None]], lock_timeout: str
) -> None:
    expected = {
        "statement_timeout": "15min",
        "lock_timeout": lock_timeout,
        "idle_in_transaction_session_timeout": "15min",
        "max_parallel_maintenance_workers": "0",
        "max_parallel_workers_per_gather": "0",
        "client_connection_check_interval": "1s",
    }
    database = Database.for_writing(seeded)
    try:
        async with database.connect() as connection:
            await begin(connection)
            assert {name: await connection.scalar(text(f"SHOW {name}")) for name in expected} == expected
    finally:
        await database.dispose()


async def test_failure_to_close_a_cache_leaves_no_connection_open(
    seeded_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: TileCache) -> None:
        raise RuntimeError("A cache can't be closed.")

    monkeypatch.setattr(TileCache, "close", fail)
    with pytest.raises(RuntimeError, match="A cache"):
        async with running_app(seeded_database, wants_names=False) as app:
            await app.state.database.fetch(text("SELECT 1"))
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with connected(seeded_database) as connection:
        assert await connection.fetchval(f"{others} AND application_name = 'localidades-api'") == 0


async def test_gauges_count_connections(seeded: str) -> None:
    database = Database.for_reading(seeded, pool_size=2, timeout=20)

    def connections(in_use: int, idle: int) -> dict[Series, float]:
        return {
            ("database_waiting",): 0,
            ("database_connections", "in_use"): in_use,
            ("database_connections", "idle"): idle,
            ("database_connections_limit",): 2,
        }

    try:
        assert database.gauges() == connections(0, 0)
        async with database.connect(), database.connect():
            assert database.gauges() == connections(2, 0)
        assert database.gauges() == connections(0, 2)
    finally:
        await database.dispose()


@pytest.mark.parametrize(("servers", "processes"), [(1, 1), (2, 3)])
async def test_old_connections_are_replaced(
    seeded: str, monkeypatch: pytest.MonkeyPatch, servers: int, processes: int
) -> None:
    """So a server that is back gets its share of the reads; with a single server it would gain nothing."""
    monkeypatch.setattr(pool, "MAX_CONNECTION_AGE", 0)
    database = Database.for_reading(seeded if servers == 1 else several(seeded), pool_size=1, timeout=5)
    try:
        used = [(await database.fetch(text("SELECT pg_backend_pid()")))[0][0] for _ in range(3)]
        assert len(set(used)) == processes
    finally:
        await database.dispose()


async def test_avoided_server_is_retried_after_a_while(seeded: str) -> None:
    servers = Servers(Dsn.parse(several(seeded)))
    avoided, _ = Dsn.parse(several(seeded)).addresses
    assert servers.avoid(avoided)

    async def is_asked() -> bool:
        connection = await servers.connect(timeout=5)
        await connection.close()
        return connection.server == avoided

    assert not await is_asked()
    await eventually_async(is_asked)


async def test_waiting_for_a_connection_takes_half_the_deadline_at_most(seeded: str) -> None:
    """A connection obtained later would leave no time to use it."""
    database = Database.for_reading(seeded, pool_size=1, timeout=2)
    try:
        first = asyncio.create_task(database.fetch(text("SELECT pg_sleep(20)")))
        await asyncio.sleep(0)
        second = asyncio.create_task(database.fetch(text("SELECT 1")))
        done, _ = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        assert done == {second}
        for refused in (second, first):
            with pytest.raises(DatabaseUnavailableError):
                await refused
    finally:
        await database.dispose()


async def test_statement_errors_do_not_leak_parameters(seeded: str) -> None:
    database = Database.for_reading(seeded, pool_size=1, timeout=5)
    try:
        with pytest.raises(DBAPIError, match="division by zero") as caught:
            await database.fetch(text("SELECT 1 / (length(CAST(:typed AS text)) - 6)"), {"typed": "s3cr3t"})
        assert "s3cr3t" not in str(caught.value)
    finally:
        await database.dispose()
