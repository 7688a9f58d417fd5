"""Fits the weight of each kind of evidence (`coefficients.tsv`) to rows whose keys are known, and judges the fit.

    PYTHONPATH=src benchmarks/.venv/bin/python -m benchmarks.fit_certainty 2018.zip --earlier 2012.zip --write

Each candidate of a row competes with the others and with none of them: a conditional logit, fitted by maximum
likelihood with a small penalty on the coefficients. Probabilities of the first candidates, each from a fit that had not
seen its municipio, are calibrated with two figures, a shift and a slope. All figures are
cross-validated, by municipio and by source. Rows without a right place count as much as `SHARES` says, in the fit and
in the tables of scores (docs/decisions/certainty.md).
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import math
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.calibration import FORMS

Figures: TypeAlias = npt.NDArray[np.float64]
Line: TypeAlias = dict[str, Any]

TABLE = Path(__file__).parents[1] / "src" / "localidades_api" / "names" / "certainty" / "coefficients.tsv"
WEIGHTS = {
    "typed": 1.0, "without municipio": 0.3, "without area": 0.3, "seat": 0.3, "short": 0.1, "town": 0.1,
    "same name": 1.0, "with key": 0.3, "wrong key": 0.006, "key of another": 0.006,
}  # fmt: skip
# Of all rows: those that a register has by mistake.
SHARES = {"withheld": 0.02, "wrong area": 0.005, "another name": 0.005, "filler": 0.001}
# Rows about municipios have coefficients of their own. One in a hundred names a municipio that the release lacks: the
# sample withholds one in five.
AREA_WEIGHTS = {f"municipio: {form}": often for form, often in FORMS.items()}
AREA_WEIGHTS |= {f"withheld {kind}": 0.05 * weight for kind, weight in AREA_WEIGHTS.items()}
PENALTY = 0.5
BOUNDS = (0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99)
BANDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.95, 0.97, 0.99, 1.0001)
FOLDS = 4
_LEAST = 0.0005  # log-odds that the evidence of a kind must be worth


@dataclass
class Row:
    """A row's candidates, with the evidence for each as a line of figures; `right` is -1 where none is right."""

    kind: str
    source: str
    key: int
    keys: list[int]
    figures: Figures
    right: int
    is_literal: list[bool]
    weight: float

    @property
    def municipio(self) -> int:
        """The municipio of the right key."""
        return self.key // 10_000


def read(path: Path) -> tuple[list[Line], list[Line]]:
    """Read the lines of evidence: those of rows about localities, and about municipios."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one for one in lines if one["kind"] not in AREA_WEIGHTS], [
        one for one in lines if one["kind"] in AREA_WEIGHTS
    ]


def weights_of(lines: Sequence[Line]) -> dict[str, float]:
    """Return the weight of each kind of row about a locality."""
    counts = Counter(line["kind"] for line in lines)
    known = sum(weight * counts[kind] for kind, weight in WEIGHTS.items()) / (1 - sum(SHARES.values()))
    return WEIGHTS | {kind: share * known / counts[kind] for kind, share in SHARES.items() if counts[kind]}


def rows_of(lines: Sequence[Line], weights: Mapping[str, float]) -> tuple[list[str], list[Row]]:
    """Return the names of the evidence, and the rows with its figures."""
    names = sorted({name for line in lines for one in line["evidence"] for name in one})
    column = {name: number for number, name in enumerate(names)}
    rows = []
    for line in lines:
        figures = np.zeros((len(line["keys"]), len(names)))
        for candidate, one in enumerate(line["evidence"]):
            for name, value in one.items():
                figures[candidate, column[name]] = value
        right = line["keys"].index(line["key"]) if line["key"] in line["keys"] else -1
        literal = ["same_name" in one or "area_same_name" in one for one in line["evidence"]]
        weight = weights[line["kind"]]
        rows.append(Row(line["kind"], line["source"], line["key"], line["keys"], figures, right, literal, weight))
    return names, rows


def fit(rows: Sequence[Row], start: Figures | None = None) -> Figures:
    """Return the coefficients with which the right candidates, or "none of them", are likeliest."""
    rows = [row for row in rows if len(row.keys)]
    figures = np.vstack([row.figures for row in rows])
    sizes = [len(row.keys) for row in rows]
    group = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum([0, *sizes[:-1]])
    weights = np.array([row.weight for row in rows])
    right = np.array([first[at] + row.right for at, row in enumerate(rows) if row.right >= 0])
    weight_of_right = np.array([row.weight for row in rows if row.right >= 0])

    def loss(coefficients: Figures) -> tuple[float, Figures]:
        odds = np.exp(np.clip(figures @ coefficients, -50, 50))
        whole = 1 + np.bincount(group, odds, len(rows))
        shares = odds / whole[group] * weights[group]
        value = (weights * np.log(whole)).sum() - weight_of_right @ (figures @ coefficients)[right]
        slope = figures.T @ shares - weight_of_right @ figures[right]
        return value + PENALTY * coefficients @ coefficients, slope + 2 * PENALTY * coefficients

    begin = np.zeros(figures.shape[1]) if start is None else start
    return minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x


def shares(row: Row, coefficients: Figures) -> Figures:
    """Return the probability of each candidate."""
    odds = np.exp(np.clip(row.figures @ coefficients, -50, 50))
    return odds / (1 + odds.sum())


def cross_validate(rows: Sequence[Row], fold_of: Callable[[Row], object]) -> list[Figures]:
    """Return the probabilities of each row's candidates from a fit that has not seen its fold."""
    found: list[Figures] = [None] * len(rows)
    coefficients = None
    for fold in sorted({fold_of(row) for row in rows}, key=str):
        coefficients = fit([row for row in rows if fold_of(row) != fold], coefficients)
        for at, row in enumerate(rows):
            if fold_of(row) == fold:
                found[at] = shares(row, coefficients)
    return found


def logit(share: float) -> float:
    """Return the log-odds of a probability."""
    bounded = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


@dataclass
class First:
    """The first candidate of a row and its probability."""

    row: Row
    at: int
    share: float

    @property
    def is_right(self) -> bool:
        """Whether the candidate is right."""
        return self.at == self.row.right


def firsts(rows: Sequence[Row], found: Sequence[Figures], judged: set[int]) -> list[First]:
    """Return the first candidates whose keys can be judged."""
    best = [(row, int(np.argmax(of)), of) for row, of in zip(rows, found, strict=True) if len(of)]
    return [First(row, at, float(of[at])) for row, at, of in best if row.keys[at] in judged]


def scale(first: Sequence[First]) -> tuple[float, float]:
    """Return the shift and slope that calibrate the log-odds of first candidates."""
    logits = np.array([logit(one.share) for one in first])
    right = np.array([float(one.is_right) for one in first])
    weights = np.array([one.row.weight for one in first])

    def loss(figures: Figures) -> float:
        scaled = figures[0] + figures[1] * logits
        return float((weights * (np.logaddexp(0, scaled) - right * scaled)).sum())

    shift, slope = minimize(loss, [0.0, 1.0]).x
    return float(shift), float(slope)


def scaled_by(scale: tuple[float, float], first: Sequence[First]) -> list[tuple[float, First]]:
    """Return first candidates with calibrated probabilities."""
    shift, slope = scale
    return [(1 / (1 + math.exp(-shift - slope * logit(one.share))), one) for one in first]


def typed(scaled: Sequence[tuple[float, First]]) -> list[tuple[float, First]]:
    """Return the rows that a register has: those that were typed, and those that no place is right for."""
    return [(share, one) for share, one in scaled if one.row.kind in {"typed", *SHARES, *AREA_WEIGHTS}]


def rates(band: Sequence[tuple[float, First]]) -> tuple[float, float]:
    """Return the mean probability of rows and how many are right, each row with its weight."""
    weights = [one.row.weight for _, one in band]
    said = sum(share * one.row.weight for share, one in band) / sum(weights)
    return said, sum(one.row.weight for _, one in band if one.is_right) / sum(weights)


def report(title: str, scaled: Sequence[tuple[float, First]], rows: Sequence[Row]) -> None:
    """Print how well scores are calibrated, and the share and accuracy of certain rows at each bound."""
    print(f"\n## {title}\n\n| score | rows | said | right |\n| --- | ---: | ---: | ---: |")
    for low, high in itertools.pairwise(BANDS):
        if band := [(share, one) for share, one in typed(scaled) if low <= share < high]:
            said, right = rates(band)
            print(f"| {100 * low:g} to below {100 * min(high, 1):g} | {len(band):,} | {said:.1%} | {right:.1%} |")
    print(
        "\n| rows | bound | certain | right | wrong: name as published, otherwise |\n| --- | ---: | ---: | ---: | --- |"
    )
    for label, of in groups(rows).items():
        for bound in BOUNDS:
            certain = [one for share, one in scaled if share >= bound and id(one.row) in of]
            wrong = [one.row.is_literal[one.at] for one in certain if not one.is_right]
            right_share = 1 - len(wrong) / max(1, len(certain))
            print(
                f"| {label} ({len(of):,}) | {bound:g} | {len(certain) / len(of):.1%} | {right_share:.2%} |"
                f" {sum(wrong)}, {len(wrong) - sum(wrong)} |"
            )


def groups(rows: Sequence[Row]) -> dict[str, set[int]]:
    """Return the rows of each kind and source in the report."""
    found: dict[str, set[int]] = {}
    for row in rows:
        label = f"{row.kind}, {row.source}" if row.kind == "typed" else row.kind
        found.setdefault(label, set()).add(id(row))
    return found


def read_keys(path: Path) -> set[int]:
    """Return the keys of a release, from INEGI's zip."""
    with zipfile.ZipFile(path) as archive:
        member = next(name for name in archive.namelist() if name.endswith("_utf.csv"))
        lines = io.TextIOWrapper(archive.open(member), "utf-8-sig").read().splitlines()
    return {int(line[1:10]) for line in lines[1:] if line[1:10].isdigit()}


def fitted(names: Sequence[str], rows: Sequence[Row]) -> list[tuple[str, float]]:
    """Return the coefficients of all rows, without the evidence that has no weight."""
    coefficients = fit(rows)
    figures = np.vstack([row.figures for row in rows if len(row.keys)])
    worth = np.abs(coefficients) * np.sqrt((figures**2).mean(0))
    return [(name, value) for name, value, each in zip(names, coefficients, worth, strict=True) if each > _LEAST]


def write(shift: float, slope: float, coefficients: Sequence[tuple[str, float]]) -> None:
    """Write the table that the service reads."""
    lines = ["evidence\tcoefficient", f"scale_shift\t{shift:.4f}", f"scale_slope\t{slope:.4f}"]
    lines += [f"{name}\t{value:.4f}" for name, value in coefficients]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Print the figures, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of the release to search")
    parser.add_argument("--earlier", type=Path, required=True, help="INEGI's file of an earlier release")
    parser.add_argument("--write", action="store_true", help="write the table of coefficients")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        evidence = Path(folder) / "evidence.jsonl"
        files = [options.catalogue, "--earlier", options.earlier]
        command = [sys.executable, "-m", "benchmarks.calibration", *files, "--evidence", evidence]
        subprocess.run(command, check=True)
        of_places, of_areas = read(evidence)
    names, rows = rows_of(of_places, weights_of(of_places))
    area_names, area_rows = rows_of(of_areas, AREA_WEIGHTS)
    judged = read_keys(options.catalogue) & read_keys(options.earlier)  # a new place may have an invented key
    folds: dict[str, Callable[[Row], object]] = {
        "municipio not seen": lambda row: row.municipio % FOLDS,
        "register not seen": lambda row: row.source,
    }
    found = {title: firsts(rows, cross_validate(rows, fold_of), judged) for title, fold_of in folds.items()}
    scales = {title: scale(first) for title, first in found.items()}
    for title, first in found.items():
        report(title.capitalize(), scaled_by(scales[title], first), rows)
    likely = cross_validate(area_rows, lambda row: row.key % FOLDS)
    first = firsts(area_rows, likely, {row.key for row in area_rows})
    report("Rows about municipios", scaled_by(scales["municipio not seen"], first), area_rows)
    if options.write:
        write(*scales["municipio not seen"], [*fitted(names, rows), *fitted(area_names, area_rows)])


if __name__ == "__main__":
    main()
