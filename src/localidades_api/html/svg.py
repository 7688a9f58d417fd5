"""The geometry of SVG drawings: a backdrop of the country, and maps."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self, TypeAlias

from pydantic_core import from_json

from localidades_api.catalogue.coordinates import METRES_A_DEGREE
from localidades_api.catalogue.mercator import MEXICO, MEXICO_BOX, Frame, runs
from localidades_api.database.queries.tiles import StateCell

_MAP = (480, 360)
_MARGIN = 48.0
STATES = Frame.around(MEXICO_BOX, 130)  # a cell is a quarter of a degree
_SHADES = 5
_BLOCK = 2  # cells along a side of the square of a dot of the backdrop
_DENSITIES = {1: 0.45, 16: 0.68, 60: 0.92}  # the diameter of its dot by the least number of places in it
_EDGE = 12.0  # between a border and the edge of a map
_STEP = 1.5  # least distance of a border's vertices
_MIN_DISTANCE = 1e-9  # degrees; places nearer than that are at the same point
_LARGE_LEADING = 2.4  # above the letters of a line on a telephone, and below; a dot may be there
_NARROW = {**dict.fromkeys("Iijlí'. ", 0.45), **dict.fromkeys("frt", 0.65)}  # parts of a letter's width
_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # parts of a text before its anchor
_ROOT_PER_UNIT = 800  # root of a city's inhabitants per unit of its dot's radius, beyond 1
_GAP = 2  # between a name and the line that leads there
_FAR = 6.6  # from a dot to a name that needs such a line
_MAP_LABEL = 22  # letters of the name in the middle of a map, which is bold
_HERE = 8.0  # radius of the dot there
_BOLD = 1.12  # the width of its letters, as a multiple

_Ring: TypeAlias = Sequence[Sequence[float]]  # of vertices


class Label(NamedTuple):
    """A name on a drawing: its line has its middle at `y`, and starts, ends or has its middle at `x` (`anchor`)."""

    x: float
    y: float
    anchor: str
    text: str


# The names of capitals that are close together, placed so that all have room: those of three are in the Gulf.
_CROWDED = {
    label.text: label
    for label in (
        Label(281, 159, "start", "Ciudad de México"),
        Label(284, 146, "start", "Pachuca"),
        Label(284, 172, "start", "Tlaxcala"),
        Label(218, 196, "end", "Toluca"),
        Label(238, 200, "middle", "Cuernavaca"),
        Label(223, 148, "start", "San Luis Potosí"),
        Label(219, 165, "start", "Guanajuato"),
        Label(168, 159, "end", "Tepic"),
        Label(199, 152, "end", "Aguascalientes"),
    )
}


class Dot(NamedTuple):
    """A place on the map, the larger the more people live there; its name if there is room for it."""

    x: int
    y: int
    radius: float
    label: Label | None = None


class Map(NamedTuple):
    """A map with places as dots, one of them at its centre, a border, and a scale bar; sizes are in SVG units."""

    width: int
    height: int
    here: Dot | None
    dots: list[Dot]
    scale_width: int
    scale_label: str
    border: str  # a path


class _Ground(NamedTuple):
    """The middle of a map in degrees, and its scale: degrees of latitude in an SVG unit (`reach`)."""

    longitud: float
    latitud: float
    narrowing: float
    reach: float

    def locate(self, longitud: float, latitud: float) -> tuple[float, float]:
        width, height = _MAP
        east, north = (longitud - self.longitud) * self.narrowing, latitud - self.latitud
        return width // 2 + east / self.reach, height // 2 - north / self.reach


def draw_map(here: Mapping[str, Any], nearby: Sequence[Mapping[str, Any]], outline: bytes | None = None) -> Map:
    """Draw a place in the middle of its neighbours, north up, with an outline, which is GeoJSON.

    Each has `nombre`, `poblacion`, and `latitud` and `longitud` in degrees. The most populous are named first; a name
    that would overlap a dot or another name is left out.
    """
    width, height = _MAP
    narrowing = math.cos(math.radians(here["latitud"]))
    offsets = [
        ((place["longitud"] - here["longitud"]) * narrowing, place["latitud"] - here["latitud"]) for place in nearby
    ]
    farthest = (max(abs(east) / (width - 2 * _MARGIN), abs(north) / (height - 2 * _MARGIN)) for east, north in offsets)
    reach = 2 * max(farthest, default=0.0)  # degrees per SVG unit
    if reach < _MIN_DISTANCE:
        reach = 0.01 / width
    ground = _Ground(here["longitud"], here["latitud"], narrowing, reach)
    return _draw(ground, here, nearby, _rings_of(outline) if outline else [])


def draw_municipio(outline: bytes, places: Iterable[Mapping[str, Any]]) -> Map:
    """Draw the outline of a municipio, which is GeoJSON, with places as `draw_map` does."""
    rings = _rings_of(outline)
    longitudes, latitudes = zip(*chain.from_iterable(rings), strict=True)
    west, east, south, north = min(longitudes), max(longitudes), min(latitudes), max(latitudes)
    longitud, latitud = (west + east) / 2, (south + north) / 2
    narrowing = math.cos(math.radians(latitud))
    width, height = (side - 2 * _EDGE for side in _MAP)
    reach = max((east - west) * narrowing / width, (north - south) / height, _MIN_DISTANCE)
    ground = _Ground(longitud, latitud, narrowing, reach)
    located = [
        place
        for place in places
        if place["longitud"] is not None and west <= place["longitud"] <= east and south <= place["latitud"] <= north
    ]
    return _draw(ground, None, located, rings)


def _draw(
    ground: _Ground, here: Mapping[str, Any] | None, places: Sequence[Mapping[str, Any]], rings: Sequence[_Ring]
) -> Map:
    width, height = _MAP
    reach = ground.reach
    length = _round_length(reach * METRES_A_DEGREE * width / 4)
    scale_label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"  # noqa: PLR2004  # metres in a kilometre
    scale_width = round(length / METRES_A_DEGREE / reach)
    middle = Dot(width // 2, height // 2, _HERE) if here else None
    points = [ground.locate(place["longitud"], place["latitud"]) for place in places]
    dots = [Dot(round(x), round(y), _radius(place["poblacion"])) for place, (x, y) in zip(places, points, strict=True)]
    free = _Lettering(width, letter=9.5, line=17.0)
    free.cover(_Box(0, 16 + max(scale_width, 9.5 * len(scale_label)), height - 24, 34))
    free.cover(*map(_Box.of, filter(None, (middle, *dots))))
    if here and middle:
        name = here["nombre"] if len(here["nombre"]) <= _MAP_LABEL else f"{here['nombre'][: _MAP_LABEL - 1]}…"
        middle = middle._replace(label=free.write(middle, name, _BOLD))
    by_size = sorted(zip(places, dots, strict=True), key=lambda one: -(one[0]["poblacion"] or 0))
    named = [dot._replace(label=free.write(dot, place["nombre"])) for place, dot in by_size]
    border = "".join(_draw_ring([ground.locate(*vertex) for vertex in ring]) for ring in rings)
    return Map(width, height, middle, named, scale_width, scale_label, border)


def _rings_of(outline: bytes) -> list[_Ring]:
    return [ring[:-1] for polygon in from_json(outline)["coordinates"] for ring in polygon]


def _draw_ring(ring: _Ring) -> str:
    """Return what of a ring is on a map as a path, without vertices that are near the one before."""
    for axis, size in enumerate(_MAP):
        for bound, is_least in ((-_EDGE, True), (size + _EDGE, False)):
            ring = _cut(ring, axis, bound, is_least=is_least)
    path, x, y = "", math.inf, math.inf  # where the pen is
    for vertex in ring:
        if max(abs(vertex[0] - x), abs(vertex[1] - y)) >= _STEP:
            to = round(vertex[0], 1), round(vertex[1], 1)
            path += f"L{to[0]:g} {to[1]:g}" if path else f"M{to[0]:g} {to[1]:g}"
            x, y = to
    return f"{path}z" if path.count("L") > 1 else ""


def _cut(ring: _Ring, axis: int, bound: float, *, is_least: bool) -> _Ring:
    """Return the part of a ring on one side of a line (Sutherland and Hodgman, 1974)."""
    kept: list[Sequence[float]] = []
    before = ring[-1] if ring else ()
    for vertex in ring:
        if (is_kept := (vertex[axis] > bound) == is_least) != ((before[axis] > bound) == is_least):
            part = (bound - before[axis]) / (vertex[axis] - before[axis])
            kept.append([a + part * (b - a) for a, b in zip(before, vertex, strict=True)])
        if is_kept:
            kept.append(vertex)
        before = vertex
    return kept


def _radius(population: int | None) -> float:
    return round(2.5 + math.log10(1 + (population or 0)), 1)


class _Box(NamedTuple):
    left: float
    right: float
    middle: float
    height: float

    @classmethod
    def of(cls, dot: Dot, leading: float = 0.0) -> Self:
        """Return the box of a dot, less what of it a line's leading may cover."""
        return cls(dot.x - dot.radius, dot.x + dot.radius, dot.y, 2 * (dot.radius - leading))

    def touches(self, other: Self) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and abs(self.middle - other.middle) < (self.height + other.height) / 2
        )


class _Lettering:
    """The names on a drawing, which touch neither dots nor one another.

    `letter` is the width of a letter, and `line` the height of a line.
    """

    def __init__(self, width: float, letter: float, line: float) -> None:
        self._width, self._letter, self._line = width, letter, line
        self._taken: list[_Box] = []

    def cover(self, *boxes: _Box) -> None:
        """Keep parts of the drawing free of names."""
        self._taken += boxes

    def has_room(self, box: _Box) -> bool:
        """Return whether a part of the drawing is free."""
        return box.left > 0 and box.right < self._width and not any(map(box.touches, self._taken))

    def box_of(self, label: Label, stretch: float = 1.0) -> _Box:
        """Return the box of a name."""
        width = stretch * self._letter * sum(_NARROW.get(letter, 1) for letter in label.text)
        left = label.x - width * _BEFORE[label.anchor]
        return _Box(left, left + width, label.y, self._line)

    def labels(self, dot: Dot, text: str, stretch: float = 1.0) -> Iterator[Label]:
        """Yield the labels beside, above, below or at a slant of a dot for which there is room."""
        beside, slant = dot.radius + self._line / 4, self._line / 2
        above = dot.radius + slant
        sides = [(dot.x + beside, "start"), (dot.x - beside, "end")]
        if dot.x + beside + 2 * stretch * self._letter * len(text) > self._width:
            sides.reverse()  # leave the other one to a place nearer to the edge
        for (x, anchor), down in (
            *((side, 0.0) for side in sides),
            ((dot.x, "middle"), -above),
            ((dot.x, "middle"), above),
            *((side, down) for side in sides for down in (-slant, slant)),
        ):
            label = Label(x, dot.y + down, anchor, text)
            if self.has_room(self.box_of(label, stretch)):
                yield label

    def write(self, dot: Dot, text: str, stretch: float = 1.0) -> Label | None:
        """Write a name near a dot, if there is room for it."""
        label = next(self.labels(dot, text, stretch), None)
        if label:
            self.cover(self.box_of(label, stretch))
        return label


def _round_length(metres: float) -> float:
    """Return the largest length up to this one that is 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(metres))  # above `metres` if that is just below a power of ten
    return float(max(step * power for step in (0.5, 1, 2, 5) if step * power <= metres))


def draw_backdrop(cells: Sequence[int], frame: Frame) -> bytes:
    """Draw the places of a frame as dots, the larger the denser they are, in a grey for light and dark pages.

    Cells are in order, each followed by its number of places. A run of dots is a dashed line: dashes of no length with
    round caps.
    """
    blocks: Counter[int] = Counter()
    columns = math.ceil(frame.columns / _BLOCK)
    for cell, count in zip(cells[::2], cells[1::2], strict=True):
        row, column = divmod(cell, frame.columns)
        blocks[row // _BLOCK * columns + column // _BLOCK] += count
    dots = sorted(blocks)
    paths = "".join(
        f'<path stroke-width="{width}" d="{_draw_runs([block for block in dots if blocks[block] >= least], columns)}"/>'
        for least, width in _DENSITIES.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.columns} {frame.rows}">'
        f'<g transform="scale({_BLOCK})translate(0 .5)" stroke="#87909a" stroke-linecap="round" stroke-dasharray="0 1"'
        f' stroke-dashoffset="-.5">{paths}</g></svg>'
    ).encode()


def _draw_runs(cells: Iterable[int], columns: int) -> str:
    path, column, row = [], 0, 0  # where the pen is
    for run in runs(cells, columns):
        path.append(f"m{run.column - column} {run.row - row}h{run.length}")
        column, row = run.column + run.length, run.row
    return "".join(path)


def draw_inset(points: Iterable[tuple[float | None, float | None]]) -> str:
    """Draw places by longitude and latitude in degrees, as dots of a path over the backdrop; those that are on it."""
    known = [(east, north) for east, north in points if east is not None and north is not None]
    located = [point for place in known if (point := MEXICO.locate(*place))]
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in dict.fromkeys(located))


class StateShape(NamedTuple):
    """The cells of an estado as a path, and its shade, from 0 to 4: a fifth of the estados each, the densest last."""

    path: str
    shade: int


def draw_states(cells: Iterable[StateCell]) -> dict[int, StateShape]:
    """Draw the estados by their keys, in cells of `STATES`; a cell belongs to the estado with most places in it."""
    owners: dict[int, StateCell] = {}
    population: Counter[int] = Counter()
    for area in cells:
        population[area.id] += area.population or 0
        if area.cell is not None and (area.cell not in owners or area.places > owners[area.cell].places):
            owners[area.cell] = area
    shapes: dict[int, list[int]] = {}
    for cell in sorted(owners):
        shapes.setdefault(owners[cell].id, []).append(cell)
    by_density = sorted(shapes, key=lambda id_: (population[id_] / len(shapes[id_]), id_))
    return {
        id_: StateShape(_draw_runs(shapes[id_], STATES.columns), rank * _SHADES // len(by_density))
        for rank, id_ in enumerate(by_density)
    }


class City(NamedTuple):
    """A place of the country, and the path of its page below the index."""

    longitud: float
    latitud: float
    nombre: str
    poblacion: int | None
    path: str
    is_capital: bool = False


class Link(NamedTuple):
    """A named city; its `line` ends at a name that is farther, `is_large` if a telephone's larger letters have room."""

    dot: Dot
    label: Label
    path: str
    line: tuple[float, float] | None
    is_large: bool


class Country(NamedTuple):
    """The country with some of its places, in the cells of `MEXICO`."""

    links: list[Link]
    dots: list[Dot]  # without a name


def draw_country(cities: Iterable[City]) -> Country:
    """Draw cities, the most important first, and name them where there is room, the capitals first.

    A suburb, whose dot touches a more important one, has no name, unless it is a capital.
    """
    names = _Lettering(MEXICO.columns, letter=4.0, line=6.6)
    large_names = _Lettering(MEXICO.columns, letter=7.0, line=12.8)  # on a telephone
    links: list[Link] = []
    dots: list[Dot] = []
    located: list[tuple[Dot, City]] = []
    for dot, city in _locate(cities):
        if not city.is_capital and not names.has_room(_Box.of(dot)):
            dots.append(dot)
            continue
        names.cover(_Box.of(dot))
        large_names.cover(_Box.of(dot, _LARGE_LEADING))
        located.append((dot, city))
    for dot, city in sorted(located, key=lambda one: (one[1].nombre not in _CROWDED, not one[1].is_capital)):
        crowded = _CROWDED.get(city.nombre)
        if crowded and names.has_room(names.box_of(crowded)):
            labels = [crowded]
        else:
            labels = list(names.labels(dot, city.nombre))
        large = [label for label in labels if large_names.has_room(large_names.box_of(label))]
        label = next(iter(large or labels), None)
        if not label:
            dots.append(dot)
            continue
        line = _lead(dot, label)
        for lettering in (names, large_names) if large else (names,):
            lettering.cover(lettering.box_of(label), *(_boxes_along(dot, line) if line else ()))
        links.append(Link(dot, label, city.path, line, bool(large)))
    few = [dot._replace(radius=round(dot.radius)) for dot in dots]  # a path for each radius
    return Country(links, few)


def _lead(dot: Dot, label: Label) -> tuple[float, float] | None:
    """Return where a line from a dot to its name ends; None for a name beside it."""
    end = label.x - _GAP if label.anchor == "start" else label.x + _GAP, label.y
    return end if math.dist(end, (dot.x, dot.y)) > dot.radius + _FAR else None


def _boxes_along(dot: Dot, end: tuple[float, float]) -> Iterator[_Box]:
    """Yield a box for each unit of the line from a dot to its name."""
    steps = round(math.dist((dot.x, dot.y), end))
    for step in range(steps):
        x, y = (start + (stop - start) * step / steps for start, stop in zip(dot[:2], end, strict=True))
        yield _Box(x - 0.5, x + 0.5, y, 1)


def _locate(cities: Iterable[City]) -> Iterator[tuple[Dot, City]]:
    for city in cities:
        if point := MEXICO.locate(city.longitud, city.latitud):
            radius = 1 + math.sqrt(city.poblacion or 0) / _ROOT_PER_UNIT
            yield Dot(round(point[0]), round(point[1]), round(radius, 1)), city
