"""The benchmark: `make bench`, or `make bench ARGS="--quick"`; prints Markdown tables."""

import argparse
import http.client
import json
import os
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from benchmarks import import_vs_copy
from benchmarks.requests import NEAREST, PAGES, SUGGESTIONS, draw, read_places
from benchmarks.servers import (
    CONTENDERS,
    DEPLOYED,
    DRF,
    FIRST,
    LAST,
    NGINX,
    OURS,
    PATH,
    RANDOM,
    UNCACHED,
    BenchmarkError,
    Contender,
    Server,
    check_tools,
    clone,
    count_localities,
    execute,
    fetch,
    read_rows,
    run_command,
    seeded_postgres,
    start,
)
from benchmarks.wrk import drive
from localidades_api.catalogue.pagination import count_pages

# Without it each page of a peer would sort the whole table. This service keeps the order in a column.
_PEERS_INDEX = "CREATE INDEX ON localities (clave, id)"


@dataclass(frozen=True, slots=True)
class Lab:
    """What all measurements share: `url` is the seeded database, which is only copied."""

    folder: Path
    url: str
    rounds: int
    seconds: int  # of load


@dataclass(frozen=True, slots=True)
class Run:
    """One contender, one target, one round."""

    rate: float  # requests a second
    p99_ms: float
    cpu_us: float  # processor time of the worker for each request


Runs = Mapping[tuple[Contender, str], list[Run]]


def measure_throughput(lab: Lab) -> Iterator[str]:
    """Yield a table of requests a second of each server, from alternating rounds on the same data."""
    url = clone(lab.url, "served")
    execute(url, _PEERS_INDEX, "VACUUM (FREEZE, ANALYZE)")
    pages = count_pages(count_localities(url))
    runs: dict[tuple[Contender, str], list[Run]] = defaultdict(list)
    with ExitStack() as stack:
        servers = {one: stack.enter_context(start(one, url, lab.folder)) for one in CONTENDERS if one is not NGINX}
        (lab.folder / "page.json").write_bytes(fetch(servers[OURS].base + PATH).body)
        servers[NGINX] = stack.enter_context(start(NGINX, url, lab.folder))
        servers[OURS].await_pages_held()
        servers[DEPLOYED].await_pages_held(workers=2)
        _compare_bodies(servers, pages)
        for number in range(lab.rounds):
            begin = number % len(CONTENDERS)  # another one first in each round
            for target in (RANDOM, FIRST, LAST):
                for contender in (*CONTENDERS[begin:], *CONTENDERS[:begin]):
                    if target in contender.targets:
                        run = _load(servers[contender], target, pages, number, lab.seconds)
                        runs[contender, target].append(run)
                        print(f"  round {number + 1}  {target:13} {contender.title:52} {run.rate:10,.0f}/s", flush=True)
    yield from _table(
        ("requests a second", RANDOM, FIRST, LAST, "p99, ms", "worker's CPU, µs", "× DRF"),
        [_describe(contender, runs) for contender in CONTENDERS],
    )


def _compare_bodies(servers: Mapping[Contender, Server], pages: int) -> None:
    """Raise BenchmarkError if a peer answers with other records than this service."""
    for contender, server in servers.items():
        for page in (1,) if contender is NGINX else (1, 2, pages // 2, pages):
            ours, theirs = (json.loads(fetch(f"{one.base}{PATH}?page={page}").body) for one in (servers[OURS], server))
            if ours != theirs:
                raise BenchmarkError(f"{contender.title} answers page {page} with another body than this service.")


def _load(server: Server, target: str, pages: int, seed: int, seconds: int) -> Run:
    before = server.cpu_seconds()
    if target == RANDOM:
        load = drive(server.base + PATH, seconds, pages=pages, seed=seed)
    else:
        load = drive(f"{server.base}{PATH}?page={pages if target == LAST else 1}", seconds)
    return Run(load.rate, load.p99_ms, (server.cpu_seconds() - before) / load.requests * 1e6)


def _describe(contender: Contender, runs: Runs) -> list[str]:
    rates = {target: [run.rate for run in runs[contender, target]] for target in contender.targets}
    random = runs[contender, RANDOM]
    # Other load on the machine slows both servers of a round.
    ratios = [ours.rate / theirs.rate for ours, theirs in zip(random, runs[DRF, RANDOM], strict=True)]
    return [
        contender.title,
        *(_spread(rates.get(target, [])) for target in (RANDOM, FIRST, LAST)),
        _spread([run.p99_ms for run in random], 1),
        _spread([run.cpu_us for run in random]),
        f"{statistics.median(ratios):,.1f}",
    ]


def measure_first_requests(lab: Lab) -> Iterator[str]:
    """Yield a table of the waits of one client whose requests are in no cache, each round with a new server."""
    url = clone(lab.url, "requested")
    places = read_places(url)
    waits: dict[str, list[list[float]]] = defaultdict(list)
    for number in range(lab.rounds):
        with start(OURS, url, lab.folder) as server:
            server.await_pages_held()
            chance = Random(number)  # noqa: S311  # the same requests in every run
            for kind, targets in draw(places, chance).items():
                waits[kind].append(_ask(server, targets))
    yield from _table(
        ("one client, ms", "p50", "p95", "p99"),
        [
            [kind, *(_spread([times[len(times) * percent // 100] for times in rounds], 2) for percent in (50, 95, 99))]
            for kind, rounds in ((kind, waits[kind]) for kind in (SUGGESTIONS, PAGES, NEAREST))
        ],
    )


def _ask(server: Server, targets: Sequence[str]) -> list[float]:
    """Return the milliseconds until each answer was complete, sorted; requests follow each other."""
    waits = []
    with closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=10)) as connection:
        for target in targets:
            started = time.perf_counter()
            connection.request("GET", target)
            response = connection.getresponse()
            body = response.read()
            waits.append((time.perf_counter() - started) * 1000)
            if response.status != HTTPStatus.OK:
                raise BenchmarkError(f"{target} was answered with {response.status}: {body[:500]!r}")
    return sorted(waits)


def measure_start(lab: Lab) -> Iterator[str]:
    """Yield a table of seconds to the first page, and of memory with the page cache off and warm."""
    url = clone(lab.url, "started")
    rows = []
    for contender in (UNCACHED, OURS):
        seconds, memory = [], []
        for _ in range(lab.rounds):
            with start(contender, url, lab.folder) as server:
                seconds.append(server.seconds)
                if contender is OURS:
                    server.await_pages_held()
                memory.append(server.resident())
        rows.append([contender.title, _spread(seconds, 2), _spread(memory)])
    yield from _table(("", "first page, s", "memory of a worker, MB"), rows)


def measure_import(lab: Lab) -> Iterator[str]:
    """Yield a table of seconds of an import over the release before it, and of bare COPYs of its rows."""
    times = import_vs_copy.measure(lab.folder, lab.rounds, lab.url)
    command = times[import_vs_copy.IMPORT]
    rows = [
        [name, _spread(seconds, 2), f"{statistics.median(c / s for c, s in zip(command, seconds, strict=True)):.2f}"]
        for name, seconds in times.items()
    ]
    yield from _table(("304,400 localities", "s", "the import takes × as long"), rows)


_PARTS: dict[str, Callable[[Lab], Iterator[str]]] = {
    "throughput": measure_throughput,
    "requests": measure_first_requests,
    "start": measure_start,
    "import": measure_import,
}


def _spread(rounds: Sequence[float], digits: int = 0) -> str:
    """Return the median, and half of what lies between the lowest and the highest."""
    if not rounds:
        return ""
    median = statistics.median(rounds)
    return f"{median:,.{digits}f} ± {(max(rounds) - min(rounds)) / 2 / median * 100:.0f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}")
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _machine(url: str) -> str:
    cpu = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {cpu.partition(': ')[2]}, {os.cpu_count()} cores, Python"
        f" {platform.python_version()}, PostgreSQL {read_rows(url, 'SHOW server_version')[0][0]}"
    )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help="alternating rounds (default: 5)")
    parser.add_argument("--seconds", type=int, help="of load in each round (default: 3)")
    parser.add_argument("--only", choices=_PARTS, nargs="+", default=_PARTS, metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--quick", action="store_true", help="one round, to see that all of it works")
    parser.add_argument("--catalogue", type=Path, metavar="FILE", help="a file of INEGI's (default: the demo)")
    arguments = parser.parse_args()
    rounds, seconds = (1, 3) if arguments.quick else (5, 3)

    def measure() -> None:
        check_tools()
        with seeded_postgres(arguments.catalogue) as (folder, url):
            lab = Lab(folder, url, arguments.rounds or rounds, arguments.seconds or seconds)
            lines = [_machine(url)]
            for name in arguments.only:
                print(f"Measuring {name}", flush=True)
                lines += _PARTS[name](lab)
            print("\n".join(lines))

    run_command(measure)


if __name__ == "__main__":
    main()
