"""Processor time of suggestions and matches that are in no cache (docs/decisions/names.md).

    python -m benchmarks.first_time INDEX --dirty dirty_names.tsv

`INDEX` is the folder of an index, such as the service keeps in its cache folder. The texts are drawn from it, by
population and with a fixed seed: beginnings of names, with and without an area; and names with one typo. The dirty
names are those that differ from the catalogue's. Each part has a new process, which is asked everything once.
`--answers` writes all answers, to compare those of two versions.
"""

import argparse
import multiprocessing
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.names import Case, dirty_rows, mistyped
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE
from localidades_api.names.index import NameIndex

_SEED = 49
_TEXTS = 2000
_LENGTHS = range(2, 9)  # letters of a beginning
_SHARES = (0.5, 0.95, 0.99)  # of the answers

_KINDS = {"kinds": ("localidad", "municipio", "estado")}  # as the front page asks


def beginnings(index: NameIndex, chance: random.Random) -> Iterator[str]:
    """Yield beginnings of names, alone and before an area, and beginnings of areas behind a whole name."""
    for nombre, area in _names(index, chance):
        length = chance.choice(_LENGTHS)
        yield chance.choice((nombre[:length], f"{nombre[:length]} {area}", f"{nombre}, {area[:length]}"))


def misspelt(index: NameIndex, chance: random.Random) -> Iterator[str]:
    """Yield names with one letter wrong, missing, too many or swapped: every other one with an area behind it."""
    for nombre, area in _names(index, chance):
        yield from (case.text for case in mistyped([Case(chance.choice((nombre, f"{nombre}, {area}")), 0)], chance))


def _names(index: NameIndex, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield names without end, each with the municipio or the estado of its place."""
    populations = [max(0, index.layout.record(row)[1]) for row in range(index.layout.rows)]
    while True:
        for row in chance.choices(range(index.layout.rows), populations, k=_TEXTS):
            id_, nombre, _ = index.layout.name(row)
            municipio_id = id_ // KEYS_OF_A_MUNICIPIO
            yield (
                nombre,
                chance.choice(
                    (index.areas.municipios[municipio_id], index.areas.estados[municipio_id // KEYS_OF_A_STATE])
                ),
            )


def _distinct(texts: Iterator[str]) -> list[str]:
    """Return the first texts, each once."""
    found: dict[str, None] = {}
    while len(found) < _TEXTS:
        found |= dict.fromkeys(islice(texts, _TEXTS - len(found)))
    return list(found)


def ask(folder: Path, method: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return the milliseconds of processor time for each argument of a method, and the answer."""
    run = partial(getattr(NameIndex(folder), method), **options)
    found = []
    for argument in arguments:
        started = time.process_time_ns()
        answer = run(argument)
        found.append(((time.process_time_ns() - started) / 1e6, repr(answer)))
    return found


def main() -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path, help="the folder of an index")
    parser.add_argument("--dirty", type=Path, help="a table of names as people typed them, with their keys")
    parser.add_argument("--answers", type=Path, help="the file to write all answers to")
    options = parser.parse_args()
    index, chance = NameIndex(options.index), random.Random(_SEED)  # noqa: S311  # the same in every run
    begun, wrong = (_distinct(texts(index, chance)) for texts in (beginnings, misspelt))
    parts: dict[str, tuple[str, Sequence[Any], Mapping[str, Any]]] = {
        "suggest: beginnings": ("suggest", begun, {}),
        "suggest: with one typo": ("suggest", wrong, {}),
        "suggest: both, with municipios and estados": ("suggest", [*begun, *wrong], _KINDS),
    }
    if options.dirty:
        differing = [row for kind, row, _ in dirty_rows(options.dirty) if kind == "diff"]
        parts["match: rows that differ"] = ("match", list(dict.fromkeys(differing)), {})
    answers = []
    print("| what | times | p50, p95, p99, mean: ms |\n| --- | --- | --- |")
    for name, (method, arguments, more) in parts.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(ask, (options.index, method, arguments, more))
        ranked = sorted(milliseconds for milliseconds, _ in found)
        times = [*(ranked[int(share * len(ranked))] for share in _SHARES), sum(ranked) / len(ranked)]
        print(f"| {name} | {len(ranked):,} | {', '.join(f'{one:.3f}' for one in times)} |", flush=True)
        answers += [f"{argument!r}\t{answer}\n" for argument, (_, answer) in zip(arguments, found, strict=True)]
    if options.answers:
        options.answers.write_text("".join(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
