"""Loads records as a release, in one transaction: copy, index, check, attach, move the pointer.

The partition of the release is a separate table until it is complete, so readers neither see half a release nor wait
for a lock. An import that is killed at any step leaves nothing (docs/decisions/releases.md).
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import asyncpg
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.folding import fold
from localidades_api.database.models import partition_of, releases
from localidades_api.errors import CatalogueError
from localidades_api.importer.transform import CatalogueRecords, MunicipalityRow, StateRow
from localidades_api.observability.progress import ImportStep, StepProgress
from localidades_api.releases.publish import set_current

_CHUNK = 5000  # rows between two reports of progress
_VACUUM_DELAYS = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between attempts
_COLUMNS = ("release_id", "position", *LocalityRow._fields, "folded", "prominence")


async def load_release(
    connection: AsyncConnection,
    catalogue: CatalogueRecords,
    *,
    name: str,
    source: str,
    sha256: str,
    progress: StepProgress,
) -> int:
    """Load a catalogue beside the published ones; return the id of the release."""
    progress.begin(ImportStep.COPY)
    progress.expect(len(catalogue.localities))
    release_id = await _insert_release(connection, catalogue, name, source, sha256)
    partition = partition_of(release_id)
    # Columns only: indexes and constraints are cheaper to build after the rows are loaded.
    await connection.execute(text(f"CREATE TABLE {partition} (LIKE localities INCLUDING DEFAULTS INCLUDING COMMENTS)"))
    await _copy(connection, "states", StateRow._fields, catalogue.states.values(), release_id)
    counts = Counter(locality.municipio_id for locality in catalogue.localities)
    municipalities = ((*municipality, counts[municipality.id]) for municipality in catalogue.municipalities.values())
    await _copy(connection, "municipalities", (*MunicipalityRow._fields, "localities"), municipalities, release_id)
    await _copy_localities(connection, partition, release_id, catalogue, progress)
    progress.begin(ImportStep.INDEX)
    await _constrain(connection, partition, release_id)
    await _check_loaded(connection, partition, catalogue)
    progress.begin(ImportStep.ATTACH)
    await _attach(connection, partition, release_id)
    return release_id


async def publish(
    connection: AsyncConnection, release_id: int, progress: StepProgress, reason: str | None = None
) -> None:
    """Move the pointer to a release; readers see it once this commits. `reason` is for the log."""
    progress.begin(ImportStep.PUBLISH)
    await set_current(connection, release_id, action="import", reason=reason)
    await connection.execute(
        text("UPDATE releases SET published_at = clock_timestamp() WHERE id = :id"), {"id": release_id}
    )


async def _attach(connection: AsyncConnection, partition: str, release_id: int) -> None:
    """Attach the table as a partition, which builds the remaining indexes, and analyse it."""
    await connection.execute(text(f"ALTER TABLE localities ATTACH PARTITION {partition} FOR VALUES IN ({release_id})"))
    # The bounds of the partition replace it.
    await connection.execute(text(f"ALTER TABLE {partition} DROP CONSTRAINT {partition}_release_id_check"))
    # The columns in conditions and joins; all columns would take twice as long.
    columns = "release_id, position, id, municipio_id, clave, ambito, folded, prominence"
    await connection.execute(text(f"ANALYZE {partition} ({columns})"))


async def vacuum(connection: AsyncConnection, release_id: int) -> None:
    """Mark the pages of a published release as all-visible, so that index-only scans skip the table.

    That is possible once every transaction that began before the publication has ended. If one outlasts the attempts,
    autovacuum does it some minutes later.
    """
    autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
    partition = partition_of(release_id)
    for pause in _VACUUM_DELAYS:
        await autocommit.execute(text(f"VACUUM {partition}"))
        is_all_visible = text("SELECT relallvisible = relpages FROM pg_class WHERE oid = to_regclass(:name)")
        if (await autocommit.execute(is_all_visible, {"name": partition})).scalar_one_or_none() is not False:
            return
        await asyncio.sleep(pause)


async def _insert_release(
    connection: AsyncConnection, catalogue: CatalogueRecords, name: str, source: str, sha256: str
) -> int:
    counted = {name: len(getattr(catalogue, name)) for name in ("states", "municipalities", "localities")}
    added = insert(releases).values(name=name, source=source, sha256=sha256, **counted).returning(releases.c.id)
    release_id: int = (await connection.execute(added)).scalar_one()
    return release_id


async def driver_of(connection: AsyncConnection) -> asyncpg.Connection:
    """Return the connection of asyncpg, for COPY inside the transaction that SQLAlchemy has begun."""
    raw = await connection.get_raw_connection()
    return cast("asyncpg.Connection", raw.driver_connection)


async def _copy(
    connection: AsyncConnection, table: str, fields: tuple[str, ...], rows: Iterable[tuple[Any, ...]], release_id: int
) -> None:
    driver = await driver_of(connection)
    await driver.copy_records_to_table(
        table, columns=("release_id", *fields), records=[(release_id, *row) for row in rows]
    )


async def _copy_localities(
    connection: AsyncConnection, partition: str, release_id: int, catalogue: CatalogueRecords, progress: StepProgress
) -> None:
    prominences = _rank(catalogue.localities)

    def records() -> Iterator[tuple[object, ...]]:
        for position, (locality, prominence) in enumerate(zip(catalogue.localities, prominences, strict=True), 1):
            yield (release_id, position, *locality, fold(locality.nombre), prominence)
            if position % _CHUNK == 0:
                progress.advance(_CHUNK)
        progress.advance(len(catalogue.localities) % _CHUNK)

    driver = await driver_of(connection)
    await driver.copy_records_to_table(partition, columns=_COLUMNS, records=records())


def _rank(localities: Sequence[LocalityRow]) -> list[int]:
    """Return the rank of each locality by population, from 1; localities without one come last, in list order."""
    populations = [-1 if locality.poblacion is None else locality.poblacion for locality in localities]
    prominences = [0] * len(localities)
    for rank, index in enumerate(sorted(range(len(localities)), key=populations.__getitem__, reverse=True), 1):
        prominences[index] = rank
    return prominences


async def _constrain(connection: AsyncConnection, partition: str, release_id: int) -> None:
    """Add the unique keys of the parent to the partition; ATTACH adds the rest.

    The foreign key must be left to ATTACH. If it existed, ATTACH would drop triggers of `municipalities`, which locks
    that table against every reader until the import commits.
    """
    statements = (
        f"ADD CONSTRAINT {partition}_pkey PRIMARY KEY (release_id, id)",
        f"ADD CONSTRAINT {partition}_release_id_position_key UNIQUE (release_id, position)",
        f"ADD CONSTRAINT {partition}_release_id_check CHECK (release_id = {release_id})",
    )
    for statement in statements:
        await connection.execute(text(f"ALTER TABLE {partition} {statement}"))
    for table in (f"{partition} (id)", "municipalities", "states"):
        await connection.execute(text(f"ANALYZE {table}"))


async def _check_loaded(connection: AsyncConnection, partition: str, catalogue: CatalogueRecords) -> None:
    count, first, last = (
        await connection.execute(text(f"SELECT count(*), min(position), max(position) FROM {partition}"))
    ).one()
    expected = len(catalogue.localities)
    if (count, first, last) != (expected, 1, expected):
        raise CatalogueError(
            f"The database has {count} of {expected} localities after the import; nothing was changed, so try again."
        )
