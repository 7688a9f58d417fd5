"""The list of releases with the current one, and the log of publications."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import TextClause, select, text

from localidades_api.catalogue.schemas import CHANGE_KINDS, Release
from localidades_api.database.models import comparisons, current_release, releases
from localidades_api.database.pool import Database

# A standby is behind while it has received changes that it does not show yet.
_IS_BEHIND = text("pg_is_in_recovery() AND pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn() AS is_behind")
_RELEASES = (
    select(
        releases,
        current_release.c.publication,
        comparisons.c.previous_id,
        *(comparisons.c[kind] for kind in CHANGE_KINDS),
        _IS_BEHIND,
    )
    .outerjoin_from(releases, current_release, current_release.c.release_id == releases.c.id)
    .outerjoin(comparisons, comparisons.c.release_id == releases.c.id)
    .where(releases.c.retired_at.is_(None))
    .order_by(releases.c.id)  # ids grow with each import; a clock may be set back
)
NO_BORDERS = text("NULL")


class ChangeCounts(NamedTuple):
    """Counts of the localities that changed since an earlier release, by kind."""

    since: str
    counts: Mapping[str, int]


class ReleaseSnapshot(NamedTuple):
    """The releases that a server shows, oldest first; a server that is behind may lack the newest.

    `changes` has the counts of the importer, by the name of the later release. `publication` is the number of times
    that the pointer to the current release has been set. `borders` is the edition of the borders of municipios, if
    there are any.
    """

    every: list[Release]
    current: Release | None
    changes: Mapping[str, ChangeCounts]
    publication: int
    is_behind: bool
    borders: str


async def get_release_snapshot(database: Database, borders: TextClause = NO_BORDERS) -> ReleaseSnapshot:
    """Return the releases as the server that answers shows them, and the value of the expression `borders`."""
    rows = await database.fetch(_RELEASES.add_columns(borders))
    every = [Release.model_validate(row) for row in rows]
    pointed_at = [
        (release, row.publication) for release, row in zip(every, rows, strict=True) if row.publication is not None
    ]
    current, publication = pointed_at[0] if pointed_at else (None, 0)
    names = {row.id: row.name for row in rows}
    changes = {
        row.name: ChangeCounts(names[row.previous_id], {kind: getattr(row, kind) for kind in CHANGE_KINDS})
        for row in rows
        if row.previous_id in names  # a comparison with a retired release is stale
    }
    edition = (rows[0][-1] or "") if rows else ""
    return ReleaseSnapshot(every, current, changes, publication, any(row.is_behind for row in rows), edition)
