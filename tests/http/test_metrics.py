"""Metrics for Prometheus, scraped from real servers with one worker and several."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from localidades_api.observability import metrics as metrics_module
from localidades_api.observability.metrics import Counters, Sampler, Series, Snapshot, exposition, merge
from localidades_api.observability.shared_metrics import SharedMetrics
from tests.support.application import client_of, import_file, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.metrics import Metrics, await_metrics, read_metrics, scrape, value
from tests.support.postgres import execute, locked, new_database
from tests.support.waiting import PATIENCE, eventually, eventually_async
from tests.support.wire import LOCALIDADES, ROOT, Live, ask, environment, serving

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


def answered(metrics: Metrics, operation: str, status: int) -> float:
    return value(metrics, "request_duration_seconds_count", operation, str(status))


@pytest.fixture(scope="module")
def two_workers(server: str, seeded: str) -> Iterator[Live]:
    """Yield a server with two workers that logs each request."""
    settings = {"LOCALIDADES_ACCESS_LOG": "on", "LOCALIDADES_LOG_FORMAT": "json"}
    with new_database(server, seeded) as url, serving(url, "--workers", "2", **settings) as live:
        # Both workers have loaded their pages, so both have polled since they were ready.
        await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 6)
        yield live


@pytest.fixture(scope="module")
def one_connection(server: str, seeded: str) -> Iterator[tuple[Live, str]]:
    """Yield a server with one connection to its database, and the database's URL."""
    settings = {"LOCALIDADES_POOL_SIZE": "1", "LOCALIDADES_DATABASE_TIMEOUT": "60"}
    with new_database(server, seeded) as url, serving(url, **settings) as live:
        yield live, url


def test_metrics_are_valid_and_keep_their_names(two_workers: Live) -> None:
    operations = {
        LOCALIDADES: ("list_localities", 200), f"{LOCALIDADES}1/": ("get_locality", 404),
        "/nothing/s3cret": ("none", 404), "/static/style.css": ("static", 200), "/metrics": ("get_metrics", 200),
    }  # fmt: skip
    for target in operations:
        ask(two_workers.base, target)
    await_metrics(two_workers.base, lambda metrics: all(answered(metrics, *one) for one in operations.values()))
    text = ask(two_workers.base, "/metrics").body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families.keys() == NAMES.keys()
    for name, family in families.items():
        assert (family.type, bool(family.documentation)) == (NAMES[name][0], True)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == NAMES[name][1], sample
            assert sample.value >= 0
    assert "s3cret" not in text
    [release] = json.loads(ask(two_workers.base, "/api/census/releases/").body)["results"]
    published = datetime.fromisoformat(release["published_at"]).timestamp()
    metrics = read_metrics(text)
    assert value(metrics, "release_published_timestamp_seconds") == pytest.approx(published, abs=0.001)
    assert value(metrics, "release_checked_timestamp_seconds") == pytest.approx(time.time(), abs=PATIENCE)


def test_metrics_of_all_workers_are_summed(two_workers: Live) -> None:
    def logged(operation: str) -> list[dict[str, object]]:
        complete = re.findall(r"^{.*}$", two_workers.output.read_text(), re.MULTILINE)
        lines = map(json.loads, complete)
        return [line for line in lines if (line.get("operation"), line.get("status")) == (operation, 200)]

    def both_have_answered(operation: str) -> bool:
        return len({str(line["id"]).partition("-")[0] for line in logged(operation)}) == 2

    for number in range(60):
        assert ask(two_workers.base, f"{LOCALIDADES}?page={number % 3 + 1}").status == 200
    assert ask(two_workers.base, LOCALIDADES, ("If-None-Match", "*")).status == 304
    await_metrics(
        two_workers.base,
        lambda metrics: (
            answered(metrics, "list_localities", 200) == len(logged("list_localities")) >= 60
            and answered(metrics, "list_localities", 304) == 1
        ),
    )
    for metrics in [scrape(two_workers.base) for _ in range(20)]:
        assert answered(metrics, "list_localities", 200) == len(logged("list_localities"))
        assert value(metrics, "database_connections_limit") == 20
        assert value(metrics, "release_info", "2020-01") == 1
    for operation in ("get_metrics", "list_localities"):
        eventually(partial(both_have_answered, operation))


def test_metrics_show_cached_pages_of_the_current_release_only(
    one_connection: tuple[Live, str], tmp_path: Path
) -> None:
    live, url = one_connection
    first = await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 3)
    assert 3 * 1000 < value(first, "page_cache_bytes") < 64 * 1024**2
    fetched = value(first, "page_cache_requests_total", "miss")
    for _ in range(5):
        ask(live.base, LOCALIDADES)
    metrics = scrape(live.base)
    assert value(metrics, "page_cache_requests_total", "miss") == fetched
    assert value(metrics, "response_cache_requests_total", "hit") >= 4
    assert answered(metrics, "list_localities", 200) >= 5
    import_file(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
    before = ("release_info", frozenset({"2020-01"}))
    after = await_metrics(
        live.base, lambda metrics: value(metrics, "release_info", "2021-01") == 1 and before not in metrics
    )
    published = "release_published_timestamp_seconds"
    assert value(first, published) < value(after, published) <= time.time()


async def test_fetched_page_counts_as_a_miss(client: httpx.AsyncClient) -> None:
    before = await metrics_of(client)
    for number in (1, 2, 3, "03"):
        await client.get(f"{LOCALIDADES}?page={number}")
    after = await metrics_of(client)
    for result, count in (("miss", 4), ("hit", 0)):
        name = "page_cache_requests_total"
        assert value(after, name, result) - value(before, name, result) == count


async def metrics_of(client: httpx.AsyncClient) -> Metrics:
    return read_metrics((await client.get("/metrics")).text)


def test_requests_waiting_for_a_connection_are_counted(one_connection: tuple[Live, str]) -> None:
    live, url = one_connection
    with ThreadPoolExecutor(3) as clients:
        with locked(url, "localities"):
            keys = (10010001, 10010002, 10010003)
            asking = [clients.submit(ask, live.base, f"{LOCALIDADES}{key}/") for key in keys]
            metrics = await_metrics(
                live.base,  # a poll of the releases waits too at times
                lambda metrics: value(metrics, "database_waiting") >= 2 and value(metrics, "requests_in_flight") == 4,
            )
            assert value(metrics, "database_connections", "in_use") == 1
            assert value(metrics, "database_connections_limit") == 1
        assert {one.result().status for one in asking} == {200}
        await_metrics(
            live.base,
            lambda metrics: (
                value(metrics, "database_waiting") == 0 and value(metrics, "database_connections", "idle") == 1
            ),
        )


@pytest.mark.parametrize("kind", ["connection", "42"])
async def test_errors_of_the_database_are_counted_by_kind(seeded_database: str, kind: str) -> None:
    if kind == "42":
        execute(seeded_database, "ALTER TABLE localities RENAME COLUMN nombre TO apellido")
    url = seeded_database if kind == "42" else "postgresql://x@/x?host=/nowhere"
    async with running_app(url, in_background=False) as app, client_of(app) as client:
        before = value(await metrics_of(client), "database_errors_total", kind)
        assert (await client.get(LOCALIDADES)).status_code >= 500
        assert value(await metrics_of(client), "database_errors_total", kind) == before + 1


def test_series_start_at_zero() -> None:
    assert {*read_metrics(exposition(Counters().snapshot()).decode()).values()} == {0.0}


def test_request_duration_is_observed_in_a_histogram() -> None:
    counters = Counters()
    for seconds in (0.0002, 0.0007, 0.02, 0.2, 4.0):
        counters.count("get_locality", 200, seconds)
    metrics = read_metrics(exposition(counters.snapshot()).decode())
    shown = {"0.0001": 0, "0.00025": 1, "0.001": 2, "0.01": 2, "0.025": 3, "0.1": 3, "0.25": 4, "2.5": 4, "+Inf": 5}
    for bound, count in shown.items():
        assert value(metrics, "request_duration_seconds_bucket", "get_locality", "200", bound) == count
    assert value(metrics, "request_duration_seconds_sum", "get_locality", "200") == pytest.approx(4.2209)


async def test_event_loop_lag_covers_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "SLEEP_INTERVAL", 0.001)
    monkeypatch.setattr(metrics_module, "SLEEPS_PER_SAMPLE", 1)
    monkeypatch.setattr(metrics_module, "COUNTERS", counters := Counters())
    shown: list[float] = []

    def note_what_is_shown() -> dict[Series, float]:
        shown.append(counters.gauges.get(("event_loop_lag_seconds",), 0.0))
        if len(shown) == 1:
            raise RuntimeError  # a gauge that can't be read does not stop sampling
        return {}

    sampling = asyncio.create_task(Sampler(note_what_is_shown).run())
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251  # as a bug of the service would
    await eventually_async(lambda: max(shown, default=0) > 0.4 and shown[-1] < 0.4)
    sampling.cancel()
    assert sum(lag > 0.4 for lag in shown) >= 58


def test_gauges_of_workers_are_summed_or_the_worst_is_shown() -> None:
    """A worker that hasn't read the releases for an hour must not be hidden by one that has."""
    gauges = {
        ("database_connections", "in_use"): (3, 4, 7),
        ("release_info", "2021-01"): (1, 1, 1),
        ("release_published_timestamp_seconds",): (500, 0, 500),
        ("release_checked_timestamp_seconds",): (1000, 900, 900),
        ("event_loop_lag_seconds",): (0.5, 0.1, 0.5),
    }
    one, another, both = ({series: [values[at]] for series, values in gauges.items()} for at in range(3))
    other_version: Snapshot = {("database_connections", "in_use"): [1, 2], ("new",): [3]}
    assert merge([one, another, other_version]) == both


# -- What is left of workers that have ended

# Counts three held responses, has five connections, and stays until its stdin is closed. After a line it makes way for
# another program, which has its number then.
WORKER = """
import os, sys
from localidades_api.observability.metrics import COUNTERS
from localidades_api.observability.shared_metrics import SharedMetrics
COUNTERS.response_hits, COUNTERS.connections = 3, 5
SharedMetrics(int(sys.argv[1])).take_place()
print("published", flush=True)
if os.read(0, 1):
    os.set_inheritable(int(sys.argv[1]), False)
    os.execlp("cat", "cat")
"""


@contextmanager
def worker(file: int) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(file)],
        env=environment(), cwd=ROOT, pass_fds=[file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == b"published\n"
        yield process
        process.communicate(timeout=PATIENCE)


def test_counters_of_ended_workers_stay_and_their_gauges_do_not() -> None:
    with TemporaryFile() as file:
        own = SharedMetrics(file.fileno())
        own.take_place()
        before = own.collect()

        def hits_and_connections() -> list[float]:
            after = own.collect()
            return [
                after[series][0] - before[series][0]
                for series in (("response_cache_requests_total", "hit"), ("connections",))
            ]

        with worker(file.fileno()):
            assert hits_and_connections() == [3, 5]
        assert hits_and_connections() == [3, 0]
        with worker(file.fileno()), worker(file.fileno()):
            assert hits_and_connections() == [9, 10]
        with worker(file.fileno()) as ended:
            assert hits_and_connections() == [12, 5]
            assert ended.stdin
            os.write(ended.stdin.fileno(), b"\n")
            eventually(lambda: hits_and_connections() == [12, 0])
