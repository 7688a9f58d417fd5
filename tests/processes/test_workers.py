"""Several workers on one port, under uvicorn's supervisor."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.metrics import scrape, value
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    LOCALIDADES,
    ROOT,
    Live,
    ask,
    connect,
    environment,
    parse,
    read_answer,
    run,
    serving,
    workers_of,
)

pytestmark = pytest.mark.tail

NOWHERE = "postgresql://someone@127.0.0.1:1/x"
STARTED = "Application startup complete"


@pytest.fixture
def two_workers(seeded_database: str) -> Iterator[Live]:
    """Yield a server with two workers, both started."""
    with serving(seeded_database, "--workers", "2") as live:
        await_text(live, STARTED, 2)
        yield live


def await_text(live: Live, text: str, count: int, *, within: float = PATIENCE) -> None:
    log = live.output
    eventually(lambda: log.read_text().count(text) >= count, otherwise=log.read_text, within=within)


def assert_answers(live: Live) -> None:
    assert [ask(live.base, LOCALIDADES).status for _ in range(20)] == [200] * 20


def test_supervisor_does_not_import_the_application() -> None:
    program = """
import pickle, sys
from localidades_api.server.run import _protocol
from localidades_api.settings import Settings
pickle.dumps(_protocol(Settings()))
print(*sys.modules)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment(), cwd=ROOT
    )
    loaded = set(ended.stdout.split())
    assert "localidades_api.server.connections" in loaded
    assert loaded.isdisjoint({"localidades_api.server.protocol", "localidades_api.app", "fastapi", "jinja2"})


def test_connection_is_closed_after_a_thousand_requests(
    live_server: str,
) -> None:
    request = f"GET {LOCALIDADES}?page=2 HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    with closing(connect(live_server)) as connection:
        for number in range(1000):
            connection.sendall(request)
            answer = parse(read_answer(connection))
            assert (answer.status, answer.all("connection")) == (200, ["close"] if number == 999 else [])
        assert connection.recv(1) == b""


def test_killed_worker_is_replaced_while_the_others_answer(two_workers: Live) -> None:
    os.kill(workers_of(two_workers)[0], signal.SIGKILL)
    assert_answers(two_workers)
    await_text(two_workers, STARTED, 3)
    assert_answers(two_workers)


HANGS_AT_A_SIGNAL = """
import signal, sys, time
if '--multiprocessing-fork' in sys.argv:
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1000))
"""


@pytest.mark.timeout(240)
def test_hung_workers_are_replaced(seeded_database: str, tmp_path: Path) -> None:
    """One has an event loop that hangs and prints where, the other is suspended."""
    with serving(seeded_database, "--workers", "2", **with_site(tmp_path, HANGS_AT_A_SIGNAL)) as live:
        await_text(live, STARTED, 2)
        before = workers_of(live)
        os.kill(before[0], signal.SIGUSR1)
        os.kill(before[1], signal.SIGSTOP)
        await_text(live, STARTED, 4, within=60 + PATIENCE)
        assert_answers(live)
        assert not alive(before)
        log = live.output.read_text()
        assert "Timeout (0:00:30)!" in log
        assert "sitecustomize.py" in log


def alive(processes: list[int]) -> list[int]:
    return [process for process in processes if Path(f"/proc/{process}").exists()]


def with_site(folder: Path, statements: str) -> dict[str, str]:
    """Return environment variables that make every interpreter run the statements first."""
    (folder / "sitecustomize.py").write_text(statements)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{environment()['PYTHONPATH']}"}


@pytest.mark.skipif(sys.platform != "linux", reason="no prlimit")
def test_worker_out_of_file_descriptors_is_retried(two_workers: Live) -> None:
    supervisor = two_workers.process.pid
    before = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (4, before[1]))
    two_workers.process.send_signal(signal.SIGTTIN)
    await_text(two_workers, "Can't start another worker (Too many open files)", 1)
    os.kill(workers_of(two_workers)[0], signal.SIGKILL)
    await_text(two_workers, "Can't start another worker (Too many open files)", 2)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, before)
    await_text(two_workers, STARTED, 3)
    assert_answers(two_workers)


@pytest.mark.timeout(180)
def test_workers_are_added_and_removed_without_losing_requests(two_workers: Live) -> None:
    asked: Counter[int] = Counter()
    ended = threading.Event()

    def keep_asking() -> None:
        while not ended.is_set():
            asked[ask(two_workers.base, LOCALIDADES).status] += 1

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(keep_asking) for _ in range(4)]
        try:
            two_workers.process.send_signal(signal.SIGTTIN)
            await_text(two_workers, STARTED, 3)
            for count in (1, 2):
                two_workers.process.send_signal(signal.SIGTTOU)
                await_text(two_workers, "Finished server process", count)
            time.sleep(1)
        finally:
            ended.set()
        for one in asking:
            one.result(PATIENCE)
    assert set(asked) == {200}
    eventually(lambda: len(alive(workers_of(two_workers))) == 1)
    metrics = scrape(two_workers.base)
    assert value(metrics, "request_duration_seconds_count", "list_localities", "200") == asked[200]
    assert value(metrics, "database_connections_limit") == 10


IN_WORKERS = "import sys\nif '--multiprocessing-fork' in sys.argv:\n    "
FAULTS = {
    "ours": ("import os; os.environ['LOCALIDADES_POOL_SIZE'] = 'x'", "A worker can't start: LOCALIDADES_POOL_SIZE"),
    "import": ("sys.modules['localidades_api.middleware'] = None", "ModuleNotFoundError"),
    "lifespan": ("import localidades_api.app as app; app.Database = None", "AttributeError"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_workers_that_cannot_start_end_the_command(seeded_database: str, tmp_path: Path, fault: str) -> None:
    statement, reason = FAULTS[fault]
    env = environment(seeded_database, **with_site(tmp_path, IN_WORKERS + statement))
    ended = run("serve", "--workers", "2", "--port", "0", env=env)
    assert ended.returncode == 1, ended.stderr
    assert reason in ended.stderr
    assert ("Traceback" in ended.stderr) == (fault != "ours")
    assert "A worker can't start; the log above says why." in ended.stderr.splitlines()[-1]


def test_later_worker_that_cannot_start_is_retried(seeded_database: str, tmp_path: Path) -> None:
    fault = tmp_path / "fault"
    statement = f"import pathlib\n    if pathlib.Path({str(fault)!r}).exists(): {FAULTS['import'][0]}"
    with serving(seeded_database, "--workers", "2", **with_site(tmp_path, IN_WORKERS + statement)) as live:
        await_text(live, STARTED, 2)
        fault.touch()
        os.kill(workers_of(live)[0], signal.SIGKILL)
        await_text(live, "A worker can't start", 2)
        assert_answers(live)
        fault.unlink()
        await_text(live, STARTED, 3)


def test_worker_starts_while_the_database_is_away() -> None:
    with serving(NOWHERE, "--workers", "2", probe="/livez") as live:
        await_text(live, STARTED, 2)
        os.kill(workers_of(live)[0], signal.SIGKILL)
        await_text(live, STARTED, 3)
        assert ask(live.base, LOCALIDADES).status == 503
