"""SVG drawings: a backdrop of the country; and for templates the geometry of maps and of a chart of releases."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from localidades_api.domain.mercator import MEXICO, Frame
from localidades_api.domain.schemas import CHANGE_KINDS
from localidades_api.storage.repository import ChangeCounts

_MAP = (480.0, 360.0)
_MARGIN = 48.0
_CHART_HEIGHT = 260.0
_CHART_STEP = 120.0  # width of a release
_METRES_A_DEGREE = 111_195.0
_MIN_DISTANCE = 1e-9  # degrees; anything nearer is at the same point
CHARTED = CHANGE_KINDS[:3]  # added, removed, renamed


class Dot(NamedTuple):
    """A neighbour on the map, labelled with its number in the list."""

    x: float
    y: float
    label: str


class Map(NamedTuple):
    """A map with a place at its centre, the neighbours as dots, and a scale bar; sizes are in SVG units."""

    width: float
    height: float
    dots: list[Dot]
    scale_width: float
    scale_label: str


def draw_map(here: Mapping[str, Any], nearby: Sequence[Mapping[str, Any]]) -> Map:
    """Draw a place in the middle of its neighbours, north up; each has `latitud` and `longitud` in degrees."""
    width, height = _MAP
    narrowing = math.cos(math.radians(here["latitud"]))
    offsets = [
        ((place["longitud"] - here["longitud"]) * narrowing, place["latitud"] - here["latitud"]) for place in nearby
    ]
    farthest = (max(abs(east) / (width - 2 * _MARGIN), abs(north) / (height - 2 * _MARGIN)) for east, north in offsets)
    reach = 2 * max(farthest, default=0.0)  # degrees per SVG unit
    if reach < _MIN_DISTANCE:
        reach = 0.01 / width
    dots = [
        Dot(round(width / 2 + east / reach, 1), round(height / 2 - north / reach, 1), str(place))
        for place, (east, north) in enumerate(offsets, 1)
    ]
    length = _round_length(reach * _METRES_A_DEGREE * width / 4)
    label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"  # noqa: PLR2004  # metres in a kilometre
    return Map(width, height, dots, round(length / _METRES_A_DEGREE / reach, 1), label)


def _round_length(metres: float) -> float:
    """Return the largest length up to this one that is 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(metres))
    return float(max(step * power for step in (1, 2, 5) if step * power <= metres))


def draw_backdrop(cells: Iterable[int], frame: Frame) -> bytes:
    """Draw the cells of a frame that hold any place, given in order, in a grey for light and dark pages alike."""
    runs: list[list[int]] = []  # the first cell and how many follow, in one row
    for cell in cells:
        if runs and cell == sum(runs[-1]) and cell % frame.columns:
            runs[-1][1] += 1
        else:
            runs.append([cell, 1])
    path, column, row = [], 0, 0  # where the pen is
    for cell, length in runs:
        y, x = divmod(cell, frame.columns)
        path.append(f"m{x - column} {y - row}h{length}")
        column, row = x + length, y
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


class Part(NamedTuple):
    """A rectangle for the changes of one kind in a release."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Bar(NamedTuple):
    """The bar of a release, and the rectangles of its changes."""

    name: str
    localities: int
    x: float
    y: float
    width: float
    height: float
    middle: float
    parts: list[Part]


class Chart(NamedTuple):
    """A bar chart of releases, side by side."""

    width: float
    height: float
    bars: list[Bar]


def draw_releases(releases: Sequence[Mapping[str, Any]], changes: Mapping[str, ChangeCounts | None]) -> Chart:
    """Draw a bar for each release's localities and, to its right, the changes since the one before, to one scale."""
    height, step = _CHART_HEIGHT, _CHART_STEP
    room = height - 56
    most = max((release["totals"]["localidades"] for release in releases), default=0) or 1
    bars = []
    for index, release in enumerate(releases):
        localities = release["totals"]["localidades"]
        tall, left = localities / most * room, index * step + step * 0.1
        parts = []
        if change := changes.get(release["release"]):
            for place, kind in enumerate(CHARTED):
                size = max(change.counts[kind] / most * room, 1 if change.counts[kind] else 0)
                parts.append(
                    Part(kind, round(left + step * (0.5 + place * 0.1), 1), round(height - 28 - size, 1),
                         round(step * 0.08, 1), round(size, 1))
                )  # fmt: skip
        bars.append(
            Bar(release["release"], localities, round(left, 1), round(height - 28 - tall, 1), round(step * 0.45, 1),
                round(tall, 1), round(left + step * 0.225, 1), parts)
        )  # fmt: skip
    return Chart(step * len(releases), height, bars)
