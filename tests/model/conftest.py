"""A data folder that the histories of several servers copy."""

import asyncio
from pathlib import Path

import pytest
from alembic import command

from localidades_api.database.embedded_postgres.data_directory import make_cluster
from tests.support.postgres import alembic_config
from tests.support.servers import Installation, Server


@pytest.fixture(scope="session")
async def migrated_cluster(installation: Installation, server_folder: Path) -> Path:
    """Return the data folder of a stopped server with tables, and without a release."""
    server = Server(installation, make_cluster(installation.binaries, server_folder, installation.account))
    await server.start()
    await asyncio.to_thread(command.upgrade, alembic_config(server.url()), "head")
    await server.stop()
    return server.cluster
