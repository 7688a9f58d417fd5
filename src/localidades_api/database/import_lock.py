"""One writer at a time: the advisory locks of those who load, remove and publish releases.

An import takes both locks for as long as it lasts. A retirement takes the import lock, and that of the pointer for the
moment in which it makes sure that a release is not the current one and withdraws it. Publishing an earlier release
takes the lock of the pointer alone, so that it never waits for a retirement.
"""

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.errors import ConfigurationError, ImportRunningError

# Arbitrary; nothing else in the database may use them. A migration's is the number between (`migrations/env.py`).
IMPORT_LOCK = 6_088_304_400
POINTER_LOCK = IMPORT_LOCK + 2
_LOCK_NOT_AVAILABLE = "55P03"


async def begin_import(connection: AsyncConnection) -> None:
    """Take both locks for this transaction; raise ImportRunningError where another import holds them."""
    await _limit(connection)
    if not await connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": IMPORT_LOCK}):
        raise ImportRunningError
    await _hold_pointer(connection)
    await _require_tables(connection)


async def begin_publication(connection: AsyncConnection) -> None:
    """Take the lock of the pointer for this transaction; raise ImportRunningError if an import holds it."""
    await _limit(connection)
    await connection.execute(text("SET LOCAL lock_timeout = '1s'"))  # only an import holds it for longer
    try:
        await _hold_pointer(connection)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        raise ImportRunningError from error
    await _require_tables(connection)


async def _hold_pointer(connection: AsyncConnection) -> None:
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": POINTER_LOCK})


async def _limit(connection: AsyncConnection) -> None:
    await connection.execute(text("SET LOCAL statement_timeout = '15min'"))
    await connection.execute(text("SET LOCAL lock_timeout = '10s'"))
    await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '15min'"))
    # Leave the other processors to requests.
    await connection.execute(text("SET LOCAL max_parallel_maintenance_workers = 0"))
    await connection.execute(text("SET LOCAL max_parallel_workers_per_gather = 0"))
    # The server notices within a second that an importer was killed, and releases its locks.
    await connection.execute(text("SET LOCAL client_connection_check_interval = '1s'"))


async def _require_tables(connection: AsyncConnection) -> None:
    if await connection.scalar(text("SELECT to_regclass('current_release')")) is None:
        raise ConfigurationError("The database has no tables yet: run `localidades-api migrate` first.")
