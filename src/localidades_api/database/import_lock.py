"""Advisory locks that keep commands from writing at the same time.

An import takes the import lock until it ends, and the pointer lock once its release is ready to be compared with the
current one. A retirement takes the import lock, and briefly the pointer lock, while it checks that a release is not the
current one and withdraws it. Publishing an earlier release takes only the pointer lock, so it waits for no retirement,
and for an import only a moment.
"""

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.database.failures import LOCK_NOT_AVAILABLE, sqlstate_of
from localidades_api.database.sessions import set_locally
from localidades_api.errors import ConfigurationError, ImportRunningError

# Arbitrary numbers that nothing else in the database may use.
IMPORT_LOCK = 6_088_304_400
MIGRATION_LOCK = IMPORT_LOCK + 1
POINTER_LOCK = IMPORT_LOCK + 2

_LIMITS = {
    "statement_timeout": "15min",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "15min",
    # Leave the other processors for requests.
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers_per_gather": "0",
    # The server notices within a second that an importer was killed, and releases its locks.
    "client_connection_check_interval": "1s",
}


async def begin_import(connection: AsyncConnection) -> None:
    """Take the import lock for this transaction; raise ImportRunningError if another import holds it."""
    await connection.execute(set_locally(_LIMITS))
    if not await connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": IMPORT_LOCK}):
        raise ImportRunningError
    await _require_tables(connection)


async def begin_publication(connection: AsyncConnection) -> None:
    """Take the lock of the pointer for this transaction; raise ImportRunningError if an import holds it."""
    await connection.execute(set_locally(_LIMITS))
    await connection.execute(text("SET LOCAL lock_timeout = '1s'"))  # only an import that is ending holds it for longer
    try:
        await lock_pointer(connection)
    except DBAPIError as error:
        if sqlstate_of(error) != LOCK_NOT_AVAILABLE:
            raise
        raise ImportRunningError from error
    await _require_tables(connection)


async def lock_pointer(connection: AsyncConnection) -> None:
    """Take the lock of the pointer for this transaction."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": POINTER_LOCK})


async def _require_tables(connection: AsyncConnection) -> None:
    if await connection.scalar(text("SELECT to_regclass('current_release')")) is None:
        raise ConfigurationError("The database has no tables yet: run `localidades-api migrate` first.")
