"""Web Mercator (EPSG:3857), the projection of every map: its tiles, and frames for drawings."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

MAX_ZOOM = 12  # a tile of this zoom has room for all of its places; beyond it, clients enlarge tiles


class Box(NamedTuple):
    """A rectangle of longitudes and latitudes, in degrees."""

    west: float
    south: float
    east: float
    north: float


WORLD = Box(-180, -85.051129, 180, 85.051129)  # the extent of the square


class Tile(NamedTuple):
    """One of the 4 ** zoom squares of the world, counted from the north-west corner."""

    zoom: int
    column: int
    row: int

    @classmethod
    def at(cls, zoom: int, longitude: float, latitude: float) -> Self:
        """Return the tile that contains a point."""
        x, y = project(longitude, latitude)
        last = 2**zoom - 1
        return cls(zoom, min(int(x * 2**zoom), last), min(int(y * 2**zoom), last))

    @property
    def exists(self) -> bool:
        """Whether the zoom has such a column and row."""
        return 0 <= self.zoom <= MAX_ZOOM and 0 <= self.column < 2**self.zoom and 0 <= self.row < 2**self.zoom

    @property
    def box(self) -> Box:
        """The extent of the tile."""
        size = 2.0**-self.zoom
        west, north = unproject(self.column * size, self.row * size)
        east, south = unproject((self.column + 1) * size, (self.row + 1) * size)
        return Box(west, south, east, north)


class Frame(NamedTuple):
    """A part of the square, divided into cells; `left` and `top` are its north-west corner as `project` returns it."""

    left: float
    top: float
    columns: int
    rows: int
    scale: float  # cells along a side of the whole square

    @classmethod
    def around(cls, box: Box, columns: int) -> Self:
        """Return the frame of a box."""
        left, top = project(box.west, box.north)
        right, bottom = project(box.east, box.south)
        scale = columns / (right - left)
        return cls(left, top, columns, math.ceil((bottom - top) * scale), scale)

    def locate(self, longitude: float, latitude: float) -> tuple[float, float] | None:
        """Return the distance of a point from the corner in cells, eastwards and southwards; None outside the frame."""
        x, y = project(longitude, latitude)
        east, south = (x - self.left) * self.scale, (y - self.top) * self.scale
        return (east, south) if 0 <= east < self.columns and 0 <= south < self.rows else None


class Run(NamedTuple):
    """Neighbouring cells in a row."""

    column: int
    row: int
    length: int


def runs(cells: Iterable[int], columns: int) -> Iterator[Run]:
    """Join neighbouring cells; they are sorted, and numbered eastwards, row by row from the north."""
    first = length = 0
    for cell in cells:
        if cell == first + length and cell % columns:
            length += 1
        else:
            if length:
                yield Run(first % columns, first // columns, length)
            first, length = cell, 1
    if length:
        yield Run(first % columns, first // columns, length)


def project(longitude: float, latitude: float) -> tuple[float, float]:
    """Return the position of a point in the square: 0 to 1 eastwards, and 0 to 1 southwards."""
    sine = max(-0.9999, min(0.9999, math.sin(math.radians(latitude))))
    return longitude / 360 + 0.5, 0.5 - math.atanh(sine) / (2 * math.pi)


def unproject(x: float, y: float) -> tuple[float, float]:
    """Return the longitude and the latitude of a position in the square."""
    return (x - 0.5) * 360, math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * y))))


MEXICO_BOX = Box(-118.8, 14.1, -86.3, 33.1)  # all places, and a margin
MEXICO = Frame.around(MEXICO_BOX, 400)
