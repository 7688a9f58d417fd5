"""Figures for Prometheus: their names, and how those of several workers become one answer.

With several workers the supervisor names a folder in PROMETHEUS_MULTIPROC_DIR; prometheus-client then keeps every
value in a file there, and whichever worker is asked answers for all. Such a value costs a microsecond or two, which is
much beside a page that is held: what each request counts stays in plain Python until the next `Tally.flush`.
"""

import os
from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

_BUCKETS = (0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5)  # seconds
_HELD = ("list_localities", 200)  # most requests: the series is there from the start

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each that nobody asks for
_registry = CollectorRegistry()


class Durations(Histogram):
    """A histogram that takes many observations at once; the library's own takes them one by one."""

    def add(self, counts: Sequence[float], seconds: float) -> None:
        """Add observations, counted by bucket, that took so many seconds in all."""
        self._sum.inc(seconds)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)


def _gauge(name: str, text: str, mode: str, labels: Sequence[str] = ()) -> Gauge:
    return Gauge(f"localidades_{name}", text, labels, registry=_registry, multiprocess_mode=mode)  # type: ignore[arg-type]  # a literal


REQUEST_DURATION = Durations(
    "localidades_request_duration_seconds",
    "Time from the request's head to the end of its answer, by operation and status.",
    ["operation", "status"],
    registry=_registry,
    buckets=_BUCKETS,
)
REQUESTS_IN_FLIGHT = _gauge("requests_in_flight", "Requests that are being answered.", "livesum")
REQUESTS_REFUSED = Counter(
    "localidades_requests_refused_total",
    "Refused requests, by the problem they got.",
    ["reason"],
    registry=_registry,
)
DATABASE_CONNECTIONS = _gauge("database_connections", "Connections to the database, by state.", "livesum", ["state"])
DATABASE_CONNECTIONS_LIMIT = _gauge(
    "database_connections_limit", "Connections that may be open to the database.", "livesum"
)
DATABASE_WAITING = _gauge("database_waiting", "Requests that wait for a connection to the database.", "livesum")
DATABASE_ERRORS = Counter(
    "localidades_database_errors_total",
    "Errors of the database: the class of SQLSTATE, or `timeout`, or `connection`.",
    ["kind"],
    registry=_registry,
)
PAGE_CACHE_BYTES = _gauge("page_cache_bytes", "Memory that the held pages take.", "livesum")
PAGE_CACHE_PAGES = _gauge("page_cache_pages", "Pages that are held.", "livesum")
PAGE_CACHE_REQUESTS = Counter(
    "localidades_page_cache_requests_total",
    "Pages that were asked for: held (`hit`) or fetched (`miss`).",
    ["result"],
    registry=_registry,
)
RELEASE_INFO = _gauge("release_info", "The release that is served.", "livemax", ["release"])
RELEASE_PUBLISHED = _gauge(
    "release_published_timestamp_seconds", "When the served release was published; 0 before the first.", "livemax"
)
RELEASE_CHECKED = _gauge(
    "release_checked_timestamp_seconds",
    "When the releases were last read from the database; with several workers, by the one that is furthest behind.",
    "livemin",
)
RELEASE_CHECKED.set_to_current_time()  # a worker that starts has not been failing to look since 1970
EVENT_LOOP_LAG = _gauge(
    "event_loop_lag_seconds", "The longest that the event loop was late within the last minute.", "livemax"
)
for _reason in ("overloaded", "too-many-requests"):
    REQUESTS_REFUSED.labels(_reason)  # a series that begins with its first event hides it from `rate`
for _kind in ("connection", "timeout"):
    DATABASE_ERRORS.labels(_kind)


class Tally:
    """What requests count, in plain Python; only the event loop's thread may touch it."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.page_hits = 0
        self.page_misses = 0
        self.refused: Counted[str] = Counted()
        self._durations: dict[tuple[str, int], list[float]] = {_HELD: _empty()}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        try:
            series = self._durations[operation, status]
        except KeyError:
            series = self._durations[operation, status] = _empty()
        series[bisect_left(_BUCKETS, seconds)] += 1
        series[-1] += seconds

    def flush(self) -> None:
        """Add what was counted since the last time to the figures."""
        REQUESTS_IN_FLIGHT.set(self.in_flight)
        PAGE_CACHE_REQUESTS.labels("hit").inc(self.page_hits)
        PAGE_CACHE_REQUESTS.labels("miss").inc(self.page_misses)
        self.page_hits = self.page_misses = 0
        for reason, count in self.refused.items():
            REQUESTS_REFUSED.labels(reason).inc(count)
        self.refused.clear()
        durations, self._durations = self._durations, {}
        for (operation, status), (*counts, seconds) in durations.items():
            REQUEST_DURATION.labels(operation, status).add(counts, seconds)


def _empty() -> list[float]:
    """Return no request in any bucket, nor above the last, and no second."""
    return [0] * (len(_BUCKETS) + 2)


TALLY = Tally()


class _OfAllWorkers(Collector):
    def collect(self) -> Iterator[Metric]:
        folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        for metric in _merge(Path(folder)) if folder else _registry.collect():
            if metric.name == "localidades_release_info":
                # A value can be set but not taken back: releases that were served before stay, as 0.
                metric.samples = [sample for sample in metric.samples if sample.value]
            yield metric


def _merge(folder: Path) -> Iterable[Metric]:
    _forget_the_dead(folder)
    files = [str(path) for path in folder.glob("*.db") if _has_values(path)]
    return cast("Iterable[Metric]", MultiProcessCollector.merge(files))  # type: ignore[no-untyped-call]  # the library's


def _has_values(path: Path) -> bool:
    """Tell whether a file can be read: that of a worker which is just starting has no length yet."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:  # as another worker is asked at the same time
        return False


def _forget_the_dead(folder: Path) -> None:
    """Remove the gauges of workers that have ended; what they counted stays."""
    for number in {path.stem.rpartition("_")[2] for path in folder.glob("gauge_live*.db")}:
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            with suppress(FileNotFoundError):  # another worker is asked at the same time
                mark_process_dead(number, folder)  # type: ignore[no-untyped-call]  # the library's


def exposition() -> bytes:
    """Return all figures of all workers, in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_OfAllWorkers())
    return generate_latest(registry)
