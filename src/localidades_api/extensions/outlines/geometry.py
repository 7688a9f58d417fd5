"""Rings: which are holes, and the outline of an estado from those of its municipios."""

import itertools
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from pydantic_core import to_json

from localidades_api.extensions.outlines.files import UNITS, Ring, Vertex

Polygon: TypeAlias = Sequence[Ring]  # the outer ring, counterclockwise, then its holes, clockwise (RFC 7946)

_MIN_AREA = 1_000_000  # square units, a square metre: what is smaller between two outlines is a gap of rounding


def nest(rings: Iterable[Ring]) -> list[Polygon]:
    """Return polygons of rings in any order and direction: one within an outer ring, and no other, is a hole of it."""
    # A ring comes after those around it, the smallest of them last.
    ordered = sorted(rings, key=lambda ring: abs(area(ring)), reverse=True)
    boxes = [*map(_box_of, ordered)]
    polygons: dict[int, list[Ring]] = {}  # by the place of the outer ring
    for at, ring in enumerate(ordered):
        around = (other for other in reversed(range(at)) if _holds(boxes[other], boxes[at]))
        smallest = next((other for other in around if _is_within(ring, ordered[other])), None)
        if smallest in polygons:
            polygons[smallest].append(_turned(ring, -1))
        else:
            polygons[at] = [_turned(ring, 1)]
    return list(polygons.values())


def area(ring: Ring) -> float:
    """Return the area in square units, positive if the ring is counterclockwise."""
    return sum(_turn(ring[0], a, b) for a, b in itertools.pairwise(ring)) / 2


def _box_of(ring: Ring) -> tuple[int, int, int, int]:
    """Return the west, south, east and north of a ring."""
    longitudes, latitudes = zip(*ring, strict=True)
    return min(longitudes), min(latitudes), max(longitudes), max(latitudes)


def _turned(ring: Ring, direction: int) -> Ring:
    return ring if area(ring) * direction >= 0 else ring[::-1]


def _holds(outer: tuple[int, ...], inner: tuple[int, ...]) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def _is_within(ring: Ring, other: Ring) -> bool:
    """Return whether most of a few edges have their middle within another ring, since two rings may touch."""
    edges = list(itertools.islice(itertools.pairwise(ring), 0, None, max(1, len(ring) // 3)))[:3]
    middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in edges]
    return sum(_contains(other, x, y) for x, y in middles) * 2 > len(middles)


def _contains(ring: Ring, x: float, y: float) -> bool:
    is_inside = False
    for (ax, ay), (bx, by) in itertools.pairwise(ring):
        if ay <= y <= by or by <= y <= ay:
            side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
            if side == 0 and (ax <= x <= bx or bx <= x <= ax):
                return False  # on the border
            if (ay > y) != (by > y) and (side > 0) == (by > ay):
                is_inside = not is_inside
    return is_inside


def _turn(a: Vertex, b: Vertex, c: Vertex) -> int:
    """Return a number above zero if the path through three points turns left, and below if it turns right."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def dissolve(polygons: Iterable[Polygon]) -> list[Polygon]:
    """Return the outline of neighbours: the edges that no two of them share, joined to rings."""
    following: dict[Vertex, set[Vertex]] = defaultdict(set)
    for start, end in itertools.chain.from_iterable(
        itertools.pairwise(ring) for polygon in polygons for ring in polygon
    ):
        if start in following.get(end, ()):
            following[end].remove(start)
        elif start != end:
            following[start].add(end)
    return nest(ring for ring in _join(following) if abs(area(ring)) > _MIN_AREA)


def _join(following: dict[Vertex, set[Vertex]]) -> Iterator[Ring]:
    """Yield simple rings of edges: where a path meets itself, the loop is a ring."""
    for start in list(following):
        path, places = [start], {start: 0}
        while following.get(path[-1]):
            vertex = following[path[-1]].pop()
            if vertex in places:
                loop = path[places[vertex] :]
                yield [*loop, vertex]
                for passed in loop[1:]:
                    del places[passed]
                del path[places[vertex] + 1 :]
            else:
                places[vertex] = len(path)
                path.append(vertex)


def write_geometry(polygons: Iterable[Polygon]) -> bytes:
    """Return a MultiPolygon of GeoJSON, compressed with zlib."""
    degrees = [[[(x / UNITS, y / UNITS) for x, y in ring] for ring in polygon] for polygon in polygons]
    return zlib.compress(to_json({"type": "MultiPolygon", "coordinates": degrees}), 6)
