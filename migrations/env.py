"""Run migrations, and load the seed once they are done, if one is named.

One run at a time: a second one waits for the first. The seed migration only leaves a note (`pending_seed`); the note
is followed here, when the schema is the one that the importer knows (docs/decisions/releases.md).
"""

import asyncio
from collections.abc import Callable
from logging.config import fileConfig

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.cli.import_catalogue import print_report
from localidades_api.database.embedded_postgres import provide_database
from localidades_api.database.import_lock import MIGRATION_LOCK
from localidades_api.database.models import VERSION_TABLE, metadata
from localidades_api.database.pool import Database
from localidades_api.errors import LocalidadesError
from localidades_api.importer.name_index import complete_indexes
from localidades_api.importer.run import load_pending_seed
from localidades_api.observability.progress_display import show_progress
from localidades_api.settings import read_settings

# Told of the revisions before and after, once they are committed and before the seed is loaded.
Report = Callable[[tuple[str, ...], tuple[str, ...]], None]


def _is_ours(name: str | None, kind: str, parents: object) -> bool:  # noqa: ARG001  # Alembic's signature
    """Leave out the partitions, which come with an import, and the tables of extensions and of other programs."""
    return kind != "table" or name in metadata.tables


def _migrate(connection: Connection) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Run what was asked for; return the revisions before and after, and whether it upgraded to the newest schema."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        include_name=_is_ours,
        compare_server_default=True,
    )
    migration = context.get_context()
    before = migration.get_current_heads()
    with context.begin_transaction():
        context.run_migrations()
    after = migration.get_current_heads()
    return before, after, "destination_rev" in migration.opts and after == context.get_head_revisions()


async def _take_lock(connection: AsyncConnection) -> None:
    """Wait for another run, which may be loading its seed; then set limits for this one's statements."""
    await connection.execute(text("SET lock_timeout = '10min'"))
    await connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    await connection.execute(text("SET lock_timeout = '10s'"))
    await connection.execute(text("SET statement_timeout = '15min'"))
    await connection.commit()


async def _run(url: str, catalogue: str | None) -> None:
    database = Database.for_writing(url)
    try:
        async with database.connect() as connection:
            await _take_lock(connection)
            before, after, at_head = await connection.run_sync(_migrate)
            await connection.commit()
            report: Report | None = context.config.attributes.get("report")
            if report is not None:
                report(before, after)
            if at_head:
                await _load(url, catalogue)
    finally:
        await database.dispose()


async def _load(url: str, catalogue: str | None) -> None:
    """Load the seed and build missing indexes over a connection of their own: this run's connection keeps the lock."""
    database = Database.for_writing(url)
    try:
        with show_progress() as progress:
            report = catalogue and await load_pending_seed(database, catalogue, progress)
            await complete_indexes(database, progress)
        if report:
            print_report(report)
    finally:
        await database.dispose()


def _run_online() -> None:
    if context.config.config_file_name and context.config.attributes.get("configure_logging", True):
        fileConfig(context.config.config_file_name, disable_existing_loggers=False)
    try:
        # A command that runs migrations itself has read the settings already.
        settings = context.config.attributes.get("settings") or read_settings()
        with provide_database(settings) as url:
            asyncio.run(_run(url, settings.initial_catalogue))
    except LocalidadesError as error:
        raise CommandError(str(error)) from error


if context.is_offline_mode():
    context.configure(
        dialect_name="postgresql", target_metadata=metadata, version_table=VERSION_TABLE, literal_binds=True
    )
    with context.begin_transaction():
        context.run_migrations()
else:
    _run_online()
