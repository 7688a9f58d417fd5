"""The goals that the figures must reach, each a ratio or a bound within one run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from benchmarks.contenders import BARE, COLD, DRF, EMPTY, FASTAPI, FIRST, LAST, NOT_MODIFIED, RANDOM, WARM
from benchmarks.downloads import COPY_CSV, COPY_JSON, CSV, NDJSON, WORKER
from benchmarks.queries import NEAREST, PAGES, PLANS, SUGGESTIONS
from benchmarks.results import Results
from benchmarks.series import Series


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on the median of a series; `unit` follows each figure."""

    title: str
    bound: Literal["at least", "at most"]
    wanted: float
    seen: Series
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether the median keeps the bound."""
        return self.seen.median >= self.wanted if self.bound == "at least" else self.seen.median <= self.wanted


def judge(results: Results) -> list[Goal]:
    """Return the goals that this run measured."""
    return [*_throughput(results), *_figures(results), *_publication(results), *_queries(results), *_downloads(results)]


def _throughput(results: Results) -> Iterator[Goal]:
    rates = results.throughput.get("requests_per_second")
    if not rates:
        return
    for key, title, wanted in (
        (COLD, "cache off", 15),
        (EMPTY, "from an empty cache", 100),
        (WARM, "warm", 300),
    ):
        for peer, name in ((DRF, "Django REST Framework"), (FASTAPI, "plain FastAPI")):
            ratio = rates[key][RANDOM].over(rates[peer][RANDOM])
            yield Goal(f"random pages, {title}, over {name}", "at least", wanted, ratio)
    warm = rates[WARM]
    yield Goal("random pages, warm, over the bare ASGI app", "at least", 0.75, warm[RANDOM].over(rates[BARE][RANDOM]))
    cold_last_page = rates[COLD][FIRST].over(rates[COLD][LAST])
    yield Goal("time of the last page over page 1, cache off", "at most", 1.1, cold_last_page)
    yield Goal("304s over page 1, warm", "at least", 1.0, warm[NOT_MODIFIED].over(warm[FIRST]))


def _figures(results: Results) -> Iterator[Goal]:
    if results.sizes:
        ratio = results.sizes["300000"].over(results.sizes["3000000"])
        yield Goal("time of a page of 3,000,000 over 300,000, cache off", "at most", 1.2, ratio)
    if results.startup:
        yield Goal("first page after the start of the process", "at most", 2, results.startup[WARM]["seconds"], " s")
    if results.memory:
        yield Goal("resident with every page held", "at most", 130, results.memory["held"], " MB")
    if results.imports:
        whole, bare = results.imports["import, whole command"], results.imports["bare COPY"]
        yield Goal("import over a bare COPY", "at most", 3, whole.over(bare))


def _publication(results: Results) -> Iterator[Goal]:
    seen = results.publication
    if seen:
        yield Goal("failed requests in a publication", "at most", 0, seen["failed"], "")
        p99 = seen["during_p99_ms"].over(seen["before_p99_ms"])
        yield Goal("p99 in a publication over p99 before", "at most", 3, p99)
        yield Goal("until both workers serve the release", "at most", 2, seen["seconds_until_seen"], " s")


def _queries(results: Results) -> Iterator[Goal]:
    seen = results.queries
    if seen:
        for group, wanted in ((SUGGESTIONS, 25), (PAGES, 5), (NEAREST, 5)):
            yield Goal(f"p95 of one client: {group}", "at most", wanted, seen[group]["p95_ms"], " ms")
        yield Goal("plans with a sequential scan over localities", "at most", 0, seen[PLANS]["sequential"], "")


def _downloads(results: Results) -> Iterator[Goal]:
    seen = results.downloads
    if seen:
        for name, copy in ((CSV, COPY_CSV), (NDJSON, COPY_JSON)):
            ratio = seen[name]["rows_per_second"].over(seen[copy]["rows_per_second"])
            yield Goal(f"rows a second of a download as {name} over {copy}", "at least", 1 / 3, ratio)
        yield Goal("growth of the worker while it gives downloads", "at most", 50, seen[WORKER]["growth_mb"], " MB")
