"""Measures how often a match is right at each score, by difference and by source (docs/reference/matching.md).

    python -m benchmarks.calibration 2018.zip --earlier 2012.zip

matches rows whose keys are known, and prints their scores beside the share that was right. `--evidence FILE` writes the
evidence for each candidate instead, for `benchmarks.fit_certainty`. The rows are those of tests/data, or of the
tables that `--names` gives. Their columns are source, estado, municipio, nombre and cvegeo, and optionally latitud and
longitud.

Rows that no place should get are made too: of places that are withheld from the index, with a wrong municipio or
estado, with a filler for a name, and with another place's key. A last table has how many of them are certain.
"""

import argparse
import csv
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from heapq import nlargest
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple, TextIO

from benchmarks.kinds import KINDS, Changer
from benchmarks.names import mistype, places_of, read_catalogue, rows_of, withdrawn_of
from localidades_api.catalogue.keys import CLAVE_OF_SEAT, KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, state_of
from localidades_api.importer.transform import CatalogueRecords
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace, NameKind
from localidades_api.names.reading.vocabulary import read_everyday_names
from localidades_api.names.rows import MatchRow

DATA = Path(__file__).parents[1] / "tests" / "data"
NAMES = (DATA / "dirty_names.tsv", DATA / "more_names.tsv")
BANDS = (0, 10, 30, 50, 70, 80, 85, 95, 97, 99, 100.01)  # points of a score
_OFFICIAL = "sedesol_catalogo"  # another office's list, not typed by people


_FILLERS = ("Ninguna", "Sin localidad", "Sin nombre", "Varias", "Colonia", "Zona urbana", "Todo el municipio", "Otra")
_EVERY_TYPED, _EVERY_OF_CATALOGUE = 4, 40  # of which one place is withheld
_EVERY_MUNICIPIO = 25  # of which one gets fillers
_EVERY_MUNICIPIO_WITHHELD = 5
_OF_SEATS = frozenset({NameKind.SEAT, NameKind.EVERYDAY})
_SEED = 13
_OF_EACH_KIND = 200  # changed names
_TOWNS = 400


class KnownRow(NamedTuple):
    """A row whose key is known; `kind` says how it was made from a row of a source."""

    kind: str
    source: str
    row: MatchRow
    key: int


def known_rows(path: Path) -> Iterator[KnownRow]:
    """Yield the rows of a table as they were typed."""
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if cells["source"] != _OFFICIAL:
                latitud, longitud = (
                    float(cells[name]) if cells.get(name) else None for name in ("latitud", "longitud")
                )
                row = MatchRow(cells["nombre"], cells["municipio"], cells["estado"], latitud, longitud)
                yield KnownRow("typed", cells["source"], row, int(cells["cvegeo"]))


def poorer(rows: Iterable[KnownRow]) -> Iterator[KnownRow]:
    """Yield every other row without its municipio, and every eighth without an area."""
    for number, known in enumerate(rows):
        if number % 2:
            yield known._replace(kind="without municipio", row=MatchRow(known.row.nombre, None, known.row.estado))
        elif number % 8 == 0:
            yield known._replace(kind="without area", row=MatchRow(known.row.nombre))


def seats(index: NameIndex, keys: Iterable[int]) -> Iterator[KnownRow]:
    """Yield the seats of all municipios under the municipio's name and the usual short one."""
    for key in keys:
        municipio_id, clave = divmod(key, KEYS_OF_A_MUNICIPIO)
        if clave == int(CLAVE_OF_SEAT):
            municipio, estado = index.areas.municipios[municipio_id], index.areas.estados[municipio_id // 1000]
            yield KnownRow("seat", "catalogue", MatchRow(municipio, None, estado), key)
            short = re.split(r" del? ", municipio)[0]
            if short != municipio:
                yield KnownRow("short", "catalogue", MatchRow(short, municipio, estado), key)
                yield KnownRow("short", "catalogue", MatchRow(short, short, estado), key)


def towns(places: Iterable[IndexedPlace]) -> Iterator[KnownRow]:
    """Yield the largest towns as people call them, without an area."""
    everyday = read_everyday_names()
    for place in nlargest(_TOWNS, places, key=lambda place: place.poblacion or 0):
        for name in (place.nombre, f"Cd. {place.nombre}", *everyday.get(place.id, ())):
            yield KnownRow("town", "catalogue", MatchRow(name), place.id)


def withheld_keys(typed: Iterable[KnownRow], catalogue: Iterable[int]) -> set[int]:
    """Return the places to withhold: one in four that the tables name, and one in forty of the catalogue."""
    named = sorted({known.key for known in typed})
    return {*named[::_EVERY_TYPED], *sorted(catalogue)[::_EVERY_OF_CATALOGUE]}


def withheld(catalogue: CatalogueRecords, typed: Iterable[KnownRow], keys: set[int]) -> Iterator[KnownRow]:
    """Yield rows of places that an index is to lack, as they were typed and as the catalogue writes them."""
    rows = [known for known in typed if known.key in keys]
    rows += [KnownRow("withheld", "catalogue", row, key) for row, key in rows_of(catalogue) if key in keys]
    changer = Changer(place for place in places_of(catalogue, None) if place.id in keys)
    for kind in (kind for kind in KINDS if kind.least is not None):
        found = islice(changer.change(kind), _OF_EACH_KIND)
        rows += [KnownRow("withheld", "catalogue", row, key) for row, key, _ in found]
    for known in (*rows, *poorer(rows[::3])):
        yield known._replace(kind="withheld")


def wrong_areas(index: NameIndex, typed: Iterable[KnownRow]) -> Iterator[KnownRow]:
    """Yield every fourth row with the next municipio of its estado, or with the next estado."""
    municipios, estados = index.areas.municipios, index.areas.estados
    for number, known in enumerate(islice(typed, 0, None, 4)):
        municipio_id = known.key // KEYS_OF_A_MUNICIPIO
        estado_id = municipio_id // KEYS_OF_A_STATE
        beside = municipio_id + 1
        if number % 2:
            yield known._replace(
                kind="wrong area", row=known.row._replace(estado=estados[estado_id % len(estados) + 1])
            )
        elif beside in municipios:
            yield known._replace(kind="wrong area", row=known.row._replace(municipio=municipios[beside]))


def fillers(index: NameIndex) -> Iterator[KnownRow]:
    """Yield words that people write where they have no name, in some of the municipios."""
    for municipio_id, municipio in islice(index.areas.municipios.items(), 0, None, _EVERY_MUNICIPIO):
        for filler in _FILLERS:
            row = MatchRow(filler, municipio, index.areas.estados[municipio_id // KEYS_OF_A_STATE])
            yield KnownRow("filler", "fillers", row, municipio_id * KEYS_OF_A_MUNICIPIO)


def changed(catalogue: CatalogueRecords) -> Iterator[KnownRow]:
    """Yield changed names of the catalogue: those that another place may have, and those that are the place's."""
    changer = Changer(places_of(catalogue, None))
    for kind in KINDS:
        is_same = kind.least is not None
        for row, key, keys in islice(changer.change(kind), _OF_EACH_KIND):
            if is_same or not keys:
                yield KnownRow("same name" if is_same else "another name", "catalogue", row, key if is_same else -key)


# How people write the name of a municipio, and how often; 43 of 44 names in registers are the catalogue's.
FORMS = {
    "written": 50.0, "letter": 0.3, "damaged": 0.2, "beginning": 0.3, "end": 0.2, "two letters": 0.1, "title": 0.08,
    "abbreviated": 0.06, "joined": 0.05, "seat": 0.3, "estado misspelt": 0.5, "estado unknown": 0.5,
    "estado other": 0.1,
}  # fmt: skip


def _forms(name: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the name of a municipio as people write it; a part has at least half of its letters."""
    words = name.split(" ")
    short = [f"{word[:4]}." if len(word) > 6 else word for word in words[:-1]]  # noqa: PLR2004
    yield "written", name
    for form, text in (
        ("letter", mistype(name, chance)),
        ("two letters", mistype(mistype(name, chance), chance)),
        ("damaged", re.sub("[áéíóúñüÁÉÍÓÚÑ]", "??", name)),
        *(("beginning", part) for part in {re.split(r" del? ", name)[0], " ".join(words[:-1])}),
        ("end", " ".join(words[1:])),
        ("joined", name.replace(" ", "")),
        ("title", f"{chance.choice(('Ciudad', 'Villa de', 'Municipio de'))} {name}"),
        ("abbreviated", " ".join([*short, words[-1]])),
    ):
        if text != name and len(text) >= len(name) / 2:
            yield form, text


def areas(index: NameIndex, *, lacking: bool) -> Iterator[KnownRow]:
    """Yield the names of municipios, with and without an estado, also a wrong one; `lacking`: those to be withheld."""
    book, chance = index.areas, random.Random(_SEED)  # noqa: S311  # a measurement that can be repeated
    kind = "withheld municipio" if lacking else "municipio"
    for id_, name in book.municipios.items():
        if lacking and not _is_withheld(id_):
            continue
        estado_id = state_of(id_)
        estado = book.estados[estado_id]
        of_seat = (known.written for known in index.area_places[id_].names if known.kind in _OF_SEATS)
        called = (("seat", text) for text in dict.fromkeys(of_seat) if text != name)
        for form, text in (*_forms(name, chance), *called):
            for given in (estado, None):
                yield KnownRow(f"{kind}: {form}", "catalogue", MatchRow(text, None, given, kind="municipio"), id_)
        unknown = book.municipios[chance.choice(list(book.municipios))]
        other = book.estados[chance.choice([one for one in book.estados if one != estado_id])]
        for form, given in (("misspelt", mistype(estado, chance)), ("unknown", unknown), ("other", other)):
            row = MatchRow(name, None, given, kind="municipio")
            yield KnownRow(f"{kind}: estado {form}", "catalogue", row, id_)


def _is_withheld(municipio_id: int) -> bool:
    return municipio_id % _EVERY_MUNICIPIO_WITHHELD == 0


def with_keys(typed: Iterable[KnownRow], keys: Container[int]) -> Iterator[KnownRow]:
    """Yield every third row with its key, right or with a slip: a digit wrong, two swapped, or the next row's."""
    for number, known in enumerate(islice(typed, 0, None, 3)):
        own = f"{known.key:09d}"
        yield known._replace(kind="with key", row=known.row._replace(cvegeo=own))
        at = 5 + number % 4
        digit = f"{(int(own[at]) + 1 + number % 7) % 10}"
        slips = own[:at] + digit + own[at + 1 :], own[: at - 1] + own[at] + own[at - 1] + own[at + 1 :]
        wrong = [*(one for one in slips if one != own), f"{known.key + 1:09d}"]
        slip = wrong[number % len(wrong)]
        yield known._replace(kind="wrong key", row=known.row._replace(cvegeo=slip))
        if number % 4 == 0 and int(slip) in keys:  # the name is misspelt as well, so only its words can tell
            yield known._replace(kind="wrong key", row=MatchRow(known.row.nombre, cvegeo=slip))


def keys_of_others(typed: Sequence[KnownRow]) -> Iterator[KnownRow]:
    """Yield rows with the key of the next row, which is another place's."""
    for known, other in pairwise(typed):
        if known.key != other.key:
            yield known._replace(kind="key of another", row=known.row._replace(cvegeo=f"{other.key:09d}"))


class Tally:
    """Counts rows, sums their scores, and counts how many were right."""

    def __init__(self) -> None:
        self.rows = self.right = self.certain = self.certain_right = 0
        self.said = 0.0

    def add(self, score: float, *, is_right: bool, is_certain: bool) -> None:
        """Count a row."""
        self.rows += 1
        self.said += score
        self.right += is_right
        self.certain += is_certain
        self.certain_right += is_certain and is_right

    def __str__(self) -> str:
        certain = f"{self.certain_right / self.certain:.2%}" if self.certain else ""
        said, right = f"{self.said / self.rows / 100:.1%}", f"{self.right / self.rows:.1%}"
        return f"{self.rows:,} | {said} | {right} | {self.certain / self.rows:.1%} | {certain}"


def judge(index: NameIndex, rows: Iterable[KnownRow], judged: set[int]) -> dict[str, dict[str, Tally]]:
    """Match rows, and count them by score, difference and source; only answers with a key of `judged` count."""
    tables: dict[str, dict[str, Tally]] = {name: defaultdict(Tally) for name in ("score", "difference", "source")}
    for known in rows:
        result = index.match(known.row)
        if result.best is None or result.best.id not in judged:
            continue
        score = result.best.score
        low = max(bound for bound in BANDS if bound <= score)
        codes = sorted({str(fault.code) for fault in result.best.faults}) or ["none"]
        facts = {"is_right": result.best.id == known.key, "is_certain": result.id is not None}
        high = min(bound for bound in BANDS if bound > score)
        tables["score"][f"{low:g} to below {min(high, 100):g}"].add(score, **facts)
        tables["source"][known.source].add(score, **facts)
        for code in codes:
            tables["difference"][code].add(score, **facts)
    return tables


def judge_unknown(index: NameIndex, rows: Iterable[KnownRow]) -> dict[str, Tally]:
    """Match rows that no place should get, and count them by kind; one that gets its own place is right."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for known in rows:
        result = index.match(known.row)
        is_right, is_certain = result.best is not None and result.best.id == known.key, result.id is not None
        tallies[known.kind].add(result.best.score if result.best else 0.0, is_right=is_right, is_certain=is_certain)
    return tallies


def write_evidence(index: NameIndex, rows: Iterable[KnownRow], file: TextIO) -> None:
    """Write the candidates of each row, and the evidence for each of them, as lines of JSON."""
    for known in rows:
        keys, evidence = index.candidates(known.row)
        line = {"kind": known.kind, "source": known.source, "key": known.key, "keys": keys, "evidence": evidence}
        file.write(json.dumps(line) + "\n")


def print_table(title: str, table: Mapping[str, Tally]) -> None:
    """Print tallies, the highest scores first."""
    print(f"\n| {title} | rows | said | right | certain | of these right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for label, tally in sorted(table.items(), key=lambda item: -item[1].said / item[1].rows):
        print(f"| {label} | {tally} |")


def main() -> None:
    """Print the tables, or write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of the release to search")
    parser.add_argument("--names", type=Path, nargs="+", default=NAMES, help="tables of names with their keys")
    parser.add_argument("--earlier", type=Path, required=True, help="INEGI's file of an earlier release")
    parser.add_argument("--evidence", type=Path, metavar="FILE", help="write the evidence for the fit")
    options = parser.parse_args()
    catalogue, earlier = read_catalogue(options.catalogue), read_catalogue(options.earlier)
    typed = [known for path in options.names for known in known_rows(path)]
    today = {row.id for row in catalogue.localities}
    hidden = withheld_keys(typed, today)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        build_index(folder / "whole", places_of(catalogue, earlier), withdrawn_of(catalogue, earlier))
        places = (place for place in places_of(catalogue, earlier) if place.id not in hidden)
        build_index(folder / "without", places, withdrawn_of(catalogue, earlier))
        whole, without = (stack.enter_context(closing(NameIndex(folder / name))) for name in ("whole", "without"))
        unknown = [*wrong_areas(whole, typed), *fillers(whole)]
        lacking = list(withheld(catalogue, typed, hidden))
        if options.evidence:
            with options.evidence.open("w", encoding="utf-8") as file:
                known = [*typed, *poorer(typed), *seats(whole, sorted(today)), *unknown]
                write_evidence(
                    whole,
                    [
                        *known,
                        *changed(catalogue),
                        *with_keys(typed, today),
                        *keys_of_others(typed[::3]),
                        *towns(places_of(catalogue, None)),
                    ],
                    file,
                )
                write_evidence(without, lacking, file)
                write_evidence(whole, areas(whole, lacking=False), file)
                partial = folder / "partial"
                kept = (one for one in places_of(catalogue, earlier) if not _is_withheld(one.municipio_id))
                build_index(partial, kept)
                with closing(NameIndex(partial)) as index:
                    write_evidence(index, areas(whole, lacking=True), file)
            return
        # The known key of a place that is new since the earlier release may be invented.
        for title, table in judge(whole, typed, today & {row.id for row in earlier.localities}).items():
            print_table(title, table)
        no_place = judge_unknown(whole, [*unknown, *keys_of_others(typed)])
        print_table("rows that no place should get", no_place | judge_unknown(without, lacking))


if __name__ == "__main__":
    main()
