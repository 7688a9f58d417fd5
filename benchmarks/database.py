"""The data: one private Postgres, a template that holds the demo release, and a copy of it for every measurement."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from benchmarks.processes import ROOT
from localidades_api.embedded import run_embedded
from localidades_api.importer.demo import generate_demo

_TEMPLATE = "localidades"


@contextmanager
def seeded_postgres(folder: Path) -> Iterator[str]:
    """Run a Postgres in the folder, whose database `localidades` holds the demo release; yield its address."""
    with run_embedded(folder, None) as url:
        subprocess.run(
            [sys.executable, "-m", "alembic", "upgrade", "head"],
            env=environment(url),
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        execute(url, "VACUUM (FREEZE, ANALYZE)")
        yield url


def execute(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own."""

    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def read_value(url: str, statement: str) -> object:
    """Return the first value of the first row."""

    async def run() -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())


def clone(url: str, name: str) -> str:
    """Copy the seeded database; nobody may be connected to it."""
    execute(url.replace(f"/{_TEMPLATE}?", "/postgres?"), f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    return url.replace(f"/{_TEMPLATE}?", f"/{name}?")


def environment(url: str) -> dict[str, str]:
    """Return this process's environment with the database's address, for us and for every driver of the peers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCALIDADES_")}
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    return kept | {
        "DATABASE_URL": url,
        "PGHOST": query["host"][0],
        "PGPORT": query["port"][0],
        "PGUSER": parts.username or "",
        "PGDATABASE": parts.path.lstrip("/"),
    }


def write_catalogue(path: Path) -> Path:
    """Write the demo's rows as a file in INEGI's layout; its last line end makes it another file than the demo."""
    path.write_bytes("".join(f"{line}\r\n" for line in generate_demo()).encode("cp1252"))
    return path
