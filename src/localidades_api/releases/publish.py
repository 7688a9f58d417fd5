"""The pointer to the current release, which imports set, and operators who go back from a bad release."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.errors import PublicationError
from localidades_api.storage.import_lock import begin_import
from localidades_api.storage.pool import Database


async def publish_release(database: Database, name: str) -> str | None:
    """Make a release the current one; return the name of the previous one.

    The release keeps its time of publication, so its pages in caches stay valid. Raises PublicationError,
    ImportRunningError, ConfigurationError or DatabaseUnavailableError, and then changes nothing.
    """
    async with database.connect() as connection:
        await begin_import(connection)
        found = await connection.execute(
            text("SELECT id, name, retired_at FROM releases WHERE name = :name"), {"name": name}
        )
        release = found.one_or_none()
        if release is None:
            raise PublicationError(f"There is no release {name}: run `localidades-api releases` to list the releases.")
        if release.retired_at is not None:
            raise PublicationError(
                f"Release {name} is half removed: finish with `localidades-api releases retire {name}`, then"
                " import it again."
            )
        previous = await connection.scalar(
            text("SELECT name FROM releases JOIN current_release ON release_id = releases.id")
        )
        if previous != name:
            await set_current(connection, release.id)
            await connection.commit()
    return str(previous) if previous is not None else None


async def set_current(connection: AsyncConnection, release_id: int) -> None:
    """Set the pointer; readers see the release once this commits."""
    await connection.execute(
        text(
            """
            INSERT INTO current_release (release_id) VALUES (:release_id)
            ON CONFLICT (singleton)
            DO UPDATE SET release_id = excluded.release_id, publication = current_release.publication + 1
            """
        ),
        {"release_id": release_id},
    )
