"""Loads the catalogue that a seed migration requested."""

from sqlalchemy import text

from localidades_api.caches.name_indexes.imports import ImportIndexer
from localidades_api.database.pool import Database
from localidades_api.importer.run import ImportReport, import_catalogue
from localidades_api.observability.progress import ImportProgress

UNNAMED = "seed"  # the release of a file without a date in its name


async def load_pending_seed(
    database: Database, source: str, progress: ImportProgress, indexer: ImportIndexer | None
) -> ImportReport | None:
    """Load `source` if the seed migration requested a catalogue and none has been published since.

    The request stays until a catalogue is loaded, so after a failure the next upgrade tries again. `indexer` builds the
    index of names in the meantime.
    """
    async with database.connect() as connection:
        if not await connection.scalar(text("SELECT EXISTS (SELECT FROM pending_seed)")):
            return None
        published = await connection.scalar(text("SELECT EXISTS (SELECT FROM current_release)"))
    report = None
    if not published:
        report = await import_catalogue(database, source, progress, unnamed=UNNAMED, indexer=indexer)
    async with database.connect() as connection:
        await connection.execute(text("DELETE FROM pending_seed"))
        await connection.commit()
    return report
