"""Fixtures: a real Postgres for each run, a database for each test that writes, services and clients on them."""

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

import httpx
import pytest
from alembic import command
from fastapi import FastAPI
from hypothesis import settings as hypothesis_settings
from playwright.async_api import Browser

from benchmarks.names import places_of, read_catalogue
from localidades_api.database.embedded_postgres import run_embedded
from localidades_api.database.embedded_postgres.binaries import find_binaries, make_reachable
from localidades_api.database.embedded_postgres.data_directory import choose_account
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from tests.support.application import client_of, import_file, running_app
from tests.support.browser import launched
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.downloads import large_places
from tests.support.golden import Golden
from tests.support.machine import reachable_folder
from tests.support.names import HIDALGO, open_index
from tests.support.pooler import pooling_the_service
from tests.support.postgres import alembic_config, execute, new_database, template
from tests.support.servers import Installation
from tests.support.waiting import in_thread
from tests.support.wire import ROOT, RUN_FOLDER, await_names, cache_folder, run_folder, serving

gc.disable()  # until all tests are collected, which leaves next to no garbage and takes a fifth longer with it

# The same examples in every run of `make test`; more, and different ones, in `make tail`, which prints one that fails.
for profile, derandomized, examples in (
    ("project", True, 50), ("quick", True, 20), ("tail", "CI" in os.environ, 300), ("night", False, 1000),
):  # fmt: skip
    hypothesis_settings.register_profile(
        profile, deadline=None, derandomize=derandomized, database=None, max_examples=examples, print_blob=True
    )
hypothesis_settings.load_profile("project")

# The folders that take longest go first, so that the processes of `make test` end together.
COSTLIEST = ("processes", "deploy", "pages", "importer", "extensions", "http", "unit", "bulk", "names")


def pytest_configure(config: pytest.Config) -> None:
    """Set what the tests' commands inherit: the run's folder, a priority, and obedience to Ctrl-C."""
    os.nice(19)  # as `import` and `match` set it, which would starve behind other tests
    Golden.regenerates = config.getoption("--regen")
    if not hasattr(config, "workerinput"):  # the main process
        folder = ExitStack()
        os.environ[RUN_FOLDER] = str(folder.enter_context(reachable_folder()))
        config.add_cleanup(folder.close)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has background jobs such as `make test &`
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regen", action="store_true", help="write the golden files that differ (look at the diff)")
    parser.addoption("--pooler", choices=["session", "transaction"], help="put PgBouncer between services and Postgres")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten long ids: a test's name is in the environment of its commands, whose size is limited."""
    return f"{val[:50]!r} and {len(val) - 50:,} more" if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the slowest folders first; mark tests of INEGI's own files as tail."""
    items.sort(key=lambda item: COSTLIEST.index(item.path.parent.name) if item.path.parent.name in COSTLIEST else 0)
    for item in items:
        if "real_catalogues" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(600))
            item.add_marker(pytest.mark.tail)
        if config.getoption("--pooler") and (direct := item.get_closest_marker("direct")):
            item.add_marker(pytest.mark.skip(direct.args[0]))


def pytest_collection_finish() -> None:
    gc.freeze()  # garbage collections need not look at modules and tests
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer() -> Iterator[None]:
    """Remove the developer's settings, except for the choice of a Postgres, and keep indexes in the run's folder."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name == "DATABASE_URL" or (name.startswith("LOCALIDADES_") and name != "LOCALIDADES_POSTGRES_BIN"):
                patch.delenv(name)
        patch.setenv("LOCALIDADES_CACHE_DIR", str(cache_folder()))
        yield


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URL of the run's Postgres server, which stops with the last process that uses it."""
    mode = request.config.getoption("--pooler")
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    with run_embedded(run_folder() / "data", Path(chosen) if chosen else None) as url:
        # Durability is of no use here: the data are deleted at the end.
        careless = (f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "full_page_writes", "synchronous_commit"))
        execute(url, *careless, "SELECT pg_reload_conf()")
        with pooling_the_service(url, mode) if mode else nullcontext():
            yield url


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Yield a folder that the server's user can reach."""
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def installation(server_folder: Path) -> Installation:
    """Return the installed Postgres, or that of LOCALIDADES_POSTGRES_BIN."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    account = choose_account(server_folder)
    return Installation(
        make_reachable(find_binaries(Path(chosen) if chosen else None), server_folder, account), account
    )


@pytest.fixture(scope="session")
def migrated(server: str) -> str:
    """Return a database at `alembic upgrade head` without a release: a template, not to be written to."""
    return template(server, "migrated", lambda url: in_thread(lambda: command.upgrade(alembic_config(url), "head")))


@pytest.fixture(scope="session")
def small_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of 132 localities, three pages, with the traps of the real data."""
    return write_catalogue(tmp_path_factory.mktemp("small") / "catun_localidad_2020-01.csv", many(132))


@pytest.fixture(scope="session")
def seeded(server: str, migrated: str, small_catalogue: Path) -> str:
    """Return a database with the small catalogue as release 2020-01: a template, not to be written to."""
    return template(server, "seeded", lambda url: import_file(url, small_catalogue), migrated)


@pytest.fixture
def empty_database(server: str) -> Iterator[str]:
    """Yield a database without tables."""
    with new_database(server) as url:
        yield url


@pytest.fixture
def database(server: str, migrated: str) -> Iterator[str]:
    """Yield this test's own database, with tables and no release."""
    with new_database(server, migrated) as url:
        yield url


@pytest.fixture
def seeded_database(server: str, seeded: str) -> Iterator[str]:
    """Yield this test's own database with the small catalogue."""
    with new_database(server, seeded) as url:
        yield url


@pytest.fixture(scope="session")
async def app(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    """Yield the application on the small catalogue, without a page cache, for tests that only read."""
    with new_database(server, seeded) as url:
        async with running_app(url) as app:
            yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of `app`."""
    async with client_of(app) as client:
        yield client


@pytest.fixture(scope="session")
def live_server(server: str, seeded: str) -> Iterator[str]:
    """Yield the URL of `localidades-api serve` on the small catalogue, for tests that only read."""
    with new_database(server, seeded) as url, serving(url) as live:
        await_names(live.base)
        yield live.base


@pytest.fixture(scope="session")
def demo_service(server: str, migrated: str) -> Iterator[str]:
    """Yield the URL of `localidades-api serve` on the demo, for tests that only read."""
    with new_database(server, migrated) as url:
        import_file(url, "demo")
        with serving(url) as live:
            await_names(live.base)
            yield live.base


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Yield Debian's Chromium without WebGL."""
    async with launched("--disable-3d-apis") as browser:
        yield browser


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Yield the index of the names in `tests.support.names`."""
    opened = open_index(tmp_path_factory.mktemp("names"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def hidalgo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Yield the index of the names of INEGI's file of Hidalgo."""
    build_index(folder := tmp_path_factory.mktemp("hidalgo") / "names", places_of(read_catalogue(HIDALGO), None), ())
    with closing(NameIndex(folder)) as index:
        yield index


@pytest.fixture(scope="session")
def real_catalogues() -> Path:
    """Return the folder of INEGI's files beside the project; skip if there is none."""
    folder = ROOT.parent / "shared" / "catalogue"
    if not folder.is_dir():
        pytest.skip("INEGI's national files are not on this machine (../shared/catalogue; see tests/data/README.md)")
    return folder


@pytest.fixture(scope="module")
def large_rows() -> list[Place]:
    """Return the places of the large catalogue, 12 MB."""
    return large_places()


@pytest.fixture(scope="module")
def large(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a database whose downloads take ten statements: a template, not to be written to."""

    def fill(url: str) -> None:
        folder = tmp_path_factory.mktemp("large")
        import_file(url, write_catalogue(folder / "catun_localidad_2020-01.csv", large_places()))

    return template(server, "large", fill, migrated)
