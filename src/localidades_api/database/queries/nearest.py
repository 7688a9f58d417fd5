"""Finds the localities nearest to a point on a sphere, exactly and without PostGIS.

An index on points proposes places that are near in degrees. The farthest of the first `limit` is the radius of a circle
that contains the answers; it is cut into bands of latitude, each of which is a box that the index answers. One circle
of degrees held the whole country from far away.
"""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.catalogue.degrees import EARTH_RADIUS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import PARENTS, PLACE

# Bands of latitude, narrow over Mexico. Within a band, places that are near in longitude are near on the sphere.
_SOUTH, _NORTH, _BAND_HEIGHT = 14, 33, 0.5
_EDGES = [-90.0, *(_SOUTH + _BAND_HEIGHT * i for i in range(int((_NORTH - _SOUTH) / _BAND_HEIGHT) + 1)), 90.0]
_BANDS = ", ".join(f"({low}, {high})" for low, high in itertools.pairwise(_EDGES))
# A metre: more than the rounding errors at the edge of a box, anywhere on Earth.
_SLACK = 1e-7  # radians added to the angle, so that no place is on the edge of the circle
_MARGIN = 1e-5  # degrees of longitude
_POLE = 89.999999  # degrees; beyond it a circle that ends at the pole would be a division of zero by zero


# Typed, or Postgres may read a number without decimals as an integer, and round the others.
_LAT, _LON = "CAST(:lat AS double precision)", "CAST(:lon AS double precision)"


def haversine(latitude: str, longitude: str) -> str:
    """Write the angle in radians between two columns of degrees and :lat, :lon."""
    latitude, longitude = _without_underflow(latitude), _without_underflow(longitude)
    return (
        f"2 * asin(least(1, sqrt(power(sin(radians({latitude} - {_LAT}) / 2), 2)"
        f" + cos(radians({_LAT})) * cos(radians({latitude})) * power(sin(radians({longitude} - {_LON}) / 2), 2))))"
    )


def boxes_within(reach: str) -> str:
    """Write a table of boxes that hold every point no farther than an angle from :lat, :lon, and little else.

    `reach` is a table of one row with that `angle`, in radians. Each box has the `middle` of its band of latitude, and
    `turn`, by how many degrees of longitude :lon is moved to see it from this side of the 180th meridian.
    """
    width = ", ".join(_width(latitude) for latitude in ("low", "tangent", "high"))
    # OFFSET 0 keeps Postgres from repeating each expression wherever it is used, which took half of the time.
    return f"""(
        SELECT box(point(greatest(-180, {_LON} + turn - width), low), point(least(180, {_LON} + turn + width), high))
               AS box, (low + high) / 2 AS middle, turn
          FROM (SELECT low, high, degrees(2 * asin(sqrt(least(1, greatest(0, {width}))))) + {_MARGIN} AS width
                  FROM (SELECT angle, greatest(low, {_LAT} - degrees(angle)) AS low,
                               least(high, {_LAT} + degrees(angle)) AS high,
                               degrees(asin(least(1, greatest(-1, sin(radians({_LAT})) / cos(angle))))) AS tangent
                          FROM (SELECT least(pi(), angle + {_SLACK}) AS angle FROM {reach}) AS reach
                         CROSS JOIN (VALUES {_BANDS}) AS bands (low, high)
                         OFFSET 0) AS bands
                 WHERE low <= high
                 OFFSET 0) AS windows
          JOIN (VALUES (-360), (0), (360)) AS turns (turn)
            ON {_LON} + turn - width <= 180 AND {_LON} + turn + width >= -180
    )"""


def _width(latitude: str) -> str:
    """Write sin² of half the longitude that the circle spans at a latitude of the band, or at the one next to it.

    It is greatest at an edge of the band, or at the `tangent`, where a meridian touches the circle.
    """
    within = f"least({_POLE}, high, greatest(-{_POLE}, low, {latitude}))"
    return (
        f"(power(sin(angle / 2), 2) - power(sin(radians({within} - {_LAT}) / 2), 2))"
        f" / (cos(radians({_LAT})) * cos(radians({within})))"
    )


def _without_underflow(degrees: str) -> str:
    """Write degrees as 0 where they are so close to 0 that Postgres would raise an underflow for their square."""
    return f"CASE WHEN abs({degrees}) < 1e-9 THEN 0 ELSE {degrees} END"


# Decimals of a degree, a tenth of a millimetre: Postgres raises an underflow for the square of much less.
_COORDINATE_DECIMALS = 9
_ANGLE = haversine("latitud", "longitud")
_FAR = 0.05  # radians, 320 km

# The index proposes places that are near in degrees; the distance of the last of :limit of them bounds the nearest.
# From far away that bound is loose, so each band of latitude also proposes the places nearest in longitude, which are
# hardly farther than the nearest of all. The places within the bound are measured.
_NEAREST = f"""
    WITH proposed AS (
        SELECT id, {_ANGLE} AS angle
          FROM (SELECT id, latitud, longitud FROM localities WHERE release_id = :release_id
                 ORDER BY point(longitud, latitud) <-> point(:lon, :lat) LIMIT 4 * :limit) AS nearby
         ORDER BY angle
         LIMIT :limit
    ), far AS (
        SELECT max(angle) AS angle FROM proposed HAVING max(angle) > {_FAR}
    ), proposed_by_band AS (
        SELECT id, {_ANGLE} AS angle
          FROM {boxes_within("far")} AS boxes
         CROSS JOIN LATERAL (SELECT id, latitud, longitud FROM localities
                              WHERE release_id = :release_id AND point(longitud, latitud) <@ box
                              ORDER BY point(longitud, latitud) <-> point(:lon + turn, middle) LIMIT :limit) AS nearby
    ), reach AS (
        SELECT max(angle) AS angle
          FROM (SELECT * FROM proposed UNION SELECT * FROM proposed_by_band ORDER BY angle LIMIT :limit) AS nearest
    ), found AS (
        SELECT DISTINCT id, {EARTH_RADIUS} * {_ANGLE} AS distance
          FROM {boxes_within("reach")} AS boxes JOIN localities ON point(longitud, latitud) <@ box
         WHERE release_id = :release_id
         ORDER BY distance, id
         LIMIT :limit
    )
    SELECT {PLACE}, found.distance
      FROM found
      JOIN localities AS l ON l.release_id = :release_id AND l.id = found.id
      {PARENTS}
     ORDER BY found.distance, l.id
"""
NEAREST = text(_NEAREST)
_NEAREST_TO_ROW = re.sub(r":(lat|lon)\b", r"points.\1", _NEAREST)
_NEAREST_TO_EACH = text(
    f"""
    SELECT points.number, nearest.*
      FROM unnest(CAST(:lats AS float8[]), CAST(:lons AS float8[])) WITH ORDINALITY AS points (lat, lon, number)
     CROSS JOIN LATERAL ({_NEAREST_TO_ROW}) AS nearest
     ORDER BY points.number, nearest.distance, nearest.id
    """
)


async def find_nearest(database: Database, release: Release, lat: float, lon: float, limit: int) -> Sequence[Row[Any]]:
    """Return the places nearest to a point in degrees, with `distance` in metres."""
    parameters = {"release_id": release.id, "limit": limit, "lat": _rounded(lat), "lon": _rounded(lon)}
    return await database.fetch_from(release, NEAREST, parameters)


async def find_nearest_to_each(
    database: Database, release: Release, points: Sequence[tuple[float, float]], limit: int
) -> list[list[Row[Any]]]:
    """Do as `find_nearest` for several points, each a latitude and a longitude, in one statement."""
    lats, lons = ([_rounded(point[axis]) for point in points] for axis in (0, 1))
    parameters = {"release_id": release.id, "limit": limit, "lats": lats, "lons": lons}
    found: list[list[Row[Any]]] = [[] for _ in points]
    for row in await database.fetch_from(release, _NEAREST_TO_EACH, parameters):
        found[row.number - 1].append(row)
    return found


def _rounded(degrees: float) -> float:
    return round(degrees, _COORDINATE_DECIMALS)
