"""Turns coordinates of a shapefile into degrees: from the projection of INEGI's files, Lambert's conformal conic."""

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from localidades_api.errors import CatalogueError

Unproject: TypeAlias = Callable[[float, float], tuple[float, float]]


def read_projection(text: str) -> Unproject:
    """Return what turns coordinates into degrees: Lambert's conformal conic, by its parameters, or degrees already."""
    spheroid = re.search(r'spheroid\["[^"]*",\s*([0-9.]+),\s*([0-9.]+)', text)
    named = re.search(r'projection\["([^"]*)"', text)
    if spheroid is None or not 6_378_136 < float(spheroid[1]) < 6_378_138:  # noqa: PLR2004  # metres: GRS 80, WGS 84
        raise CatalogueError("The shapefile's .prj does not name ITRF2008 or WGS 84, whose degrees the catalogue has.")
    if named is None:
        return lambda x, y: (x, y)
    if not named[1].startswith("lambert_conformal_conic"):
        raise CatalogueError(f"The shapefile is in the projection {named[1][:40]}: use INEGI's, or degrees.")
    given = {name: float(value) for name, value in re.findall(r'parameter\["([^"]*)",\s*(-?[0-9.e+]+)', text)}
    flattening = 1 / float(spheroid[2])
    return _lambert(math.sqrt(flattening * (2 - flattening)), given)


def _lambert(e: float, given: Mapping[str, float]) -> Unproject:
    """Return the inverse of Lambert's projection (Snyder, Map Projections, 1987: 14-15, 15-1 to 15-11 and 7-9)."""

    def bend(phi: float) -> float:
        return float(((1 - e * math.sin(phi)) / (1 + e * math.sin(phi))) ** (e / 2))

    def isometric(phi: float) -> float:
        return math.tan(math.pi / 4 - phi / 2) / bend(phi)

    def scale(phi: float) -> float:
        return math.cos(phi) / math.sqrt(1 - (e * math.sin(phi)) ** 2)

    one, two, zero = (
        math.radians(given[name]) for name in ("standard_parallel_1", "standard_parallel_2", "latitude_of_origin")
    )
    east, meridian = given["false_easting"], given["central_meridian"]
    n = math.log(scale(one) / scale(two)) / math.log(isometric(one) / isometric(two)) if one != two else math.sin(one)
    radius = 6_378_137 * scale(one) / (n * isometric(one) ** n)
    top = given["false_northing"] + radius * isometric(zero) ** n

    def unproject(x: float, y: float) -> tuple[float, float]:
        x, y = x - east, top - y
        t = (math.hypot(x, y) / radius) ** (1 / n)
        phi = math.pi / 2 - 2 * math.atan(t)
        for _ in range(4):  # each is nearer by a factor of 150
            phi = math.pi / 2 - 2 * math.atan(t * bend(phi))
        return math.degrees(math.atan2(x, y) / n) + meridian, math.degrees(phi)

    return unproject
