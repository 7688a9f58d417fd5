"""Refuses to load a release that exists already."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.errors import CatalogueError


async def refuse_published(connection: AsyncConnection, name: str, sha256: str) -> None:
    """Raise CatalogueError if the name is taken or the file is already published."""
    published = await connection.execute(
        text(
            """
            SELECT name, sha256, retired_at, EXISTS (SELECT FROM current_release WHERE release_id = id) AS is_current
              FROM releases
             WHERE name = :name OR sha256 = :sha256
             ORDER BY name = :name DESC
             LIMIT 1
            """
        ),
        {"name": name, "sha256": sha256},
    )
    taken = published.one_or_none()
    if taken is None:
        return
    if taken.retired_at is not None:
        raise CatalogueError(
            f"Release {taken.name} is half removed: finish with `localidades-api releases retire {taken.name}`."
        )
    if taken.sha256 != sha256:
        raise CatalogueError(
            f"Release {name} is already published from another file: choose another name with --release."
        )
    remedy = (
        "there is nothing to do."
        if taken.is_current
        else (f"make it the current one with `localidades-api releases publish {taken.name}`.")
    )
    raise CatalogueError(f"This very file is already published, as release {taken.name}: {remedy}")
