"""Checks that a server has a release: a standby may lag, and a promoted one may lack the last publication."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.util import await_only

from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import releases
from localidades_api.database.pool import ReplicaCheck

# The time of publication tells a release from another with the same id in a database that was recreated.
_PUBLISHED = select(
    releases.c.id,
    releases.c.retired_at,
    text(
        "EXISTS (SELECT FROM pg_inherits WHERE inhparent = to_regclass('localities')"
        " AND inhrelid = to_regclass('localities_r' || releases.id) AND NOT inhdetachpending) AS is_attached"
    ),
).where(releases.c.id == bindparam("release_id"), releases.c.published_at == bindparam("moment"))


def requires_release(*wanted: Release) -> ReplicaCheck:
    """Return a check that passes on servers that have all of these releases."""
    return _RequiresReleases(wanted)


@dataclass(frozen=True, slots=True)
class _RequiresReleases:
    """Whether a connection's server has these releases.

    Without it, a statement on a server that lags would return no rows: a wrong answer that looks like a right one.
    Each connection is checked once and remembers the result. It is checked again when a statement returns no rows: a
    release that is being retired is still read for a moment, and then its rows go. A partition that is still attached
    now was attached when the statement ran.
    """

    releases: Sequence[Release]

    def __call__(self, connection: Connection, *, anew: bool = False) -> bool:
        """Return whether it has; a connection to Postgres itself has said so before."""
        known = connection.info.setdefault("releases", set())
        for release in self.releases:
            key = (release.id, release.published_at)
            if connection.info.get("is_shared") and not anew:
                if not _has(connection, release):
                    return False
                continue
            if anew or key not in known:
                parameters = {"release_id": release.id, "moment": release.published_at}
                found = connection.execute(_PUBLISHED, parameters).first()
                if found is None or (anew and found.retired_at and not found.is_attached):
                    known.discard(key)
                    return False
                known.add(key)
        return True


def _has(connection: Connection, release: Release) -> bool:
    """Ask the driver, in one round trip: behind a pooler each transaction asks."""
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101  # it is lent
    published = f"id = {release.id} AND published_at = '{release.published_at.isoformat()}'"  # no text of a client
    found = await_only(driver.execute(f"SELECT FROM releases WHERE {published}"))
    return bool(found == "SELECT 1")
