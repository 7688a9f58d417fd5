"""Accuracy and speed of the index of names, on INEGI's own files (docs/decisions/names.md).

    python -m benchmarks.names 2018.zip --earlier 2012.zip

prints one table; `--show N` also lists the first N failures of each line. Speeds are of processor time, one core.
"""

import argparse
import csv
import multiprocessing
import random
import string
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.importer.extract import open_table
from localidades_api.importer.transform import CatalogueRecords, transform
from localidades_api.names.files.history import Areas, History
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace, Withdrawn
from localidades_api.names.rows import MatchResult, MatchRow

_QUERIES = Path(__file__).parent.parent / "tests" / "names" / "queries.tsv"
_DIRTY = Path(__file__).parent.parent / "tests" / "data" / "dirty_names.tsv"
_SEED = 13
_LARGEST = 2000
_LOCALITY_DIGITS = 9
_WARM = 300  # cases that are run before a measurement
_MISTYPED_LETTERS = 4  # letters of the shortest word that gets a typo


class Case(NamedTuple):
    """A text and the key of the place it names."""

    text: str
    key: int
    kinds: tuple[PlaceKind, ...] = ("localidad",)


class Outcome:
    """Counts how often the right place is first and among the first five, and keeps failures to show."""

    def __init__(self, name: str, goal: str) -> None:
        self.name, self.goal = name, goal
        self.first = self.five = self.count = 0
        self.failures: list[str] = []

    def add(self, text: str, key: int, found: Sequence[int]) -> None:
        """Count a result: keys, the likeliest first."""
        self.count += 1
        self.first += found[:1] == [key]
        self.five += key in found[:5]
        if found[:1] != [key]:
            self.failures.append(f"{text} -> {key:09d}, not {list(found[:3])}")

    def __str__(self) -> str:
        shares = f"first {self.first / self.count:.2%}, in five {self.five / self.count:.2%}"
        return line(self.name, self.count, self.goal, shares)


class Certain:
    """Counts rows with a certain outcome, and how many of these are right."""

    def __init__(self, name: str, goal: str) -> None:
        self.name, self.goal = name, goal
        self.count = self.certain = self.right = 0
        self.failures: list[str] = []

    def add(self, row: MatchRow, result: MatchResult, key: int | None) -> None:
        """Count a result; `key` is the right one, None for a withdrawn place."""
        self.count += 1
        self.certain += result.id is not None
        self.right += result.id is not None and result.id == key
        if result.id not in {None, key}:
            self.failures.append(f"{row.nombre}, {row.municipio} -> {key}, not {result.id}")

    def __str__(self) -> str:
        certain = max(self.certain, 1)
        return line(self.name, self.count, self.goal, f"{self.right / certain:.3%} of {self.certain / self.count:.1%}")


def line(name: str, count: int, goal: str, found: str) -> str:
    """Return a line of the table."""
    return f"| {name} | {count:,} | {goal} | {found} |"


# -- Places


def read_catalogue(path: Path) -> CatalogueRecords:
    """Read one of INEGI's files."""
    with open_table(path) as table:
        return transform(table, lambda _rows: None)


def places_of(catalogue: CatalogueRecords, earlier: CatalogueRecords | None) -> Iterator[IndexedPlace]:
    """Yield the places of a release, with the names and keys of an earlier one."""
    return _history(catalogue, earlier).places()


def withdrawn_of(catalogue: CatalogueRecords, earlier: CatalogueRecords) -> Iterator[Withdrawn]:
    """Yield the places of an earlier release that have neither their key nor a successor."""
    return _history(catalogue, earlier).withdrawn()


def _history(catalogue: CatalogueRecords, earlier: CatalogueRecords | None) -> History:
    history = History(catalogue.localities, Areas.of(catalogue.states.values(), catalogue.municipalities.values()))
    if earlier:
        history.add(earlier.localities, earlier.municipalities.values())
    return history


# -- Cases of suggestions


def typed_queries(path: Path) -> Iterator[Case]:
    """Yield the table of queries as people type them."""
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            kinds: tuple[PlaceKind, ...] = (
                ("localidad",) if len(row["cvegeo"]) == _LOCALITY_DIGITS else ("localidad", "municipio", "estado")
            )
            yield Case(row["query"], int(row["cvegeo"]), kinds)


def labels(index: NameIndex) -> Iterator[Case]:
    """Yield every unique label."""
    found = defaultdict(list)
    for row in range(index.layout.rows):
        place = index.place(row)
        found[index.label(place)].append(place.id)
    yield from (Case(label, ids[0]) for label, ids in found.items() if len(ids) == 1)


def largest(catalogue: CatalogueRecords) -> Iterator[Case]:
    """Yield the largest places with their estado, official or abbreviated, before or after the name."""
    rows = sorted(catalogue.localities, key=lambda row: (-(row.poblacion or 0), row.id))[:_LARGEST]
    for number, row in enumerate(rows):
        state = catalogue.states[catalogue.municipalities[row.municipio_id].estado_id]
        abbreviated = state.abreviatura or state.nombre
        name = row.nombre
        yield Case(
            (f"{name}, {state.nombre}", f"{name} {abbreviated}", f"{state.nombre} {name}", f"{abbreviated}, {name}")[
                number % 4
            ],
            row.id,
        )


def mistyped(cases: Iterable[Case], chance: random.Random) -> Iterator[Case]:
    """Yield the same cases with one letter wrong, missing, too many or swapped, in a word of four letters or more."""
    for case in cases:
        words = case.text.split(" ")
        long = [place for place, word in enumerate(words) if sum(map(str.isalpha, word)) >= _MISTYPED_LETTERS] or [0]
        place = chance.choice(long)
        words[place] = mistype(words[place], chance)
        yield case._replace(text=" ".join(words))


def mistype(word: str, chance: random.Random) -> str:
    """Return a text with one letter wrong, missing, too many or swapped."""
    at = chance.randrange(max(len(word) - 1, 1))
    letter = chance.choice(string.ascii_lowercase)
    return chance.choice(
        (
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
        )
    )


def renamed(catalogue: CatalogueRecords, earlier: CatalogueRecords) -> Iterator[Case]:
    """Yield the earlier names that have changed, with municipio and estado; `Ninguno` names nothing."""
    today = {row.id: row for row in catalogue.localities}
    for row in earlier.localities:
        same = today.get(row.id)
        if same is not None and fold(same.nombre) != fold(row.nombre) and "Ninguno" not in {row.nombre, same.nombre}:
            municipio = catalogue.municipalities[row.municipio_id]
            yield Case(f"{row.nombre}, {municipio.nombre}, {catalogue.states[municipio.estado_id].nombre}", row.id)


def unfinished(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield every beginning of the cases' texts, as a typeahead sends them."""
    for case in cases:
        yield from (case._replace(text=case.text[:length]) for length in range(1, len(case.text)))


# -- Rows to match


def rows_of(catalogue: CatalogueRecords) -> Iterator[tuple[MatchRow, int]]:
    """Yield the localities of a catalogue as rows, with their keys."""
    for row in catalogue.localities:
        municipio = catalogue.municipalities[row.municipio_id]
        yield MatchRow(row.nombre, municipio.nombre, catalogue.states[municipio.estado_id].nombre), row.id


def dirty_rows(path: Path) -> Iterator[tuple[str, MatchRow, int]]:
    """Yield names as people typed them: same, diff or official (another official copy), the row, and its key."""
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            kind = "official" if row["source"] == "sedesol_catalogo" else row["stratum"]
            yield kind, MatchRow(row["nombre"], row["municipio"], row["estado"]), int(row["cvegeo"])


# -- Measurements


class Bench:
    """Runs the measurements on one index, and prints a line for each."""

    def __init__(self, index: NameIndex, show: int) -> None:
        self._index = index
        self._show = show

    def tell(self, outcome: Outcome | Certain) -> None:
        """Print a line, and failures if requested."""
        print(outcome, flush=True)
        for failure in outcome.failures[: self._show]:
            print(f"    {failure}")

    def suggest(self, name: str, goal: str, cases: Iterable[Case]) -> None:
        """Measure the accuracy of suggestions."""
        outcome = Outcome(name, goal)
        for case in cases:
            outcome.add(case.text, case.key, [one.id for one in self._index.suggest(case.text, kinds=case.kinds)])
        self.tell(outcome)

    def match_dirty(self, path: Path) -> None:
        """Measure the accuracy of matching on names from registers."""
        outcomes = {
            "diff": Outcome("dirty names that differ", "95 %, 99.5 %"),
            "same": Outcome("dirty names that are the same", "99.5 %"),
            "official": Outcome("names of another official copy", ""),
        }
        certain = Certain("dirty names: right where certain", "99.5 % of 75 %")
        for kind, row, key in dirty_rows(path):
            result = self._index.match(row)
            outcomes[kind].add(f"{row.nombre}, {row.municipio}", key, [one.id for one in result.candidates])
            certain.add(row, result, key)
        for outcome in outcomes.values():
            self.tell(outcome)
        self.tell(certain)

    def match_earlier(self, catalogue: CatalogueRecords, earlier: CatalogueRecords) -> None:
        """Measure the accuracy of matching on the rows of an earlier release, those of withdrawn places included."""
        today = {row.id for row in catalogue.localities}
        successors = {former.id: place.id for place in places_of(catalogue, earlier) for former in place.former}
        certain = Certain("names of the earlier release: right where certain", "99.95 %")
        for row, key in rows_of(earlier):
            certain.add(row, self._index.match(row), key if key in today else successors.get(key))
        self.tell(certain)

    def speed(self, name: str, goal: str, run: Callable[[Any], object], cases: Sequence[Any]) -> None:
        """Measure cases answered per second of processor time; the files are already in memory."""
        for case in cases[:_WARM]:
            run(case)
        started = time.process_time()
        for case in cases:
            run(case)
        each = (time.process_time() - started) / len(cases)
        print(line(name, len(cases), goal, f"{1 / each:,.0f}/s, {each * 1000:.3f} ms"), flush=True)


def build(folder: Path, catalogue: CatalogueRecords, earlier: CatalogueRecords | None) -> NameIndex:
    """Build the index, open it, and print the time and size."""
    places = list(places_of(catalogue, earlier))
    withdrawn = list(withdrawn_of(catalogue, earlier)) if earlier else []
    started = time.perf_counter(), time.process_time()
    build_index(folder, places, withdrawn)
    seconds = f"{time.perf_counter() - started[0]:.1f} s, {time.process_time() - started[1]:.1f} s of processors"
    print(line("build", len(places), "15 s", seconds))
    before, opening = private_memory(), time.perf_counter()
    index = NameIndex(folder)
    seconds = f"{time.perf_counter() - opening:.3f} s, {private_memory() - before:.1f} MB"
    size = sum(path.stat().st_size for path in folder.rglob("*")) / 1e6
    print(line("open", index.layout.rows, "0.5 s", f"{seconds}; {size:.0f} MB on disk"))
    return index


def private_memory() -> float:
    """Return the private dirty memory of this process in MB; 0 where the system does not report it.

    Mapped files don't count: the system shares their pages, and takes them back when it needs memory.
    """
    rollup = Path("/proc/self/smaps_rollup")
    if not rollup.exists():
        return 0.0
    lines = [text.split() for text in rollup.read_text().splitlines()[1:]]
    return sum(int(words[1]) for words in lines if words[0] == "Private_Dirty:") / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, help="INEGI's file of the release to search")
    parser.add_argument("--earlier", type=Path, help="its file of an earlier release")
    parser.add_argument("--dirty", type=Path, default=_DIRTY, help="a table of names with their keys")
    parser.add_argument("--queries", type=Path, default=_QUERIES, help="a table of queries and their keys")
    parser.add_argument("--show", type=int, default=0, help="how many failures of each line to list")
    options = parser.parse_args()
    catalogue = read_catalogue(options.catalogue)
    earlier = read_catalogue(options.earlier) if options.earlier else None
    print("| what | cases | goal | found |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        index = build(Path(folder) / "names", catalogue, earlier)
        measure(Bench(index, options.show), index, catalogue, earlier, options)
        index.close()


def measure(
    bench: Bench,
    index: NameIndex,
    catalogue: CatalogueRecords,
    earlier: CatalogueRecords | None,
    options: argparse.Namespace,
) -> None:
    """Print all lines of accuracy and speed."""
    queries, large = list(typed_queries(options.queries)), list(largest(catalogue))
    wrong = list(mistyped(large, random.Random(_SEED)))  # noqa: S311  # a measurement that can be repeated
    bench.suggest("queries as people type them", "97 %, 99.5 %", queries)
    bench.suggest("labels typed back", "100 %", labels(index))
    bench.suggest("largest places with their estado", "99 %", large)
    bench.suggest("the same with one typo", "92 %, 98 %", wrong)
    if earlier:
        bench.suggest("names that have changed", "91 %, 98 %", renamed(catalogue, earlier))
        bench.match_earlier(catalogue, earlier)
    if options.dirty:
        bench.match_dirty(options.dirty)
    texts = [case.text for case in unfinished(queries)]
    bench.speed("suggest: beginnings", "0.4 ms", index.suggest, texts[:: len(texts) // 2000 or 1])
    bench.speed("suggest: places with their estado", "0.4 ms", index.suggest, [case.text for case in large])
    bench.speed("suggest: with one typo", "", index.suggest, [case.text for case in wrong])
    rows = [row for row, _ in rows_of(catalogue)]
    bench.speed("match: clean rows", "12,000/s", index.match, rows[::10])
    if options.dirty:
        dirty = [row for _, row, _ in dirty_rows(options.dirty)]
        bench.speed("match: dirty rows with their municipio", "2,500/s", index.match, dirty)
        bench.speed("match: the name alone", "400/s", index.match, [MatchRow(row.nombre) for row in dirty])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        growth = pool.apply(grow, (index.layout.folder, texts, rows[::50]))
    print(line("memory of one more process, its own", len(texts), "60 MB, better 25", f"{growth:.0f} MB"))


def grow(folder: Path, texts: Sequence[str], rows: Sequence[MatchRow]) -> float:
    """Return the MB by which a process grows when it opens the index, suggests and matches, without shared memory."""
    before = private_memory()
    index = NameIndex(folder)
    for text in texts:
        index.suggest(text)
    for row in rows:
        index.match(row)
    return private_memory() - before


if __name__ == "__main__":
    main()
