"""Keys that a release lacks and an earlier one had: the last release with a key, and the places that succeed it.

The index of names has the same rule for places without a database (`names.files.history`).
"""

from typing import Any

from sqlalchemy import Row, Table, text

from localidades_api.catalogue.schemas import DEMO_RELEASE, Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.pool import Database

# The demo is invented, so it is compared with no other release.
COMPARABLE = f"r.retired_at IS NULL AND (r.name = '{DEMO_RELEASE}') = :is_demo"
_LAST_RELEASES = {
    table.name: text(
        f"""
        SELECT r.* FROM releases AS r JOIN {table.name} AS t ON t.release_id = r.id
         WHERE t.id = :id AND r.id < :release_id AND {COMPARABLE}
         ORDER BY r.id DESC
         LIMIT 1
        """
    )
    for table in (localities, municipalities, states)
}
# A place of the release succeeds a withdrawn one of `:last_id` that it shares its name and its point with, if its own
# key is new.
_SUCCESSORS = text(
    """
    SELECT l.id
      FROM localities AS old
      JOIN localities AS l ON l.release_id = :release_id AND l.folded = old.folded AND l.nombre = old.nombre
           AND l.latitud = old.latitud AND l.longitud = old.longitud
     WHERE old.release_id = :last_id AND old.id = :id
       AND NOT EXISTS (SELECT FROM localities AS same WHERE same.release_id = :last_id AND same.id = l.id)
     LIMIT 2
    """
)


async def find_last_release(database: Database, table: Table, release: Release, id_: int) -> Row[Any] | None:
    """Return the last release before this one that has a key, or None."""
    parameters = {"id": id_, "is_demo": release.is_demo}
    rows = await database.fetch_from(release, _LAST_RELEASES[table.name], parameters)
    return rows[0] if rows else None


async def find_successor(database: Database, release: Release, last_id: int, id_: int) -> int | None:
    """Return the key of the only locality that succeeds one of the release `last_id`, or None."""
    parameters = {"release_id": release.id, "last_id": last_id, "id": id_}
    rows = await database.fetch_from(release, _SUCCESSORS, parameters)
    return int(rows[0].id) if len(rows) == 1 else None
