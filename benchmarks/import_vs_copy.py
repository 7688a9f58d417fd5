"""Compares the whole import command with a bare COPY of the same rows into the same tables.

The command is timed from its start to its end (reading, checking, comparing with the release before it, publishing);
asyncpg's `copy_records_to_table` with records in memory, into tables that have all of their indexes and constraints, or
into a table whose indexes are made afterwards in the same transaction, which is the fastest way in Postgres's manual
(§14.4, Populating a Database), and what the importer does.
"""

import asyncio
import subprocess
import time
from pathlib import Path

import asyncpg

from benchmarks.servers import COMMAND, clone, environment, execute
from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.folding import fold
from localidades_api.importer.demo.generate import generate_demo
from localidades_api.importer.extract import open_table
from localidades_api.importer.transform import CatalogueRecords, MunicipalityRow, StateRow, transform

IMPORT = "import, whole command"
_COPY, _COPY_FIRST = "bare COPY", "bare COPY, then indexes, in one transaction"
_RELEASE_ID = 1_000_000  # of the bare COPY
_TABLE = "bare_copy"


def write_catalogue(path: Path) -> Path:
    """Write the demo's rows as a file in INEGI's layout; its last line end makes it another file than the demo."""
    path.write_bytes("".join(f"{line}\r\n" for line in generate_demo()).encode("cp1252"))
    return path


def measure(folder: Path, rounds: int, url: str) -> dict[str, list[float]]:
    """Return the seconds of each round by command; `url` is a database with a release and no other clients."""
    source = write_catalogue(folder / "catalogue.csv")
    with open_table(source) as table:
        catalogue = transform(table, lambda _: None)
    times: dict[str, list[float]] = {kind: [] for kind in (_COPY, IMPORT, _COPY_FIRST)}
    for number in range(rounds):
        for place, kind in enumerate(times):
            database = clone(url, f"round_{number}_{place}")
            # An import is not compared with a demo, and waits until every process has noticed the demo's withdrawal.
            execute(database, "UPDATE releases SET name = 'before'")
            is_import = kind == IMPORT
            seconds = _import(database, source) if is_import else asyncio.run(_copy(database, catalogue, kind))
            times[kind].append(seconds)
    return times


def _import(url: str, source: Path) -> float:
    started = time.perf_counter()
    command = [*COMMAND, "import", str(source), "--release", "measured"]
    subprocess.run(command, env=environment(url), check=True, capture_output=True)
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
    table = f"CREATE TABLE {_TABLE} (LIKE localities"
    foreign_key = f"ALTER TABLE {_TABLE} ADD FOREIGN KEY (release_id, municipio_id) REFERENCES municipalities"
    if kind == _COPY:
        first, last = [f"{table} INCLUDING ALL)", foreign_key], []
    else:
        first, last = [f"{table})"], [*indexes, foreign_key]
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
