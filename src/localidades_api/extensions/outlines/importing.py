"""Imports an edition of the outlines, or removes it, in one transaction: requests see all of it or nothing."""

import hashlib
import itertools
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import asyncpg
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.degrees import is_in_mexico
from localidades_api.catalogue.keys import format_key, state_of
from localidades_api.database.import_lock import begin_import
from localidades_api.database.pool import Database
from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines.files import UNITS, Outline, read_outlines
from localidades_api.extensions.outlines.geometry import box_of, crosses_itself, dissolve, nest, write_geometry
from localidades_api.extensions.outlines.queries import ASKED_UNITS
from localidades_api.observability.progress import Step, StepProgress

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_EDITION = text("SELECT name, source, sha256, municipios, imported_at FROM outline_edition")
_REMOVE = text(
    "WITH rings AS (DELETE FROM outline_rings), outlines AS (DELETE FROM outlines)"
    " DELETE FROM outline_edition RETURNING name"
)
_ADD = text("INSERT INTO outline_edition (name, source, sha256, municipios) VALUES (:name, :source, :sha256, :count)")
_UNKNOWN = text(
    """
    SELECT coalesce(array_agg(m.id ORDER BY m.id) FILTER (WHERE o.id IS NULL), '{}') AS without_outline,
           coalesce(array_agg(o.id ORDER BY o.id) FILTER (WHERE m.id IS NULL), '{}') AS not_in_release
      FROM (SELECT id FROM municipalities WHERE release_id = (SELECT release_id FROM current_release)) AS m
      FULL JOIN (SELECT id FROM outlines WHERE nombre <> '') AS o ON o.id = m.id
    """
)


class OutlineStep(Step):
    """The steps of an import of outlines, in order."""

    READ = "reading outlines"
    COPY = "copying outlines"
    PUBLISH = "publishing"

    @property
    def unit(self) -> str:
        """The unit of its amounts."""
        return "outlines"


class OutlineReport(NamedTuple):
    """The result of an import: how many municipios, and the keys that a person may want to look at."""

    edition: str
    municipios: int
    is_new: bool  # false if this very file was the edition already
    crossing: Sequence[int]  # whose rings cross themselves
    without_outline: Sequence[int]  # in the current release
    not_in_release: Sequence[int]
    seconds: float


async def import_outlines(
    database: Database, path: Path, edition: str, progress: StepProgress, *, dry_run: bool = False
) -> OutlineReport:
    """Replace the outlines by those in a file; the same file again changes nothing, and neither does a dry run.

    Raises CatalogueError, ImportRunningError, ConfigurationError, DatabaseUnavailableError or OSError, and then changes
    nothing.
    """
    began = time.perf_counter()
    if not _NAME.fullmatch(edition):
        raise CatalogueError("An edition's name has up to 64 letters, digits, dots, dashes and underscores: 2025.")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    async with database.connect() as connection:
        await begin_import(connection)
        before = (await connection.execute(_EDITION)).one_or_none()
        crossing: list[int] = []
        is_new = before is None or (before.name, before.sha256) != (edition, digest)
        if is_new:
            if before and before.name == edition:
                raise CatalogueError(
                    f"Edition {edition} was imported from another file: name this one otherwise, or remove that one"
                    " with `localidades-api outlines remove`."
                )
            found, crossing = _read(path, progress)
            await connection.execute(_REMOVE)
            await _load(connection, found, progress)
            added = {"name": edition, "source": path.name, "sha256": digest, "count": len(found)}
            await connection.execute(_ADD, added)
        unknown = (await connection.execute(_UNKNOWN)).one()
        count = (await connection.execute(_EDITION)).one().municipios
        progress.begin(OutlineStep.PUBLISH)
        await (connection.rollback() if dry_run else connection.commit())
    seconds = time.perf_counter() - began
    return OutlineReport(edition, count, is_new, crossing, unknown.without_outline, unknown.not_in_release, seconds)


async def remove_outlines(database: Database) -> str | None:
    """Remove the outlines; return the name of their edition, None if there are none."""
    async with database.connect() as connection:
        await begin_import(connection)
        name: str | None = await connection.scalar(_REMOVE)
        await connection.commit()
    return name


async def list_editions(database: Database) -> Sequence[Row[Any]]:
    """Return the edition, if there is one."""
    return await database.fetch(_EDITION)


def _read(path: Path, progress: StepProgress) -> tuple[list[Outline], list[int]]:
    """Return the outlines by key, and the keys of those that cross themselves.

    Raises CatalogueError for a repeated one, or one that is not in Mexico.
    """
    progress.begin(OutlineStep.READ)
    found: dict[int, Outline] = {}
    crossing: list[int] = []
    for one in read_outlines(path):
        key = format_key("municipio", one.id)
        if one.id in found:
            raise CatalogueError(f"The file has two outlines of {key}.")
        west, south, east, north = (side / UNITS for side in box_of(one.rings))
        if not (is_in_mexico(south, west) and is_in_mexico(north, east)):
            raise CatalogueError(f"The outline of {key} is not in Mexico: are its coordinates longitude and latitude?")
        if any(map(crosses_itself, one.rings)):
            crossing.append(one.id)
        found[one.id] = one
        progress.advance(1)
    if not found:
        raise CatalogueError("The file has no outlines.")
    return [found[id_] for id_ in sorted(found)], sorted(crossing)


async def _load(connection: AsyncConnection, found: Sequence[Outline], progress: StepProgress) -> None:
    progress.begin(OutlineStep.COPY)
    progress.expect(len(found))
    unit = UNITS / ASKED_UNITS
    raw = await connection.get_raw_connection()
    driver = cast("asyncpg.Connection", raw.driver_connection)
    for estado_id, group in itertools.groupby(found, key=lambda one: state_of(one.id)):
        outlines = [(one.id, one.nombre, nest(one.rings)) for one in group]
        outlines.append((estado_id, "", dissolve(polygon for *_, polygons in outlines for polygon in polygons)))
        rows = [(id_, nombre, write_geometry(polygons)) for id_, nombre, polygons in outlines]
        # Most holes are enclaves, whose own ring has the smaller box.
        rings = (
            (id_, asyncpg.Polygon(*((x / unit, y / unit) for x, y in outer)))
            for id_, nombre, polygons in outlines
            if nombre
            for outer, *_ in polygons
        )
        await driver.copy_records_to_table("outlines", records=rows)
        await driver.copy_records_to_table("outline_rings", records=rings, columns=("municipio_id", "ring"))
        progress.advance(len(rows) - 1)
    for table in ("outlines", "outline_rings"):
        await connection.execute(text(f"ANALYZE {table}"))
