"""Whether a server has a release: a standby may be behind, and a promoted one may have lost what was published last."""

from sqlalchemy import bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.domain.schemas import Release
from localidades_api.storage.models import releases
from localidades_api.storage.pool import ReplicaCheck

# The moment of its publication tells a release from another that has come to its number in a database made anew.
_PUBLISHED = select(
    releases.c.id,
    releases.c.retired_at,
    text(
        "EXISTS (SELECT FROM pg_inherits WHERE inhparent = to_regclass('localities')"
        " AND inhrelid = to_regclass('localities_r' || releases.id) AND NOT inhdetachpending) AS is_attached"
    ),
).where(releases.c.id == bindparam("release_id"), releases.c.published_at == bindparam("moment"))


def requires_release(*wanted: Release) -> ReplicaCheck:
    """Return the question whether the server of a connection has these releases.

    Without it a statement would find nothing there, which is an answer too, and a wrong one. It is asked once of each
    connection, which remembers it, and again when a statement has found nothing: a release that is being retired goes
    on being read for a moment, and then its rows are gone. Those that are attached still were so before.
    """

    async def replica_check(connection: AsyncConnection, *, anew: bool = False) -> bool:
        known = connection.info.setdefault("releases", set())
        for release in wanted:
            key = (release.id, release.published_at)
            if anew or key not in known:
                parameters = {"release_id": release.id, "moment": release.published_at}
                found = (await connection.execute(_PUBLISHED, parameters)).first()
                if found is None or (anew and found.retired_at and not found.is_attached):
                    known.discard(key)
                    return False
                known.add(key)
        return True

    return replica_check
