"""How an old release is removed while others are read: marked, forgotten by every process, detached, dropped.

Each step is a transaction of its own, for `DETACH ... CONCURRENTLY` can't be part of one. What an interrupted run has
left is known by the mark, and the next run, of whatever release, finishes it first (decision 0010).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.domain.schemas import DEMO_RELEASE
from localidades_api.errors import ImportRunningError, RetirementError
from localidades_api.observability.progress import Step
from localidades_api.releases.comparison import complete_comparisons
from localidades_api.storage.import_lock import IMPORT_LOCK
from localidades_api.storage.partitions import partition_of
from localidades_api.storage.pool import Database

_LOCK_NOT_AVAILABLE = "55P03"
_LOCK_TIMEOUT = "250ms"  # that a reader may have to wait behind a lock
_MAX_ATTEMPTS = 600  # to get it, a second apart: a backup may hold it off for minutes

# The session's own limits; it ends with the retirement. A killed one's lock goes as soon as the server notices.
_LIMITS = {
    "statement_timeout": "15min",
    "lock_timeout": "10min",
    "client_connection_check_interval": "1s",
    "max_parallel_workers_per_gather": "0",
}


class RetirementStep(Step):
    """The steps of a retirement, in order."""

    MARK = "withdrawing the release"
    COMPARE = "comparing the releases on either side of it"
    WAIT = "waiting until every process has stopped serving it"
    DETACH = "detaching its localities"
    DROP = "dropping its localities"
    CLEAR = "removing its municipios and estados"
    DONE = "retired"


class RetirementProgress(Protocol):
    """An observer of one retirement."""

    def begin(self, step: Step) -> None:
        """Take note that `step` begins, and that the one before it is done."""


@dataclass(frozen=True, slots=True)
class _Leftover:
    """A release that is marked, and what there is still of its partition."""

    id: int
    partition: str
    state: str  # attached, pending (a detachment was cut short), detached, or gone


async def retire_release(database: Database, name: str, progress: RetirementProgress, *, grace: float) -> list[str]:
    """Remove a release for good, and whatever an interrupted run has left; return the names of all that are gone.

    `grace` is the number of seconds within which every process of the service has seen that the release is withdrawn.
    Raises RetirementError, ImportRunningError or DatabaseUnavailableError.
    """
    async with _session(database) as connection:
        progress.begin(RetirementStep.MARK)
        await _mark(connection, name)
        progress.begin(RetirementStep.COMPARE)
        await complete_comparisons(connection)
        retired = await _remove_marked(connection, progress, grace)
    progress.begin(RetirementStep.DONE)
    return retired


async def finish_retirements(database: Database, progress: RetirementProgress, *, grace: float) -> list[str]:
    """Remove what is withdrawn already, by an import or by a run that was interrupted; return the names.

    Raises ImportRunningError or DatabaseUnavailableError; a next run goes on.
    """
    async with _session(database) as connection:
        if not await _leftovers(connection):
            return []
        await complete_comparisons(connection)
        retired = await _remove_marked(connection, progress, grace)
    progress.begin(RetirementStep.DONE)
    return retired


async def withdraw_demo(connection: AsyncConnection) -> bool:
    """Withdraw the demo, inside the transaction that publishes a real catalogue; tell whether it was there."""
    marked = await connection.execute(
        text("UPDATE releases SET retired_at = clock_timestamp() WHERE name = :demo AND retired_at IS NULL"),
        {"demo": DEMO_RELEASE},
    )
    return marked.rowcount > 0


@asynccontextmanager
async def _session(database: Database) -> AsyncIterator[AsyncConnection]:
    """Lend a session that holds the lock of imports, each of whose statements is a transaction."""
    async with database.connect() as lent:
        connection = await lent.execution_options(isolation_level="AUTOCOMMIT")
        try:
            await _begin(connection)
            yield connection
        finally:
            await connection.invalidate()  # the session's lock and limits end with it


async def _remove_marked(connection: AsyncConnection, progress: RetirementProgress, grace: float) -> list[str]:
    progress.begin(RetirementStep.WAIT)
    await _wait(connection, grace)
    return [await _remove(connection, leftover, progress) for leftover in await _leftovers(connection)]


async def _begin(connection: AsyncConnection) -> None:
    """Take the lock of imports for this session; raise ImportRunningError where somebody holds it."""
    for setting, value in _LIMITS.items():
        await connection.execute(
            text("SELECT set_config(:setting, :value, false)"), {"setting": setting, "value": value}
        )
    if not await connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": IMPORT_LOCK}):
        raise ImportRunningError


async def _mark(connection: AsyncConnection, name: str) -> None:
    """Withdraw the release from readers; raise RetirementError where there is none, or it is the current one."""
    found = await connection.execute(
        text(
            "SELECT id, EXISTS (SELECT FROM current_release WHERE release_id = id) AS is_current"
            " FROM releases WHERE name = :name"
        ),
        {"name": name},
    )
    release = found.one_or_none()
    if release is None:
        raise RetirementError(f"There is no release {name}: run `localidades-api releases` to list the releases.")
    if release.is_current:
        raise RetirementError(
            f"Release {name} is the current one: first make another one current with"
            " `localidades-api releases publish`."
        )
    await connection.execute(
        text("UPDATE releases SET retired_at = clock_timestamp() WHERE id = :id AND retired_at IS NULL"),
        {"id": release.id},
    )


async def _wait(connection: AsyncConnection, grace: float) -> None:
    """Wait until what was marked last has been marked for `grace` seconds."""
    since = await connection.scalar(
        text("SELECT extract(epoch FROM clock_timestamp() - max(retired_at))::float8 FROM releases")
    )
    # A clock that has been set back since tells less than nothing.
    await asyncio.sleep(grace - min(max(since or 0.0, 0.0), grace))


async def _leftovers(connection: AsyncConnection) -> list[_Leftover]:
    """Return what is marked, a detachment that was cut short first: no other can begin before it is completed."""
    marked = await connection.execute(
        text(
            """
            SELECT r.id, i.inhdetachpending, to_regclass('localities_r' || r.id) IS NOT NULL AS has_table
              FROM releases AS r
              LEFT JOIN pg_inherits AS i ON i.inhparent = to_regclass('localities')
                                        AND i.inhrelid = to_regclass('localities_r' || r.id)
             WHERE r.retired_at IS NOT NULL
             ORDER BY i.inhdetachpending IS TRUE DESC, r.id
            """
        )
    )
    states = {True: "pending", False: "attached"}
    return [
        _Leftover(
            row.id, partition_of(row.id), states.get(row.inhdetachpending, "detached" if row.has_table else "gone")
        )
        for row in marked
    ]


async def _remove(connection: AsyncConnection, leftover: _Leftover, progress: RetirementProgress) -> str:
    """Remove a marked release, from whichever step its removal was cut short at; return its name."""
    if leftover.state in {"attached", "pending"}:
        progress.begin(RetirementStep.DETACH)
        # It waits for every transaction that reads localities, and none waits for it.
        how = "CONCURRENTLY" if leftover.state == "attached" else "FINALIZE"
        await connection.execute(text(f"ALTER TABLE localities DETACH PARTITION {leftover.partition} {how}"))
    if leftover.state != "gone":
        progress.begin(RetirementStep.DROP)
        await _drop(connection, leftover.partition)
    progress.begin(RetirementStep.CLEAR)
    removed = await connection.execute(
        text(
            """
            WITH m AS (DELETE FROM municipalities WHERE release_id = :id),
                 s AS (DELETE FROM states WHERE release_id = :id)
            DELETE FROM releases WHERE id = :id RETURNING name
            """
        ),
        {"id": leftover.id},
    )
    return str(removed.scalar_one())


async def _drop(connection: AsyncConnection, partition: str) -> None:
    """Drop a detached partition, its foreign key first.

    That key makes either step lock `municipalities` against readers too: dropping it alone is over at once, where
    dropping the table with its indexes takes a second on a busy machine. Whoever reads there for long, as a backup
    does, must not hold up the others behind the lock: it is asked for again and again, each time for a moment.
    """
    keys = await connection.execute(
        text("SELECT quote_ident(conname) FROM pg_constraint WHERE conrelid = to_regclass(:name) AND contype = 'f'"),
        {"name": partition},
    )
    await connection.execute(text(f"SET lock_timeout = '{_LOCK_TIMEOUT}'"))
    for key in keys.scalars().all():
        await _insist(connection, f"ALTER TABLE {partition} DROP CONSTRAINT {key}")
    await _insist(connection, f"DROP TABLE {partition}")
    await connection.execute(text(f"SET lock_timeout = '{_LIMITS['lock_timeout']}'"))


async def _insist(connection: AsyncConnection, statement: str) -> None:
    """Run a statement, again and again where it does not get its lock within a moment."""
    for tries_left in reversed(range(_MAX_ATTEMPTS)):
        try:
            await connection.execute(text(statement))
            break
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE or not tries_left:
                raise
        await asyncio.sleep(1)
