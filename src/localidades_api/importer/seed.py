"""The catalogue that an empty database is given by its migrations."""

from sqlalchemy import text

from localidades_api.importer import ImportReport, import_catalogue
from localidades_api.observability.progress import ImportProgress
from localidades_api.storage.pool import Database

UNNAMED = "seed"  # a file whose name tells no date: a migration can't ask for one


async def load_pending_seed(database: Database, source: str, progress: ImportProgress) -> ImportReport | None:
    """Load `source` where the seed migration asked for a catalogue and none has been published since.

    The request is kept until it is met: after a fault, the next upgrade tries again.
    """
    async with database.connect() as connection:
        if await connection.scalar(text("SELECT to_regclass('pending_seed')")) is None:
            return None
        if not await connection.scalar(text("SELECT EXISTS (SELECT FROM pending_seed)")):
            return None
        published = await connection.scalar(text("SELECT EXISTS (SELECT FROM current_release)"))
    report = None if published else await import_catalogue(database, source, progress, unnamed=UNNAMED)
    async with database.connect() as connection:
        await connection.execute(text("DELETE FROM pending_seed"))
        await connection.commit()
    return report
