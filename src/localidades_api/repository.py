"""Every SELECT of the service."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, select

from localidades_api.database import Database
from localidades_api.models import current_release, localities, releases
from localidades_api.pagination import positions
from localidades_api.schemas import Release

_RELEASES = (
    select(releases, current_release.c.release_id.is_not(None).label("is_current"))
    .outerjoin_from(releases, current_release, current_release.c.release_id == releases.c.id)
    .order_by(releases.c.published_at, releases.c.id)
)

_LOCALITIES = (
    select(localities.c.id, localities.c.municipio_id, localities.c.clave, localities.c.nombre)
    .where(
        localities.c.release_id == bindparam("release_id"),
        localities.c.position.between(bindparam("first"), bindparam("last")),
    )
    .order_by(localities.c.position)
)


class CatalogueRepository:
    """Reads releases and their records; a database that does not answer raises DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def list_releases(self) -> tuple[list[Release], Release | None]:
        """Return every release, oldest first, and the current one."""
        rows = await self.database.fetch(_RELEASES)
        every = [Release.model_validate(row) for row in rows]
        current = next((release for release, row in zip(every, rows, strict=True) if row.is_current), None)
        return every, current

    async def list_localities(self, release: Release, page: int) -> Sequence[Row[Any]]:
        """Return the rows of a page: id, municipio_id, clave, nombre, ordered by clave, then id.

        A page is a range of positions, so the last one costs what the first does (decision 0003).
        """
        first, last = positions(page)
        return await self.database.fetch(_LOCALITIES, {"release_id": release.id, "first": first, "last": last})
