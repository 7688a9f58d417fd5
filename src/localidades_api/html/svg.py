"""The geometry of SVG drawings: a backdrop of the country, maps, and the changes between releases."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from localidades_api.catalogue.mercator import MEXICO, Frame, runs
from localidades_api.catalogue.schemas import CHANGE_KINDS
from localidades_api.database.queries import ChangeCounts

_MAP = (480.0, 360.0)
_MARGIN = 48.0
_METRES_A_DEGREE = 111_195.0
_MIN_DISTANCE = 1e-9  # degrees; anything nearer is at the same point
_LETTER, _LINE = 4.0, 7.5  # width of a letter and height of a line on a drawing of the country
_MAP_LETTER, _MAP_LINE = 7.5, 16.0  # the same on a map


class Dot(NamedTuple):
    """A neighbour on the map, the larger the more people live there; its name if there is room for it to the right."""

    x: float
    y: float
    radius: float
    label: str


class Map(NamedTuple):
    """A map with a place at its centre, the neighbours as dots, and a scale bar; sizes are in SVG units."""

    width: float
    height: float
    dots: list[Dot]
    scale_width: float
    scale_label: str


def draw_map(here: Mapping[str, Any], nearby: Sequence[Mapping[str, Any]]) -> Map:
    """Draw a place in the middle of its neighbours, north up.

    Each has `nombre`, `poblacion`, and `latitud` and `longitud` in degrees. Of names that overlap, the most populous
    place's is shown.
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
    free = _Lettering(width, _MAP_LETTER, _MAP_LINE)
    free.write(width / 2 + _MAP_LETTER, height / 2, here["nombre"])
    dots = []
    for place, (east, north) in sorted(zip(nearby, offsets, strict=True), key=lambda one: -(one[0]["poblacion"] or 0)):
        x, y = round(width / 2 + east / reach, 1), round(height / 2 - north / reach, 1)
        label = place["nombre"] if free.write(x, y, place["nombre"]) else ""
        dots.append(Dot(x, y, 2.5 + math.log10(1 + (place["poblacion"] or 0)), label))
    length = _round_length(reach * _METRES_A_DEGREE * width / 4)
    label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"  # noqa: PLR2004  # metres in a kilometre
    return Map(width, height, dots, round(length / _METRES_A_DEGREE / reach, 1), label)


class _Lettering:
    """What is written to the right of dots so far."""

    def __init__(self, width: float, letter: float, line: float) -> None:
        self._width, self._letter, self._line = width, letter, line
        self._taken: list[tuple[float, float, float]] = []  # left, right and baseline

    def write(self, x: float, y: float, text: str) -> bool:
        """Write a text beside a dot if there is room for it."""
        right = x + self._letter * (len(text) + 1)
        is_free = right < self._width and not any(
            x < end and start < right and abs(y - line) < self._line for start, end, line in self._taken
        )
        if is_free:
            self._taken.append((x, right, y))
        return is_free


def _round_length(metres: float) -> float:
    """Return the largest length up to this one that is 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(metres))
    return float(max(step * power for step in (1, 2, 5) if step * power <= metres))


def draw_backdrop(cells: Iterable[int], frame: Frame) -> bytes:
    """Draw the cells of a frame that hold any place, given in order, in a grey for light and dark pages alike."""
    path, column, row = [], 0, 0  # where the pen is
    for run in runs(cells, frame.columns):
        path.append(f"m{run.column - column} {run.row - row}h{run.length}")
        column, row = run.column + run.length, run.row
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.columns} {frame.rows}">'
        f'<path transform="translate(0 .5)" stroke="#87909a" stroke-width="1.2" d="{"".join(path)}"/></svg>'
    ).encode()


class Inset(NamedTuple):
    """Where in Mexico some places are: dots of a path, on the backdrop."""

    width: int
    height: int
    path: str


def draw_inset(points: Iterable[tuple[float | None, float | None]]) -> Inset | None:
    """Draw places by longitude and latitude in degrees; return None if none of them can be shown."""
    known = [(east, north) for east, north in points if east is not None and north is not None]
    located = [point for place in known if (point := MEXICO.locate(*place))]
    path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in dict.fromkeys(located))
    return Inset(MEXICO.columns, MEXICO.rows, path) if path else None


class LabelledDot(NamedTuple):
    """A place on a drawing of the country: the dot's middle, and its name if there is room for it to the right."""

    x: float
    y: float
    label: str


class Country(NamedTuple):
    """The country with some of its places; sizes are in SVG units."""

    width: int
    height: int
    names: list[LabelledDot]


def draw_country(places: Iterable[tuple[float, float, str]]) -> Country:
    """Draw places by longitude, latitude and name, the most prominent first: a later name makes room for them."""
    names: list[LabelledDot] = []
    free = _Lettering(MEXICO.columns, _LETTER, _LINE)
    for east, north, label in places:
        if point := MEXICO.locate(east, north):
            x, y = point
            names.append(LabelledDot(round(x, 1), round(y, 1), label if free.write(x, y, label) else ""))
    return Country(MEXICO.columns, MEXICO.rows, names)


class Part(NamedTuple):
    """The changes of one kind, as a part of a bar; its place and its width are percentages of the page's."""

    kind: str
    x: float
    width: float


def draw_changes(changes: Mapping[str, ChangeCounts | None]) -> dict[str, list[Part]]:
    """Draw the changes of each release as a bar; the longest fills the width."""
    counts = {name: change.counts for name, change in changes.items() if change}
    most = max((sum(kinds.values()) for kinds in counts.values()), default=0) or 1
    drawn: dict[str, list[Part]] = {}
    for name, kinds in counts.items():
        before = 0
        drawn[name] = []
        for kind in CHANGE_KINDS:
            if kinds[kind]:
                drawn[name].append(Part(kind, round(before / most * 100, 2), round(kinds[kind] / most * 100, 2)))
            before += kinds[kind]
    return drawn
