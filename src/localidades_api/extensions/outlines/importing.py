"""Imports an edition of the outlines, or removes it, in one transaction: requests see all of it or nothing."""

import hashlib
import itertools
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg
from pydantic_core import to_json
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.keys import STATE_KEYS, format_key, state_of
from localidades_api.database.import_lock import begin_import
from localidades_api.database.pool import Database
from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines.files import UNITS, Outline, named, read_outlines
from localidades_api.extensions.outlines.geometry import dissolve, nest, write_geometry
from localidades_api.extensions.outlines.queries import ASKED_UNITS
from localidades_api.importer.load import driver_of
from localidades_api.importer.source import fetch_file, interruptible, is_address
from localidades_api.observability.progress import ImportStep, Step, StepProgress

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_EDITION = text("SELECT name, sha256 FROM outline_edition")
_REMOVE = text(
    "WITH rings AS (DELETE FROM outline_rings), outlines AS (DELETE FROM outlines)"
    " DELETE FROM outline_edition RETURNING name"
)
_ADD = text("INSERT INTO outline_edition (name, source, sha256, municipios) VALUES (:name, :source, :sha256, :count)")
_KEYS = text("SELECT id FROM outlines WHERE nombre <> ''")
_COMPARED = text(
    """
      WITH current AS (SELECT release_id FROM current_release),
           places AS (
               SELECT l.municipio_id, bool_or(r.box @> box(p, p) AND r.ring @> p) AS is_inside
                 FROM localities AS l
                 JOIN outline_rings AS r USING (municipio_id)
                CROSS JOIN LATERAL (SELECT point(l.longitud * :units, l.latitud * :units) AS p) AS scaled
                WHERE l.release_id = (TABLE current)
                GROUP BY l.municipio_id, l.id)
    SELECT ARRAY(SELECT municipio_id FROM places GROUP BY 1 HAVING avg(is_inside::integer) < 0.5 ORDER BY 1)
           AS misplaced,
           coalesce(array_agg(m.id ORDER BY m.id) FILTER (WHERE o.id IS NULL), '{}') AS without_outline,
           coalesce(array_agg(o.id ORDER BY o.id) FILTER (WHERE m.id IS NULL), '{}') AS not_in_release
      FROM (SELECT id FROM municipalities WHERE release_id = (TABLE current)) AS m
      FULL JOIN (SELECT id FROM outlines WHERE nombre <> '') AS o ON o.id = m.id
    """
)


class OutlineStep(Step):
    """The steps of an import of outlines, in order."""

    FETCH = "fetching outlines"
    READ = "reading outlines"
    COPY = "copying outlines"
    PUBLISH = "publishing"


class OutlineReport(NamedTuple):
    """The result of an import: how many municipios, and the keys that a person may want to look at."""

    edition: str
    municipios: int
    is_new: bool  # false if these very outlines were the edition already
    seconds: float
    unread: Sequence[str]  # files of the zip that may have other outlines
    misplaced: Sequence[int]  # most of whose localities in the current release are elsewhere
    without_outline: Sequence[int]  # in the current release
    not_in_release: Sequence[int]


async def import_outlines(
    database: Database,
    source: str,
    edition: str,
    progress: StepProgress,
    *,
    dry_run: bool = False,
    allow_shrink: bool = False,
) -> OutlineReport:
    """Replace the outlines with others; the same outlines again, or a dry run, change nothing.

    `source` is a path or an http(s) address, in which `{estado}` stands for 01 to 32. Raises CatalogueError,
    ImportRunningError, ConfigurationError, DatabaseUnavailableError or OSError, and then changes nothing.
    """
    began = time.perf_counter()
    if not _NAME.fullmatch(edition):
        raise CatalogueError("An edition's name has up to 64 letters, digits, dots, dashes and underscores: 2025.")
    unread: list[str] = []
    with interruptible():
        found = sorted(_read(source, progress, unread))
        digest = hashlib.sha256()
        for outline in found:  # all at once take 180 MB
            digest.update(to_json(outline))
    async with database.connect() as connection:
        await begin_import(connection)
        before = (await connection.execute(_EDITION)).one_or_none()
        is_new = before is None or (before.name, before.sha256) != (edition, digest.hexdigest())
        if before and is_new:
            if before.name == edition:
                raise CatalogueError(
                    f"Edition {edition} has other outlines already: name these otherwise, or remove those with"
                    " `localidades-api outlines remove`."
                )
            if not allow_shrink:
                _refuse_losses({*await connection.scalars(_KEYS)}, {outline.id for outline in found}, before.name)
        if is_new:
            await connection.execute(_REMOVE)
            await _load(connection, found, progress)
            name = f"{urlsplit(source).hostname}{urlsplit(source).path}" if is_address(source) else Path(source).name
            added = {"name": edition, "source": name, "sha256": digest.hexdigest(), "count": len(found)}
            await connection.execute(_ADD, added)
        compared = (await connection.execute(_COMPARED, {"units": ASKED_UNITS})).one()
        progress.begin(OutlineStep.PUBLISH)
        await (connection.rollback() if dry_run else connection.commit())
    seconds = time.perf_counter() - began
    return OutlineReport(edition, len(found), is_new, seconds, unread, *compared)


def _refuse_losses(before: set[int], found: set[int], edition: str) -> None:
    """Raise CatalogueError if an estado, or over a tenth of the municipios, of the edition before is missing."""
    lost, estados = before - found, {*map(state_of, before)} - {*map(state_of, found)}
    if estados or len(lost) * 10 > len(before):
        whole = f", and has none of estado {', '.join(f'{id_:02}' for id_ in sorted(estados))}" if estados else ""
        raise CatalogueError(
            f"The file lacks {len(lost):,} of the {len(before):,} municipios of edition {edition}{whole}. If that is"
            " right, pass --allow-shrink."
        )


async def remove_outlines(database: Database) -> str | None:
    """Remove the outlines; return the name of their edition, None if there are none."""
    async with database.connect() as connection:
        await begin_import(connection)
        name: str | None = await connection.scalar(_REMOVE)
        await connection.commit()
    return name


def _read(source: str, progress: StepProgress, unread: list[str]) -> Iterator[Outline]:
    if is_address(source) and "{estado}" in source:
        progress.begin(OutlineStep.FETCH)
        progress.expect(len(STATE_KEYS))
        for estado_id in STATE_KEYS:
            estado = format_key("estado", estado_id)
            address = source.replace("{estado}", estado)
            with named(f"Estado {estado}"), fetch_file(address, StepProgress()) as fetched:
                for outline in read_outlines(fetched):
                    if state_of(outline.id) != estado_id:
                        raise CatalogueError("The address answers with another estado.")
                    yield outline
            progress.advance(1)
    else:
        if is_address(source):
            progress.begin(ImportStep.FETCH)
        with fetch_file(source, progress) if is_address(source) else nullcontext(Path(source)) as file:
            progress.begin(OutlineStep.READ)
            for outline in read_outlines(file, unread):
                yield outline
                progress.advance(1)


async def _load(connection: AsyncConnection, found: Sequence[Outline], progress: StepProgress) -> None:
    progress.begin(OutlineStep.COPY)
    progress.expect(len(found))
    unit = UNITS / ASKED_UNITS
    driver = await driver_of(connection)
    for estado_id, group in itertools.groupby(found, key=lambda outline: state_of(outline.id)):
        outlines = [(outline.id, outline.nombre, nest(outline.rings)) for outline in group]
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
