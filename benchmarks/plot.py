"""Draws the main table, on a logarithmic scale.

    benchmarks/.venv/bin/python -m benchmarks.plot results.json plot.svg

Runs in the peers' environment, which has matplotlib. Greys and colours of middle brightness on a transparent
background suit light and dark pages.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

GREY = "#808080"
_BARS = (("random pages", "#3b8ec2"), ("page 1", "#7fb77e"), ("last page", "#d98c4a"))
_TITLES = (
    ("drf", "Django REST Framework"),
    ("fastapi", "FastAPI, SQLAlchemy"),
    ("fastify", "Fastify, pg"),
    ("cold", "localidades-api, cache off"),
    ("empty", "localidades-api, from an empty cache"),
    ("warm", "localidades-api, warm"),
    ("deployed", "localidades-api, two workers"),
    ("bare", "a bare ASGI app: constant bytes"),
    ("nginx", "nginx: a static file"),
)
_HEIGHT = 0.26


def draw(source: Path, picture: Path) -> None:
    """Draw the medians, with their spread as whiskers."""
    rates = json.loads(source.read_text())["throughput"]["requests_per_second"]
    mpl.rcParams.update({"svg.hashsalt": "localidades", "svg.fonttype": "none", "font.size": 10, "text.color": GREY})
    figure, axes = plt.subplots(figsize=(8.6, 5.2), layout="constrained")
    for row, (key, _) in enumerate(_TITLES):
        targets = [bar for bar in _BARS if bar[0] in rates[key]]
        for place, (target, colour) in enumerate(targets):
            _bar(axes, row + (place - (len(targets) - 1) / 2) * _HEIGHT, rates[key][target], colour)
    axes.set_yticks(range(len(_TITLES)), [title for _, title in _TITLES])
    _dress(axes)
    figure.savefig(picture, transparent=True, metadata={"Date": None})


def _bar(axes: Axes, place: float, series: dict[str, float], colour: str) -> None:
    median = series["median"]
    whiskers = [[median - series["low"]], [series["high"] - median]]
    axes.barh(place, median, _HEIGHT * 0.9, color=colour, xerr=whiskers, ecolor=GREY, capsize=2)
    axes.annotate(
        f"{median:,.0f}", (series["high"], place), (5, 0), textcoords="offset points", va="center", fontsize=8
    )


def _dress(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xlim(10, 1_000_000)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.invert_yaxis()
    axes.set_xlabel("requests a second, one worker, 16 connections (logarithmic)", color=GREY)
    axes.tick_params(colors=GREY, which="both")
    axes.grid(axis="x", color=GREY, alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for _, colour in _BARS]
    axes.legend(handles, [name for name, _ in _BARS], frameon=False, loc="upper right")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
