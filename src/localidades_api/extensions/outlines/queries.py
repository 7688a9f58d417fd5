"""The municipio of a point, and outlines as GeoJSON."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.catalogue.mercator import Box
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database

# Postgres takes points for equal that differ by less than 0.000001, which in degrees is 0.1 m along the border, and
# much more across one that is nearly parallel to an axis.
ASKED_UNITS = 100_000  # of a degree, in which rings are stored

EDITION = text("(SELECT concat(name, '.', substr(sha256, 1, 12)) FROM outline_edition)")

_DESCRIBED = text(
    f"""
    SELECT edition.name AS edition, edition.sha256, o.id, coalesce(m.nombre, o.nombre) AS nombre,
           m.id IS NOT NULL AS in_release,
           s.id AS estado_id, s.clave AS estado_clave, s.nombre AS estado_nombre, s.abreviatura AS estado_abreviatura
      FROM outline_edition AS edition
      LEFT JOIN outlines AS o ON o.id = ANY(:ids)
      LEFT JOIN municipalities AS m ON m.release_id = :release_id AND m.id = o.id
      LEFT JOIN states AS s ON s.release_id = :release_id AND s.id = o.id / {KEYS_OF_A_STATE}
    """
)
# Among enclaves and what surrounds them, the smallest box is right. On a border both neighbours contain the point, and
# the order chooses one of them. OFFSET 0 keeps Postgres from reading rings before it has compared the boxes.
_MUNICIPIOS_AT = text(
    """
    SELECT number, at.municipio_id AS id
      FROM unnest(CAST(:lons AS float8[]), CAST(:lats AS float8[])) WITH ORDINALITY AS points (lon, lat, number)
     CROSS JOIN LATERAL point(lon, lat) AS p
     CROSS JOIN LATERAL (
           SELECT municipio_id
             FROM (SELECT municipio_id, box, ring FROM outline_rings WHERE box @> box(p, p) OFFSET 0) AS near
            WHERE ring @> p
            ORDER BY area(box), municipio_id
            LIMIT 1) AS at
    """
)
_OUTLINES = text(
    """
    SELECT o.id, o.nombre, o.geometry, edition.name AS edition
      FROM outlines AS o CROSS JOIN outline_edition AS edition
     WHERE o.id BETWEEN :first AND :last
     ORDER BY o.id
    """
)
# What surrounds an enclave that a box lies in has no point in common with the box, although its outer ring has.
_GEOMETRIES = text("SELECT id, geometry FROM outlines WHERE id = ANY(:ids)")
_BOX = "box(point(:west, :south), point(:east, :north))"
_TOUCHED = text(
    f"""
      WITH near AS MATERIALIZED (SELECT municipio_id, box, ring FROM outline_rings WHERE box && {_BOX}),
           around AS MATERIALIZED (SELECT box FROM near WHERE box @> {_BOX} AND ring @> polygon({_BOX})),
           touched AS (
               SELECT municipio_id
                 FROM near
                WHERE ring && polygon({_BOX})
                  AND NOT EXISTS (
                      SELECT
                        FROM around AS enclave
                       WHERE near.box @> enclave.box AND area(near.box) > area(enclave.box)
                         AND near.ring @> center({_BOX})))
    SELECT id, id IN (SELECT municipio_id FROM touched UNION SELECT municipio_id / {KEYS_OF_A_STATE} FROM touched)
           AS is_touched
      FROM outlines
    """
)


async def find_municipios_at(database: Database, points: Sequence[tuple[float, float]]) -> list[int | None]:
    """Return the key of the municipio at each point, a latitude and a longitude in degrees."""
    lats, lons = ([point[axis] * ASKED_UNITS for point in points] for axis in (0, 1))
    found: list[int | None] = [None] * len(points)
    for row in await database.fetch(_MUNICIPIOS_AT, {"lats": lats, "lons": lons}):
        found[row.number - 1] = row.id
    return found


async def describe_municipios(database: Database, release: Release, ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Return these municipios, each with the edition; the edition alone if none has an outline, if there is one."""
    return await database.fetch_from(release, _DESCRIBED, {"ids": list(ids), "release_id": release.id})


async def list_outlines(database: Database, first: int, last: int) -> Sequence[Row[Any]]:
    """Return the outlines of the estados or municipios whose keys are in a range, by key, with their edition."""
    return await database.fetch(_OUTLINES, {"first": first, "last": last})


async def find_geometries(database: Database, ids: Sequence[int]) -> Mapping[int, bytes]:
    """Return the geometries of these estados or municipios that there are, as GeoJSON, by key."""
    rows = await database.fetch(_GEOMETRIES, {"ids": list(ids)})
    return {row.id: zlib.decompress(row.geometry) for row in rows}


async def find_touched(database: Database, box: Box) -> Mapping[int, bool]:
    """Return whether each outline has a point in common with a box in degrees, by key."""
    sides = {name: side * ASKED_UNITS for name, side in box._asdict().items()}
    return {row.id: row.is_touched for row in await database.fetch(_TOUCHED, sides)}
