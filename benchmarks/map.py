"""Measures the map of a catalogue: completeness, cost and size of its tiles, and frames a second when it is dragged.

`python -m benchmarks.map RELEASE.zip [--only tiles frames]`, with the packages of `make test` and Debian's
chromium-headless-shell, which draws with the processor. Every tile that has a place of the file is requested, cold, and
some of them again, from the cache. The places of the deepest zoom are compared with those of the file that have
coordinates. Then the mouse drags the map in a circle, in windows of three sizes: the median of alternating rounds.
"""

import argparse
import asyncio
import gzip
import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import httpx
from playwright.async_api import Browser, Page, ViewportSize

from benchmarks.contenders import OURS, OURS_COLD
from benchmarks.lab import Lab, Options, open_lab, run_command
from benchmarks.processes import PATH, BenchmarkError, Server
from benchmarks.series import Series
from localidades_api.catalogue.mercator import MAX_ZOOM, Tile
from localidades_api.importer.extract import open_table, split_lines
from tests.http.vector_tiles import read_tile
from tests.support.browser import WEBGL, launched

_PARTS = ("tiles", "frames")
_HELD = 500  # tiles of each zoom to request again
_SHALLOW = 6  # cached since the publication
_PATIENCE = 180.0  # seconds
_WINDOWS: tuple[ViewportSize, ...] = (
    {"width": 1280, "height": 800},
    {"width": 800, "height": 600},
    {"width": 390, "height": 700},
)
_VIEWS = {"the country": "", "zoom 7": "#map=7/19.5/-99", "zoom 10": "#map=10/19.5/-99", "no places": "#map=7/5/-140"}
_RADIUS = 80  # pixels of the circle
_TURN = 2.0  # seconds for a circle
_STEP = 1 / 60  # seconds between two places of the mouse
_FRAMES = """() => {
  window.drag = { times: [], moved: 0 };
  let moved = false;
  const note = (time) => {
    drag.times.push(time);
    drag.moved += moved;
    moved = false;
    requestAnimationFrame(note);
  };
  addEventListener("mousemove", () => { moved = true; }, { capture: true });
  requestAnimationFrame(note);
}"""


class _Point(NamedTuple):
    id: int
    longitude: float
    latitude: float


class _Answers(NamedTuple):
    """Milliseconds that tiles took, and their bytes as sent."""

    waits: list[float]
    sizes: list[int]


class _Drag(NamedTuple):
    """Figures of one drag of the map: frames a second, and the share of frames before which the mouse had moved."""

    frames: float
    moved: float


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.map", description=__doc__)
    parser.add_argument("catalogue", type=Path, help="a file of INEGI's")
    parser.add_argument("--rounds", type=int, default=5, help="of dragging")
    parser.add_argument("--seconds", type=int, default=5, help="of each drag")
    parser.add_argument("--only", choices=_PARTS, nargs="+", default=_PARTS, metavar="PART", help=", ".join(_PARTS))
    arguments = parser.parse_args()
    run_command(lambda: _measure(arguments))


def _measure(arguments: argparse.Namespace) -> None:
    with open_lab(Options(arguments.rounds, arguments.seconds), arguments.catalogue) as lab:
        if "tiles" in arguments.only:
            points = list(_read_points(arguments.catalogue))
            with lab.start(OURS_COLD, lab.url) as server:  # which draws no tile before it is requested
                _await_names(server)
                _measure_tiles(server, points)
        if "frames" in arguments.only:
            with lab.start(OURS, lab.url) as server:
                server.wait_for("The tile cache holds", 1, _PATIENCE)
                asyncio.run(_measure_frames(lab, server))


def _read_points(catalogue: Path) -> Iterator[_Point]:
    """Yield the places of a file that have both coordinates."""
    with open_table(catalogue) as table:
        columns = [table.layout.indexes[name] for name in ("cvegeo", "longitud", "latitud")]
        for row in split_lines(table.lines, table.layout.separator):
            key, longitude, latitude = (row[column] for column in columns)
            if "-" not in {longitude, latitude}:
                yield _Point(int(key), float(longitude), float(latitude))


def _await_names(server: Server) -> None:
    """Wait until the names are indexed, which keeps a processor busy."""
    deadline = time.monotonic() + _PATIENCE
    while httpx.get(f"{server.base}{PATH}suggest/?q=a").is_error:
        if time.monotonic() > deadline:
            raise BenchmarkError("The names were not indexed.")
        time.sleep(0.1)


# -- Tiles


def _measure_tiles(server: Server, points: Sequence[_Point]) -> None:
    reached: set[int] = set()
    chance = Random(32)  # noqa: S311  # the same in every run
    answers: dict[int, tuple[_Answers, _Answers]] = {}
    with httpx.Client(base_url=server.base, timeout=_PATIENCE) as client:
        for zoom in range(MAX_ZOOM + 1):
            tiles = sorted({Tile.at(zoom, point.longitude, point.latitude) for point in points})
            note = _noting(reached) if zoom == MAX_ZOOM else _unnoted
            cold, held = _Answers([], []), _Answers([], [])
            again = set(chance.sample(tiles, min(_HELD, len(tiles))))
            for tile in tiles:
                note(_ask(client, tile, cold))
                if tile in again:
                    _ask(client, tile, held)
            answers[zoom] = cold, held
            print(f"  zoom {zoom}: {len(tiles):,} tiles with places, the largest {max(cold.sizes):,} bytes", flush=True)
    located = {point.id for point in points}
    print(
        f"{len(located):,} places of the file have coordinates; {len(reached):,} are in the tiles of zoom {MAX_ZOOM},"
        f" {len(located - reached):,} are missing and {len(reached - located):,} are others"
    )
    _print_answers(answers)


def _unnoted(body: bytes) -> None:
    """Leave a tile unread."""


def _noting(reached: set[int]) -> Callable[[bytes], None]:
    def note(body: bytes) -> None:
        layers = read_tile(body)
        if "places" in layers:
            reached.update(feature.id for feature in layers["places"].features)

    return note


def _ask(client: httpx.Client, tile: Tile, answers: _Answers) -> bytes:
    """Request a tile as browsers do, record its figures, and return it unpacked."""
    target = f"{PATH}tiles/{tile.zoom}/{tile.column}/{tile.row}.mvt"
    began = time.perf_counter()
    with client.stream("GET", target, headers={"Accept-Encoding": "gzip"}) as answer:
        sent = b"".join(answer.iter_raw())
    answers.waits.append((time.perf_counter() - began) * 1000)
    if answer.is_error or answer.headers.get("content-encoding") != "gzip":
        raise BenchmarkError(f"{target} was answered with {answer.status_code}, {dict(answer.headers)}.")
    answers.sizes.append(len(sent))
    return gzip.decompress(sent)


def _print_answers(answers: Mapping[int, tuple[_Answers, _Answers]]) -> None:
    groups = {f"down to zoom {_SHALLOW}": range(_SHALLOW + 1), "deeper": range(_SHALLOW + 1, MAX_ZOOM + 1)}
    for group, zooms in groups.items():
        for index, state in enumerate(("cold", "held")):
            waits = sorted(wait for zoom in zooms for wait in answers[zoom][index].waits)
            p50, p95 = (waits[len(waits) * share // 100] for share in (50, 95))
            print(f"{group:16} {state}: {len(waits):7,} tiles, p50 {p50:.1f} ms, p95 {p95:.1f}, max {waits[-1]:.1f}")
    print(f"largest tile: {max(max(cold.sizes) for cold, _ in answers.values()):,} bytes as sent, with gzip")


# -- Frames


async def _measure_frames(lab: Lab, server: Server) -> None:
    drags: dict[tuple[int, str], list[_Drag]] = defaultdict(list)
    async with launched(*WEBGL) as browser:
        for number in range(lab.options.rounds):
            views = [*_VIEWS][number % len(_VIEWS) :] + [*_VIEWS][: number % len(_VIEWS)]
            for view, window in itertools.product(views, range(len(_WINDOWS))):
                drag = await _drag_map(browser, server.base, _WINDOWS[window], _VIEWS[view], lab.options.seconds)
                drags[window, view].append(drag)
    for window, view in itertools.product(range(len(_WINDOWS)), _VIEWS):
        frames, moved = (Series.of(values) for values in zip(*drags[window, view], strict=True))
        size = f"{_WINDOWS[window]['width']} × {_WINDOWS[window]['height']}"
        print(
            f"{size:12} {view:12} {frames.median:5.1f} frames a second ({frames.low:.1f} to {frames.high:.1f}),"
            f" the mouse moved for {moved.median:.0%}"
        )


async def _drag_map(browser: Browser, base: str, window: ViewportSize, view: str, seconds: int) -> _Drag:
    """Drag the map in circles, and count the callbacks of requestAnimationFrame."""
    context = await browser.new_context(base_url=base, locale="en-US", viewport=window)
    page = await context.new_page()
    await page.goto(f"/map?format=api{view}", wait_until="networkidle")
    ground = await page.locator("canvas").bounding_box()
    if ground is None:
        raise BenchmarkError("The map is not drawn.")
    middle = ground["x"] + ground["width"] / 2, ground["y"] + ground["height"] / 2
    before = page.url
    await page.mouse.move(*middle)
    await page.mouse.down()
    await page.evaluate(_FRAMES)
    await _circle(page, middle, seconds)
    drag = await page.evaluate("() => drag")
    await page.mouse.up()
    await page.wait_for_url(lambda url: url != before)  # the address changes when the map has moved
    await context.close()
    frames = len(drag["times"]) - 1
    return _Drag(frames / (drag["times"][-1] - drag["times"][0]) * 1000, drag["moved"] / frames)


async def _circle(page: Page, middle: tuple[float, float], seconds: int) -> None:
    """Move the mouse at a steady rate, as people do, without waiting for the page to draw."""
    began = time.monotonic()
    async with asyncio.TaskGroup() as moves:
        while (passed := time.monotonic() - began) < seconds:
            angle = passed / _TURN * math.tau
            east, south = _RADIUS * math.sin(angle), _RADIUS * (1 - math.cos(angle))
            moves.create_task(page.mouse.move(middle[0] + east, middle[1] + south))
            await asyncio.sleep(_STEP)


if __name__ == "__main__":
    main()
