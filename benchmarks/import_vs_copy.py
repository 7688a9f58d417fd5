"""Compares the whole import command with a bare COPY of the same rows into the same tables.

    .venv/bin/python -m benchmarks.import_vs_copy catun_localidad.zip --rounds 5

Each round times both on databases of one private Postgres: the command from its start to its end (reading, checking,
comparing with the release before it, publishing), and asyncpg's `copy_records_to_table` of records in memory, into
tables that have all of their indexes and constraints. A second bare COPY leaves the foreign key out. A third fills a
table without indexes and then makes all of them, in one transaction, which is the fastest way in Postgres's manual
(§14.4, Populating a Database). The importer does the same.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.folding import fold
from localidades_api.database.embedded_postgres import run_embedded
from localidades_api.importer.extract import open_table
from localidades_api.importer.transform import CatalogueRecords, MunicipalityRow, StateRow, transform

_COMMAND = [sys.executable, "-c", "from localidades_api.cli import app; app()", "import"]
_RELEASE_ID = 1_000_000  # of the bare COPY
_TABLE = "bare_copy"
_KEPT, _LATER, _NO_KEY = "bare COPY", "bare COPY, then indexes, in one transaction", "bare COPY without foreign key"
_WHOLE = "import, whole command"


async def _new_database(url: str, name: str) -> str:
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE localidades")
    await connection.close()
    copy = url.replace("/localidades?", f"/{name}?")
    connection = await asyncpg.connect(copy)
    # An import is not compared with a demo, and waits until every process has noticed the demo's withdrawal.
    await connection.execute("UPDATE releases SET name = 'before'")
    await connection.close()
    return copy


def _import(url: str, source: Path) -> float:
    started = time.perf_counter()
    subprocess.run(
        [*_COMMAND, str(source), "--release", "measured"],
        env=os.environ | {"DATABASE_URL": url},
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - started


async def _copy(url: str, catalogue: CatalogueRecords, kind: str) -> float:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "INSERT INTO releases OVERRIDING SYSTEM VALUE"
        " SELECT (jsonb_populate_record(r, jsonb_build_object('id', $1::int, 'name', 'bare'))).*"
        " FROM releases AS r LIMIT 1",
        _RELEASE_ID,
    )
    indexes = [
        str(row["indexdef"])
        .replace(" ON ONLY public.localities ", f" ON {_TABLE} ")
        .replace("INDEX localities", "INDEX bare")
        for row in await connection.fetch(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = 'localities'"
        )
    ]
    foreign_key = f"ALTER TABLE {_TABLE} ADD FOREIGN KEY (release_id, municipio_id) REFERENCES municipalities"
    table = f"CREATE TABLE {_TABLE} (LIKE localities{'' if kind == _LATER else ' INCLUDING ALL'})"
    first, last = {
        _KEPT: ([table, foreign_key], []),
        _NO_KEY: ([table], []),
        _LATER: ([table], [*indexes, foreign_key]),
    }[kind]
    states = [(_RELEASE_ID, *state) for state in catalogue.states.values()]
    municipalities = [(_RELEASE_ID, *municipality, 0) for municipality in catalogue.municipalities.values()]
    localities = [
        (_RELEASE_ID, position, *locality, fold(locality.nombre), position)
        for position, locality in enumerate(catalogue.localities, 1)
    ]
    started = time.perf_counter()
    async with connection.transaction():
        for statement in first:
            await connection.execute(statement)
        for name, fields, records in (
            ("states", StateRow._fields, states),
            ("municipalities", (*MunicipalityRow._fields, "localities"), municipalities),
            (_TABLE, ("position", *LocalityRow._fields, "folded", "prominence"), localities),
        ):
            await connection.copy_records_to_table(name, columns=("release_id", *fields), records=records)
        for statement in last:
            await connection.execute(statement)
    seconds = time.perf_counter() - started
    await connection.close()
    return seconds


def measure(source: Path, rounds: int, url: str) -> dict[str, list[float]]:
    """Return the seconds of each round by command; `url` is a database with a release and no other clients."""
    with open_table(source) as table:
        catalogue = transform(table, lambda _: None)
    times: dict[str, list[float]] = {kind: [] for kind in (_KEPT, _WHOLE, _NO_KEY, _LATER)}
    for number in range(rounds):
        for place, kind in enumerate(times):
            database = asyncio.run(_new_database(url, f"round_{number}_{place}"))
            seconds = _import(database, source) if kind == _WHOLE else asyncio.run(_copy(database, catalogue, kind))
            times[kind].append(seconds)
    return times


def main() -> None:
    """Measure, and print medians, spreads and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the catalogue to import")
    parser.add_argument("--before", default="demo", help="the catalogue that it is compared with")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # as root, the server runs as another user
        with run_embedded(Path(folder) / "data", None) as url:
            environment = os.environ | {"DATABASE_URL": url, "LOCALIDADES_SEED": arguments.before}
            subprocess.run(
                [sys.executable, "-m", "alembic", "upgrade", "head"], env=environment, check=True, capture_output=True
            )
            times = measure(arguments.source, arguments.rounds, url)
    command = statistics.median(times[_WHOLE])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(
            f"{name:44} {median:5.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
            f"   the command takes {command / median:.1f} times as long"
        )


if __name__ == "__main__":
    main()
