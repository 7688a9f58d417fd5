"""Fits how likely the municipio of a name is the right one (docs/decisions/certainty.md).

    benchmarks/.venv/bin/python -m benchmarks.fit_areas 2018.zip

writes the name of every municipio as people do, with and without its estado, and matches it: once with all municipios,
and once with a catalogue that lacks the one in question, for names of municipios that a release does not have. It
prints the coefficients and how often scores are right.
"""

import argparse
import itertools
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from benchmarks.names import _mistype, read_catalogue
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.names.areas import AreaBook
from localidades_api.names.certainty import shares
from localidades_api.names.match_areas import municipality_candidates
from localidades_api.names.weights import AREA_COEFFICIENTS

_SEED = 13
_BOOKS = 10  # each lacks a tenth of the municipios
_LACKING = 0.01  # of the rows name a municipio that the release does not have
# How often people write a name so: as registers do, in which 43 of 44 names are the catalogue's.
_FORMS = {
    "written": 50.0, "letter": 0.3, "damaged": 0.2, "beginning": 0.3, "end": 0.2, "two letters": 0.1, "kind": 0.08,
    "abbreviated": 0.06, "joined": 0.05,
}  # fmt: skip
_BANDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.97, 0.99, 1.0001)
_PENALTY = 0.005


class Row(NamedTuple):
    """The evidence for each candidate of a name; `right` is the position of the right one, -1 if none is."""

    has_estado: bool
    form: str
    weight: float
    evidence: tuple[Mapping[str, float], ...]
    right: int


def forms(name: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield a name as people write it; a part has at least half of its letters."""
    words = name.split(" ")
    yield "written", name
    yield "letter", _mistype(name, chance)
    yield "two letters", _mistype(_mistype(name, chance), chance)
    yield "damaged", re.sub("[áéíóúñüÁÉÍÓÚÑ]", "??", name)
    for part in {re.split(r" del? ", name)[0], " ".join(words[:-1])}:
        yield "beginning", part
    yield "end", " ".join(words[1:])
    yield "joined", name.replace(" ", "")
    yield "kind", f"{chance.choice(('Ciudad', 'Villa de', 'Municipio de'))} {name}"
    yield "abbreviated", " ".join(f"{word[:4]}." if len(word) > 6 else word for word in words[:-1]) + f" {words[-1]}"  # noqa: PLR2004


def rows_of(book: AreaBook, municipios: Mapping[int, str], weight: float) -> Iterator[Row]:
    """Yield the candidates that a book has for the names of municipios."""
    chance = random.Random(_SEED)  # noqa: S311  # a measurement that can be repeated
    for id_, name in municipios.items():
        for form, text in forms(name, chance):
            if form != "written" and (text == name or len(text) < len(name) / 2):
                continue
            for estado in (book.estados[id_ // KEYS_OF_A_STATE], None):
                if found := municipality_candidates(book, text, estado):
                    # A longer name competes with the same one only if its municipio is much larger.
                    found = [one for one in found if "same_name" in one.evidence] or found
                    keys = [one.id for one in found]
                    right = keys.index(id_) if id_ in keys else -1
                    yield Row(
                        estado is not None, form, weight * _FORMS[form], tuple(one.evidence for one in found), right
                    )


def fit(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    """Return the coefficients that make the right candidates, or none, likeliest."""
    groups: dict[tuple[tuple[tuple[float, ...], ...], int], float] = defaultdict(float)
    for row in rows:
        groups[tuple(tuple(one.get(name, 0.0) for name in names) for one in row.evidence), row.right] += row.weight
    cases = [(np.array(figures), right, weight) for (figures, right), weight in groups.items()]

    def loss(coefficients: Sequence[float]) -> tuple[float, Sequence[float]]:
        value, slope = _PENALTY * np.square(coefficients).sum(), 2 * _PENALTY * np.array(coefficients)
        for figures, right, weight in cases:
            odds = figures @ coefficients
            whole = 1 + np.exp(odds).sum()
            value += weight * (np.log(whole) - (odds[right] if right >= 0 else 0.0))
            slope += weight * (np.exp(odds) @ figures / whole - (figures[right] if right >= 0 else 0.0))
        return value, slope

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B").x
    return dict(zip(names, map(float, found), strict=True))


def report(rows: Sequence[Row], coefficients: Mapping[str, float]) -> None:
    """Print how often the first candidates are right, by score; rows count as often as people write names so."""
    print("\n| score | weight, with estado | said | right | weight, without estado | said | right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    firsts = []
    for row in rows:
        found = shares([sum(coefficients[name] * value for name, value in one.items()) for one in row.evidence])
        best = max(found)
        firsts.append((row, best, found.index(best) == row.right))
    for low, high in itertools.pairwise(_BANDS):
        cells = []
        for has_estado in (True, False):
            band = [(row.weight, share, right) for row, share, right in firsts
                    if row.has_estado is has_estado and low <= share < high]  # fmt: skip
            whole = sum(weight for weight, _, _ in band) or 1.0
            said = sum(weight * share for weight, share, _ in band) / whole
            right = sum(weight for weight, _, is_right in band if is_right) / whole
            cells.append(f"{whole:,.0f} | {said:.1%} | {right:.1%}")
        print(f"| {100 * low:g} to {100 * min(high, 1):g} | {' | '.join(cells)} |")


def main() -> None:
    """Print the coefficients that fit best, and how right scores are with those that the service has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of a release")
    catalogue = read_catalogue(parser.parse_args().catalogue)
    estados = {id_: one.nombre for id_, one in catalogue.states.items()}
    municipios = {id_: one.nombre for id_, one in catalogue.municipalities.items()}
    rows = list(rows_of(AreaBook(estados, municipios, {}), municipios, 1 - _LACKING))
    for number in range(_BOOKS):
        lacking = {id_: name for id_, name in municipios.items() if id_ % _BOOKS == number}
        book = AreaBook(estados, {id_: name for id_, name in municipios.items() if id_ not in lacking}, {})
        rows += rows_of(book, lacking, _LACKING)
    names = sorted({name for row in rows for one in row.evidence for name in one})
    for name, value in fit(rows, names).items():
        print(f"{name}\t{value:.2f}\t{AREA_COEFFICIENTS[name]:.2f}")
    report(rows, AREA_COEFFICIENTS)


if __name__ == "__main__":
    main()
