"""Measures the main table: requests a second of each server, in alternating rounds on the same data."""

import json
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from http import HTTPStatus

from benchmarks.contenders import (
    BARE,
    BY_KEY,
    DEPLOYED,
    EMPTY,
    LAST,
    NGINX,
    NOT_MODIFIED,
    OURS,
    RANDOM,
    WARM,
)
from benchmarks.database import execute
from benchmarks.lab import Lab, await_pages_held
from benchmarks.peer_plans import write_peer_plans
from benchmarks.processes import PATH, BenchmarkError, Server, fetch
from benchmarks.series import Series
from benchmarks.wrk import Load, drive

# Without it each page of a peer would sort the whole table. This service keeps the order in a column.
_PEERS_INDEX = "CREATE INDEX ON localities (clave, id)"


@dataclass(frozen=True, slots=True)
class Run:
    """One contender, one target, one round."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float  # processor time of the worker for each request, in microseconds


Runs = dict[str, dict[str, list[Run]]]
Figures = dict[str, dict[str, Series]]


def prepare(lab: Lab) -> str:
    """Return the address of a copy of the data with the tables that all servers need."""
    url = lab.copy("served")
    execute(url, _PEERS_INDEX, "VACUUM (FREEZE, ANALYZE)")
    lab.write_page(url)
    return url


def measure_throughput(lab: Lab, url: str) -> dict[str, Figures]:
    """Return requests a second and p99 by contender and target, and resident memory by contender."""
    runs: Runs = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        servers = {key: stack.enter_context(lab.start(contender, url)) for key, contender in BY_KEY.items()}
        await_pages_held(servers[WARM])
        await_pages_held(servers[DEPLOYED], workers=2)
        _compare_bodies(servers, lab.pages)
        write_peer_plans(lab)
        for number in range(lab.options.rounds):
            _run_round(lab, servers, number, runs)
            _run_empty(lab, url, number, runs)
        memory = {key: {"loaded": Series.of([server.resident()])} for key, server in servers.items()}
    return {field.name: _series(runs, field.name) for field in fields(Run)} | {"resident_mb": memory}


def _compare_bodies(servers: Mapping[str, Server], pages: int) -> None:
    """Raise BenchmarkError if a peer returns other records than this service."""
    for key, server in servers.items():
        for page in (1,) if key in {BARE, NGINX} else (1, 2, pages // 2, pages):
            ours, theirs = (fetch(f"{one.base}{PATH}?page={page}").body for one in (servers[WARM], server))
            if json.loads(ours) != json.loads(theirs):
                raise BenchmarkError(f"{BY_KEY[key].title} answers page {page} with another body than this service.")


def _run_round(lab: Lab, servers: Mapping[str, Server], number: int, runs: Runs) -> None:
    """Load each server in turn, another one first in each round.

    Random pages of all servers come first, because they are compared; then the rest, server by server.
    """
    begin = number % len(servers)
    order = [*servers][begin:] + [*servers][:begin]
    rest = [(key, target) for key in order for target in BY_KEY[key].targets if target != RANDOM]
    for key, target in [*((key, RANDOM) for key in order), *rest]:
        _note(runs, key, target, _measure(lab, servers[key], target, number))


def _run_empty(lab: Lab, url: str, number: int, runs: Runs) -> None:
    """Load a server from its first answer."""
    with lab.start(OURS, url) as server:
        _note(runs, EMPTY, RANDOM, _measure(lab, server, RANDOM, number, lab.options.empty_seconds))


def _note(runs: Runs, key: str, target: str, run: Run) -> None:
    runs[key][target].append(run)
    print(f"  round {len(runs[key][target])}  {target:13} {key:8} {run.requests_per_second:10,.0f}/s", flush=True)


def _measure(lab: Lab, server: Server, target: str, seed: int, seconds: int | None = None) -> Run:
    before = server.cpu_seconds()
    load = _drive(server, target, lab.pages, seed, seconds or lab.options.seconds)
    cpu = server.cpu_seconds() - before
    return Run(load.rate, load.p50_ms, load.p99_ms, cpu / load.requests * 1e6)


def _drive(server: Server, target: str, pages: int, seed: int, seconds: int) -> Load:
    if target == RANDOM:
        return drive(server.base + PATH, seconds, pages=pages, seed=seed)
    address = f"{server.base}{PATH}?page={pages if target == LAST else 1}"
    if target != NOT_MODIFIED:
        return drive(address, seconds)
    headers = {"If-None-Match": str(fetch(address).headers["ETag"])}
    if fetch(address, headers).status != HTTPStatus.NOT_MODIFIED:
        raise BenchmarkError(f"{address} does not answer 304.")
    return drive(address, seconds, headers=headers)


def _series(runs: Runs, name: str) -> Figures:
    return {
        key: {target: Series.of([getattr(run, name) for run in series]) for target, series in targets.items()}
        for key, targets in runs.items()
    }
