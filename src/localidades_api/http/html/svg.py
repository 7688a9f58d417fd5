"""Drawings as numbers that a template writes as SVG: a map of the places nearby, a chart of releases."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from localidades_api.domain.schemas import CHANGE_KINDS
from localidades_api.storage.repository import ChangeCounts

_MAP = (480.0, 360.0)
_MARGIN = 48.0
_CHART_HEIGHT = 260.0
_CHART_STEP = 120.0  # a release's room
_METRES_A_DEGREE = 111_195.0
_MIN_DISTANCE = 1e-9  # degrees: what is nearer is at the same point
CHARTED = CHANGE_KINDS[:3]  # added, removed, renamed


class Dot(NamedTuple):
    """A neighbour on the map, by its number in the list."""

    x: float
    y: float
    label: str


class Map(NamedTuple):
    """A place in the middle, its neighbours, and how long the line of the scale is."""

    width: float
    height: float
    dots: list[Dot]
    scale_width: float
    scale_label: str


def draw_map(here: Mapping[str, Any], nearby: Sequence[Mapping[str, Any]]) -> Map:
    """Draw a place in the middle of its neighbours, north up; each has `latitud` and `longitud`."""
    width, height = _MAP
    narrowing = math.cos(math.radians(here["latitud"]))
    offsets = [
        ((place["longitud"] - here["longitud"]) * narrowing, place["latitud"] - here["latitud"]) for place in nearby
    ]
    farthest = (max(abs(east) / (width - 2 * _MARGIN), abs(north) / (height - 2 * _MARGIN)) for east, north in offsets)
    reach = 2 * max(farthest, default=0.0)  # degrees a unit of the drawing
    if reach < _MIN_DISTANCE:
        reach = 0.01 / width
    dots = [
        Dot(round(width / 2 + east / reach, 1), round(height / 2 - north / reach, 1), str(place))
        for place, (east, north) in enumerate(offsets, 1)
    ]
    length = _round_length(reach * _METRES_A_DEGREE * width / 4)
    label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"  # noqa: PLR2004  # metres of a kilometre
    return Map(width, height, dots, round(length / _METRES_A_DEGREE / reach, 1), label)


def _round_length(metres: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is no longer."""
    power = 10 ** math.floor(math.log10(metres))
    return float(max(step * power for step in (1, 2, 5) if step * power <= metres))


class Part(NamedTuple):
    """A rectangle of the chart, and what it stands for."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Bar(NamedTuple):
    """A release on the chart."""

    name: str
    localities: int
    x: float
    y: float
    width: float
    height: float
    middle: float
    parts: list[Part]


class Chart(NamedTuple):
    """The releases beside each other."""

    width: float
    height: float
    bars: list[Bar]


def draw_releases(releases: Sequence[Mapping[str, Any]], changes: Mapping[str, ChangeCounts | None]) -> Chart:
    """Draw each release's localities, and to the right of its bar what changed since the one before, to one scale."""
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
