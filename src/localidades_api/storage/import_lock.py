"""One writer at a time: importing, publishing and retiring a release take the same advisory lock."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.errors import ConfigurationError, ImportRunningError

IMPORT_LOCK = 6_088_304_400  # arbitrary; nothing else in the database may use it


async def begin_import(connection: AsyncConnection) -> None:
    """Take the import lock for this transaction; raise ImportRunningError where another import holds it."""
    await connection.execute(text("SET LOCAL statement_timeout = '15min'"))
    await connection.execute(text("SET LOCAL lock_timeout = '10s'"))
    await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '15min'"))
    # Leave the other processors to requests.
    await connection.execute(text("SET LOCAL max_parallel_maintenance_workers = 0"))
    await connection.execute(text("SET LOCAL max_parallel_workers_per_gather = 0"))
    # The server notices within a second that an importer was killed, and releases its locks.
    await connection.execute(text("SET LOCAL client_connection_check_interval = '1s'"))
    if not await connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": IMPORT_LOCK}):
        raise ImportRunningError
    if await connection.scalar(text("SELECT to_regclass('current_release')")) is None:
        raise ConfigurationError("The database has no tables yet: run `localidades-api migrate` first.")
