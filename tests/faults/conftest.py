"""Fixtures for faults: servers with two releases."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from alembic import command

from localidades_api.database.embedded_postgres.data_directory import make_cluster
from tests.faults.service import CURRENT, NEXT, OLDER, publish
from tests.support.catalogue import write_catalogue
from tests.support.postgres import alembic_config
from tests.support.records import Truth, renamed
from tests.support.servers import Installation, Server, copy_cluster, running


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --fault-seconds, the duration of outages."""
    parser.addoption("--fault-seconds", type=float, default=8.0, help="how long the database stays away")


@pytest.fixture
def away(request: pytest.FixtureRequest) -> float:
    """Return the duration of outages in seconds."""
    return float(request.config.getoption("--fault-seconds"))


@pytest.fixture(scope="session")
def truth() -> Truth:
    """Return the places of each release; later ones have fewer."""
    return Truth({name: renamed(name, count) for name, count in ((OLDER, 1500), (CURRENT, 1480), (NEXT, 1450))})


@pytest.fixture(scope="session")
def catalogues(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return the file of each release."""
    folder = tmp_path_factory.mktemp("catalogues")
    return {name: write_catalogue(folder / f"{name}.csv", places) for name, places in truth.releases.items()}


@pytest.fixture(scope="session")
async def template(installation: Installation, server_folder: Path, catalogues: Mapping[str, Path]) -> Path:
    """Return the data folder of a stopped server with two releases."""
    server = Server(installation, make_cluster(installation.binaries, server_folder, installation.account))
    await server.start()
    await asyncio.to_thread(command.upgrade, alembic_config(server.url()), "head")
    for name in (OLDER, CURRENT):
        await publish(server, catalogues, name)
    await server.stop()
    return server.cluster


_numbers = iter(range(1000))


@pytest.fixture
async def primary(installation: Installation, template: Path, server_folder: Path) -> AsyncIterator[Server]:
    """Yield this test's own server, with two releases."""
    cluster = server_folder / f"primary-{next(_numbers)}"
    await asyncio.to_thread(copy_cluster, template, cluster)
    async with running(Server(installation, cluster)) as server:
        yield server


@pytest.fixture
async def standby(primary: Server) -> AsyncIterator[Server]:
    """Yield a standby that follows the primary."""
    async with running(await primary.copy()) as server:
        yield server
