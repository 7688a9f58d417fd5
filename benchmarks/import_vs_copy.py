"""The import of a catalogue, whole command, beside a bare COPY of the same rows into the same tables.

    .venv/bin/python -m benchmarks.import_vs_copy catun_localidad.zip --rounds 5

Each round times both on databases of one private Postgres: the command from its start to its end (reading, checking,
comparing with the release before it, publishing), and asyncpg's `copy_records_to_table` of records that lie ready in
memory, into tables that have all of their indexes and constraints. A second bare COPY leaves the foreign key out, as
somebody in a hurry would.
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

from localidades_api.embedded import run_embedded
from localidades_api.folding import fold
from localidades_api.importer.extract import open_table
from localidades_api.importer.transform import Catalogue, Locality, Municipality, State, transform

_COMMAND = [sys.executable, "-c", "from localidades_api.cli import app; app()", "import"]
_RELEASE_ID = 1_000_000  # of the bare COPY
_TABLE = "bare_copy"


async def _new_database(url: str, name: str) -> str:
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE localidades")
    await connection.close()
    return url.replace("/localidades?", f"/{name}?")


def _import(url: str, source: Path) -> float:
    started = time.perf_counter()
    subprocess.run(
        [*_COMMAND, str(source), "--release", "measured"],
        env=os.environ | {"DATABASE_URL": url},
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - started


async def _copy(url: str, catalogue: Catalogue, *, foreign_key: bool) -> float:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "INSERT INTO releases OVERRIDING SYSTEM VALUE VALUES ($1, 'bare', '', '', 0, 0, 0)", _RELEASE_ID
    )
    await connection.execute(f"CREATE TABLE {_TABLE} (LIKE localities INCLUDING ALL)")
    if foreign_key:
        await connection.execute(
            f"ALTER TABLE {_TABLE} ADD FOREIGN KEY (release_id, municipio_id) REFERENCES municipalities"
        )
    states = [(_RELEASE_ID, *state) for state in catalogue.states.values()]
    municipalities = [(_RELEASE_ID, *municipality, 0) for municipality in catalogue.municipalities.values()]
    localities = [
        (_RELEASE_ID, position, *locality, fold(locality.nombre), position)
        for position, locality in enumerate(catalogue.localities, 1)
    ]
    started = time.perf_counter()
    async with connection.transaction():
        for name, fields, records in (
            ("states", State._fields, states),
            ("municipalities", (*Municipality._fields, "localities"), municipalities),
            (_TABLE, ("position", *Locality._fields, "folded", "prominence"), localities),
        ):
            await connection.copy_records_to_table(name, columns=("release_id", *fields), records=records)
    seconds = time.perf_counter() - started
    await connection.close()
    return seconds


def measure(source: Path, rounds: int, url: str) -> dict[str, list[float]]:
    """Return the seconds of each round, by what was timed; `url` is a database with a release, nobody else in it."""
    with open_table(source) as table:
        catalogue = transform(table, lambda _: None)
    times: dict[str, list[float]] = {"import, whole command": [], "bare COPY": [], "bare COPY without foreign key": []}
    for number in range(rounds):
        databases = [asyncio.run(_new_database(url, f"round_{number}_{kind}")) for kind in range(len(times))]
        times["bare COPY"].append(asyncio.run(_copy(databases[0], catalogue, foreign_key=True)))
        times["import, whole command"].append(_import(databases[1], source))
        times["bare COPY without foreign key"].append(asyncio.run(_copy(databases[2], catalogue, foreign_key=False)))
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
            environment = os.environ | {"DATABASE_URL": url, "LOCALIDADES_CATALOGUE": arguments.before}
            subprocess.run(
                [sys.executable, "-m", "alembic", "upgrade", "head"], env=environment, check=True, capture_output=True
            )
            times = measure(arguments.source, arguments.rounds, url)
    command = statistics.median(times["import, whole command"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(
            f"{name:32} {median:5.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
            f"   the command takes {command / median:.1f} times as long"
        )


if __name__ == "__main__":
    main()
