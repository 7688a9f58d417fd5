"""Every SELECT of the service."""

from sqlalchemy import select, text

from localidades_api.database import Database
from localidades_api.models import current_release, releases
from localidades_api.pagination import positions
from localidades_api.schemas import PAGE_SIZE, Release

_RELEASES = (
    select(releases, current_release.c.release_id.is_not(None).label("is_current"))
    .outerjoin_from(releases, current_release, current_release.c.release_id == releases.c.id)
    .order_by(releases.c.published_at, releases.c.id)
)

# Postgres writes the JSON: it takes the work off the process that answers, and one value crosses the wire in place of
# two hundred (decision 0007). `clave` is four digits, so only `nombre` needs escaping.
_PAGES = text(
    f"""
    SELECT string_agg(
               '{{"id":' || id || ',"municipio_id":' || municipio_id
               || ',"clave":"' || clave || '","nombre":' || to_json(nombre)::text || '}}',
               ',' ORDER BY position)
      FROM localities
     WHERE release_id = :release_id AND position BETWEEN :first AND :last
     GROUP BY (position - 1) / {PAGE_SIZE}
     ORDER BY (position - 1) / {PAGE_SIZE}
    """  # noqa: S608  # the size of a page is a constant of ours
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

    async def list_pages(self, release: Release, first: int, last: int) -> list[str]:
        """Return the results of a range of pages, each as the JSON text of its localities, without the brackets.

        A page is a range of positions, so the last one costs what the first does (decision 0003).
        """
        rows = await self.database.fetch(
            _PAGES, {"release_id": release.id, "first": positions(first)[0], "last": positions(last)[1]}
        )
        return [row[0] for row in rows]
