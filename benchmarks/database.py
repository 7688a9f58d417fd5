"""The data: one private Postgres, a template that holds one release, and a copy of it for every measurement."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from benchmarks.processes import ROOT, BenchmarkError
from localidades_api.catalogue.schemas import DEMO_RELEASE
from localidades_api.database.embedded_postgres import run_embedded
from localidades_api.importer.demo.generate import generate_demo

_TEMPLATE = "localidades"


@contextmanager
def seeded_postgres(folder: Path, catalogue: Path | None) -> Iterator[str]:
    """Run a Postgres in the folder and yield the address of its database, which holds a file's release or the demo."""
    source = str(catalogue.resolve()) if catalogue else DEMO_RELEASE
    with run_embedded(folder, None) as url:
        done = subprocess.run(
            [sys.executable, "-m", "alembic", "upgrade", "head"],
            env={**environment(url), "LOCALIDADES_SEED": source},
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise BenchmarkError(f"{source} was not imported:\n{done.stderr[-2000:]}")
        execute(url, "VACUUM (FREEZE, ANALYZE)")
        yield url


def execute(url: str, *statements: str) -> None:
    """Run statements, each in its own transaction."""

    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def read_rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""

    async def run() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    return asyncio.run(run())


def read_value(url: str, statement: str) -> object:
    """Return the first value of the first row."""
    return read_rows(url, statement)[0][0]


def count_localities(url: str) -> int:
    """Return the number of localities in the current release."""
    return int(str(read_value(url, "SELECT localities FROM releases JOIN current_release ON release_id = id")))


def clone(url: str, name: str) -> str:
    """Copy the seeded database; nobody may be connected to it."""
    execute(url.replace(f"/{_TEMPLATE}?", "/postgres?"), f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    return url.replace(f"/{_TEMPLATE}?", f"/{name}?")


def environment(url: str) -> dict[str, str]:
    """Return this process's environment with the database's address, for the service and the drivers of all peers."""
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
