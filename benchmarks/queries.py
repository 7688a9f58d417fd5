"""Measures suggestions, filtered pages and nearest places: the waits of one client, the rate of sixteen, and the plans.

One client sends one request after another over one connection, as a person who types does. Each round has a new server,
so that no filter is cached except those that the service prepares, and other requests.
"""

import http.client
import json
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from urllib.parse import urlsplit

from benchmarks.contenders import OURS
from benchmarks.lab import Lab, await_pages_held
from benchmarks.plans import explain, write_plans
from benchmarks.processes import PATH, BenchmarkError, Server
from benchmarks.series import Series
from benchmarks.workloads import (
    ANYWHERE,
    MISTYPED,
    NEAR,
    SCOPED,
    TYPED,
    Place,
    filters,
    nearest,
    read_places,
    suggestions,
)
from benchmarks.wrk import drive

SUGGESTIONS, PAGES = "suggestions", "filtered pages"
NEW, KNOWN = "of a filter not asked for before", "of one asked for before"
NEAREST, FAR = f"nearest, {NEAR}", f"nearest, {ANYWHERE}"
_WHOLE = (SUGGESTIONS, PAGES, NEAREST, FAR)  # the other groups are parts of these, and are not sent by sixteen clients
_GROUPS = (
    SUGGESTIONS,
    *(f"{SUGGESTIONS}, {kind}" for kind in (TYPED, MISTYPED, SCOPED)),
    PAGES,
    *(f"{PAGES}, {kind}" for kind in (NEW, KNOWN)),
    NEAREST,
    FAR,
)
PLANS = "query plans"
_PAGES_MORE = 2  # of each filter, in addition to the first
_FILES = ("csv", "excel", "ndjson", "geojson", "xlsx")

_Answers = list[tuple[str, float]]  # target, and milliseconds until its answer was complete


def measure_queries(lab: Lab) -> dict[str, dict[str, Series]]:
    """Return percentiles and requests a second by group of requests, and how many plans read whole tables."""
    url = lab.copy("queries")
    places = read_places(url)
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    targets = _files()
    for number in range(lab.options.rounds):
        with lab.start(OURS, url) as server:
            await_pages_held(server)
            asked = _ask_everything(server, places, Random(number))  # noqa: S311  # the same in every run
            for group, answers in asked.items():
                load = _load(lab, server, answers) if group in _WHOLE else {}
                for name, value in {**_percentiles(answers), **load}.items():
                    figures[group][name].append(value)
                told = "  ".join(f"{name} {values[-1]:,.2f}" for name, values in figures[group].items())
                print(f"  round {number + 1}  {group:46} {told}", flush=True)
        if not number:
            targets |= {group: [target for target, _ in asked[group]] for group in _WHOLE}
    plans = explain(url, targets)
    write_plans(plans, lab.output / "plans.txt")
    figures[PLANS]["sequential"] = [sum(plan.is_sequential for plan in plans)]
    return {group: {name: Series.of(values) for name, values in kinds.items()} for group, kinds in figures.items()}


@dataclass(frozen=True, slots=True)
class _Client:
    """Sends requests over one connection, and records the groups of each."""

    connection: http.client.HTTPConnection
    asked: dict[str, _Answers] = field(default_factory=lambda: {group: [] for group in _GROUPS})

    def ask(self, target: str, *groups: str) -> bytes:
        started = time.perf_counter()
        self.connection.request("GET", target)
        response = self.connection.getresponse()
        body = response.read()
        waited = (time.perf_counter() - started) * 1000
        if response.status != HTTPStatus.OK:
            raise BenchmarkError(f"{target} was answered with {response.status}: {body[:500]!r}")
        for group in groups:
            self.asked[group].append((target, waited))
        return body


def _ask_everything(server: Server, places: list[Place], chance: Random) -> dict[str, _Answers]:
    with closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=10)) as connection:
        client = _Client(connection)
        for kind, target in _shuffled(suggestions(places, chance), chance):
            client.ask(target, SUGGESTIONS, f"{SUGGESTIONS}, {kind}")
        met = set()
        for chosen in filters(places, chance):
            target = f"{PATH}?{chosen}"
            body = client.ask(target, PAGES, f"{PAGES}, {KNOWN if chosen in met else NEW}")
            met.add(chosen)
            for _ in range(_PAGES_MORE):
                page = chance.randint(1, json.loads(body)["total_pages"] or 1)
                client.ask(f"{target}&page={page}", PAGES, f"{PAGES}, {KNOWN}")
        for kind, target in _shuffled(nearest(places, chance), chance):
            client.ask(target, f"nearest, {kind}")
    return client.asked


def _shuffled(requests: Iterable[tuple[str, str]], chance: Random) -> list[tuple[str, str]]:
    every = list(requests)
    return chance.sample(every, len(every))


def _percentiles(answers: _Answers) -> dict[str, float]:
    waits = sorted(waited for _, waited in answers)
    named = {f"p{percent}_ms": waits[len(waits) * percent // 100] for percent in (50, 95, 99)}
    return {**named, "max_ms": waits[-1]}


def _load(lab: Lab, server: Server, answers: _Answers) -> dict[str, float]:
    """Return requests a second of sixteen connections with the same requests."""
    targets = lab.folder / "targets.txt"
    targets.write_text("".join(f"{target}\n" for target, _ in answers))
    return {"requests_per_second": drive(server.base, lab.options.seconds, targets=targets).rate}


def _files() -> dict[str, list[str]]:
    """Return downloads, whose plans are checked as well."""
    formats = [f"{PATH}download/?format={name}" for name in _FILES]
    return {"downloads": [*formats, f"{formats[0]}&municipio_id=1001"]}
