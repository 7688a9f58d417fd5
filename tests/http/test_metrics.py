"""Metrics for Prometheus, scraped from real servers with one worker and several."""

import asyncio
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from localidades_api.observability import metrics as metrics_module
from localidades_api.observability.metrics import Counters, Sampler, Series, Snapshot, exposition, merge
from tests.support.application import client_of, import_file, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.metrics import Metrics, await_metrics, read_metrics, scrape, value
from tests.support.postgres import execute, locked, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Live, ask, serving, workers_of

# Dashboards and alerts depend on these names, so they never change.
NAMES = {
    "localidades_request_duration_seconds": ("histogram", {"operation", "status"}),
    "localidades_requests_in_flight": ("gauge", set()),
    "localidades_requests_refused": ("counter", {"reason"}),
    "localidades_connections": ("gauge", set()),
    "localidades_connections_limit": ("gauge", set()),
    "localidades_connections_closed": ("counter", {"reason"}),
    "localidades_database_connections": ("gauge", {"state"}),
    "localidades_database_connections_limit": ("gauge", set()),
    "localidades_database_waiting": ("gauge", set()),
    "localidades_database_errors": ("counter", {"kind"}),
    "localidades_page_cache_bytes": ("gauge", set()),
    "localidades_page_cache_pages": ("gauge", set()),
    "localidades_page_cache_requests": ("counter", {"result"}),
    "localidades_response_cache_requests": ("counter", {"result"}),
    "localidades_release_info": ("gauge", {"release"}),
    "localidades_release_published_timestamp_seconds": ("gauge", set()),
    "localidades_release_checked_timestamp_seconds": ("gauge", set()),
    "localidades_event_loop_lag_seconds": ("gauge", set()),
}


# The operations that the first test requests, with the status.
ANSWERED = [
    ("list_localities", 200),
    ("get_locality", 404),
    ("get_readiness", 200),
    ("get_metrics", 200),
    ("static", 200),
    ("none", 404),
]


def answered(metrics: Metrics, operation: str, status: int) -> float:
    return value(metrics, "request_duration_seconds_count", operation, str(status))


@contextmanager
def serving_with_two_workers(url: str, folder: Path) -> Iterator[Live]:
    """Run a server with two workers that logs each request and has its temporary files in a folder."""
    with serving(
        url, "--workers", "2", LOCALIDADES_ACCESS_LOG="on", LOCALIDADES_LOG_FORMAT="json", TMPDIR=str(folder)
    ) as live:
        # Both workers have loaded their pages, so both have polled since they were ready.
        await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 6)
        yield live


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the temporary files of `two_workers`."""
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def two_workers(server: str, seeded: str, folder: Path) -> Iterator[Live]:
    """Yield a server with two workers, which no test may kill."""
    with new_database(server, seeded) as url, serving_with_two_workers(url, folder) as live:
        yield live


def log_lines(live: Live) -> list[dict[str, object]]:
    lines = live.output.read_text().rpartition("\n")[0].splitlines()  # the last line may be incomplete
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_metrics_are_valid_and_keep_their_names(two_workers: Live) -> None:
    for target in (LOCALIDADES, f"{LOCALIDADES}?search=a", "/nothing/s3cret", "/static/style.css", f"{LOCALIDADES}1/"):
        ask(two_workers.base, target)
    await_metrics(
        two_workers.base,
        lambda metrics: all(answered(metrics, operation, status) for operation, status in ANSWERED),
    )
    text = ask(two_workers.base, "/metrics").body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert set(families) == set(NAMES)
    for name, family in families.items():
        kind, labels = NAMES[name]
        assert (family.type, bool(family.documentation)) == (kind, True)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == labels, sample
            assert sample.value >= 0
    durations = families["localidades_request_duration_seconds"].samples
    for operation, status in {(sample.labels["operation"], sample.labels["status"]) for sample in durations}:
        series = [s for s in durations if s.labels["operation"] == operation and s.labels["status"] == status]
        buckets = [sample.value for sample in series if "le" in sample.labels]
        assert buckets == sorted(buckets)
        assert len(buckets) == 11
        assert buckets[-1] == next(sample.value for sample in series if sample.name.endswith("_count"))
    assert "s3cret" not in text


def test_metrics_say_when_the_release_was_published_and_checked(two_workers: Live) -> None:
    metrics = scrape(two_workers.base)
    [release] = json.loads(ask(two_workers.base, "/api/census/releases/", ("Accept", "application/json")).body)[
        "results"
    ]
    published = datetime.fromisoformat(release["published_at"]).timestamp()
    assert value(metrics, "release_published_timestamp_seconds") == pytest.approx(published, abs=0.001)
    assert value(metrics, "release_checked_timestamp_seconds") == pytest.approx(time.time(), abs=PATIENCE)


def test_metrics_of_all_workers_are_summed(two_workers: Live) -> None:
    def logged() -> int:
        return sum(
            (line.get("operation"), line.get("status")) == ("list_localities", 200) for line in log_lines(two_workers)
        )

    for number in range(60):
        assert ask(two_workers.base, f"{LOCALIDADES}?page={number % 3 + 1}").status == 200
    assert ask(two_workers.base, LOCALIDADES, ("If-None-Match", "*")).status == 304
    await_metrics(
        two_workers.base,
        lambda metrics: (
            answered(metrics, "list_localities", 200) == logged() >= 60
            and answered(metrics, "list_localities", 304) == 1
            and value(metrics, "release_info", "2020-01") == 1
        ),
    )
    seen = [scrape(two_workers.base) for _ in range(40)]
    assert {answered(metrics, "list_localities", 200) for metrics in seen} == {logged()}
    assert {answered(metrics, "list_localities", 304) for metrics in seen} == {1}
    assert {value(metrics, "database_connections_limit") for metrics in seen} == {20}
    assert {value(metrics, "release_info", "2020-01") for metrics in seen} == {1}

    def both_have_answered(operation: str) -> bool:
        ids = {str(line["id"]) for line in log_lines(two_workers) if line.get("operation") == operation}
        return len({id_.partition("-")[0] for id_ in ids}) == 2

    for operation in ("get_metrics", "list_localities"):
        eventually(partial(both_have_answered, operation))


@pytest.mark.tail
def test_counters_of_a_killed_worker_are_kept_and_its_gauges_dropped(seeded_database: str, tmp_path: Path) -> None:
    with serving_with_two_workers(seeded_database, tmp_path) as live:
        for _ in range(20):
            ask(live.base, LOCALIDADES)
        before = await_metrics(live.base, lambda metrics: answered(metrics, "list_localities", 200) >= 20)
        os.kill(workers_of(live)[0], signal.SIGKILL)
        log = live.output
        eventually(lambda: log.read_text().count("Application startup complete") >= 3, otherwise=log.read_text)
        time.sleep(1.5)
        after = await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 6)
        assert value(after, "database_connections_limit") == 20
        assert answered(after, "list_localities", 200) == answered(before, "list_localities", 200)
        assert time.time() - value(after, "release_checked_timestamp_seconds") < 20


def test_metrics_show_cached_pages_of_the_current_release_only(seeded_database: str, tmp_path: Path) -> None:
    with serving(seeded_database) as live:
        first = await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 3)
        assert 3 * 1000 < value(first, "page_cache_bytes") < 64 * 1024**2
        fetched = value(first, "page_cache_requests_total", "miss")
        for _ in range(5):
            ask(live.base, LOCALIDADES)
        metrics = scrape(live.base)
        assert value(metrics, "page_cache_requests_total", "miss") == fetched
        assert value(metrics, "response_cache_requests_total", "hit") >= 4
        assert answered(metrics, "list_localities", 200) >= 5
        file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140))
        import_file(seeded_database, file)
        before = ("release_info", frozenset({"2020-01"}))
        after = await_metrics(
            live.base, lambda metrics: value(metrics, "release_info", "2021-01") == 1 and before not in metrics
        )
        published = "release_published_timestamp_seconds"
        assert value(first, published) < value(after, published) <= time.time()


def test_fetched_page_counts_as_a_miss(seeded_database: str) -> None:
    with serving(seeded_database, LOCALIDADES_PAGE_CACHE_BYTES="0") as live:
        for number in (1, 2, 3, "03"):
            ask(live.base, f"{LOCALIDADES}?page={number}")
        metrics = scrape(live.base)
        assert value(metrics, "page_cache_requests_total", "miss") == 4
        assert value(metrics, "page_cache_requests_total", "hit") == 0
        assert answered(metrics, "list_localities", 200) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="no prlimit")
def test_worker_that_cannot_share_its_metrics_keeps_serving(seeded_database: str, tmp_path: Path) -> None:
    """Writes are truncated or refused, as on a full disk."""
    with serving_with_two_workers(seeded_database, tmp_path) as live:
        before = answered(scrape(live.base), "list_localities", 200)
        for limit in (1024**2 + 100, resource.RLIM_INFINITY):
            for worker in workers_of(live):
                resource.prlimit(worker, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            for _ in range(20):
                assert ask(live.base, LOCALIDADES).status == 200
                assert answered(scrape(live.base), "list_localities", 200) >= before
        await_metrics(live.base, lambda metrics: answered(metrics, "list_localities", 200) == before + 40)
        eventually(lambda: "Can't share the metrics" in live.output.read_text())


def test_metrics_snapshots_of_another_version_are_ignored() -> None:
    """The workers of an upgraded installation may have other metrics than those that they replace."""
    ours: Snapshot = {("database_waiting",): [1], ("request_duration_seconds", "a", "200"): [1.0] * 12}
    theirs: Snapshot = {("database_waiting",): [2], ("request_duration_seconds", "a", "200"): [1.0] * 9, ("new",): [3]}
    merged = {("database_waiting",): [3], ("request_duration_seconds", "a", "200"): [1.0] * 12}
    assert merge([ours, theirs]) == merged


async def metrics_of(client: httpx.AsyncClient) -> Metrics:
    return read_metrics((await client.get("/metrics")).text)


def test_requests_waiting_for_a_connection_are_counted(seeded_database: str) -> None:
    settings = {"POOL_SIZE": "1", "DATABASE_TIMEOUT": "60", "RELEASE_POLL": "60", "PAGE_CACHE_BYTES": "0"}
    with (
        serving(seeded_database, **{f"LOCALIDADES_{name}": value for name, value in settings.items()}) as live,
        ThreadPoolExecutor(3) as clients,
    ):
        with locked(seeded_database, "localities"):
            asking = [clients.submit(ask, live.base, f"{LOCALIDADES}?page={page}") for page in (1, 2, 3)]
            metrics = await_metrics(
                live.base,
                lambda metrics: value(metrics, "database_waiting") == 2 and value(metrics, "requests_in_flight") == 4,
            )
            assert value(metrics, "database_connections", "in_use") == 1
            assert value(metrics, "database_connections_limit") == 1
        assert {one.result().status for one in asking} == {200}
        metrics = await_metrics(live.base, lambda metrics: value(metrics, "database_waiting") == 0)
        assert value(metrics, "database_connections", "idle") == 1


@pytest.mark.parametrize("kind", ["connection", "42"])
async def test_errors_of_the_database_are_counted_by_kind(seeded_database: str, kind: str) -> None:
    if kind == "42":
        execute(seeded_database, "ALTER TABLE localities RENAME COLUMN nombre TO apellido")
    url = seeded_database if kind == "42" else "postgresql://x@/x?host=/nowhere"
    async with running_app(url, release_poll=60) as app, client_of(app) as client:
        await asyncio.sleep(0.5)
        before = value(await metrics_of(client), "database_errors_total", kind)
        assert (await client.get(LOCALIDADES)).status_code >= 500
        assert value(await metrics_of(client), "database_errors_total", kind) == before + 1


def test_series_start_at_zero() -> None:
    families = list(text_string_to_metric_families(exposition(Counters().snapshot()).decode()))
    assert {sample.value for family in families for sample in family.samples} == {0.0}


def test_request_duration_is_observed_in_a_histogram() -> None:
    counters = Counters()
    for seconds in (0.0002, 0.0007, 0.02, 0.2, 4.0):
        counters.count("get_locality", 200, seconds)
    samples = [
        sample
        for family in text_string_to_metric_families(exposition(counters.snapshot()).decode())
        for sample in family.samples
        if sample.labels.get("operation") == "get_locality"
    ]
    counts = {float(sample.labels["le"]): sample.value for sample in samples if "le" in sample.labels}
    shown = {0.0001: 0, 0.00025: 1, 0.001: 2, 0.01: 2, 0.025: 3, 0.1: 3, 0.25: 4, 2.5: 4, math.inf: 5}
    assert {bound: counts[bound] for bound in shown} == shown
    (seconds,) = (sample.value for sample in samples if sample.name.endswith("_sum"))
    assert seconds == pytest.approx(4.2209)


async def test_event_loop_lag_covers_the_last_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_module, "SLEEP_INTERVAL", 0.001)
    monkeypatch.setattr(metrics_module, "SLEEPS_PER_SAMPLE", 1)
    monkeypatch.setattr(metrics_module, "COUNTERS", counters := Counters())
    shown: list[float] = []

    def note_what_is_shown() -> dict[Series, float]:
        shown.append(counters.gauges.get(("event_loop_lag_seconds",), 0.0))
        return {}

    sampling = asyncio.create_task(Sampler(note_what_is_shown).run())
    try:
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251  # as a bug of the service would
        async with asyncio.timeout(PATIENCE):
            while not (max(shown, default=0) > 0.4 and shown[-1] < 0.4):  # noqa: ASYNC110  # it is sampled
                await asyncio.sleep(0.01)
    finally:
        sampling.cancel()
    assert sum(lag > 0.4 for lag in shown) >= 60


def test_gauges_of_workers_are_summed_or_the_worst_is_shown() -> None:
    """A worker that hasn't read the releases for an hour must not be hidden by one that has."""
    of_one: Snapshot = {
        ("database_connections", "in_use"): [3],
        ("release_info", "2021-01"): [1],
        ("release_published_timestamp_seconds",): [500],
        ("release_checked_timestamp_seconds",): [1000],
        ("event_loop_lag_seconds",): [0.5],
    }
    of_another: Snapshot = {
        ("database_connections", "in_use"): [4],
        ("release_info", "2021-01"): [1],
        ("release_published_timestamp_seconds",): [0],
        ("release_checked_timestamp_seconds",): [900],
        ("event_loop_lag_seconds",): [0.1],
    }
    assert merge([of_one, of_another]) == {
        ("database_connections", "in_use"): [7],
        ("release_info", "2021-01"): [1],
        ("release_published_timestamp_seconds",): [500],
        ("release_checked_timestamp_seconds",): [900],
        ("event_loop_lag_seconds",): [0.5],
    }


async def test_gauge_that_cannot_be_read_does_not_stop_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "SLEEP_INTERVAL", 0.001)
    monkeypatch.setattr(metrics_module, "SLEEPS_PER_SAMPLE", 1)
    monkeypatch.setattr(metrics_module, "COUNTERS", counters := Counters())
    faults = iter([True])

    def read_gauge() -> dict[Series, float]:
        if next(faults, False):
            raise RuntimeError
        return {("database_waiting",): 4}

    sampling = asyncio.create_task(Sampler(read_gauge).run())
    try:
        async with asyncio.timeout(PATIENCE):
            # Another application of the tests may be sampled meanwhile.
            while counters.gauges.get(("database_waiting",)) != 4:  # noqa: ASYNC110  # it is sampled
                await asyncio.sleep(0.01)
    finally:
        sampling.cancel()
