"""The benchmark: `make bench`, or `make bench ARGS="--quick"`."""

import argparse
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.contenders import PEERS_BIN, check_tools
from benchmarks.downloads import measure_downloads
from benchmarks.figures import measure_import, measure_memory, measure_startup, measure_walk
from benchmarks.lab import Lab, Options, open_lab, run_command
from benchmarks.machine import describe_machine
from benchmarks.processes import ROOT
from benchmarks.publication import measure_publication
from benchmarks.queries import measure_queries
from benchmarks.report import render
from benchmarks.results import Results
from benchmarks.sizes import measure_sizes
from benchmarks.throughput import measure_throughput, prepare
from localidades_api.catalogue.schemas import DEMO_RELEASE

_PARTS = ("throughput", "startup", "memory", "walk", "imports", "sizes", "publication", "queries", "downloads")


def main() -> None:
    """Measure, print the tables, write results.json, table.md and plot.svg."""
    arguments = _read_arguments()
    run_command(lambda: _report(arguments))


def _report(arguments: argparse.Namespace) -> None:
    check_tools()
    arguments.output.mkdir(parents=True, exist_ok=True)
    results = _measure(arguments)
    if results.throughput:
        _plot(arguments.output)
    print(f"\n{render(results)}\nThe figures of every round are in {arguments.output / 'results.json'}")


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help="alternating rounds (default: 5)")
    parser.add_argument("--seconds", type=int, help="of load in each round (default: 3)")
    parser.add_argument("--empty-seconds", type=int, help="of load from an empty cache (default: 10)")
    parser.add_argument("--only", choices=_PARTS, nargs="+", default=_PARTS, metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--quick", action="store_true", help="two rounds of a second, to see that all of it works")
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="a file of INEGI's to measure on (default: demo)"
    )
    parser.add_argument("--output", type=Path, help="folder (default: benchmarks/results; of a part, build/benchmarks)")
    arguments = parser.parse_args()
    for name, usual, quick in (("rounds", 5, 2), ("seconds", 3, 1), ("empty_seconds", 10, 3)):
        if getattr(arguments, name) is None:
            setattr(arguments, name, quick if arguments.quick else usual)
    if arguments.output is None:
        whole = not arguments.quick and set(arguments.only) == set(_PARTS)
        arguments.output = ROOT / "benchmarks" / "results" if whole else ROOT / "build" / "benchmarks"
    return arguments


def _measure(arguments: argparse.Namespace) -> Results:
    options = Options(arguments.rounds, arguments.seconds, arguments.empty_seconds)
    with open_lab(options, arguments.catalogue, arguments.output) as lab:
        source = arguments.catalogue.name if arguments.catalogue else DEMO_RELEASE
        results = Results(describe_machine(lab.url), {**asdict(options), "catalogue": source})
        for name, measure in _parts(lab).items():
            if name in arguments.only:
                print(f"Measuring {name}", flush=True)
                setattr(results, name, measure())
                _save(results, arguments.output)  # even if the next part fails
    return results


def _parts(lab: Lab) -> dict[str, Callable[[], object]]:
    served = prepare(lab)
    return {
        "throughput": lambda: measure_throughput(lab, served),
        "startup": lambda: measure_startup(lab, served),
        "memory": lambda: measure_memory(lab, served),
        "walk": lambda: measure_walk(lab, served),
        "imports": lambda: measure_import(lab),
        "sizes": lambda: measure_sizes(lab),
        "publication": lambda: measure_publication(lab),
        "queries": lambda: measure_queries(lab),
        "downloads": lambda: measure_downloads(lab),
    }


def _save(results: Results, folder: Path) -> None:
    results.write(folder / "results.json")
    (folder / "table.md").write_text(render(results), encoding="utf-8")


def _plot(folder: Path) -> None:
    """Draw in the peers' environment, which has matplotlib."""
    places = [str((folder / name).resolve()) for name in ("results.json", "plot.svg")]
    subprocess.run([str(PEERS_BIN / "python"), "-m", "benchmarks.plot", *places], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
