"""Removes an old release while the service reads others: mark it, wait until every process has noticed, detach, drop.

Each step is a separate transaction, because `DETACH ... CONCURRENTLY` can't run inside one. By the marks, the next run
finds what an interrupted one has left, and finishes it first (docs/decisions/releases.md).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.schemas import DEMO_RELEASE
from localidades_api.database.failures import LOCK_NOT_AVAILABLE, sqlstate_of
from localidades_api.database.import_lock import IMPORT_LOCK, POINTER_LOCK
from localidades_api.database.models import partition_of
from localidades_api.database.pool import Database
from localidades_api.errors import ImportRunningError, ReleaseError
from localidades_api.observability.progress import Step, StepProgress
from localidades_api.releases.comparison import complete_comparisons

_LOCK_TIMEOUT = "250ms"  # readers wait no longer behind a request for a lock
_MAX_ATTEMPTS = 600  # a second apart; a backup may hold the table for minutes

# Limits of this session. The server notices within a second that the process was killed, and releases its lock.
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


@dataclass(frozen=True, slots=True)
class _MarkedRelease:
    """A marked release and the state of its partition."""

    id: int
    partition: str
    state: str  # attached, pending (its detachment was interrupted), detached, or gone


async def retire_release(database: Database, name: str, progress: StepProgress, *, grace: float) -> list[str]:
    """Remove a release for good, and those of interrupted runs; return the names of the removed releases.

    `grace` is the seconds until every process of the service has noticed that the release is withdrawn.
    Raises ReleaseError, ImportRunningError or DatabaseUnavailableError.
    """
    return await _retire(database, partial(_withdraw, name=name), progress, grace)


async def retire_oldest(database: Database, keep: int, progress: StepProgress, *, grace: float) -> list[str]:
    """Remove all releases but the `keep` newest, the current one and the demo; otherwise as `retire_release`.

    The newest are those that were imported last.
    """
    return await _retire(database, partial(_withdraw_oldest, keep=keep), progress, grace)


async def finish_retirements(database: Database, progress: StepProgress, *, grace: float) -> list[str]:
    """Remove the releases that an import or an interrupted run has withdrawn; return their names.

    Raises ImportRunningError or DatabaseUnavailableError; the next run continues.
    """
    return await _retire(database, None, progress, grace)


async def withdraw_demo(connection: AsyncConnection) -> bool:
    """Withdraw the demo, inside the transaction that publishes a real catalogue; return whether there was one."""
    marked = await connection.execute(
        text("UPDATE releases SET retired_at = clock_timestamp() WHERE name = :demo AND retired_at IS NULL"),
        {"demo": DEMO_RELEASE},
    )
    return marked.rowcount > 0


@asynccontextmanager
async def _session(database: Database) -> AsyncIterator[AsyncConnection]:
    """Lend an autocommit session that holds the import lock."""
    async with database.connect() as lent:
        connection = await lent.execution_options(isolation_level="AUTOCOMMIT")
        try:
            await _lock_imports(connection)
            yield connection
            # The server ends a session a moment after the client has closed it, and the next command may come sooner.
            await connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": IMPORT_LOCK})
        finally:
            await connection.invalidate()  # ends the session, its limits, and its lock if something failed


async def _retire(
    database: Database,
    withdraw: Callable[[AsyncConnection], Awaitable[None]] | None,
    progress: StepProgress,
    grace: float,
) -> list[str]:
    async with _session(database) as connection:
        if withdraw:
            progress.begin(RetirementStep.MARK)
            # The pointer lock keeps a release from becoming the current one; an error ends the session and the lock.
            await connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": POINTER_LOCK})
            await withdraw(connection)
            await connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": POINTER_LOCK})
        if not await _list_marked(connection):
            return []
        progress.begin(RetirementStep.COMPARE)
        await complete_comparisons(connection)
        progress.begin(RetirementStep.WAIT)
        await _wait_for_readers(connection, grace)
        retired = [await _remove(connection, marked, progress) for marked in await _list_marked(connection)]
        progress.begin(RetirementStep.DONE)
        return retired


async def _lock_imports(connection: AsyncConnection) -> None:
    for setting, value in _LIMITS.items():
        await connection.execute(
            text("SELECT set_config(:setting, :value, false)"), {"setting": setting, "value": value}
        )
    if not await connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": IMPORT_LOCK}):
        raise ImportRunningError


async def _withdraw(connection: AsyncConnection, name: str) -> None:
    """Withdraw the release from readers; raise ReleaseError if it does not exist or is the current one."""
    found = await connection.execute(
        text(
            "SELECT id, EXISTS (SELECT FROM current_release WHERE release_id = id) AS is_current"
            " FROM releases WHERE name = :name"
        ),
        {"name": name},
    )
    release = found.one_or_none()
    if release is None:
        raise ReleaseError(f"There is no release {name}: run `localidades-api releases` to list the releases.")
    if release.is_current:
        raise ReleaseError(
            f"Release {name} is the current one: first make another one current with"
            " `localidades-api releases publish`."
        )
    await connection.execute(
        text("UPDATE releases SET retired_at = clock_timestamp() WHERE id = :id AND retired_at IS NULL"),
        {"id": release.id},
    )


async def _withdraw_oldest(connection: AsyncConnection, keep: int) -> None:
    await connection.execute(
        text(
            """
            UPDATE releases SET retired_at = clock_timestamp()
             WHERE id IN (SELECT id FROM releases
                           WHERE retired_at IS NULL AND name <> :demo ORDER BY id DESC OFFSET :keep)
               AND id NOT IN (SELECT release_id FROM current_release)
            """
        ),
        {"demo": DEMO_RELEASE, "keep": keep},
    )


async def _wait_for_readers(connection: AsyncConnection, grace: float) -> None:
    since = await connection.scalar(
        text("SELECT extract(epoch FROM clock_timestamp() - max(retired_at))::float8 FROM releases")
    )
    # The difference is negative if the clock was set back since.
    await asyncio.sleep(grace - min(max(since or 0.0, 0.0), grace))


async def _list_marked(connection: AsyncConnection) -> list[_MarkedRelease]:
    """Return the marked releases; an interrupted detachment comes first, since it blocks any other."""
    found = await connection.execute(
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
        _MarkedRelease(
            row.id, partition_of(row.id), states.get(row.inhdetachpending, "detached" if row.has_table else "gone")
        )
        for row in found
    ]


async def _remove(connection: AsyncConnection, marked: _MarkedRelease, progress: StepProgress) -> str:
    """Remove a marked release, starting at the step where it was interrupted; return its name."""
    if marked.state in {"attached", "pending"}:
        progress.begin(RetirementStep.DETACH)
        # This waits for every transaction that reads localities, and none of them waits for it.
        how = "CONCURRENTLY" if marked.state == "attached" else "FINALIZE"
        await connection.execute(text(f"ALTER TABLE localities DETACH PARTITION {marked.partition} {how}"))
    if marked.state != "gone":
        progress.begin(RetirementStep.DROP)
        await _drop(connection, marked.partition)
    progress.begin(RetirementStep.CLEAR)
    removed = await connection.execute(
        text(
            """
            WITH m AS (DELETE FROM municipalities WHERE release_id = :id),
                 s AS (DELETE FROM states WHERE release_id = :id)
            DELETE FROM releases WHERE id = :id RETURNING name
            """
        ),
        {"id": marked.id},
    )
    return str(removed.scalar_one())


async def _drop(connection: AsyncConnection, partition: str) -> None:
    """Drop a detached partition, its foreign key first.

    Because of that key, either step locks `municipalities` against readers. Dropping the key alone takes a moment;
    dropping the table with its indexes takes a second on a busy machine. While a long reader, such as a backup, delays
    the lock, other readers would queue behind it. So it is requested repeatedly, each time for a moment.
    """
    keys = await connection.execute(
        text("SELECT quote_ident(conname) FROM pg_constraint WHERE conrelid = to_regclass(:name) AND contype = 'f'"),
        {"name": partition},
    )
    await connection.execute(text(f"SET lock_timeout = '{_LOCK_TIMEOUT}'"))
    for key in keys.scalars().all():
        await _execute_with_retries(connection, f"ALTER TABLE {partition} DROP CONSTRAINT {key}")
    await _execute_with_retries(connection, f"DROP TABLE {partition}")
    await connection.execute(text(f"SET lock_timeout = '{_LIMITS['lock_timeout']}'"))


async def _execute_with_retries(connection: AsyncConnection, statement: str) -> None:
    """Run a statement, and repeat it each second until it gets its lock in time."""
    for tries_left in reversed(range(_MAX_ATTEMPTS)):
        try:
            await connection.execute(text(statement))
            break
        except DBAPIError as error:
            if sqlstate_of(error) != LOCK_NOT_AVAILABLE or not tries_left:
                raise
        await asyncio.sleep(1)
