"""Finds the localities nearest to a point on a sphere, exactly and without PostGIS.

GiST orders places by their distance in degrees. The first of them are within some angle of the point, which bounds the
nearest; around the circle of that angle are boxes, which GiST answers. From far away the circle may hold half of the
country: then the places that are first in each box give a closer bound.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.catalogue.coordinates import EARTH_RADIUS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import PARENTS, PLACE

# Each box is in a band of latitude, and bands are narrow over Mexico: in a narrow one, degrees of longitude are equal.
_EDGES = [-90, *(14 + number / 2 for number in range(39)), 90]
_BANDS = ", ".join(f"({low}, {high})" for low, high in itertools.pairwise(_EDGES))
_SLACK = 1e-7  # radians, half a metre: more than rounding moves the edge of a circle or of a box
_FAR = 0.05  # radians, 320 km
_DECIMALS = 9  # of a degree, a tenth of a millimetre: Postgres raises an underflow for the square of much less

# The haversine; the distance of two points in a plane is the root of a sum of squares, whatever their size.
_ANGLE = """2 * asin(least(1, point(0, 0) <-> point(
    sin(radians(latitud - lat) / 2), sqrt(cos(radians(lat)) * cos(radians(latitud))) * sin(radians(longitud - lon) / 2)
)))"""
# Degrees of longitude from the centre of the circle to its edge: in a band at most what they would be at the latitude
# nearest to the centre, on the shortest parallel.
_WIDTH = """degrees(2 * asin(sqrt(least(1, greatest(0,
    (sin(angle / 2) ^ 2 - sin(radians(greatest(0, low - lat, lat - high)) / 2) ^ 2)
    / (cos(radians(lat)) * least(cos(radians(low)), cos(radians(high))))
)))))"""


def _boxes(angle: str) -> str:
    """Write a table of boxes around the circle of an angle, each with its `centre`.

    A turn moves the centre by 360 degrees, to see places from this side of the 180th meridian. A place on the edge of
    two boxes is in both.
    """
    # OFFSET 0 keeps Postgres from repeating an expression wherever it is used.
    return f"""(
        SELECT point(lon + turn, (low + high) / 2) AS centre,
               box(point(lon + turn - width, low), point(lon + turn + width, high)) AS box
          FROM (SELECT low, high, {_WIDTH} + degrees({_SLACK}) AS width
                  FROM (SELECT angle, greatest(low, lat - degrees(angle)) AS low,
                               least(high, lat + degrees(angle)) AS high
                          FROM (SELECT {angle} + {_SLACK} AS angle OFFSET 0) AS circle
                         CROSS JOIN (VALUES {_BANDS}) AS bands (low, high) OFFSET 0) AS bands
                 WHERE low <= high OFFSET 0) AS bands
          JOIN (VALUES (-360), (0), (360)) AS turns (turn) ON abs(lon + turn) - width <= 180
        OFFSET 0
    )"""


NEAREST = text(
    f"""
    SELECT number, place.*, found.distance
      FROM unnest(CAST(:lats AS float8[]), CAST(:lons AS float8[])) WITH ORDINALITY AS points (lat, lon, number)
     CROSS JOIN LATERAL (
           SELECT max(angle) AS angle
             FROM (SELECT {_ANGLE} AS angle
                     FROM (SELECT latitud, longitud FROM localities WHERE release_id = :release_id
                            ORDER BY point(longitud, latitud) <-> point(lon, lat) LIMIT 4 * :limit) AS nearby
                    ORDER BY angle LIMIT :limit) AS nearest) AS reach
     CROSS JOIN LATERAL (
           SELECT max(angle) AS angle
             FROM (SELECT DISTINCT id, {_ANGLE} AS angle
                     FROM {_boxes("reach.angle")} AS boxes
                    CROSS JOIN LATERAL (
                          SELECT id, latitud, longitud FROM localities
                           WHERE release_id = :release_id AND point(longitud, latitud) <@ box
                           ORDER BY point(longitud, latitud) <-> centre LIMIT :limit) AS nearby
                    WHERE reach.angle > {_FAR}
                    ORDER BY angle LIMIT :limit) AS nearest) AS closer
     CROSS JOIN LATERAL (
           SELECT DISTINCT id, {EARTH_RADIUS} * {_ANGLE} AS distance
             FROM {_boxes("least(reach.angle, closer.angle)")} AS boxes
             JOIN localities ON point(longitud, latitud) <@ box
            WHERE release_id = :release_id
            ORDER BY distance, id LIMIT :limit) AS found
     CROSS JOIN LATERAL (
           SELECT {PLACE} FROM localities AS l {PARENTS}
            WHERE l.release_id = :release_id AND l.id = found.id
           OFFSET 0) AS place  -- otherwise every municipio is read
     ORDER BY number, found.distance, found.id
    """
)


async def find_nearest_to_each(
    database: Database, release: Release, points: Sequence[tuple[float, float]], limit: int
) -> list[list[Row[Any]]]:
    """Return the places nearest to each point, a latitude and a longitude in degrees, with `distance` in metres."""
    lats, lons = ([round(point[axis], _DECIMALS) for point in points] for axis in (0, 1))
    parameters = {"release_id": release.id, "limit": limit, "lats": lats, "lons": lons}
    found: list[list[Row[Any]]] = [[] for _ in points]
    for row in await database.fetch_from(release, NEAREST, parameters):
        found[row.number - 1].append(row)
    return found


async def find_nearest(database: Database, release: Release, lat: float, lon: float, limit: int) -> Sequence[Row[Any]]:
    """Return the places nearest to a point in degrees, with `distance` in metres."""
    [found] = await find_nearest_to_each(database, release, [(lat, lon)], limit)
    return found
