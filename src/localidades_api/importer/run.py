"""Imports a catalogue as the current release, also the one that a seed migration requested."""

import asyncio
import gc
import logging
import re
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.caches.index_folders import CODE
from localidades_api.catalogue.keys import RELEASE_NAME
from localidades_api.catalogue.schemas import DEMO_RELEASE
from localidades_api.database.import_lock import begin_import, lock_pointer
from localidades_api.database.pool import Database
from localidades_api.errors import CatalogueError, CommandError, InsufficientMemoryError
from localidades_api.importer.checks import (
    describe_losses,
    refuse_broken_letters,
    refuse_losses,
    refuse_published,
    refuse_renames,
)
from localidades_api.importer.extract import open_catalogue
from localidades_api.importer.load import load_release, publish, vacuum
from localidades_api.importer.name_index import building, read_source
from localidades_api.importer.source import Source, interruptible, open_source, suggest_release_name
from localidades_api.importer.transform import CatalogueRecords, Rejected, transform, without_garbage_collection
from localidades_api.observability.progress import ImportStep, StepProgress
from localidades_api.releases.comparison import Comparison, compare_with_current, complete_comparisons
from localidades_api.releases.retire import withdraw_demo
from localidades_api.releases.stored_indexes import store_index

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import, or of a dry run."""

    release: str
    states: int
    municipalities: int
    localities: int
    withdrawn: int
    rejected: list[Rejected]
    comparison: Comparison
    demo_retired: bool
    losses: str | None  # a message if much of the previous release or of the country is missing
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of an import."""

    release: str | None = None  # its name; without it, the date in the file's name
    unnamed: str | None = None  # its name if the file's has no date
    dry_run: bool = False  # do everything and roll back
    allow_shrink: bool = False
    allow_renames: bool = False
    allow_broken_letters: bool = False
    keep_demo: bool = False  # otherwise a real catalogue withdraws the demo
    reason: str | None = None  # for the log of publications


async def import_catalogue(
    database: Database,
    source: str,
    progress: StepProgress,
    options: ImportOptions = ImportOptions(),  # immutable
) -> ImportReport:
    """Import a catalogue and publish it as the current release.

    `source` is `demo`, a path, `-` for standard input, or an http(s) address. The rows of a withdrawn demo remain until
    `finish_retirements`. Raises CatalogueError, ImportRunningError, IndexingError, ConfigurationError or
    DatabaseUnavailableError, and then changes nothing. Once the release is published, this returns the report even if
    it is cancelled.
    """
    began = time.perf_counter()
    with open_source(source, progress) as file, without_garbage_collection():
        async with AsyncExitStack() as stack, database.connect() as connection:
            await begin_import(connection)
            name, catalogue = await _read(connection, file, options, progress)
            if not options.allow_broken_letters:
                refuse_broken_letters(catalogue)
            index_source = await read_source(database.url, name, file.sha256, catalogue)
            index = await stack.enter_async_context(building(database.url, index_source))
            release_id = await load_release(
                connection, catalogue, name=name, source=file.name, sha256=file.sha256, progress=progress
            )
            progress.begin(ImportStep.NAMES)
            await store_index(connection, release_id, CODE, await index)
            progress.begin(ImportStep.COMPARE)
            await lock_pointer(connection)
            comparison = await compare_with_current(connection, release_id, name)
            if not options.allow_shrink:
                refuse_losses(comparison, catalogue)
            if not options.allow_renames:
                refuse_renames(comparison, catalogue)
            await complete_comparisons(connection)
            await publish(connection, release_id, progress, options.reason)
            demo_retired = name != DEMO_RELEASE and not options.keep_demo and await withdraw_demo(connection)
            if options.dry_run:
                await connection.rollback()
            else:
                await _finish(connection, release_id, name, progress)
            seconds = time.perf_counter() - began
    return ImportReport(
        release=name,
        states=len(catalogue.states),
        municipalities=len(catalogue.municipalities),
        localities=len(catalogue.localities),
        withdrawn=catalogue.withdrawn,
        rejected=catalogue.rejected,
        comparison=comparison,
        demo_retired=demo_retired,
        losses=describe_losses(comparison, catalogue),
        seconds=seconds,
    )


async def _finish(connection: AsyncConnection, release_id: int, name: str, progress: StepProgress) -> None:
    """Commit the publication, then vacuum; an error or a cancellation after the commit is only logged."""
    interrupted = await _commit(connection, name)
    progress.begin(ImportStep.DONE)
    try:
        if interrupted:
            raise asyncio.CancelledError  # noqa: TRY301  # treat it as a cancellation a moment later
        await vacuum(connection, release_id)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # the release is published nevertheless
        reason = "interrupted" if isinstance(error, asyncio.CancelledError) else type(error).__name__
        logger.warning(
            "Release %s is published, but its VACUUM did not finish (%s): searches are slower until autovacuum"
            " catches up.", name, reason,
        )  # fmt: skip
        await connection.invalidate()


async def _commit(connection: AsyncConnection, name: str) -> bool:
    """Commit, and return True if this task was cancelled meanwhile: a commit under way can't be undone."""
    committing = asyncio.ensure_future(connection.commit())
    try:
        try:
            await asyncio.shield(committing)
        except asyncio.CancelledError:
            await committing
            return True
    except (DBAPIError, OSError) as error:
        if getattr(error, "connection_invalidated", True):
            raise CommandError(
                f"The connection to the database was lost while release {name} was being published: check with"
                " `localidades-api releases` whether it is listed, and import it again if it is not."
            ) from error
        raise
    return False


async def _read(
    connection: AsyncConnection, file: Source, options: ImportOptions, progress: StepProgress
) -> tuple[str, CatalogueRecords]:
    progress.begin(ImportStep.READ)
    with open_catalogue(file) as table:
        name = options.release
        if name is None:
            name = suggest_release_name(file, table.member) or options.unnamed
        if name is None:
            raise CatalogueError("The file's name has no date: name the release with --release, such as 2018-09.")
        _check_name(name, file)
        await refuse_published(connection, name, file.sha256)
        with suppress(MemoryError), interruptible():
            return name, transform(table, progress.advance)
    # Free the rows first: the connection needs memory to close.
    gc.collect()
    raise InsufficientMemoryError


def _check_name(name: str, file: Source) -> None:
    if not re.fullmatch(RELEASE_NAME, name):
        raise CatalogueError(
            "A release's name must begin with a letter or a digit, and have up to 64 letters, digits, dots, dashes and"
            " underscores."
        )
    if (name == DEMO_RELEASE) != (file.name == DEMO_RELEASE and file.file is None):
        raise CatalogueError("Only the bundled catalogue can be named demo, and it can have no other name.")


UNNAMED = "seed"  # the release of a file without a date in its name


async def load_pending_seed(database: Database, source: str, progress: StepProgress) -> ImportReport | None:
    """Load `source` if the seed migration requested a catalogue and none has been published since.

    The request stays until a catalogue is loaded, so after a failure the next upgrade tries again.
    """
    async with database.connect() as connection:
        if not await connection.scalar(text("SELECT EXISTS (SELECT FROM pending_seed)")):
            return None
        published = await connection.scalar(text("SELECT EXISTS (SELECT FROM current_release)"))
    report = None
    if not published:
        report = await import_catalogue(database, source, progress, ImportOptions(unnamed=UNNAMED))
    async with database.connect() as connection:
        await connection.execute(text("DELETE FROM pending_seed"))
        await connection.commit()
    return report
