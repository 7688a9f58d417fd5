"""Slow, silent, oversized and disconnected clients get their due and leave nothing open."""

import json
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from tests.support.downloads import DOWNLOAD
from tests.support.machine import memory_of, open_files
from tests.support.postgres import await_idle_connections, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    LOCALIDADES,
    Live,
    ask,
    await_names,
    connect,
    final_statuses,
    head,
    parse,
    read_answer,
    read_to_the_end,
    send,
    serving,
)

pytestmark = pytest.mark.tail

CLIENT_TIMEOUT, KEEP_ALIVE_TIMEOUT = 1.5, 3.0
RECORD = f"{LOCALIDADES}10010001/"
PAGE, FROM_DATABASE = head(f"{LOCALIDADES}?page=2"), head(RECORD)
LAST = head(f"{LOCALIDADES}?page=2", "Connection: close")
DOWNLOADS = [head(f"{DOWNLOAD}?format=ndjson", f"Accept-Encoding: {coding}") for coding in ("identity", "gzip", "zstd")]
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def strict(server: str, large: str) -> Iterator[tuple[Live, str, int]]:
    """Yield a server with short timeouts on a large catalogue, its database, and how many files it has open."""
    with new_database(server, large) as url, serving(
        url,
        LOCALIDADES_POOL_SIZE="2",
        LOCALIDADES_KEEP_ALIVE_TIMEOUT=str(KEEP_ALIVE_TIMEOUT),
        LOCALIDADES_CLIENT_TIMEOUT=str(CLIENT_TIMEOUT),
        LOCALIDADES_RELEASE_POLL="60",
        LOCALIDADES_PAGE_CACHE_BYTES="1000000",
    ) as live:  # fmt: skip
        await_names(live.base)
        assert [ask(live.base, target).status for target in [f"{LOCALIDADES}?page=2", RECORD] * 4] == [200] * 8
        yield live, url, open_files(live) + 1  # the pool may open its second connection
        live.process.terminate()
        assert live.process.wait(PATIENCE) == 0
        log = live.output.read_text()  # no task is left for which the server would wait
        assert not any(words in log for words in ("to complete", "to close", "Exception in ASGI")), log


@pytest.fixture
def live(strict: tuple[Live, str, int]) -> Iterator[Live]:
    """Yield the server; afterwards, no more files are open than before, and its connections to Postgres are idle."""
    live, url, before = strict
    yield live
    eventually(lambda: open_files(live) <= before, otherwise=lambda: (open_files(live), before))
    await_idle_connections(url)


def assert_problem(received: bytes, status: int, slug: str) -> None:
    answer = parse(received)
    assert answer.status == status, answer.text
    expected = {"content-type": "application/problem+json", "connection": "close", "cache-control": "no-store",
                "allow": "GET", "vary": "Accept", "access-control-allow-origin": "*"}  # fmt: skip
    assert {name: answer.one(name) for name in expected} == expected
    assert answer.one("date")
    assert int(answer.one("content-length")) == len(answer.body)
    problem = json.loads(answer.body)
    assert (problem["type"], problem["status"]) == (slug if ":" in slug else f"/problems#{slug}", status)
    assert problem["title"]
    assert problem["detail"]


# -- Slow and silent


@pytest.mark.parametrize("before", [b"", PAGE, FROM_DATABASE, FROM_DATABASE + PAGE])
def test_unfinished_head_is_408_after_the_responses_before_it(live: Live, before: bytes) -> None:
    with connect(live.base) as connection:
        connection.sendall(before)
        first = read_answer(connection) if before else b""
        began = time.monotonic()
        connection.sendall(PAGE[:20])
        received = first + read_to_the_end(connection)
    assert time.monotonic() - began >= CLIENT_TIMEOUT
    assert final_statuses(received) == [200] * before.count(b"GET") + [408]
    assert_problem(received[received.rindex(b"HTTP/1.1 ") :], 408, "request-timeout")


@pytest.mark.parametrize(("begun", "piece", "statuses"), [(b"", b"\r\n", [200]), (PAGE[:20], b"a", [200, 408])])
def test_bytes_now_and_then_do_not_keep_a_connection_open(
    live: Live, begun: bytes, piece: bytes, statuses: list[int]
) -> None:
    with connect(live.base) as connection, ThreadPoolExecutor(1) as pool:
        received = pool.submit(read_to_the_end, connection)
        connection.sendall(PAGE + begun)
        with suppress(ConnectionError):
            while not received.done():
                connection.sendall(piece)
                time.sleep(0.1)
        assert final_statuses(received.result()) == statuses


def test_only_idle_connections_are_closed(live: Live) -> None:
    """The keep-alive timeout starts again with each response."""
    with connect(live.base) as connection:
        for pause in (0.6 * KEEP_ALIVE_TIMEOUT, 0.6 * KEEP_ALIVE_TIMEOUT, 0):
            asked = time.monotonic()
            connection.sendall(PAGE)
            assert final_statuses(read_answer(connection)) == [200]
            time.sleep(pause)
        assert connection.recv(1) == b""
        assert time.monotonic() - asked >= KEEP_ALIVE_TIMEOUT


# -- Too large


def head_of(size: int, target: str = f"{LOCALIDADES}?page=2") -> bytes:
    """Return a complete head of this size."""
    return head(target, "Connection: close", f"X: {'a' * (size - len(head(target, 'Connection: close', 'X: ')))}")


@pytest.mark.parametrize("piece", [499, 16 * 1024, 16 * 1024 + 1, 100_000])
def test_limits_do_not_depend_on_how_a_head_is_split(live: Live, piece: int) -> None:
    for sent, status, slug in [
        (head_of(16 * 1024), 200, ""),
        (head_of(16 * 1024 + 1), 431, "about:blank"),
        (head_of(9000, "/" + "a" * (8 * 1024 - 1)), 404, ""),
        (head_of(9000, "/" + "a" * 8 * 1024), 414, "about:blank"),
        (head_of(30_000, "/" + "a" * 9000), 414, "about:blank"),
    ]:
        with connect(live.base) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start in range(0, len(sent), piece):
                connection.sendall(sent[start : start + piece])
                time.sleep(0.001)
            received = read_to_the_end(connection)
        if slug:
            assert_problem(received, status, slug)
        else:
            assert final_statuses(received) == [status]


def test_each_head_of_a_pipeline_counts_alone(live: Live) -> None:
    heads = head_of(15_000).replace(b"Connection: close\r\n", b"") * 20
    assert final_statuses(send(live.base, heads + PAGE * 300 + LAST)) == [200] * 321
    for before in (PAGE, FROM_DATABASE, FROM_DATABASE + PAGE):
        received = send(live.base, before + head_of(40_000) + PAGE)
        assert final_statuses(received) == [200] * before.count(b"GET") + [431]


ENDLESS = {
    "target": b"GET /" + b"a" * 9000,
    "header": b"GET / HTTP/1.1\r\nX: ",
    "body": head("/", "Content-Length: 100000000000", method="POST"),
    "trailer": head("/", CHUNKED, method="POST") + b"0\r\nTrailer: ",
    "trailer after a ready answer": head(f"{LOCALIDADES}?page=2", CHUNKED) + b"0\r\nTrailer: ",
    "trailer in a download": head(f"{DOWNLOAD}?format=ndjson", CHUNKED) + b"0\r\nTrailer: ",
    "garbage": b"garbage\r\n",
    "garbage behind a request": FROM_DATABASE + b"garbage\r\n",
}


def is_cut_off(base: str, beginning: bytes) -> bool:
    """Keep sending as long as the server reads; return whether it stopped."""
    sent, deadline = 0, time.monotonic() + PATIENCE
    with connect(base) as connection:
        connection.sendall(beginning)
        while time.monotonic() < deadline:
            try:
                sent += connection.send(b"a" * 65536)
            except ConnectionError:
                return sent > 100_000
            if sent > 20e6:
                time.sleep(0.05)
    return False


def test_endless_sender_is_disconnected_without_growing_memory(live: Live) -> None:
    before = memory_of(live, "VmRSS")
    with ThreadPoolExecutor(len(ENDLESS)) as pool:
        ended = dict(zip(ENDLESS, pool.map(partial(is_cut_off, live.base), ENDLESS.values()), strict=True))
    assert all(ended.values()), ended
    assert memory_of(live, "VmRSS") - before < 16e6


# -- Clients that don't read, or disconnect


@pytest.mark.parametrize("asked", [DOWNLOADS, [PAGE * 40 * number + (PAGE, LAST)[number % 2] for number in range(30)]])
def test_client_that_reads_nothing_is_disconnected(live: Live, asked: list[bytes]) -> None:
    """It doesn't matter whether its responses are in the kernel's buffers, in the server's, or too much for these."""
    before = open_files(live)
    with ExitStack() as stack, ThreadPoolExecutor(len(asked)) as senders:
        connections = [stack.enter_context(connect(live.base, receive_buffer=4096)) for _ in asked]
        sending = [senders.submit(client.sendall, data) for client, data in zip(connections, asked, strict=True)]
        eventually(lambda: open_files(live) >= before + len(asked) * 2 // 3)
        eventually(lambda: open_files(live) <= before + 1)
        assert not any(isinstance(sent.exception(), TimeoutError) for sent in sending)


def test_slow_but_steady_reader_is_not_disconnected(live: Live) -> None:
    with connect(live.base) as connection:
        connection.sendall(head(f"{DOWNLOAD}?format=ndjson", "Connection: close"))
        began, received = time.monotonic(), bytearray()
        while time.monotonic() - began < 4 * CLIENT_TIMEOUT:
            received += connection.recv(100_000)
            time.sleep(CLIENT_TIMEOUT / 10)
        received += read_to_the_end(connection)
    assert received.endswith(b"\r\n0\r\n\r\n")
    assert len(received) > 10e6


def hang_up(base: str, number: int) -> None:
    """Send a request, read a part of the response or nothing, and disconnect with or without a reset."""
    asked = (DOWNLOADS[0], DOWNLOADS[2], FROM_DATABASE, PAGE, PAGE[:30], PAGE * 50, DOWNLOADS[0] + PAGE, b"")
    with connect(base) as connection:
        if number % 3 == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(asked[number % len(asked)])
        if number % 5 == 0:
            connection.settimeout(0.2)
            with suppress(TimeoutError):
                connection.recv(100_000)
        time.sleep(0.002 * (number % 7))


def test_storm_of_disconnecting_clients_leaves_nothing_open(live: Live) -> None:
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(partial(hang_up, live.base), range(400)))
    for _ in range(4):  # more than the pool's size
        assert ask(live.base, RECORD).status == 200


def test_lingering_client_is_disconnected(live: Live) -> None:
    before = open_files(live)
    with connect(live.base) as connection:
        connection.sendall(head(f"{LOCALIDADES}?page=2", "Content-Length: 5"))
        assert final_statuses(read_to_the_end(connection)) == [200]
        eventually(lambda: open_files(live) <= before)
