"""Imports an edition of the outlines, or removes it, in one transaction: requests see all of it or nothing."""

import hashlib
import itertools
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import asyncpg
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.keys import format_key, state_of
from localidades_api.catalogue.mercator import MEXICO_BOX
from localidades_api.database.import_lock import begin_import
from localidades_api.database.pool import Database
from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines.files import UNITS, Outline, read_outlines
from localidades_api.extensions.outlines.geometry import (
    Polygon,
    box_of,
    crosses_itself,
    dissolve,
    nest,
    write_geometry,
)
from localidades_api.extensions.outlines.queries import ASKED_UNITS
from localidades_api.observability.progress import Step, StepProgress

EDITION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_REMOVE = ("outline_rings", "outlines", "outline_edition")
_UNKNOWN = """
    SELECT coalesce(array_agg(m.id ORDER BY m.id) FILTER (WHERE o.id IS NULL), '{}') AS without_outline,
           coalesce(array_agg(o.id ORDER BY o.id) FILTER (WHERE m.id IS NULL), '{}') AS not_in_release
      FROM (SELECT id FROM municipalities WHERE release_id = (SELECT release_id FROM current_release)) AS m
      FULL JOIN (SELECT id FROM outlines WHERE nombre <> '') AS o ON o.id = m.id
"""


class OutlineStep(Step):
    """The steps of an import of outlines, in order."""

    READ = "reading outlines"
    CHECK = "checking outlines"
    COPY = "copying outlines"
    PUBLISH = "publishing"

    @property
    def unit(self) -> str:
        """The unit of its amounts."""
        return "outlines"


@dataclass(frozen=True, slots=True)
class OutlineReport:
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

    Raises CatalogueError, ImportRunningError, ConfigurationError or DatabaseUnavailableError, and then changes nothing.
    """
    began = time.perf_counter()
    if not EDITION_NAME.fullmatch(edition):
        raise CatalogueError("An edition's name has up to 64 letters, digits, dots, dashes and underscores: 2025.")
    digest = _digest(path)
    async with database.connect() as connection:
        await begin_import(connection)
        before = (await connection.execute(text("SELECT name, sha256 FROM outline_edition"))).one_or_none()
        crossing: list[int] = []
        is_new = before is None or (before.name, before.sha256) != (edition, digest)
        if is_new:
            if before and before.name == edition:
                raise CatalogueError(
                    f"Edition {edition} was imported from another file: name this one otherwise, or remove that one"
                    " with `localidades-api outlines remove`."
                )
            found = _read(path, progress)
            crossing = _find_crossing(found, progress)
            await _load(connection, found, progress)
            await connection.execute(
                text("INSERT INTO outline_edition (name, source, sha256, municipios) VALUES (:name, :file, :sha, :n)"),
                {"name": edition, "file": path.name, "sha": digest, "n": len(found)},
            )
        unknown = (await connection.execute(text(_UNKNOWN))).one()
        count = int(await connection.scalar(text("SELECT municipios FROM outline_edition")) or 0)
        progress.begin(OutlineStep.PUBLISH)
        await (connection.rollback() if dry_run else connection.commit())
    seconds = time.perf_counter() - began
    return OutlineReport(edition, count, is_new, crossing, unknown.without_outline, unknown.not_in_release, seconds)


async def remove_outlines(database: Database) -> str | None:
    """Remove the outlines; return the name of their edition, None if there are none."""
    async with database.connect() as connection:
        await begin_import(connection)
        name: str | None = await connection.scalar(text("SELECT name FROM outline_edition"))
        await _clear(connection)
        await connection.commit()
    return name


async def list_editions(database: Database) -> Sequence[Row[Any]]:
    """Return the edition, if there is one: `name`, `source`, `municipios` and `imported_at`."""
    return await database.fetch(text("SELECT name, source, municipios, imported_at FROM outline_edition"))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise CatalogueError(f"There is no file {path}, or it can't be read.") from error


def _read(path: Path, progress: StepProgress) -> list[Outline]:
    """Return the outlines by key; raise CatalogueError for a repeated one, or one that is not in Mexico."""
    progress.begin(OutlineStep.READ)
    found: dict[int, Outline] = {}
    for one in read_outlines(path):
        key, box = format_key("municipio", one.id), box_of(one.rings)
        if one.id in found:
            raise CatalogueError(f"The file has two outlines of {key}.")
        west, south, east, north = (side / UNITS for side in box)
        if not (MEXICO_BOX.west <= west and MEXICO_BOX.south <= south) or not (
            east <= MEXICO_BOX.east and north <= MEXICO_BOX.north
        ):
            raise CatalogueError(f"The outline of {key} is not in Mexico: are its coordinates longitude and latitude?")
        found[one.id] = one
        progress.advance(1)
    if not found:
        raise CatalogueError("The file has no outlines.")
    return [found[id_] for id_ in sorted(found)]


def _find_crossing(found: Sequence[Outline], progress: StepProgress) -> list[int]:
    progress.begin(OutlineStep.CHECK)
    progress.expect(len(found))
    crossing = []
    for one in found:
        if any(map(crosses_itself, one.rings)):
            crossing.append(one.id)
        progress.advance(1)
    return crossing


async def _load(connection: AsyncConnection, found: Sequence[Outline], progress: StepProgress) -> None:
    progress.begin(OutlineStep.COPY)
    progress.expect(len(found))
    await _clear(connection)
    raw = await connection.get_raw_connection()
    driver = cast("asyncpg.Connection", raw.driver_connection)
    for estado_id, group in itertools.groupby(found, key=lambda one: state_of(one.id)):
        outlines = list(group)
        polygons = {one.id: nest(one.rings) for one in outlines}
        rows = [_describe(one.id, one.nombre, polygons[one.id]) for one in outlines]
        rows.append(_describe(estado_id, "", dissolve(itertools.chain.from_iterable(polygons.values()))))
        await driver.copy_records_to_table("outlines", records=rows)
        await driver.copy_records_to_table("outline_rings", records=_outer_rings(polygons.items()))
        progress.advance(len(outlines))
    for table in ("outlines", "outline_rings"):
        await connection.execute(text(f"ANALYZE {table}"))


async def _clear(connection: AsyncConnection) -> None:
    for table in _REMOVE:
        await connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608  # names of ours


def _describe(id_: int, nombre: str, polygons: Sequence[Polygon]) -> tuple[Any, ...]:
    box = box_of(polygon[0] for polygon in polygons)
    return (id_, nombre, write_geometry(polygons), *(side / UNITS for side in box))


def _outer_rings(areas: Iterable[tuple[int, Sequence[Polygon]]]) -> Iterator[tuple[int, asyncpg.Box, asyncpg.Polygon]]:
    """Yield outer rings; most holes are enclaves, whose own ring has the smaller box."""
    unit = UNITS // ASKED_UNITS
    for id_, polygons in areas:
        for polygon in polygons:
            west, south, east, north = (side / unit for side in box_of(polygon[:1]))
            ring = asyncpg.Polygon(*((x / unit, y / unit) for x, y in polygon[0]))
            yield id_, asyncpg.Box((east, north), (west, south)), ring
