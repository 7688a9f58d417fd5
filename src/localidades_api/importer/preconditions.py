"""What must hold before a release is loaded: nobody else writes, there are tables, and it is not there already."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.errors import CatalogueError, ConfigurationError, ImportRunningError

IMPORT_LOCK = 6_088_304_400  # any number will do, as long as nothing else in the database takes it


async def begin_import(connection: AsyncConnection) -> None:
    """Take the import lock for this transaction; raise ImportRunningError where another import holds it."""
    await connection.execute(text("SET LOCAL statement_timeout = '15min'"))
    await connection.execute(text("SET LOCAL lock_timeout = '10s'"))
    await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '15min'"))
    # One processor is enough for it; the others are for requests.
    await connection.execute(text("SET LOCAL max_parallel_maintenance_workers = 0"))
    await connection.execute(text("SET LOCAL max_parallel_workers_per_gather = 0"))
    # A killed importer's locks go as soon as the server notices, in the middle of a statement too.
    await connection.execute(text("SET LOCAL client_connection_check_interval = '1s'"))
    if not await connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": IMPORT_LOCK}):
        raise ImportRunningError
    if await connection.scalar(text("SELECT to_regclass('current_release')")) is None:
        raise ConfigurationError("The database has no tables yet: run `localidades-api migrate` first.")


async def refuse_published(connection: AsyncConnection, name: str, sha256: str) -> None:
    """Raise CatalogueError where the name is taken or the file is published already."""
    published = await connection.execute(
        text(
            """
            SELECT name, sha256, retired_at, EXISTS (SELECT FROM current_release WHERE release_id = id) AS is_current
              FROM releases
             WHERE name = :name OR sha256 = :sha256
             ORDER BY name = :name DESC
             LIMIT 1
            """
        ),
        {"name": name, "sha256": sha256},
    )
    taken = published.one_or_none()
    if taken is None:
        return
    if taken.retired_at is not None:
        raise CatalogueError(
            f"Release {taken.name} is half removed: finish that with `localidades-api releases retire {taken.name}`."
        )
    if taken.sha256 != sha256:
        raise CatalogueError(
            f"Release {name} is already published, from another file; give this one another name with --release."
        )
    remedy = (
        "there is nothing to do."
        if taken.is_current
        else (f"make it the current one with `localidades-api releases publish {taken.name}`.")
    )
    raise CatalogueError(f"This very file is already published, as release {taken.name}: {remedy}")
