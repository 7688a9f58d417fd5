"""Graceful shutdown and restart: requests in progress finish, and none is lost."""

import http.client
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.downloads import read_csv, stalled
from tests.support.postgres import locked, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Asking, Live, ask, connect, serving, workers_of

pytestmark = pytest.mark.tail

SLOW = f"{LOCALIDADES}?page_size=7"  # not cached, so it needs the database
HELD = f"{LOCALIDADES}?page=2"
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


def stop(live: Live) -> None:
    """Send the server SIGTERM."""
    live.process.send_signal(signal.SIGTERM)


@WORKERS
def test_server_finishes_requests_and_downloads_before_it_exits(
    server: str,
    large: str,
    large_rows: list[object],
    workers: str,
) -> None:
    with new_database(server, large) as url, serving(
        url, "--workers", workers, LOCALIDADES_PAGE_CACHE_BYTES="0", LOCALIDADES_DATABASE_TIMEOUT="20"
    ) as live, ExitStack() as stack:  # fmt: skip
        download = stack.enter_context(stalled(live.base, "format=csv"))
        with locked(url):
            asking = Asking(stack, live, SLOW)
            assert asking.waits()
            stop(live)
            time.sleep(1.5)
            assert live.process.poll() is None
        answer = asking.answer()
        assert answer.status == 200
        assert answer.one("connection") == "close"
        assert len(read_csv(download.read_on())) == len(large_rows)
        assert live.process.wait(PATIENCE) == 0
        assert "Traceback" not in live.output.read_text()


@WORKERS
def test_unread_download_does_not_delay_shutdown_beyond_the_timeout(
    server: str,
    large: str,
    workers: str,
) -> None:
    with new_database(server, large) as url, serving(
        url, "--workers", workers, LOCALIDADES_PAGE_CACHE_BYTES="0", LOCALIDADES_SHUTDOWN_TIMEOUT="2",
        LOCALIDADES_CLIENT_TIMEOUT="600",
    ) as live, stalled(live.base, "format=csv"), stalled(live.base, "format=csv", "gzip"):  # fmt: skip
        began = time.monotonic()
        stop(live)
        assert live.process.wait(PATIENCE) == 0
        assert time.monotonic() - began >= 2


@WORKERS
def test_idle_connections_do_not_delay_shutdown(seeded_database: str, workers: str) -> None:
    much_time = {"LOCALIDADES_SHUTDOWN_TIMEOUT": "600"}
    with serving(seeded_database, "--workers", workers, **much_time) as live, ExitStack() as stack:
        idle = [stack.enter_context(connect(live.base)) for _ in range(20)]
        for connection in idle[:10]:  # the others never send anything
            connection.sendall(f"GET {HELD} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        stop(live)
        assert live.process.wait(PATIENCE) == 0


def test_request_during_shutdown_is_answered_with_connection_close(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        clients = [http.client.HTTPConnection(urlsplit(live.base).netloc, timeout=30) for _ in range(2)]
        asked = list(zip(clients, (HELD, SLOW), strict=True))
        for client, target in asked:
            client.request("GET", target)
            assert client.getresponse().read()
        stop(live)
        eventually(lambda: "Shutting down" in live.output.read_text())
        for client, target in asked:
            client.request("GET", target)
        for client in clients:
            response = client.getresponse()
            assert response.status == 200
            assert response.headers.get_all("connection") == ["close"]
            assert response.read()
        assert live.process.wait(PATIENCE) == 0


class Client:
    """Sends requests repeatedly, over one connection or new ones, and counts the outcomes.

    It never retries.
    """

    def __init__(self, live: Live, ended: threading.Event, target: str, *, keeps: bool) -> None:
        self.seen: Counter[str] = Counter()
        self._base, self._ended, self._target, self._keeps = live.base, ended, target, keeps
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._ended.is_set():
            if connection is None:
                connection = http.client.HTTPConnection(urlsplit(self._base).netloc, timeout=30)
            try:
                connection.request("GET", self._target)
                response = connection.getresponse()
                response.read()
                self.seen[str(response.status)] += 1
                if response.will_close:
                    self.seen["closed"] += 1
                    connection = None
                elif not self._keeps:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                self.seen[repr(error)] += 1
                connection = None
        if connection:
            connection.close()

    def end(self) -> Counter[str]:
        """Return the outcomes."""
        self._thread.join(30)
        return self.seen


def await_answers(clients: list[Client]) -> None:
    """Wait until each client has ten more responses."""
    before = [client.seen["200"] for client in clients]
    eventually(lambda: all(client.seen["200"] >= count + 10 for client, count in zip(clients, before, strict=True)))


def test_rolling_restart_of_workers_loses_no_request(seeded_database: str) -> None:
    with serving(seeded_database, "--workers", "2") as live:
        eventually(lambda: len(workers_of(live)) == 2)
        before = set(workers_of(live))
        ended = threading.Event()
        clients = [Client(live, ended, target, keeps=keeps) for target in (HELD, SLOW) for keeps in (True, False) * 2]
        try:
            await_answers(clients)
            live.process.send_signal(signal.SIGHUP)
            eventually(lambda: live.output.read_text().count("Finished server process") >= 2)
            await_answers(clients)
        finally:
            ended.set()
            seen = sum((client.end() for client in clients), Counter[str]())
        assert set(seen) == {"200", "closed"}, (seen, live.output.read_text())
        assert len(workers_of(live)) == 4
        # A process stays for a moment after its last line, until the supervisor has reaped it.
        eventually(lambda: not any(Path(f"/proc/{process}").exists() for process in before))
        assert ask(live.base, HELD).status == 200
