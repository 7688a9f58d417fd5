"""The service and its commands behind a real PgBouncer, with the settings of the page on deployment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from sqlalchemy import text

from localidades_api.database.pool import Database
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.database.sessions import session_settings
from localidades_api.errors import DatabaseUnavailableError
from tests.support.catalogue import many, write_catalogue
from tests.support.pooler import Pooler, pooling
from tests.support.postgres import execute, new_database, out_of_reach
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, ask, environment, run, serving

pytestmark = pytest.mark.tail


def before(server: str, **options: Any) -> AbstractContextManager[Pooler]:  # noqa: ANN401  # passed on
    """Run PgBouncer in front of the run's Postgres."""
    address = parse_qs(urlsplit(server).query)
    return pooling(f"{address['host'][0]}:{address['port'][0]}", **options)


# -- Statements


@asynccontextmanager
async def reading(pooler: Pooler, url: str, size: int = 1, deadline: float = 1.9) -> AsyncIterator[Database]:
    """Yield a database behind a pooler, as a superuser."""
    database = Database.for_reading(pooler.url(url), pool_size=size, timeout=deadline)
    try:
        yield database
    finally:
        await database.dispose()


@pytest.mark.parametrize(("mode", "sessions"), [("session", 8), ("transaction", 2)])
async def test_statements_stay_in_their_transaction(
    server: str, seeded_database: str, mode: str, sessions: int
) -> None:
    """Eight connections share two sessions, and each statement gets its own result, even after errors."""

    async def ask_in_turn(number: int) -> None:
        for other in range(50):
            assert (await database.fetch(text(f"SELECT :a * {number}"), {"a": other}))[0][0] == number * other
            if other % 10 == 0:
                with pytest.raises(DatabaseUnavailableError):
                    await database.fetch(text("SELECT nonesuch(1)"))

    with before(server, mode=mode, default_pool_size=sessions) as pooler:
        async with reading(pooler, seeded_database, 8) as database:
            await asyncio.gather(*map(ask_in_turn, range(8)))


async def test_statements_are_unnamed_and_check_their_release(server: str, seeded_database: str) -> None:
    """A named statement might be that of another process, and the database may be another than before."""
    with before(server, default_pool_size=1) as pooler:
        async with reading(pooler, seeded_database) as database:
            release = (await get_release_snapshot(database)).current
            assert release is not None
            counted = (release, text("SELECT localities FROM releases WHERE id = :id"), {"id": release.id})
            assert (await database.fetch_from(*counted))[0][0] == 132
            assert await database.fetch(text("SELECT name FROM pg_prepared_statements")) == []
            execute(seeded_database, "UPDATE releases SET published_at = published_at + interval '1 second'")
            with pytest.raises(DatabaseUnavailableError, match="does not have the requested release"):
                await database.fetch_from(*counted)


@pytest.mark.parametrize("deadline", [1.9, 60])
async def test_transactions_are_read_only_with_timeouts(server: str, seeded_database: str, deadline: float) -> None:
    expected = {**session_settings(deadline), "transaction_read_only": "on", "plan_cache_mode": "force_custom_plan"}
    statement = text("SELECT name, setting FROM pg_settings WHERE name = ANY(CAST(:names AS text[]))")
    with before(server, default_pool_size=1) as pooler:
        async with reading(pooler, seeded_database, deadline=deadline) as database:
            found = await database.fetch(statement, {"names": [*expected]})
            assert {row.name: row.setting for row in found} == expected
            with pytest.raises(DatabaseUnavailableError, match="read-only"):
                await database.fetch(text("DELETE FROM releases RETURNING id"))


def test_service_recovers_when_the_database_is_back(server: str, seeded_database: str) -> None:
    with before(server) as pooler, serving(pooler.url(seeded_database)) as live:
        assert ask(live.base, LOCALIDADES).status == 200
        not_cached = f"{LOCALIDADES}10010002/"
        with out_of_reach(server, seeded_database):
            eventually(lambda: ask(live.base, not_cached).status == 503)
            assert ask(live.base, LOCALIDADES).status == 200
        eventually(lambda: ask(live.base, not_cached).status == 200, within=10, otherwise=live.output.read_text)


# -- Errors of the pooler


@pytest.mark.parametrize(
    ("settings", "query", "sentence"),
    [
        ({}, "sslmode=disable", "add pgbouncer=true to the parameters of DATABASE_URL"),
        ({"ignore_startup_parameters": ",".join(session_settings(1))}, "sslmode=disable", "add pgbouncer=true"),
        ({"max_client_conn": 2}, None, "raise its max_client_conn"),
        ({"default_pool_size": 1, "query_wait_timeout": 0.3}, None, "raise its default_pool_size"),
    ],
    ids=["not mentioned", "settings ignored", "too many clients", "no free session"],
)
async def test_pooler_error_is_explained(
    server: str, seeded_database: str, settings: dict[str, Any], query: str | None, sentence: str
) -> None:
    with before(server, **settings) as pooler:
        url = pooler.url(seeded_database)
        database = Database.for_reading(url.partition("?")[0] + f"?{query}" if query else url, pool_size=1, timeout=1.9)
        others = [await asyncpg.connect(url.partition("?")[0], ssl=False, statement_cache_size=0) for _ in range(2)]
        try:
            await others[0].execute("BEGIN")  # it keeps a session
            with pytest.raises(DatabaseUnavailableError, match=sentence):
                await database.fetch(text("SELECT 1"))
        finally:
            for other in others:
                other.terminate()
            await database.dispose()


def test_unknown_user_or_database_is_explained(server: str, seeded_database: str) -> None:
    with before(server) as pooler:
        ended = run("releases", env=environment(pooler.url(seeded_database, "nobody_knows")))
    assert ended.returncode != 0
    assert "The pooler refuses this user" in ended.stderr


# -- Writing


def test_writing_commands_are_refused_in_transaction_mode(server: str, seeded_database: str, tmp_path: Path) -> None:
    file = str(write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
    with before(server) as pooler:
        for words in (["migrate"], ["import", file], ["releases", "publish", "2020-01"]):
            ended = run(*words, env=environment(pooler.url(seeded_database)))
            assert ended.returncode == 1
            assert "give this command the address of Postgres itself" in ended.stderr
    assert execute(seeded_database, "SELECT name FROM releases")[0] == [("2020-01",)]


def test_writing_commands_work_in_session_mode(server: str, tmp_path: Path) -> None:
    first, second = (
        write_catalogue(tmp_path / f"catun_localidad_{year}-01.csv", many(132 + year)) for year in (2020, 2021)
    )
    with new_database(server) as url, before(server, mode="session") as pooler:
        env = environment(pooler.url(url), LOCALIDADES_SEED=str(first))
        for command in (["migrate"], ["import", str(second)], ["releases", "retire", "2020-01"]):
            ended = run(*command, env=env)
            assert ended.returncode == 0, ended.stderr
        assert execute(url, "SELECT name FROM releases")[0] == [("2021-01",)]
