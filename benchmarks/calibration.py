"""Measures how often a match is right at each score, by difference and by source (docs/reference/matching.md).

    python -m benchmarks.calibration 2018.zip --earlier 2012.zip names.tsv more_names.tsv

matches rows whose keys are known, and prints their scores beside the share that was right. `--evidence FILE` writes the
evidence for each candidate instead, for `benchmarks.fit_certainty`. The tables of names are not part of this project.
Their columns are source, estado, municipio, nombre and cvegeo, and optionally latitud and longitud.
"""

import argparse
import csv
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.names import places_of, read_catalogue, withdrawn_of
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.build import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow

BANDS = (0, 10, 30, 50, 70, 80, 85, 95, 97, 99, 100.01)  # points of a score
_OFFICIAL = "sedesol_catalogo"  # another office's list, not typed by people
_SEAT = 1  # clave


class IndexedLocality(NamedTuple):
    """A row whose key is known; `kind` says how it was made from a row of a source."""

    kind: str
    source: str
    row: MatchRow
    key: int


def known_rows(path: Path) -> Iterator[IndexedLocality]:
    """Yield the rows of a table as they were typed."""
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if cells["source"] != _OFFICIAL:
                latitud, longitud = (
                    float(cells[name]) if cells.get(name) else None for name in ("latitud", "longitud")
                )
                row = MatchRow(cells["nombre"], cells["municipio"], cells["estado"], latitud, longitud)
                yield IndexedLocality("typed", cells["source"], row, int(cells["cvegeo"]))


def poorer(rows: Iterable[IndexedLocality]) -> Iterator[IndexedLocality]:
    """Yield every other row without its municipio, and every eighth without an area."""
    for number, known in enumerate(rows):
        if number % 2:
            yield known._replace(kind="without municipio", row=MatchRow(known.row.nombre, None, known.row.estado))
        elif number % 8 == 0:
            yield known._replace(kind="without area", row=MatchRow(known.row.nombre))


def seats(index: NameIndex, keys: Iterable[int]) -> Iterator[IndexedLocality]:
    """Yield the seats of all municipios under the municipio's name and the usual short one."""
    for key in keys:
        municipio_id, clave = divmod(key, KEYS_OF_A_MUNICIPIO)
        if clave == _SEAT:
            municipio, estado = index.areas.municipios[municipio_id], index.areas.estados[municipio_id // 1000]
            yield IndexedLocality("seat", "catalogue", MatchRow(municipio, None, estado), key)
            short = re.split(r" del? ", municipio)[0]
            if short != municipio:
                yield IndexedLocality("short", "catalogue", MatchRow(short, municipio, estado), key)
                yield IndexedLocality("short", "catalogue", MatchRow(short, short, estado), key)


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


def judge(index: NameIndex, rows: Iterable[IndexedLocality], judged: set[int]) -> dict[str, dict[str, Tally]]:
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


def write_evidence(index: NameIndex, rows: Iterable[IndexedLocality], path: Path) -> None:
    """Write the candidates of each row, and the evidence for each of them, as lines of JSON."""
    with path.open("w", encoding="utf-8") as file:
        for known in rows:
            keys, evidence = index.candidates(known.row)
            line = {"kind": known.kind, "source": known.source, "key": known.key, "keys": keys, "evidence": evidence}
            file.write(json.dumps(line) + "\n")


def main() -> None:
    """Print the tables, or write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of the release to search")
    parser.add_argument("names", type=Path, nargs="+", help="tables of names with their keys")
    parser.add_argument("--earlier", type=Path, required=True, help="INEGI's file of an earlier release")
    parser.add_argument("--evidence", type=Path, metavar="FILE", help="write the evidence for the fit")
    options = parser.parse_args()
    catalogue, earlier = read_catalogue(options.catalogue), read_catalogue(options.earlier)
    typed = [known for path in options.names for known in known_rows(path)]
    with tempfile.TemporaryDirectory() as name:
        build_index(Path(name) / "names", places_of(catalogue, earlier), withdrawn_of(catalogue, earlier))
        index = NameIndex(Path(name) / "names")
        today = {row.id for row in catalogue.localities}
        if options.evidence:
            write_evidence(index, [*typed, *poorer(typed), *seats(index, sorted(today))], options.evidence)
        else:
            # The known key of a place that is new since the earlier release may be invented.
            tables = judge(index, typed, today & {row.id for row in earlier.localities})
            for title, table in tables.items():
                print(f"\n| {title} | rows | said | right | certain | of these right |")
                print("| --- | ---: | ---: | ---: | ---: | ---: |")
                for label, tally in sorted(table.items(), key=lambda item: -item[1].said / item[1].rows):
                    print(f"| {label} | {tally} |")
        index.close()


if __name__ == "__main__":
    main()
