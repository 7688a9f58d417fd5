"""Several workers on one port: connections are dealt out among them, and none is lost with one of them."""

import json
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest

from tests.conftest import LOCALIDADES
from tests.wire import Live, ask, environment, parse, run, serving

REQUEST = f"GET {LOCALIDADES} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
CONNECTIONS = 200


@pytest.fixture
def two_workers(seeded_database: str) -> Iterator[Live]:
    """Lend a server of two workers, both ready, that logs each request."""
    with serving(
        seeded_database, "--workers", "2", LOCALIDADES_ACCESS_LOG="on", LOCALIDADES_LOG_FORMAT="json"
    ) as live:  # fmt: skip
        await_text(live, "Application startup complete", 2)
        yield live


def await_text(live: Live, text: str, count: int, patience: float = 30) -> None:
    deadline = time.monotonic() + patience
    while live.output.read_text().count(text) < count:
        assert time.monotonic() < deadline, live.output.read_text()
        time.sleep(0.05)


def lines_of(live: Live) -> list[dict[str, object]]:
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
        deadline = time.monotonic() + 10  # lines are written a few times a second
        while len(lines := lines_of(two_workers)) < CONNECTIONS and time.monotonic() < deadline:
            time.sleep(0.05)
    counts = Counter(str(line["id"]).partition("-")[0] for line in lines)
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
    assert f"Can't listen on 127.0.0.1 port {port} (Address already in use)" in ended.stderr


def test_port_of_one_worker_is_taken_for_several(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        port = str(urlsplit(live.base).port)
        ended = run("serve", "--port", port, "--workers", "2", env=environment(seeded_database))
    assert ended.returncode == 1
    assert f"Can't listen on 127.0.0.1 port {port} (Address already in use)" in ended.stderr


def test_connections_to_a_worker_that_was_killed_are_answered_by_its_successor(two_workers: Live) -> None:
    worker = int(re.findall(r"Started server process \[(\d+)\]", two_workers.output.read_text())[0])
    os.kill(worker, signal.SIGKILL)
    assert [ask(two_workers.base, LOCALIDADES).status for _ in range(CONNECTIONS)] == [200] * CONNECTIONS
    await_text(two_workers, "Application startup complete", 3)


def test_worker_that_dies_while_it_is_asked_for_a_sign_of_life_is_replaced_at_once(two_workers: Live) -> None:
    worker = int(re.findall(r"Started server process \[(\d+)\]", two_workers.output.read_text())[0])
    os.kill(worker, signal.SIGSTOP)
    time.sleep(1.5)  # by now the supervisor waits for its answer, as long as it would for a busy one
    os.kill(worker, signal.SIGKILL)
    await_text(two_workers, "Application startup complete", 3, patience=15)
