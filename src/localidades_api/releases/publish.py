"""The pointer to the current release, set by imports and by operators who return to an earlier one."""

import getpass
import socket
from typing import Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.database.import_lock import begin_publication
from localidades_api.database.pool import Database
from localidades_api.errors import ReleaseError

_CURRENT = "SELECT name FROM releases JOIN current_release ON release_id = releases.id"
# Every part of the statement sees the tables as they were before it.
_SET_CURRENT = text(
    f"""
    WITH pointer AS (
         INSERT INTO current_release (release_id) VALUES (:release_id)
         ON CONFLICT (singleton)
         DO UPDATE SET release_id = excluded.release_id, publication = current_release.publication + 1
         RETURNING publication)
    INSERT INTO publications (number, release, previous, action, account, reason)
    SELECT pointer.publication, releases.name, ({_CURRENT}), :action, :account, :reason
      FROM pointer CROSS JOIN releases WHERE releases.id = :release_id
    """  # noqa: S608  # no values
)


async def publish_release(database: Database, name: str, *, reason: str | None = None) -> str | None:
    """Make a release the current one; return the name of the previous one. `reason` is for the log.

    The release keeps its time of publication, so its pages in caches stay valid. Raises ReleaseError,
    ImportRunningError, ConfigurationError or DatabaseUnavailableError, and then changes nothing.
    """
    async with database.connect() as connection:
        await begin_publication(connection)
        found = await connection.execute(
            text("SELECT id, name, retired_at FROM releases WHERE name = :name"), {"name": name}
        )
        release = found.one_or_none()
        if release is None:
            raise ReleaseError(f"There is no release {name}: run `localidades-api releases` to list the releases.")
        if release.retired_at is not None:
            raise ReleaseError(
                f"Release {name} is half removed: finish with `localidades-api releases retire {name}`, then"
                " import it again."
            )
        previous = await connection.scalar(text(_CURRENT))
        if previous != name:
            await set_current(connection, release.id, action="publish", reason=reason)
            await connection.commit()
    return str(previous) if previous is not None else None


async def set_current(
    connection: AsyncConnection, release_id: int, *, action: Literal["import", "publish"], reason: str | None = None
) -> None:
    """Set the pointer and add to the log; readers see the release once this commits."""
    await connection.execute(
        _SET_CURRENT, {"release_id": release_id, "action": action, "account": _account(), "reason": reason}
    )


def _account() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user that has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
