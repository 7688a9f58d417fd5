"""The choice among several servers of DATABASE_URL, and deadlines."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Dialect, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from localidades_api.database import hosts, pool
from localidades_api.database.dsn import Dsn
from localidades_api.database.failures import error_kind, sqlstate_of
from localidades_api.database.hosts import Servers
from localidades_api.database.pool import Database, already_waited
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from tests.support.postgres import execute
from tests.support.waiting import eventually_async

ONE = text("SELECT 1")
Opening = Callable[..., Database]


@pytest.fixture
async def reading() -> AsyncIterator[Opening]:
    """Yield a function that opens a database for reading until the test's end."""
    async with AsyncExitStack() as stack:

        def open_database(url: str, *, pool_size: int = 1, timeout: float = 5) -> Database:
            database = Database.for_reading(url, pool_size=pool_size, timeout=timeout)
            stack.push_async_callback(database.dispose)
            return database

        yield open_database


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql:///d", [""]),
        ("postgresql://u:p%40@a:1,b:2/d", ["u:p%40@a:1", "u:p%40@b:2"]),
        ("postgresql://u@%2Frun:1,[::1]:5/d", ["u@%2Frun:1", "u@[::1]:5"]),
        ("postgresql://u@a,b/d?port=1,2", ["u@a port=1", "u@b port=2"]),
        ("postgresql://u@a,b/d?port=1", ["u@a port=1", "u@b port=1"]),
        ("postgresql://u@/d?host=a:1&host=b:2", ["u@ host=a:1", "u@ host=b:2"]),
        ("postgresql://u@/d?host=/run/a,/run/b&port=1,2", ["u@ host=/run/a port=1", "u@ host=/run/b port=2"]),
    ],
)
def test_address_with_several_hosts_is_split(url: str, hosts: list[str]) -> None:
    found = []
    for parts in map(urlsplit, Dsn.parse(url).addresses):
        options = parse_qs(parts.query)
        assert options.pop("application_name") == ["localidades-api"]
        found.append(" ".join([parts.netloc, *(f"{name}={value}" for name, (value,) in sorted(options.items()))]))
    assert found == hosts


def several(url: str, *, options: str = "", second: tuple[str, int] | None = None) -> str:
    """Return a URL with two hosts: a server and `second`, by default the same server spelled differently."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    folder, port = query["host"][0], query["port"][0]
    other, its_port = second or (f"{folder}/.", port)
    return f"postgresql://{parts.netloc}{parts.path}?host={folder},{other}&port={port},{its_port}{options}"


async def test_reads_are_spread_and_a_failed_server_is_avoided_for_a_while(
    seeded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = Dsn.parse(several(seeded))
    servers, (first, second) = Servers(dsn), dsn.addresses

    async def used() -> str:
        connection = await servers.connect(timeout=5)
        await connection.close()
        return connection.server

    async def is_first() -> bool:
        return await used() == first

    assert {await used() for _ in range(30)} == {first, second}
    monkeypatch.setattr(hosts, "_AVOID_INTERVAL", 60)
    assert servers.avoid(first)
    assert {await used() for _ in range(10)} == {second}
    assert not servers.avoid(second)
    assert await used()
    monkeypatch.setattr(hosts, "_AVOID_INTERVAL", 0.1)
    assert not servers.avoid(first)
    await eventually_async(is_first)


async def test_primary_serves_while_a_preferred_standby_does_not_answer(seeded: str) -> None:
    asked: list[None] = []

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(None)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as broken:
        second = broken.sockets[0].getsockname()
        servers = Servers(Dsn.parse(several(seeded, options="&target_session_attrs=prefer-standby", second=second)))
        for _ in range(2):
            await (await servers.connect(timeout=5)).close()
            asked_first = len(asked)
        await (await servers.connect(timeout=5)).close()
    assert len(asked) == asked_first > 0


async def test_session_attributes_of_the_address_choose_the_server(seeded: str, reading: Opening) -> None:
    for attributes in ("any", "primary", "prefer-standby"):
        assert await reading(f"{seeded}&target_session_attrs={attributes}").fetch(ONE)
    with pytest.raises(DatabaseUnavailableError, match="target_session_attrs in DATABASE_URL"):
        await reading(several(seeded, options="&target_session_attrs=standby")).fetch(ONE)


@pytest.mark.parametrize(
    ("parameter", "named"),
    [
        ("statement_cache_size=0", 'unrecognized configuration parameter "statement_cache_size"'),
        ("options=endpoint%3Dsilent-sea", "invalid command-line argument for server process: endpoint=silent-sea"),
        ("max_connections=5", 'parameter "max_connections" cannot be changed without restarting the server'),
    ],
)
async def test_parameter_that_the_server_refuses_is_named(
    seeded: str, reading: Opening, parameter: str, named: str
) -> None:
    address = f"{seeded}&{parameter}"
    sentence = f"The server refuses a parameter of DATABASE_URL ({named}): correct or remove it."
    with pytest.raises(DatabaseUnavailableError) as unavailable:
        await reading(address).fetch(ONE)
    with pytest.raises(ConfigurationError) as refused:
        async with Database.for_writing(address).connect():
            pass
    assert (str(unavailable.value), str(refused.value)) == (sentence, sentence)
    assert unavailable.value.detail == "The database does not answer."


_UNREADABLE = "can't be read: write it like postgresql://"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PGPORT", "x", _UNREADABLE),
        ("PGUSER", None, _UNREADABLE),
        ("PGSSLMODE", "verify-full", "root certificate file .*does not exist"),
    ],
)
async def test_what_asyncpg_cannot_read_is_an_error_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, reason: str
) -> None:
    def fail() -> str:  # as for a user that the system doesn't know
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", fail)
    monkeypatch.setenv("HOME", "/nowhere")
    if value:
        monkeypatch.setenv(name, value)
    else:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=f"{name}.* {reason}"):
        await Servers(Dsn.parse(f"postgresql://{'u@' if value else ''}h.invalid/d")).connect(timeout=5)


# -- Deadlines


async def test_statements_are_cancelled_at_the_deadline(seeded: str, reading: Opening) -> None:
    """Also those that wait for a connection, half as long; then the connections are usable again."""
    database = reading(seeded, pool_size=2, timeout=2)
    slow = [asyncio.create_task(database.fetch(text("SELECT pg_sleep(200)"))) for _ in range(2)]
    await asyncio.sleep(0)
    late = asyncio.create_task(database.fetch(ONE))
    done, _ = await asyncio.wait({*slow, late}, return_when=asyncio.FIRST_COMPLETED)
    assert done == {late}
    outcomes = await asyncio.gather(*slow, late, return_exceptions=True)
    assert all(isinstance(outcome, DatabaseUnavailableError) for outcome in outcomes)
    assert [row[0] for row in await database.fetch(ONE)] == [1]


async def test_deadline_includes_time_spent_waiting(seeded: str, reading: Opening) -> None:
    before = already_waited.set(19.5)
    try:
        with pytest.raises(DatabaseUnavailableError):  # within the deadline, without the time before it
            await reading(seeded, timeout=20).fetch(text("SELECT pg_sleep(15)"))
    finally:
        already_waited.reset(before)


@pytest.mark.parametrize("is_always", [False, True])
async def test_connection_that_is_lost_while_it_is_set_up_is_replaced(
    seeded: str, reading: Opening, *, is_always: bool
) -> None:
    database = reading(seeded)
    lost: list[DBAPIConnection] = []

    def connect(dialect: Dialect, _record: object, args: tuple[Any, ...], options: dict[str, Any]) -> DBAPIConnection:
        connection = dialect.connect(*args, **options)
        if is_always or not lost:
            connection.driver_connection.terminate()
            lost.append(connection)
        return connection

    event.listen(database.engine.sync_engine, "do_connect", connect)
    if is_always:
        with pytest.raises(DatabaseUnavailableError):
            await database.fetch(ONE)
    else:
        assert [row[0] for row in await database.fetch(ONE)] == [1]
    assert len(lost) == (3 if is_always else 1)


@pytest.mark.parametrize(("servers", "processes"), [(1, 1), (2, 3)])
async def test_old_connections_are_replaced(
    seeded: str, reading: Opening, monkeypatch: pytest.MonkeyPatch, servers: int, processes: int
) -> None:
    """So a server that is back gets its share of the reads; with a single server it would gain nothing."""
    monkeypatch.setattr(pool, "MAX_CONNECTION_AGE", 0)
    database = reading(seeded if servers == 1 else several(seeded))
    used = [(await database.fetch(text("SELECT pg_backend_pid()")))[0][0] for _ in range(3)]
    assert len(set(used)) == processes


# -- Errors of the server


def failing(sqlstate: str) -> str:
    return f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{sqlstate}'; END $$"


async def test_error_of_the_server_is_unavailable_and_says_what_to_do(seeded: str, reading: Opening) -> None:
    database = reading(seeded)
    for sqlstate, sentence in {
        "08006": "connection to the database was lost",
        "28P01": "refuses this user or password",
        "40001": "because of a conflict",
        "42501": "deploy/postgres/roles.sql",
        "42601": "rejects one of the service's statements",
        "42703": "from another version of the service",
        "42P01": "run `localidades-api migrate`",
        "53100": "run out of connections, memory or disk",
        "55P03": "has locked the database's tables for too long",
    }.items():
        with pytest.raises(DatabaseUnavailableError, match=rf"{sentence}.*{sqlstate}\)") as caught:
            await database.fetch(text(failing(sqlstate)))
        assert (caught.value.is_passing, caught.value.is_unforeseen) == (sqlstate == "40001", sqlstate == "42601")


async def test_error_of_a_statement_alone_is_not_unavailable(seeded: str, reading: Opening) -> None:
    for sqlstate in ("22012", "P0001"):
        with pytest.raises(DBAPIError) as caught:
            await reading(seeded).fetch(text(failing(sqlstate)))
        assert (sqlstate_of(caught.value), error_kind(caught.value)) == (sqlstate, sqlstate[:2])
    with pytest.raises(DBAPIError, match="division by zero") as caught:
        await reading(seeded).fetch(text("SELECT 1 / (length(CAST(:typed AS text)) - 6)"), {"typed": "s3cr3t"})
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), "timeout"),
        (PoolTimeoutError(), "timeout"),
        (DBAPIError("SELECT 1", None, TimeoutError()), "timeout"),
        (DBAPIError("SELECT 1", None, OSError()), "connection"),
        (ConnectionRefusedError(), "connection"),
        (OSError(errno.EMFILE, "too many open files"), "descriptors"),
    ],
)
def test_error_without_a_sqlstate_is_counted_by_its_kind(error: Exception, kind: str) -> None:
    assert error_kind(error) == kind


async def test_reading_session_cannot_write_and_cancels_statements_before_the_deadline(
    seeded: str, reading: Opening
) -> None:
    database = reading(seeded, timeout=20)
    with pytest.raises(DatabaseUnavailableError, match="read-only"):
        await database.fetch(text("CREATE TABLE written ()"))
    assert [row[0] for row in await database.fetch(text("SHOW statement_timeout"))] == ["18s"]


async def test_altered_table_is_still_read(seeded_database: str, reading: Opening) -> None:
    database = reading(seeded_database)
    for type_ in ("integer", "bigint"):
        alter = f"ALTER TABLE releases ALTER COLUMN localities TYPE {type_}"
        await asyncio.to_thread(execute, seeded_database, alter)
        assert await database.fetch(text("SELECT localities FROM releases"))
