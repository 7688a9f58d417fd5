"""The metrics that workers share: what is left of those that have ended."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from localidades_api.observability.shared_metrics import SharedMetrics
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, environment

# Counts three held responses, has five connections, and stays until its stdin is closed.
WORKER = """
import sys
from localidades_api.observability.metrics import COUNTERS
from localidades_api.observability.shared_metrics import SharedMetrics
COUNTERS.response_hits, COUNTERS.connections = 3, 5
SharedMetrics(int(sys.argv[1])).take_place()
print("published", flush=True)
sys.stdin.read()
"""


@contextmanager
def worker(file: int) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(file)],
        env=environment(), cwd=ROOT, pass_fds=[file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == b"published\n"
        yield
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
