"""A real Postgres for every test of data: one embedded server a run, one database a test that writes."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import httpx
import pytest
from alembic import command
from alembic.config import Config
from fastapi import FastAPI
from hypothesis import settings as hypothesis_settings
from pydantic import SecretStr
from sqlalchemy import event

from localidades_api.app import create_app
from localidades_api.embedded import run_embedded
from localidades_api.importer import ImportReport, import_catalogue
from localidades_api.middleware import build_middleware_stack
from localidades_api.observability.progress import Silent
from localidades_api.settings import Settings
from localidades_api.storage.pool import Database
from tests.support.asgi import as_asgi
from tests.support.catalogue import many, write_catalogue
from tests.support.wire import serving

ROOT = Path(__file__).parents[1]
LOCALIDADES = "/api/census/localidades/"


T = TypeVar("T")

# The same examples in every run, and none is too slow: this machine may be busy with something else.
hypothesis_settings.register_profile("project", deadline=None, derandomize=True, database=None)
hypothesis_settings.load_profile("project")


def in_thread(function: Callable[[], T]) -> T:
    """Run what starts an event loop of its own while the tests' is running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def alembic_config(url: str, *, source: str = "demo", seed: bool = True) -> Config:
    """Return the project's own configuration, for a database of the tests."""
    settings = Settings(database_url=SecretStr(url), seed=source)
    return Config(ROOT / "alembic.ini", attributes={"settings": settings, "seed": seed, "configure_logging": False})


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer() -> Iterator[None]:
    """Keep only the choice of a Postgres to test on."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name == "DATABASE_URL" or (name.startswith("LOCALIDADES_") and name != "LOCALIDADES_POSTGRES_BIN"):
                patch.delenv(name)
        yield


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Lend a folder that the server's user can reach when the tests run as root (pytest's own is closed to it)."""
    folder = Path(tempfile.mkdtemp(prefix="localidades-tests-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Lend the address of the run's own Postgres server."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    with reachable_folder() as folder, run_embedded(folder / "data", Path(chosen) if chosen else None) as url:
        # Nobody pulls the plug of this server: what it would lose then is lost with it anyway.
        careless = (f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "full_page_writes", "synchronous_commit"))
        execute(url, *careless, "SELECT pg_reload_conf()")
        yield url


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def execute(url: str, *statements: str) -> None:
    """Run statements, each on its own."""
    for statement in statements:
        in_thread(lambda: asyncio.run(_execute(url, statement)))  # noqa: B023  # it has ended before the next


async def _states(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT state FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'localidades-api'"
        )
    finally:
        await connection.close()
    return [row["state"] for row in rows]


def await_idle_connections(url: str) -> int:
    """Wait until the service's connections to the database have nothing to do, and count them; fail if one goes on."""
    deadline = time.monotonic() + 10
    while set(states := in_thread(lambda: asyncio.run(_states(url)))) - {"idle"}:
        assert time.monotonic() < deadline, states
        time.sleep(0.05)
    return len(states)


@contextmanager
def out_of_reach(server: str, url: str) -> Iterator[None]:
    """Cut every connection to a database, and let nobody in."""
    name = url.partition("@/")[2].partition("?")[0]
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608  # of ours
    execute(server, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false", cut)
    try:
        yield
    finally:
        execute(server, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")


_numbers = count(1)


@contextmanager
def new_database(server: str, template: str | None = None) -> Iterator[str]:
    """Make a database, empty or as a copy, and drop it in the end."""
    name = f"test_{next(_numbers)}"
    copying = f"TEMPLATE {template.partition('@/')[2].partition('?')[0]}" if template else ""
    in_thread(lambda: asyncio.run(_execute(server, f"CREATE DATABASE {name} {copying}")))
    try:
        yield server.replace("/localidades?", f"/{name}?")
    finally:
        in_thread(lambda: asyncio.run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)")))


@pytest.fixture(scope="session")
def migrated(server: str) -> Iterator[str]:
    """Lend a database at `alembic upgrade head` that holds no release: a template, not to be written to."""
    with new_database(server) as url:
        in_thread(lambda: command.upgrade(alembic_config(url, seed=False), "head"))
        yield url


@pytest.fixture(scope="session")
def small_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lend a file of 132 localities, three pages, with the traps of the real data."""
    return write_catalogue(tmp_path_factory.mktemp("small") / "catun_localidad_2020-01.csv", many(132))


@pytest.fixture(scope="session")
def seeded(server: str, migrated: str, small_catalogue: Path) -> Iterator[str]:
    """Lend a database that holds the small catalogue as release 2020-01: a template, not to be written to."""
    with new_database(server, migrated) as url:
        in_thread(lambda: asyncio.run(import_into(url, small_catalogue)))
        yield url


@pytest.fixture
def reader(server: str) -> Iterator[str]:
    """Lend a role without a right; the database with what it was granted is gone before it."""
    name = f"reader_{time.time_ns()}"
    execute(server, f"CREATE ROLE {name} LOGIN")
    yield name
    execute(server, f"DROP ROLE {name}")


@pytest.fixture
def empty_database(server: str) -> Iterator[str]:
    """Lend a database without tables."""
    with new_database(server) as url:
        yield url


@pytest.fixture
def database(server: str, migrated: str) -> Iterator[str]:
    """Lend a database of this test's own, with tables and no release."""
    with new_database(server, migrated) as url:
        yield url


@pytest.fixture
def seeded_database(server: str, seeded: str) -> Iterator[str]:
    """Lend a database of this test's own that holds the small catalogue."""
    with new_database(server, seeded) as url:
        yield url


async def import_into(url: str, source: Path | str, **options: Any) -> ImportReport:  # noqa: ANN401  # passed on
    """Import a file as the command line does."""
    database = Database.for_writing(url)
    try:
        return await import_catalogue(database, str(source), Silent(), **options)
    finally:
        await database.dispose()


@asynccontextmanager
async def running_app(url: str, **options: Any) -> AsyncIterator[FastAPI]:  # noqa: ANN401  # passed on
    """Start the application on a database, without a server, and without a page cache unless `options` ask for one."""
    app = create_app(
        Settings(**{"database_url": SecretStr(url), "release_poll": 0.1, "page_cache_bytes": 0, **options})
    )
    async with app.router.lifespan_context(app):
        yield app


def client_of(app: FastAPI) -> httpx.AsyncClient:
    """Return a client that calls the application without a network."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def client_in_front_of(app: FastAPI, **settings: Any) -> httpx.AsyncClient:  # noqa: ANN401  # passed on
    """Return a client that calls the middleware before the application, as the server does, without a network."""
    transport = httpx.ASGITransport(as_asgi(build_middleware_stack(app, Settings(**settings))))
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.fixture(scope="session")
async def app(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    """Lend the application on the small catalogue, without a page cache, for tests that only read."""
    with new_database(server, seeded) as url:
        async with running_app(url) as app:
            yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Lend a client of that application."""
    async with client_of(app) as client:
        yield client


@pytest.fixture(scope="session")
def live_server(server: str, seeded: str) -> Iterator[str]:
    """Lend the address of `localidades-api serve` on the small catalogue, for tests that only read."""
    with new_database(server, seeded) as url, serving(url) as live:
        yield live.base


async def await_release(client: httpx.AsyncClient, name: str, patience: float = 10) -> None:
    """Wait until the application has noticed that a release is the current one."""
    async with asyncio.timeout(patience):
        while (await client.head(LOCALIDADES)).headers.get("catalogue-release") != name:  # noqa: ASYNC110  # it is polled
            await asyncio.sleep(0.02)


@contextmanager
def recorded_statements(app: FastAPI) -> Iterator[list[str]]:
    """Collect the SQL that the application sends; what looks for releases, now or once a connection, does not count."""
    statements: list[str] = []

    def record(connection: object, cursor: object, statement: str, *rest: object) -> None:  # noqa: ARG001  # an event's
        if "current_release" not in statement and not statement.startswith("SELECT releases.id"):
            statements.append(statement)

    databases: tuple[Database, ...] = (app.state.database, app.state.comparing)
    engines = [database.engine.sync_engine for database in databases]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", record)


def needed(what: str | Path | None, missing: str) -> str:
    """Return what a test needs of this machine; without it CI fails, and others skip."""
    if what is None or not Path(what).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    return str(what)


@pytest.fixture(scope="session")
def real_catalogues() -> Path:
    """Lend the folder of INEGI's files where it lies beside the project."""
    folder = ROOT.parent / "shared" / "catalogue"
    if not folder.is_dir():
        pytest.skip("the trial data (real catalogues beside the project) are not on this machine")
    return folder
