"""The municipio of a point, and outlines as GeoJSON."""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.api.extension import Borders, Edition
from localidades_api.bulk.answers import Point
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.catalogue.mercator import Box
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.errors import UnavailableError
from localidades_api.extensions.outlines.files import UNITS

# Postgres takes points for equal that differ by less than 0.000001, which in degrees is 0.1 m along the border, and
# much more across one that is nearly parallel to an axis.
ASKED_UNITS = 100_000  # of a degree, in which rings are stored

EDITION = text("(SELECT concat(name, '.', substr(sha256, 1, 12)) FROM outline_edition)")

_EDITION = text(
    f"""
    SELECT name, {EDITION} AS tag, array(SELECT id FROM outlines WHERE id BETWEEN :first AND :last ORDER BY id) AS ids
      FROM outline_edition
    """
)
# Among enclaves and what surrounds them, the smallest box is right. On a border both neighbours contain the point, and
# the order chooses one of them. OFFSET 0 keeps Postgres from reading rings before it has compared the boxes.
_MUNICIPIOS_AT = text(
    f"""
    SELECT o.id, coalesce(m.nombre, o.nombre) AS nombre, m.id IS NOT NULL AS in_release,
           s.id AS estado_id, s.clave AS estado_clave, s.nombre AS estado_nombre, s.abreviatura AS estado_abreviatura
      FROM unnest(CAST(:lons AS float8[]), CAST(:lats AS float8[])) WITH ORDINALITY AS points (lon, lat, number)
     CROSS JOIN LATERAL point(lon, lat) AS p
      LEFT JOIN LATERAL (
           SELECT municipio_id
             FROM (SELECT municipio_id, box, ring FROM outline_rings WHERE box @> box(p, p) OFFSET 0) AS near
            WHERE ring @> p
            ORDER BY area(box), municipio_id
            LIMIT 1) AS at ON true
      LEFT JOIN outlines AS o ON o.id = at.municipio_id
      LEFT JOIN municipalities AS m ON m.release_id = :release_id AND m.id = o.id
      LEFT JOIN states AS s ON s.release_id = :release_id AND s.id = o.id / {KEYS_OF_A_STATE}
     WHERE {EDITION} = :tag
     ORDER BY number
    """
)
_OUTLINES = text(f"SELECT id, nombre, geometry FROM outlines WHERE id = ANY(:ids) AND {EDITION} = :tag ORDER BY id")
_GEOMETRIES = text("SELECT id, geometry FROM outlines WHERE id = ANY(:ids)")
# What surrounds an enclave that a box lies in has no point in common with the box, although its outer ring has.
_BOX = "box(point(:west, :south), point(:east, :north))"
_TOUCHED = text(
    f"""
      WITH near AS MATERIALIZED (SELECT municipio_id, box, ring FROM outline_rings WHERE box && {_BOX}),
           around AS MATERIALIZED (SELECT box FROM near WHERE box @> {_BOX} AND ring @> polygon({_BOX})),
           touched AS (
               SELECT municipio_id
                 FROM near
                WHERE ({_BOX} @> box OR ring && polygon({_BOX}))
                  AND NOT EXISTS (
                      SELECT FROM around WHERE area(near.box) > area(around.box) AND near.ring @> center({_BOX})))
    SELECT id, id IN (SELECT municipio_id FROM touched UNION SELECT municipio_id / {KEYS_OF_A_STATE} FROM touched)
           AS is_touched
      FROM outlines
    """
)


async def get_edition(database: Database, first: int = 1, last: int = 99_999) -> Edition | None:
    """Return the edition with those of its keys that are in a range; None if it has none of them."""
    rows = await database.fetch(_EDITION, {"first": first, "last": last})
    return Edition._make(rows[0]) if rows and rows[0].ids else None


async def find_municipios(
    database: Database, edition: Edition, release: Release, points: Sequence[Point]
) -> Sequence[Row[Any]]:
    """Return the municipio at each point, a latitude and a longitude in degrees; its id is None if there is none."""
    lats, lons = ([round(point[axis] * UNITS) * ASKED_UNITS / UNITS for point in points] for axis in (0, 1))
    parameters = {"lats": lats, "lons": lons, "tag": edition.tag}
    return _check_edition(await database.fetch_from(release, _MUNICIPIOS_AT, parameters), len(points))


async def list_outlines(database: Database, edition: Edition) -> Sequence[Row[Any]]:
    """Return the outlines of an edition's keys, in order, with their GeoJSON compressed."""
    parameters = {"ids": edition.ids, "tag": edition.tag}
    return _check_edition(await database.fetch(_OUTLINES, parameters), len(edition.ids))


def _check_edition(rows: Sequence[Row[Any]], count: int) -> Sequence[Row[Any]]:
    """Return rows, as many as the edition has unless it was replaced since the first statement of a request."""
    if len(rows) != count:
        raise UnavailableError("The outlines were replaced or removed meanwhile: send the request again.")
    return rows


async def find_geometries(database: Database, ids: Sequence[int]) -> Mapping[int, bytes]:
    """Return the geometries of these estados or municipios that there are, as GeoJSON, by key."""
    rows = await database.fetch(_GEOMETRIES, {"ids": list(ids)})
    return await asyncio.to_thread(lambda: {row.id: zlib.decompress(row.geometry) for row in rows})


async def find_touched(database: Database, box: Box) -> Mapping[int, bool]:
    """Return whether each outline has a point in common with a box in degrees, by key."""
    sides = {name: side * ASKED_UNITS for name, side in box._asdict().items()}
    return {row.id: row.is_touched for row in await database.fetch(_TOUCHED, sides)}


BORDERS = Borders(
    EDITION,
    address="municipios/{id}/outline/",
    at="municipios/at/",
    find_geometries=find_geometries,
    find_touched=find_touched,
    get_edition=get_edition,
    find_municipios=find_municipios,
)
