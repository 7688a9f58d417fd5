"""Metrics for Prometheus: names, the counters of a process, and merging those of several processes.

A process counts in plain Python. A `Snapshot` is a copy of its counters; workers share theirs (`shared_metrics`).
"""

import asyncio
from bisect import bisect_left
from collections import Counter as Counted
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, count
from time import perf_counter
from typing import Literal

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from localidades_api.observability.faults import FAULTS

Series = tuple[str, ...]  # name of a metric, then values of its labels
Snapshot = Mapping[Series, list[float]]  # one value each; for a histogram, the count of each bucket, then the sum

_PREFIX = "localidades_"
_BUCKETS = (0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5)  # seconds
_BOUNDS = [floatToGoString(bound) for bound in (*_BUCKETS, float("inf"))]  # type: ignore[no-untyped-call]  # theirs

SLEEP_INTERVAL = 0.05  # seconds; the lateness of each sleep is measured
SLEEPS_PER_SAMPLE = 20  # between two samples
_MAX_LATENESS_SAMPLES = 60  # samples, longer than a scrape interval, for which a lateness is reported

Gauges = Callable[[], Mapping[Series, float]]  # returns the gauges of one part of the service


@dataclass(frozen=True)
class _Metric:
    name: str  # without the prefix
    text: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...] = ()
    merge: Callable[[Iterable[float]], float] = sum  # merges the values of several workers

    @property
    def width(self) -> int:
        """Number of values of a series."""
        return len(_BUCKETS) + 2 if self.type == "histogram" else 1

    def family(self, series: Mapping[Series, list[float]]) -> Family:
        """Return the series of this metric as a family of the library."""
        name = f"{_PREFIX}{self.name}"
        if self.type == "histogram":
            histogram = HistogramMetricFamily(name, self.text, labels=self.labels)
            for (_, *labels), (*counts, seconds) in series.items():
                histogram.add_metric(labels, list(zip(_BOUNDS, accumulate(counts), strict=True)), seconds)
            return histogram
        family = (CounterMetricFamily if self.type == "counter" else GaugeMetricFamily)(
            name, self.text, labels=self.labels
        )
        for (_, *labels), (value,) in series.items():
            family.add_metric(labels, value)
        return family


METRICS = {
    metric.name: metric
    for metric in (
        _Metric(
            "request_duration_seconds",
            "Time from a request's headers to the end of its response, by operation and status.",
            "histogram",
            ("operation", "status"),
        ),
        _Metric("requests_in_flight", "Requests in progress.", "gauge"),
        _Metric("requests_refused_total", "Requests refused, by problem type.", "counter", ("reason",)),
        _Metric("connections", "Open client connections.", "gauge"),
        _Metric("connections_limit", "Maximum number of open client connections.", "gauge"),
        _Metric(
            "connections_closed_total",
            "Connections closed at the limit: `idle` ones to make room, and new ones that were `refused`.",
            "counter",
            ("reason",),
        ),
        _Metric("database_connections", "Connections to the database, by state.", "gauge", ("state",)),
        _Metric("database_connections_limit", "Maximum number of open connections to the database.", "gauge"),
        _Metric("database_waiting", "Requests waiting for a connection to the database.", "gauge"),
        _Metric(
            "database_errors_total",
            "Database errors, by SQLSTATE class, or `timeout`, `connection` or `descriptors` (too many open files).",
            "counter",
            ("kind",),
        ),
        _Metric("page_cache_bytes", "Bytes of memory used by cached pages.", "gauge"),
        _Metric("page_cache_pages", "Pages in the cache.", "gauge"),
        _Metric(
            "response_cache_requests_total",
            "GET requests answered with a held response (`hit`) or by routing (`miss`).",
            "counter",
            ("result",),
        ),
        _Metric(
            "page_cache_requests_total",
            "Page lookups that found the page in the cache (`hit`) or fetched it (`miss`).",
            "counter",
            ("result",),
        ),
        _Metric("release_info", "The release being served.", "gauge", ("release",), max),
        _Metric(
            "release_published_timestamp_seconds",
            "When the served release was published; 0 if there is none.",
            "gauge",
            merge=max,
        ),
        _Metric(
            "release_checked_timestamp_seconds",
            "When the releases were last read from the database; with several workers, the earliest of their times.",
            "gauge",
            merge=min,
        ),
        _Metric("event_loop_lag_seconds", "The event loop's longest delay within the last minute.", "gauge", merge=max),
    )
}


class Counters:
    """The counters of this process; only for the thread of the event loop."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.response_hits = 0
        self.response_misses = 0
        self.page_hits = 0
        self.page_misses = 0
        # Series start at 0: Prometheus's `rate` misses the event that creates a series.
        self.refused: Counted[str] = Counted({"overloaded": 0, "search-unavailable": 0, "transfers-full": 0})
        self.connections = 0
        self.connections_limit = 0
        self.connections_closed: Counted[str] = Counted({"idle": 0, "refused": 0})
        self.database_errors: Counted[str] = Counted({"connection": 0, "timeout": 0})
        self.gauges: dict[Series, float] = {}  # as last sampled
        self._durations: dict[tuple[str, int], list[float]] = {("list_localities", 200): _no_requests()}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        try:
            series = self._durations[operation, status]
        except KeyError:
            series = self._durations[operation, status] = _no_requests()
        series[bisect_left(_BUCKETS, seconds)] += 1
        series[-1] += seconds

    def snapshot(self) -> Snapshot:
        """Return a copy of all counters since the start of the process, and of the gauges."""
        return {
            **{
                ("request_duration_seconds", operation, str(status)): series.copy()
                for (operation, status), series in self._durations.items()
            },
            ("requests_in_flight",): [self.in_flight],
            ("response_cache_requests_total", "hit"): [self.response_hits],
            ("response_cache_requests_total", "miss"): [self.response_misses],
            ("page_cache_requests_total", "hit"): [self.page_hits],
            ("page_cache_requests_total", "miss"): [self.page_misses],
            **{("requests_refused_total", reason): [count] for reason, count in self.refused.items()},
            ("connections",): [self.connections],
            ("connections_limit",): [self.connections_limit],
            **{("connections_closed_total", reason): [count] for reason, count in self.connections_closed.items()},
            **{("database_errors_total", kind): [count] for kind, count in self.database_errors.items()},
            **{series: [value] for series, value in self.gauges.items()},
        }


def _no_requests() -> list[float]:
    """Return an empty histogram: the buckets, the one above the last, and the sum."""
    return [0] * (len(_BUCKETS) + 2)


COUNTERS = Counters()


def merge(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Return the metrics of several processes as those of one.

    Unknown metrics are ignored: a worker may run a newer version than this process.
    """
    found: dict[Series, list[list[float]]] = {}
    for snapshot in snapshots:
        for series, values in snapshot.items():
            if (metric := METRICS.get(series[0])) and len(values) == metric.width:
                found.setdefault(series, []).append(values)
    return {
        series: [METRICS[series[0]].merge(values) for values in zip(*each, strict=True)]
        for series, each in found.items()
    }


def without_gauges(snapshot: Snapshot) -> Snapshot:
    """Return the counters and histograms, which stay when a process has ended, because they never fall."""
    gauges = {name for name, metric in METRICS.items() if metric.type == "gauge"}
    return {series: values for series, values in snapshot.items() if series[0] not in gauges}


class _Collector(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Family]:
        by_name: dict[str, dict[Series, list[float]]] = {name: {} for name in METRICS}
        for series, values in self._snapshot.items():
            by_name[series[0]][series] = values
        for name, metric in METRICS.items():
            yield metric.family(by_name[name])


def exposition(snapshot: Snapshot) -> bytes:
    """Return metrics in Prometheus's text format."""
    return generate_latest(_Collector(snapshot))


class Sampler:
    """Samples gauges, and how late the event loop is, every second.

    A scrape reaches one worker, which answers for all, so the workers can't wait to be asked.
    """

    def __init__(self, *sources: Gauges) -> None:
        self._sources = sources

    async def run(self) -> None:
        """Sample until cancelled."""
        late = deque([0.0], maxlen=_MAX_LATENESS_SAMPLES)
        try:
            for step in count():
                if step % SLEEPS_PER_SAMPLE == 0:
                    self._sample(max(late))
                    late.append(0.0)
                    FAULTS.sweep()
                began = perf_counter()
                await asyncio.sleep(SLEEP_INTERVAL)
                late[-1] = max(late[-1], perf_counter() - began - SLEEP_INTERVAL)
        finally:
            FAULTS.sweep(everything=True)

    def _sample(self, lag: float) -> None:
        gauges: dict[Series, float] = {("event_loop_lag_seconds",): lag}
        try:
            for source in self._sources:
                gauges.update(source())
        except Exception as error:  # noqa: BLE001  # the next sample may succeed
            FAULTS.report(error, "Can't sample the gauges", traceback=True)
        else:
            COUNTERS.gauges = gauges
