"""The README's figures are those that `make bench` measured last, a goal that was missed included."""

import json
import re
from typing import Any

import pytest

from benchmarks.contenders import BARE, COLD, DEPLOYED, DRF, EMPTY, FASTAPI, FASTIFY, FIRST, LAST, NGINX, RANDOM, WARM
from benchmarks.goals import Goal, judge
from benchmarks.results import Results
from benchmarks.series import Series
from tests.support.wire import ROOT

ROWS = {
    "Django REST Framework, gunicorn": DRF,
    "FastAPI, SQLAlchemy, pydantic: `COUNT`, `LIMIT`/`OFFSET`": FASTAPI,
    "Fastify, pg, on Node": FASTIFY,
    "**localidades-api**, page cache off": COLD,
    "**localidades-api**, from an empty cache": EMPTY,
    "**localidades-api**, warm": WARM,
    "**localidades-api**, as deployed: two workers": DEPLOYED,
    "a bare ASGI app on uvicorn: constant bytes, two headers": BARE,
    "nginx, a static file": NGINX,
}
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


def read(value: Any) -> Any:  # noqa: ANN401  # whatever JSON has
    """Return what was written, with each series as one."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"rounds", "median", "low", "high"}:
        return Series(tuple(value["rounds"]), value["median"], value["low"], value["high"])
    return {name: read(one) for name, one in value.items()}


@pytest.fixture(scope="module")
def results() -> Results:
    return Results(**read(json.loads((ROOT / "benchmarks/results/results.json").read_text())))


@pytest.fixture(scope="module")
def section() -> str:
    """Return what the README says of speed."""
    found = re.search(r"^## How fast it is\n(.+?)^## ", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def is_rounded(shown: str, value: float) -> bool:
    """Tell whether a figure is this value, to the decimals that it shows."""
    digits = shown.replace(",", "")
    return float(digits) == round(value, len(digits.partition(".")[2]))


def test_table_of_the_readme_is_what_was_measured(results: Results, section: str) -> None:
    rates = results.throughput["requests_per_second"]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    head, _, *rows = lines
    assert head == ["requests a second", "random pages", "page 1", "last page", "times Django REST Framework"]
    assert [row[0] for row in rows] == list(ROWS)
    for name, *shown in rows:
        rate = rates[ROWS[name]]
        times = rate[RANDOM].over(rates[DRF][RANDOM]).median
        measured = [*(rate[target].median if target in rate else None for target in (RANDOM, FIRST, LAST)), times]
        for figure, value in zip(shown, measured, strict=True):
            assert (figure == "") if value is None else is_rounded(figure, value), (name, figure, value)


def test_sentences_of_the_readme_are_what_was_measured(results: Results, section: str) -> None:
    said = " ".join(section.split())
    assert f"medians of {NUMBERS[int(str(results.options['rounds']))]} alternating rounds" in said
    assert f"on {NUMBERS[int(str(results.machine['cores']))]} cores" in said
    figures = {
        r"A page out of 3 million localities costs ([0-9.]+) times as much as one out of 300 thousand": results.sizes[
            "300000"
        ].over(results.sizes["3000000"]),
        r"A worker that caches every page takes ([0-9.]+) MB": results.memory["held"],
        r"The first page is answered ([0-9.]+) s after the process starts": results.startup[WARM]["seconds"],
    }
    for pattern, series in figures.items():
        found = re.search(pattern, said)
        assert found, pattern
        assert is_rounded(found[1], series.median), (found[0], series.median)


def told(goal: Goal) -> str:
    return f"{goal.title}, {goal.seen.median:.2f}{goal.unit} ({goal.bound} {goal.wanted:g}{goal.unit})"


def test_goals_that_were_missed_are_named_in_the_readme_and_no_other(results: Results, section: str) -> None:
    goals = judge(results)
    missed = [told(goal) for goal in goals if not goal.met]
    said = " ".join(section.split())
    if not missed:
        assert "missed" not in said
        return
    count, verb = NUMBERS[len(missed)].capitalize(), "was" if len(missed) == 1 else "were"
    table = f"[{len(goals)} goals](benchmarks/results/table.md)"
    assert said.endswith(f"{count} of the {table} {verb} missed: {'; '.join(missed)}.")
