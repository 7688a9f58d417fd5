"""Web Mercator (EPSG:3857), the projection of every map here, and the tiles of its square."""

import math
from typing import NamedTuple, Self

MAX_ZOOM = 12  # from here on a client enlarges tiles; every tile has room for all of its places


class Box(NamedTuple):
    """A rectangle of longitudes and latitudes, in degrees."""

    west: float
    south: float
    east: float
    north: float


WORLD = Box(-180, -85.051129, 180, 85.051129)  # what the square shows


class Tile(NamedTuple):
    """One of the 4 ** zoom squares of the world, counted from the north-west corner."""

    zoom: int
    column: int
    row: int

    @classmethod
    def at(cls, zoom: int, longitude: float, latitude: float) -> Self:
        """Return the tile that has a point."""
        x, y = project(longitude, latitude)
        last = 2**zoom - 1
        return cls(zoom, min(int(x * 2**zoom), last), min(int(y * 2**zoom), last))

    @property
    def exists(self) -> bool:
        """Whether there is such a tile."""
        return 0 <= self.zoom <= MAX_ZOOM and 0 <= self.column < 2**self.zoom and 0 <= self.row < 2**self.zoom

    @property
    def box(self) -> Box:
        """What the tile covers."""
        size = 2.0**-self.zoom
        west, north = unproject(self.column * size, self.row * size)
        east, south = unproject((self.column + 1) * size, (self.row + 1) * size)
        return Box(west, south, east, north)


def project(longitude: float, latitude: float) -> tuple[float, float]:
    """Return where a point lies in the square: 0 to 1 eastwards, and 0 to 1 southwards."""
    sine = max(-0.9999, min(0.9999, math.sin(math.radians(latitude))))
    return longitude / 360 + 0.5, 0.5 - math.atanh(sine) / (2 * math.pi)


def unproject(x: float, y: float) -> tuple[float, float]:
    """Return the longitude and the latitude of a point of the square."""
    return (x - 0.5) * 360, math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * y))))
