"""Graceful shutdown and restart, and several workers on one port under uvicorn's supervisor."""

import http.client
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from tests.support.downloads import read_csv, stalled
from tests.support.metrics import scrape, value
from tests.support.postgres import locked, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    LOCALIDADES,
    Asking,
    Live,
    ask,
    await_end_of_group,
    connect,
    environment,
    head,
    parse,
    read_answer,
    run,
    serving,
    workers_of,
)

pytestmark = pytest.mark.tail

SLOW, HELD = f"{LOCALIDADES}?page_size=7", f"{LOCALIDADES}?page=2"  # the first is not cached: it needs the database
STARTED = "Application startup complete"
WORKERS = pytest.mark.parametrize("workers", [1, 2])


def await_text(live: Live, text: str, count: int, *, within: float = PATIENCE) -> None:
    log = live.output
    eventually(lambda: log.read_text().count(text) >= count, otherwise=log.read_text, within=within)


@contextmanager
def working(url: str, workers: int = 2, /, **settings: str) -> Iterator[Live]:
    """Run a server whose workers have all started."""
    with serving(url, "--workers", str(workers), **settings) as live:
        await_text(live, STARTED, workers)
        yield live


def assert_answers(live: Live) -> None:
    assert [ask(live.base, LOCALIDADES).status for _ in range(20)] == [200] * 20


# -- Shutdown


def is_refused(live: Live) -> bool:
    """Whether a new connection is refused; one that is accepted has to be answered, or reset before that."""
    try:
        return ask(live.base, "/livez").status != 204
    except (ConnectionRefusedError, ConnectionResetError):
        return True


@pytest.mark.parametrize(("workers", "number"), [(1, signal.SIGTERM), (2, signal.SIGTERM), (2, signal.SIGINT)])
def test_server_finishes_requests_and_downloads_before_it_exits(
    server: str, large: str, large_rows: list[object], workers: int, number: signal.Signals
) -> None:
    """Idle connections don't delay it; a request on one of them is still answered, and new connections are refused."""
    settings = {"PAGE_CACHE_BYTES": "0", "DATABASE_TIMEOUT": "20", "SHUTDOWN_TIMEOUT": "600"}
    with (
        new_database(server, large) as url,
        working(url, workers, **{f"LOCALIDADES_{name}": value for name, value in settings.items()}) as live,
        ExitStack() as stack,
    ):
        idle = [stack.enter_context(connect(live.base)) for _ in range(20)]
        for connection in idle[:10]:  # the others never send anything
            connection.sendall(head(HELD))
            assert parse(read_answer(connection)).status == 200
        download = stack.enter_context(stalled(live.base, "format=csv"))
        with locked(url):
            asking = Asking(stack, live, SLOW)
            assert asking.waits()
            live.process.send_signal(number)
            await_text(live, "Shutting down", workers)
            idle[0].sendall(head("/livez"))
            late = parse(read_answer(idle[0]))
            eventually(lambda: is_refused(live))
            assert asking.waits(1.5)
            assert live.process.poll() is None
        answer = asking.answer()
        assert (late.status, answer.status) == (204, 200)
        assert late.all("connection") == answer.all("connection") == ["close"]
        assert len(read_csv(download.read_on())) == len(large_rows)
        assert live.process.wait(PATIENCE) == 0
        assert "Traceback" not in live.output.read_text()


@WORKERS
def test_unread_download_does_not_delay_shutdown_beyond_the_timeout(server: str, large: str, workers: int) -> None:
    settings = {"PAGE_CACHE_BYTES": "0", "SHUTDOWN_TIMEOUT": "2", "CLIENT_TIMEOUT": "600"}
    with (
        new_database(server, large) as url,
        working(url, workers, **{f"LOCALIDADES_{name}": value for name, value in settings.items()}) as live,
        stalled(live.base, "format=csv"),
        stalled(live.base, "format=csv", "gzip"),
    ):
        began = time.monotonic()
        live.process.terminate()
        assert live.process.wait(PATIENCE) == 0
        assert time.monotonic() - began >= 2


# -- Restarts


@contextmanager
def asked_meanwhile(live: Live) -> Iterator[tuple[Counter[int], Callable[[], None]]]:
    """Send requests over kept and over new connections, never again; yield the responses by client, and a wait."""
    ended = Event()
    answered: Counter[int] = Counter()
    failed: list[str] = []

    def keep_asking(client: int) -> None:
        connection: http.client.HTTPConnection | None = None
        while not ended.is_set():
            connection = connection or http.client.HTTPConnection(urlsplit(live.base).netloc, timeout=PATIENCE)
            try:
                connection.request("GET", (HELD, SLOW)[client % 2])
                response = connection.getresponse()
                response.read()
                assert response.status == 200
            except (OSError, http.client.HTTPException, AssertionError) as error:
                failed.append(repr(error))
                break
            answered[client] += 1
            if response.will_close or client < 4:
                connection.close()
                connection = None
        if connection:
            connection.close()

    def await_more() -> None:
        before = answered.copy()
        eventually(lambda: failed or all(answered[client] >= before[client] + 10 for client in range(8)))

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(keep_asking, client) for client in range(8)]
        try:
            await_more()
            yield answered, await_more
        finally:
            ended.set()
        for client in asking:
            client.result(PATIENCE)
    assert failed == [], live.output.read_text()


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def hands_on_its_port(process: int, base: str) -> bool:
    """Whether a process that a worker starts would keep the port open."""
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    port = f":{urlsplit(base).port:04X}"
    (inode,) = [fields[9] for fields in listening if fields[1].endswith(port) and fields[3] == "0A"]
    flags = []
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # others are closed meanwhile
            if str(descriptor.readlink()) == f"socket:[{inode}]":
                flags.append(int(Path(f"/proc/{process}/fdinfo/{descriptor.name}").read_text().split()[3], 8))
    assert len(flags) == 1
    return not flags[0] & os.O_CLOEXEC


def test_workers_are_restarted_added_and_removed_without_losing_requests(seeded_database: str) -> None:
    with working(seeded_database) as live:
        before = workers_of(live)
        with asked_meanwhile(live) as (answered, await_more):
            live.process.send_signal(signal.SIGHUP)
            await_text(live, "Finished server process", 2)
            await_more()
            assert len(workers_of(live)) == 4
            live.process.send_signal(signal.SIGTTIN)
            await_text(live, STARTED, 5)
            assert not any(hands_on_its_port(worker, live.base) for worker in workers_of(live)[2:])
            for count in (3, 4):
                live.process.send_signal(signal.SIGTTOU)
                await_text(live, "Finished server process", count)
            await_more()
        eventually(lambda: sum(map(is_alive, workers_of(live))) == 1)
        assert not any(map(is_alive, before))
        metrics = scrape(live.base)
        assert value(metrics, "request_duration_seconds_count", "list_localities", "200") == answered.total()
        assert value(metrics, "database_connections_limit") == 10


# -- Workers that die, hang or can't start


def with_site(folder: Path, statements: str) -> dict[str, str]:
    """Return environment variables that make every worker run the statements first."""
    (folder / "sitecustomize.py").write_text(f"import sys\nif '--multiprocessing-fork' in sys.argv:\n    {statements}")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{environment()['PYTHONPATH']}"}


def test_hung_workers_are_replaced(seeded_database: str, tmp_path: Path) -> None:
    """One has an event loop that hangs and prints where, the other is suspended."""
    hangs = "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1000))"
    with working(seeded_database, **with_site(tmp_path, hangs)) as live:
        before = workers_of(live)
        os.kill(before[0], signal.SIGUSR1)
        os.kill(before[1], signal.SIGSTOP)
        await_text(live, STARTED, 4, within=60 + PATIENCE)
        assert_answers(live)
        assert not any(map(is_alive, before))
        log = live.output.read_text()
        assert "Timeout (0:00:30)!" in log
        assert "sitecustomize.py" in log


BREAKS_THE_IMPORT = "sys.modules['localidades_api.api.middleware'] = None"


@pytest.mark.parametrize(
    ("fault", "reason", "is_ours"),
    [
        ("import os; os.environ['LOCALIDADES_POOL_SIZE'] = 'x'", "A worker can't start: LOCALIDADES_POOL_SIZE", True),
        (BREAKS_THE_IMPORT, "ModuleNotFoundError", False),
        ("import localidades_api.app as app; app.Database = None", "AttributeError", False),
    ],
)
def test_workers_that_cannot_start_end_the_command(
    seeded_database: str, tmp_path: Path, fault: str, reason: str, *, is_ours: bool
) -> None:
    env = environment(seeded_database, **with_site(tmp_path, fault))
    ended = run("serve", "--workers", "2", "--port", "0", env=env)
    assert ended.returncode == 1, ended.stderr
    assert reason in ended.stderr
    assert ("Traceback" in ended.stderr) != is_ours
    assert "A worker can't start; the log above says why." in ended.stderr.splitlines()[-1]


def test_killed_worker_is_replaced_once_another_can_start(seeded_database: str, tmp_path: Path) -> None:
    fault = tmp_path / "fault"
    statement = f"import pathlib\n    if pathlib.Path({str(fault)!r}).exists(): {BREAKS_THE_IMPORT}"
    with working(seeded_database, **with_site(tmp_path, statement)) as live:
        fault.touch()
        os.kill(workers_of(live)[0], signal.SIGKILL)
        await_text(live, "A worker can't start", 2)
        assert_answers(live)
        fault.unlink()
        await_text(live, STARTED, 3)


def test_killed_supervisor_leaves_no_workers(seeded_database: str) -> None:
    with working(seeded_database) as live:
        live.process.kill()
        assert live.process.wait(PATIENCE) == -signal.SIGKILL
        await_end_of_group(live.process.pid)
        socket.create_server(("127.0.0.1", urlsplit(live.base).port or 0)).close()  # the port is free


def test_worker_starts_while_the_database_is_away() -> None:
    with serving("postgresql://someone@127.0.0.1:1/x", "--workers", "2", probe="/livez") as live:
        await_text(live, STARTED, 2)
        os.kill(workers_of(live)[0], signal.SIGKILL)
        await_text(live, STARTED, 3)
        assert ask(live.base, LOCALIDADES).status == 503
