"""Several workers on one port: connections are dealt out among them, and none is lost with one of them."""

import json
import os
import re
import resource
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.machine import children_of
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Live, ask, environment, parse, run, serving, workers_of

pytestmark = pytest.mark.tail

REQUEST = f"GET {LOCALIDADES} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
CONNECTIONS = 200


@pytest.fixture
def two_workers(seeded_database: str) -> Iterator[Live]:
    """Lend a server of two workers that logs each request; both hold the pages."""
    with serving(
        seeded_database, "--workers", "2", LOCALIDADES_ACCESS_LOG="on", LOCALIDADES_LOG_FORMAT="json"
    ) as live:  # fmt: skip
        await_text(live, "The page cache holds all", 2)
        yield live


def await_text(live: Live, text: str, count: int) -> None:
    log = live.output
    eventually(lambda: log.read_text().count(text) >= count, otherwise=log.read_text)


def list_lines(live: Live) -> list[dict[str, object]]:
    """Return the lines of requests for the list."""
    lines = [json.loads(line) for line in live.output.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("operation") == "list_localities"]


def test_connections_that_come_at_once_and_are_kept_are_dealt_out(two_workers: Live) -> None:
    address = urlsplit(two_workers.base)
    with ExitStack() as stack:
        connections = [
            stack.enter_context(closing(socket.create_connection((address.hostname, address.port))))
            for _ in range(CONNECTIONS)
        ]
        for connection in connections:
            connection.sendall(REQUEST)
        assert {parse(connection.recv(100_000)).status for connection in connections} == {200}
        eventually(lambda: len(list_lines(two_workers)) >= CONNECTIONS)  # they are written a few times a second
    counts = Counter(str(line["id"]).partition("-")[0] for line in list_lines(two_workers))
    assert sum(counts.values()) == CONNECTIONS
    assert len(counts) == 2
    assert min(counts.values()) > CONNECTIONS / 4, counts  # by chance once in ten billion runs


@pytest.mark.parametrize("workers", ["1", "2"])
def test_port_of_several_workers_is_taken_for_any_other_server(
    two_workers: Live, seeded_database: str, workers: str
) -> None:
    port = str(urlsplit(two_workers.base).port)
    ended = run("serve", "--port", port, "--workers", workers, env=environment(seeded_database))
    assert ended.returncode == 1
    assert f"Port {port} is in use" in ended.stderr


def test_port_of_one_worker_is_taken_for_several(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        port = str(urlsplit(live.base).port)
        ended = run("serve", "--port", port, "--workers", "2", env=environment(seeded_database))
    assert ended.returncode == 1
    assert f"Port {port} is in use" in ended.stderr


def alive(*processes: int) -> set[int]:
    """Return those that are there."""
    return {one for one in processes if Path(f"/proc/{one}").exists()}


def await_successor(live: Live, earlier: set[int]) -> None:
    """Wait for the process that replaces a dead worker."""
    eventually(lambda: children_of(live.process.pid) - earlier, otherwise=live.output.read_text)


def test_connections_to_a_worker_that_was_killed_are_answered_by_its_successor(two_workers: Live) -> None:
    earlier = children_of(two_workers.process.pid)
    os.kill(workers_of(two_workers)[0], signal.SIGKILL)
    await_successor(two_workers, earlier)
    assert [ask(two_workers.base, LOCALIDADES).status for _ in range(CONNECTIONS)] == [200] * CONNECTIONS
    await_text(two_workers, "Application startup complete", 3)
    (noticed,) = (line for line in two_workers.output.read_text().splitlines() if "was killed by SIGKILL" in line)
    assert "starting another in 0 s" in noticed


def test_worker_that_dies_while_it_hangs_is_replaced_at_once(two_workers: Live) -> None:
    earlier = children_of(two_workers.process.pid)
    worker = workers_of(two_workers)[0]
    os.kill(worker, signal.SIGSTOP)
    time.sleep(1.5)  # by now a sign of life is missed
    os.kill(worker, signal.SIGKILL)
    await_successor(two_workers, earlier)
    await_text(two_workers, "Application startup complete", 3)
    assert "was killed by SIGKILL; starting another in 0 s" in two_workers.output.read_text()


def test_worker_that_dies_again_and_again_is_replaced_after_a_growing_pause(two_workers: Live) -> None:
    for number in range(3):
        await_text(two_workers, "The page cache holds all", 2 + number)
        os.kill(workers_of(two_workers)[-1], signal.SIGKILL)
    await_text(two_workers, "The page cache holds all", 5)
    pauses = re.findall(r"starting another in (\S+) s", two_workers.output.read_text())
    assert len(pauses) == 3
    assert pauses == sorted(pauses)
    assert pauses[0] == "0"


def test_worker_that_is_told_to_stop_is_replaced_while_it_drains(two_workers: Live) -> None:
    os.kill(workers_of(two_workers)[0], signal.SIGTERM)
    await_text(two_workers, "Application startup complete", 3)
    assert ask(two_workers.base, LOCALIDADES).status == 200


@pytest.mark.skipif(sys.platform != "linux", reason="no prlimit")
def test_worker_that_the_system_refuses_is_tried_again(two_workers: Live) -> None:
    supervisor = two_workers.process.pid
    before = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (4, before[1]))
    two_workers.process.send_signal(signal.SIGHUP)
    two_workers.process.send_signal(signal.SIGTTIN)
    await_text(two_workers, "Can't start another worker (Too many open files)", 2)
    os.kill(workers_of(two_workers)[0], signal.SIGKILL)
    await_text(two_workers, "Can't start another worker (Too many open files)", 3)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, before)
    await_text(two_workers, "Application startup complete", 3)
    assert [ask(two_workers.base, LOCALIDADES).status for _ in range(20)] == [200] * 20


PROGRAM = """
from localidades_api.server.sockets import listen
from localidades_api.observability.logging import log_config
from localidades_api.server.process import work
from localidades_api.server.supervisor import Supervisor
import logging.config

logging.config.dictConfig(log_config("console", "info"))
with listen("127.0.0.1", 0, workers=2) as listeners:
    print(f"list http://127.0.0.1:{listeners[0].getsockname()[1]}/", flush=True)
    Supervisor(work, [[one] for one in listeners], shutdown_timeout=5, heartbeat_timeout=4).run()
"""


@pytest.fixture
def impatient(seeded_database: str) -> Iterator[Live]:
    """Lend two workers whose supervisor waits four seconds for a sign of life in place of thirty."""
    with serving(seeded_database, command=(sys.executable, "-c", PROGRAM)) as live:
        await_text(live, "The page cache holds all", 2)
        yield live


def test_worker_that_hangs_is_killed_and_replaced(impatient: Live) -> None:
    earlier = children_of(impatient.process.pid)
    worker = workers_of(impatient)[0]
    os.kill(worker, signal.SIGSTOP)
    await_text(impatient, f"Worker [{worker}] does not respond: killing it", 1)
    await_successor(impatient, earlier)
    await_text(impatient, "Application startup complete", 3)
    assert [ask(impatient.base, LOCALIDADES).status for _ in range(20)] == [200] * 20


def test_supervisor_that_stood_still_itself_kills_no_worker(impatient: Live) -> None:
    os.kill(impatient.process.pid, signal.SIGSTOP)
    time.sleep(5)
    os.kill(impatient.process.pid, signal.SIGCONT)
    impatient.process.send_signal(signal.SIGTTIN)
    await_text(impatient, "Application startup complete", 3)
    assert "does not respond" not in impatient.output.read_text()


def test_workers_end_with_a_supervisor_that_is_killed(two_workers: Live) -> None:
    os.kill(two_workers.process.pid, signal.SIGKILL)
    two_workers.process.wait(PATIENCE)
    await_text(two_workers, "Finished server process", 2)


@pytest.mark.timeout(180)
def test_workers_are_added_and_removed_without_a_lost_request(two_workers: Live) -> None:
    asked: Counter[int] = Counter()
    ended = threading.Event()

    def keep_asking() -> None:
        while not ended.is_set():
            asked[ask(two_workers.base, LOCALIDADES).status] += 1

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(keep_asking) for _ in range(4)]
        try:
            two_workers.process.send_signal(signal.SIGTTIN)
            await_text(two_workers, "Application startup complete", 3)
            third = workers_of(two_workers)[-1]
            two_workers.process.send_signal(signal.SIGTTOU)
            await_text(two_workers, f"Finished server process [{third}]", 1)
            two_workers.process.send_signal(signal.SIGTTIN)
            await_text(two_workers, "Application startup complete", 6)
        finally:
            ended.set()
        for one in asking:
            one.result(PATIENCE)
    assert set(asked) == {200}
    assert len(alive(*workers_of(two_workers))) == 3


@pytest.mark.timeout(180)
def test_last_worker_is_not_removed(two_workers: Live) -> None:
    two_workers.process.send_signal(signal.SIGTTOU)
    await_text(two_workers, "Finished server process", 2)
    two_workers.process.send_signal(signal.SIGTTOU)
    await_text(two_workers, "Only one worker is running; it keeps running", 1)
    assert [ask(two_workers.base, LOCALIDADES).status for _ in range(20)] == [200] * 20


FAULTS = {
    "import": ("sys.modules['localidades_api.server.link'] = None", "A worker ended with exit code 1"),
    "application": ("sys.modules['localidades_api.middleware'] = None", "A worker can't start (ModuleNotFoundError)"),
    "start": (
        "import localidades_api.app as a; a.Database = None",
        "A worker can't start (AttributeError)",
    ),
    "configuration": ("import os; os.environ['LOCALIDADES_POOL_SIZE'] = 'x'", "LOCALIDADES_POOL_SIZE"),
    "death": ("import os; os.kill(os.getpid(), 9)", "A worker was killed by SIGKILL"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_workers_that_cannot_start_end_the_command_with_the_reason(
    seeded_database: str, tmp_path: Path, fault: str
) -> None:
    statement, reason = FAULTS[fault]
    only_in_workers = f"import sys\nif '--multiprocessing-fork' in sys.argv:\n    {statement}\n"
    (tmp_path / "sitecustomize.py").write_text(only_in_workers)
    env = environment(seeded_database)
    env["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{env['PYTHONPATH']}"
    ended = run("serve", "--workers", "2", "--port", "0", env=env)
    assert ended.returncode == 1, ended.stderr
    assert reason in ended.stderr.splitlines()[-1]


def test_second_signal_ends_without_waiting(two_workers: Live) -> None:
    """A worker that stands still does not hold up who asks twice."""
    os.kill(workers_of(two_workers)[0], signal.SIGSTOP)
    two_workers.process.send_signal(signal.SIGINT)
    await_text(two_workers, "SIGINT with 2 workers running", 1)
    two_workers.process.send_signal(signal.SIGINT)
    assert two_workers.process.wait(PATIENCE) == 0
    assert not re.search("did not stop|does not respond", two_workers.output.read_text())
