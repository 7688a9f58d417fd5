"""The mutation run: `make mutants`, or `make mutants ARGS="--seed 7 --count 30 --paths src/localidades_api/names"`."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from tests.mutation.coverage_map import CoverageMap, read_map
from tests.mutation.sample import draw, equivalents
from tests.mutation.selection import nearest_tests
from tests.mutation.slips import Slip
from tests.mutation.trial import FOLDER, Copy, Outcome, Verdict

OUTCOMES: tuple[Outcome, ...] = ("killed", "survived", "not run", "equivalent")


def main() -> int:
    """Print a table and the survivors; return 1 if too few slips were noticed."""
    arguments = _read_arguments()
    drawn = draw(arguments.seed, arguments.count, arguments.paths)
    print(f"{len(drawn)} slips, --seed {arguments.seed}", flush=True)
    known = read_map(workers=arguments.workers, keep=arguments.keep_map)
    verdicts = _judge(drawn, known, arguments)
    report = "\n".join([*_table(verdicts), "", *_survivors(verdicts)])
    FOLDER.joinpath("report.txt").write_text(f"--seed {arguments.seed}\n{report}\n", encoding="utf-8")
    print(f"\n{report}")
    share = _share(Counter(one.outcome for one in verdicts))
    if share < arguments.minimum:
        print(f"\n{share:.0f} % of the slips were noticed, fewer than {arguments.minimum} %.")
    return int(share < arguments.minimum)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    today = int(f"{datetime.now(UTC):%Y%m%d}")
    parser.add_argument("--seed", type=int, default=today, help="decides the sample (default: the date)")
    parser.add_argument("--count", type=int, default=300, help="of slips (default: 300)")
    parser.add_argument("--paths", nargs="+", default=[], metavar="PATH", help="only slips in these files and folders")
    parser.add_argument("--minimum", type=int, default=0, metavar="PERCENT", help="fail if fewer are noticed")
    parser.add_argument("--workers", type=int, default=2, help="trials at a time (default: 2)")
    parser.add_argument("--seconds", type=int, default=120, help="of tests for a slip, with coverage (default: 120)")
    parser.add_argument("--keep-map", action="store_true", help="use the map of coverage although the tree has changed")
    return parser.parse_args()


def _judge(drawn: list[Slip], known: CoverageMap, arguments: argparse.Namespace) -> list[Verdict]:
    marked = equivalents()
    copies: SimpleQueue[Copy] = SimpleQueue()
    for number in range(arguments.workers):
        copies.put(Copy(number))

    def judged(slip: Slip) -> Verdict:
        if slip.identity in marked:
            return Verdict(slip, "equivalent", marked[slip.identity])
        tests = nearest_tests(slip, known, arguments.seconds)
        if not tests:
            return Verdict(slip, "not run", "")
        copy = copies.get()
        try:
            verdict = copy.judge(slip, tests)
        finally:
            copies.put(copy)
        print(_described(verdict), flush=True)
        return verdict

    with ThreadPoolExecutor(arguments.workers) as pool:
        return list(pool.map(judged, drawn))


def _share(counts: Counter[Outcome]) -> float:
    """Return how many of a hundred slips were noticed, of those that change something."""
    considered = counts["killed"] + counts["survived"] + counts["not run"]
    return 100 * counts["killed"] / considered if considered else 100


def _table(verdicts: Iterable[Verdict]) -> Iterable[str]:
    folders: dict[str, Counter[Outcome]] = {}
    for verdict in verdicts:
        for folder in (_folder(verdict.slip.path), "all"):
            folders.setdefault(folder, Counter())[verdict.outcome] += 1
    yield f"| folder | {' | '.join(OUTCOMES)} | % |"
    yield f"| --- |{' ---: |' * (len(OUTCOMES) + 1)}"
    for folder, counts in sorted(folders.items(), key=lambda item: (item[0] == "all", item[0])):
        figures = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
        yield f"| {folder} | {figures} | {_share(counts):.0f} |"


def _folder(path: str) -> str:
    """Return the layer of a module, such as `names`, or the folder of another file."""
    parts = Path(path).with_suffix("").parts
    return parts[2] if path.endswith(".py") else "/".join(parts[:-1]).removeprefix("src/localidades_api/")


def _survivors(verdicts: Iterable[Verdict]) -> Iterable[str]:
    return (_described(verdict) for verdict in verdicts if verdict.outcome in {"survived", "not run"})


def _described(verdict: Verdict) -> str:
    slip = verdict.slip
    said = ", ".join(filter(None, [verdict.outcome, verdict.reason]))
    return f"{slip.path}:{slip.line} ({said})\n- {slip.before}\n+ {slip.after}\n"


if __name__ == "__main__":
    sys.exit(main())
