"""The places nearest to a point (docs/decisions/map.md)."""

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import PARENTS, PLACE
from localidades_api.database.queries.sphere import EARTH_RADIUS, boxes_within, haversine
from localidades_api.database.replica_check import requires_release

# Decimals of a degree, a tenth of a millimetre: the square of much less is an error in Postgres, underflow.
_COORDINATE_DECIMALS = 9
_ANGLE = haversine("latitud", "longitud")
_FAR = 0.05  # radians, 320 km

# The index proposes some places, near in degrees: the nearest are no farther than the last of as many of them. From far
# away that says little, so that in each band of latitude those nearest in longitude are proposed too; they are hardly
# farther than the nearest of all. What is within that distance is measured.
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


class NearestRepository:
    """Finds places by where they are; a database that does not answer raises DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_nearest(self, release: Release, lat: float, lon: float, limit: int) -> Sequence[Row[Any]]:
        """Return the places nearest to a point in degrees, with `distance` in metres."""
        parameters = {"release_id": release.id, "limit": limit, "lat": _rounded(lat), "lon": _rounded(lon)}
        return await self._database.fetch(NEAREST, parameters, replica_check=requires_release(release))

    async def list_nearest_to_each(
        self, release: Release, points: Sequence[tuple[float, float]], limit: int
    ) -> list[list[Row[Any]]]:
        """Return the same for each of some points, latitude and longitude, in one statement."""
        lats, lons = ([_rounded(point[axis]) for point in points] for axis in (0, 1))
        parameters = {"release_id": release.id, "limit": limit, "lats": lats, "lons": lons}
        found: list[list[Row[Any]]] = [[] for _ in points]
        for row in await self._database.fetch(_NEAREST_TO_EACH, parameters, replica_check=requires_release(release)):
            found[row.number - 1].append(row)
        return found


def _rounded(degrees: float) -> float:
    return round(degrees, _COORDINATE_DECIMALS)
