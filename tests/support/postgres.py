"""Creates databases for tests, and runs statements on them."""

import asyncio
import fcntl
import os
import re
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.config import Config
from pydantic import SecretStr

from localidades_api.settings import Settings
from tests.support.machine import needed
from tests.support.waiting import PATIENCE, eventually, in_thread
from tests.support.wire import ROOT, run_folder


def alembic_config(url: str, *, seed: Path | None = None) -> Config:
    """Return the project's Alembic configuration for a database; `seed` is the catalogue for an empty one."""
    settings = Settings(database_url=SecretStr(url), seed=seed and str(seed))
    return Config(ROOT / "alembic.ini", attributes={"settings": settings, "configure_logging": False})


def name_of(url: str) -> str:
    found = re.search(r"/(\w+)\?", url)
    assert found is not None
    return found[1]


async def run_sql(url: str, statement: str, *values: object) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(statement, *values))
    finally:
        await connection.close()


def execute(url: str, *statements: str) -> list[list[Any]]:
    """Run statements on separate connections and return the rows of each."""
    return [in_thread(lambda: asyncio.run(run_sql(url, one))) for one in statements]  # noqa: B023  # it has ended


def grant_roles(url: str, **names: str) -> str:
    """Run deploy/postgres/roles.sql in a database, with other names for the roles if given; return psql's error."""
    psql = needed(shutil.which("psql"), "install Debian's postgresql-client")
    options = [f"--set={role}={name}" for role, name in names.items()]
    words = [psql, "--no-psqlrc", *options, "--file", str(ROOT / "deploy" / "postgres" / "roles.sql"), url]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode == 0, ended.stdout) == (ended.stderr == "", "")
    return ended.stderr


def await_idle_connections(url: str) -> int:
    """Wait until all the service's connections to the database are idle, and count them."""
    query = "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
    query += " AND application_name = 'localidades-api'"
    states: list[str] = []

    def are_idle() -> bool:
        states[:] = [state for (state,) in execute(url, query)[0]]
        return set(states) <= {"idle"}

    eventually(are_idle, otherwise=lambda: states)
    return len(states)


@contextmanager
def out_of_reach(server: str, url: str) -> Iterator[None]:
    """Refuse new connections to a database, and terminate those that it has, also one that was about to begin."""
    name = name_of(url)
    cut = f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608  # ours
    execute(server, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    eventually(lambda: execute(server, cut) == [[]])
    try:
        yield
    finally:
        execute(server, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")


_numbers = count(1)


def own_name(kind: str) -> str:
    """Return a unique name for an object of the server, which the processes of a run share."""
    return f"{kind}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(_numbers)}"


@contextmanager
def new_database(server: str, template: str | None = None) -> Iterator[str]:
    """Create a database, empty or from a template; drop it at the end."""
    name = own_name("test")
    _create(server, name, template)
    try:
        yield server.replace("/localidades?", f"/{name}?")
    finally:
        execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def template(server: str, name: str, fill: Callable[[str], None], template: str | None = None) -> str:
    """Return a template database, filled by the first process of the run that needs it."""
    name = f"template_{name}"
    url = server.replace("/localidades?", f"/{name}?")
    with (run_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not execute(server, f"SELECT 1 FROM pg_database WHERE datname = '{name}'")[0]:  # noqa: S608  # our names
            unfinished = f"{name}_unfinished"
            _create(server, unfinished, template)
            fill(server.replace("/localidades?", f"/{unfinished}?"))
            execute(server, f"ALTER DATABASE {unfinished} RENAME TO {name}")
    return url


def _create(server: str, name: str, template: str | None) -> None:
    # Without fsync, FILE_COPY takes two thirds of the time of WAL_LOG.
    copying = f"TEMPLATE {name_of(template)} STRATEGY FILE_COPY" if template else ""
    execute(server, f"CREATE DATABASE {name} {copying}")


LOCALE_C = "LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'"


@contextmanager
def database_of_locale(server: str, clauses: str) -> Iterator[str]:
    """Make a migrated database of a locale of its own, and drop it in the end; skip where the server has no such."""
    name = own_name("of_locale")
    try:
        execute(server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {clauses}")
    except (asyncpg.FeatureNotSupportedError, asyncpg.WrongObjectTypeError) as refusal:
        pytest.skip(f"the server has no such locale: {refusal}")
    try:
        url = server.replace("/localidades?", f"/{name}?")
        in_thread(lambda: command.upgrade(alembic_config(url), "head"))
        yield url
    finally:
        execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def locked(url: str, table: str = "localities") -> Iterator[None]:
    """Lock a table, so that every SELECT on it waits."""
    taken, done = threading.Event(), threading.Event()

    async def hold() -> None:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                await connection.execute(f"LOCK TABLE {table}")
                taken.set()
                await asyncio.to_thread(done.wait, 60)
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(asyncio.run, hold())
        assert taken.wait(PATIENCE)
        try:
            yield
        finally:
            done.set()
            holding.result()


@asynccontextmanager
async def locked_in_thread(url: str, table: str = "localities") -> AsyncIterator[None]:
    """Lock a table, as `locked` does, beside an application in this loop, whose statements the lock waits for."""
    with ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, locked(url, table))
        yield
