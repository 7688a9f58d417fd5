"""Compares each release with the one before when releases are written, and stores the changes and their counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.schemas import DEMO_RELEASE
from localidades_api.database.models import comparisons
from localidades_api.database.queries.changes import compare_releases

# The demo is invented, so no release is compared with it.
_PREVIOUS = text(
    """
    SELECT r.id, r.name
      FROM releases AS r LEFT JOIN current_release AS c ON c.release_id = r.id
     WHERE r.retired_at IS NULL AND r.id <> :release_id AND :demo NOT IN (r.name, :name)
     ORDER BY c.release_id IS NULL, r.id DESC
     LIMIT 1
    """
)
_MISSING = text(
    """
    SELECT id, previous_id
      FROM (SELECT id, lag(id) OVER (ORDER BY id) AS previous_id
              FROM releases WHERE retired_at IS NULL AND name <> :demo) AS published
     WHERE previous_id IS NOT NULL AND (id, previous_id) NOT IN (SELECT release_id, previous_id FROM comparisons)
     ORDER BY id
    """
)
_LOST_STATES = text(
    """
    SELECT nombre FROM states
     WHERE release_id = :old AND id NOT IN (SELECT id FROM states WHERE release_id = :new)
     ORDER BY id
    """
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts of the differences from the release that was current before; all zero if there was none."""

    previous: str | None
    added: int = 0
    removed: int = 0
    renamed: int = 0
    relocated: int = 0
    updated: int = 0
    lost_states: Sequence[str] = ()  # names of estados that only the earlier one has


async def compare_with_current(connection: AsyncConnection, release_id: int, name: str) -> Comparison:
    """Compare a release that is being imported with the current one, or with the last real one if that is the demo."""
    parameters = {"release_id": release_id, "name": name, "demo": DEMO_RELEASE}
    previous = (await connection.execute(_PREVIOUS, parameters)).one_or_none()
    if previous is None:
        return Comparison(None)
    counts = await _compare(connection, previous.id, release_id)
    lost = await connection.execute(_LOST_STATES, {"old": previous.id, "new": release_id})
    return Comparison(previous.name, **counts, lost_states=lost.scalars().all())


async def complete_comparisons(connection: AsyncConnection) -> None:
    """Compare each release that is not retired with the one before it, unless they were compared."""
    for release_id, previous_id in (await connection.execute(_MISSING, {"demo": DEMO_RELEASE})).all():
        await _compare(connection, previous_id, release_id)


async def _compare(connection: AsyncConnection, previous_id: int, release_id: int) -> Mapping[str, int]:
    changes, counts = await compare_releases(connection, previous_id, release_id)
    values = {"previous_id": previous_id, **counts, "changes_since": previous_id, "changes": changes}
    added = insert(comparisons).values(release_id=release_id, **values)
    await connection.execute(added.on_conflict_do_update(index_elements=["release_id"], set_=values))
    return counts
