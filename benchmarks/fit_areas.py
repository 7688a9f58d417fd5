"""Fits how likely the municipio of a name is the right one (docs/decisions/certainty.md).

    benchmarks/.venv/bin/python -m benchmarks.fit_areas 2018.zip

writes the name of every municipio as people do, with and without its estado, and matches it: once with all municipios,
and once with a catalogue that lacks the one in question, for names of municipios that a release does not have. Some
rows have an estado misspelt, another municipio's name in its place, or another estado. Names of estados with letters
wrong stand beside texts that name none. It prints the coefficients and how often scores are right.
"""

import argparse
import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from benchmarks.names import _mistype, read_catalogue
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_STATE, state_of
from localidades_api.names.certainty.probability import shares
from localidades_api.names.match_areas import municipality_candidates, state_candidates
from localidades_api.names.reading.areas import AreaBook
from localidades_api.names.weights import AREA_COEFFICIENTS, SURE

_SEED = 13
_BOOKS = 10  # each lacks a tenth of the municipios
_LACKING = 0.01  # of the rows name a municipio that the release does not have
# How often people write a name so: as registers do, in which 43 of 44 names are the catalogue's.
_FORMS = {
    "written": 50.0, "letter": 0.3, "damaged": 0.2, "beginning": 0.3, "end": 0.2, "two letters": 0.1, "kind": 0.08,
    "abbreviated": 0.06, "joined": 0.05,
}  # fmt: skip
# The same for the estado beside a name: with letters wrong, the name of a municipio, and that of another estado.
_ESTADOS = {"estado misspelt": 0.5, "estado unknown": 0.5, "estado other": 0.1}
_NO_ESTADO = 0.01  # of the texts in the place of an estado name none
_SLIPS = 20  # ways in which each name of an estado is misspelt
_BANDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.97, 0.99, 1.0001)
_PENALTY = 0.005
_MIN_PLACES = 20  # that have a word which may stand in the place of an estado


class Row(NamedTuple):
    """The evidence for each candidate of a name; `right` is the position of the right one, -1 if none is."""

    has_estado: bool | None  # None for a row about an estado
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


def rows_with_wrong_estados(book: AreaBook, weight: float) -> Iterator[Row]:
    """Yield the candidates for the catalogue's names of municipios beside an estado that is not quite right."""
    chance = random.Random(_SEED)  # noqa: S311
    for id_, name in book.municipios.items():
        right = book.estados[state_of(id_)]
        unknown = book.municipios[chance.choice(list(book.municipios))]
        other = book.estados[chance.choice([one for one in book.estados if one != state_of(id_)])]
        for form, estado in zip(_ESTADOS, (_mistype(right, chance), unknown, other), strict=True):
            if found := municipality_candidates(book, name, estado):
                keys = [one.id for one in found]
                position = keys.index(id_) if id_ in keys else -1
                evidence = tuple(one.evidence for one in found)
                yield Row(has_estado=True, form=form, weight=weight * _ESTADOS[form], evidence=evidence, right=position)


def rows_of_estados(book: AreaBook, words: Counter[str]) -> Iterator[Row]:
    """Yield the candidates for misspelt names of estados, and for texts that name none: municipios and common words."""
    chance = random.Random(_SEED)  # noqa: S311
    misspelt = [(id_, _mistype(name, chance)) for id_, name in book.estados.items() for _ in range(_SLIPS)]
    texts = [*book.municipios.values(), *(word for word, number in words.items() if number >= _MIN_PLACES)]
    others = [(-1, text) for text in texts if book.named_state(fold(text)) is None]
    for cases, weight in ((misspelt, 1 - _NO_ESTADO), (others, _NO_ESTADO)):
        for id_, text in cases:
            if found := state_candidates(book, text):
                right = 0 if found[0].id == id_ else -1
                yield Row(None, "estado", weight / len(cases), tuple(one.evidence for one in found), right)


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


def _first(row: Row, coefficients: Mapping[str, float]) -> tuple[float, bool]:
    """Return the probability of the first candidate, and whether it is right."""
    found = shares([sum(coefficients[name] * value for name, value in one.items()) for one in row.evidence])
    return max(found), found.index(max(found)) == row.right


def report(rows: Sequence[Row], coefficients: Mapping[str, float]) -> None:
    """Print how often the first candidates are right, by score; rows count as often as people write names so."""
    print("\n| score | weight, with estado | said | right | weight, without | said | right | estados | said | right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    firsts = [(row, *_first(row, coefficients)) for row in rows]
    for low, high in itertools.pairwise(_BANDS):
        cells = []
        for has_estado in (True, False, None):
            band = [(row.weight, share, right) for row, share, right in firsts
                    if row.has_estado is has_estado and low <= share < high]  # fmt: skip
            whole = sum(weight for weight, _, _ in band) or 1.0
            said = sum(weight * share for weight, share, _ in band) / whole
            right = sum(weight for weight, _, is_right in band if is_right) / whole
            cells.append(f"{whole:,.4g} | {said:.2%} | {right:.2%}")
        print(f"| {100 * low:g} to {100 * min(high, 1):g} | {' | '.join(cells)} |")


def main() -> None:
    """Print the coefficients that fit best, and how right scores are with those that the service has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of a release")
    catalogue = read_catalogue(parser.parse_args().catalogue)
    estados = {id_: one.nombre for id_, one in catalogue.states.items()}
    municipios = {id_: one.nombre for id_, one in catalogue.municipalities.items()}
    words = Counter(word for place in catalogue.localities for word in {*fold(place.nombre).split()})
    every = AreaBook(estados, municipios, {}, words.__getitem__)
    rows = [*rows_of(every, municipios, 1 - _LACKING), *rows_with_wrong_estados(every, 1.0)]
    for number in range(_BOOKS):
        lacking = {id_: name for id_, name in municipios.items() if id_ % _BOOKS == number}
        book = AreaBook(estados, {id_: name for id_, name in municipios.items() if id_ not in lacking}, {})
        rows += rows_of(book, lacking, _LACKING)
    rows += rows_of_estados(every, words)
    names = sorted({name for row in rows for one in row.evidence for name in one})
    for name, value in fit(rows, names).items():
        print(f"{name}\t{value:.2f}\t{AREA_COEFFICIENTS[name]:.2f}")
    report(rows, AREA_COEFFICIENTS)
    for form in (*_FORMS, *_ESTADOS, "estado"):
        cases = [row for row in rows if row.form == form]
        certain = [row for row in cases if len(row.evidence) == 1 and _first(row, AREA_COEFFICIENTS)[0] >= SURE]
        wrong = sum(row.weight for row in certain if row.right != 0) / (sum(row.weight for row in certain) or 1.0)
        print(f"{form}: {len(cases):,} rows, {len(certain):,} certain, of these {wrong:.2%} wrong by weight")


if __name__ == "__main__":
    main()
