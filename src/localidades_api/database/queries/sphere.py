"""Great circles in SQL: the distance between points, and boxes of degrees around all points within an angle."""

import itertools

EARTH_RADIUS = 6_371_008.8  # metres, the mean one (IUGG)

# Bands of latitude, narrow over Mexico. Within a band, places that are near in longitude are near on the sphere.
_SOUTH, _NORTH, _BAND_HEIGHT = 14, 33, 0.5
_EDGES = [-90.0, *(_SOUTH + _BAND_HEIGHT * i for i in range(int((_NORTH - _SOUTH) / _BAND_HEIGHT) + 1)), 90.0]
_BANDS = ", ".join(f"({low}, {high})" for low, high in itertools.pairwise(_EDGES))
# A metre: more than the rounding errors at the edge of a box, anywhere on Earth.
_SLACK = 1e-7  # radians that the angle grows by, so that no place lies on the edge of the circle
_MARGIN = 1e-5  # degrees of longitude
_POLE = 89.999999  # degrees; beyond it a circle that ends at the pole would be a division of zero by zero


def haversine(latitude: str, longitude: str) -> str:
    """Write the angle in radians between two columns of degrees and :lat, :lon."""
    latitude, longitude = _without_underflow(latitude), _without_underflow(longitude)
    return (
        f"2 * asin(least(1, sqrt(power(sin(radians({latitude} - :lat) / 2), 2)"
        f" + cos(radians(:lat)) * cos(radians({latitude})) * power(sin(radians({longitude} - :lon) / 2), 2))))"
    )


def boxes_within(reach: str) -> str:
    """Write a table of boxes that hold every point no farther than an angle from :lat, :lon, and little else.

    `reach` is a table of one row with that `angle`, in radians. Each box has the `middle` of its band of latitude, and
    `turn`, by how many degrees of longitude :lon is moved to see it from this side of the 180th meridian.
    """
    width = ", ".join(_width(latitude) for latitude in ("low", "tangent", "high"))
    # OFFSET 0 keeps Postgres from repeating each expression wherever it is used, which took half of the time.
    return f"""(
        SELECT box(point(greatest(-180, :lon + turn - width), low), point(least(180, :lon + turn + width), high))
               AS box, (low + high) / 2 AS middle, turn
          FROM (SELECT low, high, degrees(2 * asin(sqrt(least(1, greatest(0, {width}))))) + {_MARGIN} AS width
                  FROM (SELECT angle, greatest(low, :lat - degrees(angle)) AS low,
                               least(high, :lat + degrees(angle)) AS high,
                               degrees(asin(least(1, greatest(-1, sin(radians(:lat)) / cos(angle))))) AS tangent
                          FROM (SELECT least(pi(), angle + {_SLACK}) AS angle FROM {reach}) AS reach
                         CROSS JOIN (VALUES {_BANDS}) AS bands (low, high)
                         OFFSET 0) AS bands
                 WHERE low <= high
                 OFFSET 0) AS windows
          JOIN (VALUES (-360), (0), (360)) AS turns (turn)
            ON :lon + turn - width <= 180 AND :lon + turn + width >= -180
    )"""


def _width(latitude: str) -> str:
    """Write sin² of half the longitude that the circle spans at a latitude of the band, or at the one next to it.

    It is greatest at an edge of the band, or at the `tangent`, where a meridian touches the circle.
    """
    within = f"least({_POLE}, high, greatest(-{_POLE}, low, {latitude}))"
    return (
        f"(power(sin(angle / 2), 2) - power(sin(radians({within} - :lat) / 2), 2))"
        f" / (cos(radians(:lat)) * cos(radians({within})))"
    )


def _without_underflow(degrees: str) -> str:
    """Write degrees as 0 where they are so close to 0 that Postgres would raise an underflow for their square."""
    return f"CASE WHEN abs({degrees}) < 1e-9 THEN 0 ELSE {degrees} END"
