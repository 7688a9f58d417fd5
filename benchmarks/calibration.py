"""How often a match is right at each score, on INEGI's own files (docs/reference/matching.md).

    python -m benchmarks.calibration 2018.zip --earlier 2012.zip --dirty dirty_names.tsv

prints a table for each set of rows. The earlier release's rows are matched twice: by an index that knows its names, and
by one that has the newer release only. Without the dirty names, which are no part of this project, their table is left
out.
"""

import argparse
import itertools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.names import dirty_rows, former_of, places_of, read_catalogue, rows_of, withdrawn_of
from localidades_api.importer.transform import Catalogue
from localidades_api.search.build import build_index
from localidades_api.search.index import NameIndex
from localidades_api.search.match import NONE_BELOW, SURE_SCORE
from localidades_api.search.rows import MatchResult, MatchRow

_BOUNDS = (100.0, 95.0, 90.0, SURE_SCORE, 75.0, 65.0, NONE_BELOW)  # the lowest score of each line


class Scores:
    """Counts the rows of one range of scores: how many are right, how many certain, and how many both."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = self.withdrawn = self.right = self.certain = self.certain_right = 0

    def add(self, result: MatchResult, key: int | None) -> None:
        """Count a result; `key` is the right one, None for a place that is no more."""
        is_right = result.best is not None and result.best.id == key
        self.count += 1
        self.withdrawn += key is None
        self.right += is_right
        self.certain += result.id is not None
        self.certain_right += result.id is not None and is_right

    def __str__(self) -> str:
        right, certain_right = share(self.right, self.count), share(self.certain_right, self.certain)
        return f"| {self.name} | {self.count:,} | {self.withdrawn:,} | {right} | {self.certain:,} | {certain_right} |"


def share(part: int, whole: int) -> str:
    """Return a share in percent, rounded down, so that 100 % is all; empty if there is nothing."""
    return f"{part * 1000 // whole / 10:.1f} %" if whole else ""


def calibrate(index: NameIndex, cases: Iterable[tuple[MatchRow, int | None]]) -> list[Scores]:
    """Match rows with their right keys; return the counts of each range of scores, the highest first."""
    ranges = [Scores(name) for name in range_names()]
    for row, key in cases:
        result = index.match(row)
        score = result.best.score if result.best else -1.0
        at = next((number for number, bound in enumerate(_BOUNDS) if score >= bound), len(_BOUNDS))
        ranges[at].add(result, key)
    return ranges


def range_names() -> Iterator[str]:
    """Yield what the lines of a table are called."""
    yield "100"
    for above, bound in itertools.pairwise(_BOUNDS):
        yield f"{bound:g} to below {above:g}"
    yield "no place (`none`)"


def earlier_cases(catalogue: Catalogue, earlier: Catalogue) -> Iterator[tuple[MatchRow, int | None]]:
    """Yield the rows of an earlier release with today's keys, None for places that are no more."""
    today = {row.id for row in catalogue.localities}
    successors = {former.id: id_ for id_, found in former_of(catalogue, earlier).items() for former in found}
    for row, key in rows_of(earlier):
        yield row, key if key in today else successors.get(key)


def report(title: str, ranges: Iterable[Scores]) -> None:
    """Print a table."""
    print(f"\n{title}\n")
    print("| score | rows | of withdrawn places | likeliest is right | `exact` or `sure` | of these right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", *ranges, sep="\n", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of the release to search")
    parser.add_argument("--earlier", type=Path, required=True, help="its file of an earlier release")
    parser.add_argument("--dirty", type=Path, help="a table of names as people typed them, with their keys")
    options = parser.parse_args()
    catalogue, earlier = read_catalogue(options.catalogue), read_catalogue(options.earlier)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_index(folder / "both", places_of(catalogue, earlier), withdrawn_of(catalogue, earlier))
        build_index(folder / "alone", places_of(catalogue, None), ())
        both, alone = NameIndex(folder / "both"), NameIndex(folder / "alone")
        if options.dirty:
            typed = [(row, key) for kind, row, key in dirty_rows(options.dirty) if kind != "official"]
            report("Names as people typed them", calibrate(both, typed))
        report("The earlier release's rows", calibrate(both, earlier_cases(catalogue, earlier)))
        report("The same, by the newer release alone", calibrate(alone, earlier_cases(catalogue, earlier)))
        both.close()
        alone.close()


if __name__ == "__main__":
    main()
