"""Slow, silent, oversized and disconnected clients get their due and leave nothing open."""

import http.client
import json
import random
import re
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

import pytest

from tests.support.application import import_file
from tests.support.catalogue import Place, write_catalogue
from tests.support.downloads import LETTERS
from tests.support.machine import memory_of, open_files
from tests.support.postgres import await_idle_connections, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    LOCALIDADES,
    Answer,
    Live,
    ask,
    await_names,
    connect,
    parse,
    read_answer,
    send,
    serving,
    statuses,
)

pytestmark = pytest.mark.tail

CLIENT_TIMEOUT, KEEP_ALIVE_TIMEOUT = 1.5, 3.0
DOWNLOAD = f"{LOCALIDADES}download/?format=ndjson"
PAGE = f"GET {LOCALIDADES}?page=2 HTTP/1.1\r\nHost: test\r\n\r\n".encode()
LAST = PAGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
FROM_DATABASE = f"GET {LOCALIDADES}10010001/ HTTP/1.1\r\nHost: test\r\n\r\n".encode()


@pytest.fixture(scope="module")
def strict(server: str, seeded: str) -> Iterator[Live]:
    """Yield a server with short timeouts on the small catalogue."""
    with new_database(server, seeded) as url, serving(
        url,
        LOCALIDADES_KEEP_ALIVE_TIMEOUT=str(KEEP_ALIVE_TIMEOUT),
        LOCALIDADES_CLIENT_TIMEOUT=str(CLIENT_TIMEOUT),
    ) as live:  # fmt: skip
        await_names(live.base)
        yield live


def read_to_the_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def assert_problem(answer: Answer, status: int, slug: str) -> None:
    assert answer.status == status, answer.text
    assert answer.one("content-type") == "application/problem+json"
    assert answer.one("connection") == "close"
    assert answer.one("cache-control") == "no-store"
    assert answer.one("allow") == "GET"
    assert answer.one("vary") == "Accept"
    assert answer.one("access-control-allow-origin") == "*"
    assert answer.one("date")
    assert int(answer.one("content-length")) == len(answer.body)
    problem = json.loads(answer.body)
    assert problem["type"] == f"/problems#{slug}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]


def head_of(size: int, target: str = f"{LOCALIDADES}?page=2") -> bytes:
    """Return a complete head of this size."""
    start = f"GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nX-Padding: ".encode()
    return start + b"a" * (size - len(start) - 4) + b"\r\n\r\n"


# -- Slow and silent


def test_unfinished_head_is_408(strict: Live) -> None:
    began = time.monotonic()
    answer = parse(send(strict.base, PAGE[:-2]))
    assert_problem(answer, 408, "request-timeout")
    assert time.monotonic() - began >= CLIENT_TIMEOUT


def test_head_timeout_does_not_depend_on_the_client_timeout(server: str, seeded: str) -> None:
    with new_database(server, seeded) as url, serving(url, LOCALIDADES_CLIENT_TIMEOUT="600") as live:
        assert_problem(parse(send(live.base, PAGE[:-2])), 408, "request-timeout")


def test_slow_bytes_do_not_extend_the_head_timeout(strict: Live) -> None:
    with connect(strict.base) as connection:
        connection.settimeout(0.1)
        received = b""
        for byte in PAGE:
            connection.sendall(bytes([byte]))
            try:
                received = connection.recv(65536)
                break
            except TimeoutError:
                continue
        assert_problem(parse(received), 408, "request-timeout")


@pytest.mark.parametrize("said", [b"", b"\r\n", b"\r\n\r\n\r\n"])
def test_silent_connection_is_closed_without_a_response(strict: Live, said: bytes) -> None:
    began = time.monotonic()
    assert send(strict.base, said) == b""
    assert time.monotonic() - began >= CLIENT_TIMEOUT


def test_empty_lines_do_not_keep_a_connection_open(strict: Live) -> None:
    with connect(strict.base) as connection:
        connection.sendall(PAGE)
        connection.settimeout(0.5)
        deadline, received = time.monotonic() + PATIENCE, b""
        while time.monotonic() < deadline:
            try:
                connection.sendall(b"\r\n")
                if not (chunk := connection.recv(65536)):
                    break
                received += chunk
            except TimeoutError:
                continue
            except OSError:  # closed between the two
                break
        else:
            pytest.fail("it is still open")
        assert statuses(received) == [b"200"]


@pytest.mark.parametrize("first", [PAGE, FROM_DATABASE])
def test_next_head_has_its_own_timeout(strict: Live, first: bytes) -> None:
    with connect(strict.base) as connection:
        connection.sendall(first)
        assert statuses(read_answer(connection)) == [b"200"]
        time.sleep(0.2)
        began = time.monotonic()
        connection.sendall(PAGE[:20])
        assert_problem(parse(read_to_the_end(connection)), 408, "request-timeout")
        assert time.monotonic() - began >= CLIENT_TIMEOUT


def test_request_before_half_a_head_is_answered(strict: Live) -> None:
    received = send(strict.base, FROM_DATABASE + PAGE + PAGE[:20])
    assert statuses(received) == [b"200", b"200", b"408"]
    assert_problem(parse(received[received.rindex(b"HTTP/1.1 ") :]), 408, "request-timeout")


def test_lingering_client_is_disconnected(strict: Live) -> None:
    before = open_files(strict)
    with connect(strict.base) as connection:
        connection.sendall(PAGE.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n"))
        assert statuses(read_to_the_end(connection)) == [b"200"]
        await_open_files(strict, before)


# -- Too large, or not HTTP


def test_head_of_16_kib_is_read_and_one_byte_more_is_431(strict: Live) -> None:
    assert parse(send(strict.base, head_of(16 * 1024))).status == 200
    assert_problem(parse(send(strict.base, head_of(16 * 1024 + 1))), 431, "header-fields-too-large")


def test_target_of_8_kib_is_read_and_one_byte_more_is_414(strict: Live) -> None:
    target = "/" + "a" * (8 * 1024 - 1)
    assert ask(strict.base, target).status == 404
    assert_problem(ask(strict.base, target + "a"), 414, "uri-too-long")
    assert_problem(ask(strict.base, f"{LOCALIDADES}?page=" + "1" * 200_000), 414, "uri-too-long")


@pytest.mark.parametrize("piece", [37, 700, 16 * 1024, 16 * 1024 + 1, 100_000])
def test_limits_do_not_depend_on_how_a_head_is_split(live_server: str, piece: int) -> None:
    for head, status in ((head_of(3000), 200), (head_of(17_000), 431), (head_of(17_000, "/" + "b" * 9000), 414)):
        with connect(live_server) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start in range(0, len(head), piece):
                connection.sendall(head[start : start + piece])
                time.sleep(0.001)
            assert parse(read_to_the_end(connection)).status == status


def test_large_pipeline_is_not_a_large_head(strict: Live) -> None:
    """Each head counts alone, however many come in a read and wherever a read ends."""
    with connect(strict.base) as connection:
        connection.sendall(head_of(15_000).replace(b"Connection: close\r\n", b"") * 20)
        connection.sendall(PAGE * 300 + LAST)
        received = statuses(read_to_the_end(connection))
    assert received == [b"200"] * 321


def test_large_head_in_a_pipeline_is_refused_in_its_turn(strict: Live) -> None:
    for before in (PAGE, FROM_DATABASE, FROM_DATABASE + PAGE):
        received = send(strict.base, before + head_of(40_000) + PAGE)
        expected = [b"200"] * before.count(b"GET") + [b"431"]
        assert statuses(received) == expected


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"hello\r\n\r\n",
     b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", b"GET / HTTP/1.1\r\nHo st: a\r\n\r\n",
     b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
     b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_other_protocols_are_400(strict: Live, garbage: bytes) -> None:
    assert_problem(parse(send(strict.base, garbage)), 400, "bad-request")


@pytest.mark.parametrize("before", [PAGE, FROM_DATABASE, FROM_DATABASE + PAGE])
def test_garbage_after_requests_does_not_mix_with_their_responses(strict: Live, before: bytes) -> None:
    received = send(strict.base, before + b"\x00garbage\r\n\r\n")
    assert statuses(received) == [b"200"] * before.count(b"GET") + [b"400"]
    first = received.index(b"\r\n\r\n") + 4
    (length,) = re.findall(rb"content-length: (\d+)", received[:first])
    assert received[first + int(length) :].startswith(b"HTTP/1.1 ")


ENDLESS = {
    "target": b"GET /" + b"a" * 9000,
    "header": b"GET / HTTP/1.1\r\nX: ",
    "body": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000000\r\n\r\n",
    "trailer": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ",
    "trailer after a ready answer": PAGE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ",
    "trailer in a download": f"GET {DOWNLOAD} HTTP/1.1\r\nHost: a\r\n".encode()
    + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ",
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


def test_endless_sender_is_disconnected_without_growing_memory(strict: Live) -> None:
    ask(strict.base, LOCALIDADES)
    before = memory_of(strict, "VmRSS")
    with ThreadPoolExecutor(len(ENDLESS)) as pool:
        ended = dict(zip(ENDLESS, pool.map(partial(is_cut_off, strict.base), ENDLESS.values()), strict=True))
    assert all(ended.values()), ended
    assert memory_of(strict, "VmRSS") - before < 16e6
    assert ask(strict.base, LOCALIDADES).status == 200


# -- Clients that don't read, or disconnect


@pytest.fixture(scope="module")
def large(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a database whose download doesn't fit into buffers: not to be written to."""
    names = random.Random(6)  # noqa: S311  # no secret
    places = [
        Place(
            f"01{1 + number // 2000:03d}{1 + number % 2000:04d}", f"{number} {''.join(names.choices(LETTERS, k=180))}"
        )
        for number in range(20_000)
    ]
    file = write_catalogue(tmp_path_factory.mktemp("large") / "catun_localidad_2020-01.csv", places)
    with new_database(server, migrated) as url:
        import_file(url, file)
        yield url


@contextmanager
def serving_large(server: str, large: str) -> Iterator[tuple[Live, str]]:
    with new_database(server, large) as url, serving(
        url,
        LOCALIDADES_POOL_SIZE="2",
        LOCALIDADES_KEEP_ALIVE_TIMEOUT=str(KEEP_ALIVE_TIMEOUT),
        LOCALIDADES_CLIENT_TIMEOUT=str(CLIENT_TIMEOUT),
        LOCALIDADES_RELEASE_POLL="60",
        LOCALIDADES_PAGE_CACHE_BYTES="1000000",
    ) as live:  # fmt: skip
        assert ask(live.base, f"{LOCALIDADES}?page=2").status == 200
        await_names(live.base)
        yield live, url


def await_open_files(live: Live, most: int) -> None:
    """Wait until at most this number of files is open."""
    eventually(
        lambda: open_files(live) <= most,
        otherwise=lambda: f"{open_files(live)} files are open, {most} at most should be",
    )


def assert_stops_at_once(live: Live) -> None:
    """Check that no task is left for which the server would wait."""
    live.process.terminate()
    assert live.process.wait(PATIENCE) == 0
    log = live.output.read_text()
    assert "to complete" not in log, log
    assert "to close" not in log, log
    assert "Exception in ASGI" not in log, log


def download(coding: str = "identity") -> bytes:
    return f"GET {DOWNLOAD} HTTP/1.1\r\nHost: test\r\nAccept-Encoding: {coding}\r\n\r\n".encode()


def test_unread_download_ends_and_leaves_nothing_open(server: str, large: str) -> None:
    with serving_large(server, large) as (live, url):
        before = open_files(live) + 1  # the pool may open its second connection
        with ExitStack() as stack:
            for coding in ("identity", "gzip", "zstd"):
                stack.enter_context(connect(live.base, receive_buffer=4096)).sendall(download(coding))
            eventually(lambda: open_files(live) >= before + 2)
            await_open_files(live, before)
        await_idle_connections(url)
        assert_stops_at_once(live)


def test_unread_responses_end_wherever_the_reader_stopped(server: str, large: str) -> None:
    """All in the kernel's buffers, some in the server's, or too much there: it must not matter."""
    with serving_large(server, large) as (live, _):
        before = most = open_files(live)
        deadline = time.monotonic() + PATIENCE
        with ExitStack() as stack, ThreadPoolExecutor(30) as senders:

            def ask_much(number: int) -> None:
                with suppress(TimeoutError):
                    connections[number].sendall(PAGE * (40 * number) + (PAGE, LAST)[number % 2])

            connections = [stack.enter_context(connect(live.base, receive_buffer=4096)) for _ in range(30)]
            for connection in connections:
                connection.settimeout(2)
            asking = [senders.submit(ask_much, number) for number in range(30)]
            while not all(one.done() for one in asking) or most <= before + 20:
                most = max(most, open_files(live))
                assert time.monotonic() < deadline, most
            for one in asking:
                one.result()
            await_open_files(live, before)
        assert_stops_at_once(live)


def test_slow_but_steady_reader_is_not_disconnected(server: str, large: str) -> None:
    with serving_large(server, large) as (live, _), connect(live.base) as connection:
        connection.sendall(download().replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        began, received = time.monotonic(), bytearray()
        while time.monotonic() - began < 4 * CLIENT_TIMEOUT:
            received += connection.recv(100_000)
            time.sleep(CLIENT_TIMEOUT / 10)
        received += read_to_the_end(connection)
        assert received.endswith(b"\r\n0\r\n\r\n")
        assert len(received) > 10e6


def hang_up(base: str, number: int) -> None:
    """Send a request, read a part of the response or nothing, and disconnect with or without a reset."""
    asked = (download(), download("zstd"), FROM_DATABASE, PAGE, PAGE[:30], PAGE * 50, download() + PAGE, b"")
    with connect(base) as connection:
        if number % 3 == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(asked[number % len(asked)])
        if number % 5 == 0:
            connection.settimeout(0.2)
            with suppress(TimeoutError):
                connection.recv(100_000)
        time.sleep(0.002 * (number % 7))


def test_storm_of_disconnecting_clients_leaves_nothing_open(server: str, large: str) -> None:
    with serving_large(server, large) as (live, url):
        before = open_files(live) + 1  # the pool may open its second connection
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(partial(hang_up, live.base), range(400)))
        await_open_files(live, before)
        await_idle_connections(url)
        for _ in range(4):  # more than the pool's size
            assert ask(live.base, f"{LOCALIDADES}10010001/").status == 200
        assert_stops_at_once(live)


# -- Slowloris


class Slowloris:
    """Many connections that each send a byte of a head now and then, and are reopened when closed."""

    def __init__(self, base: str, count: int) -> None:
        self._address = (urlsplit(base).hostname, urlsplit(base).port)
        self._open: list[socket.socket] = []
        self._count = count
        self.refused = 0

    def send_a_byte_each(self) -> None:
        """Send a byte on every connection, and reopen closed ones."""
        for connection in self._open:
            try:
                connection.send(b"a")
            except OSError:
                self.refused += 1
                connection.close()
        self._open = [connection for connection in self._open if connection.fileno() >= 0]
        while len(self._open) < self._count:
            connection = socket.create_connection(self._address, timeout=10)
            connection.sendall(b"GET / HTTP/1.1\r\nX: ")
            self._open.append(connection)

    def close(self) -> None:
        """Disconnect."""
        for connection in self._open:
            connection.close()


def ask_in_turn(base: str, count: int) -> None:
    """Request this number of pages on one connection."""
    with closing(http.client.HTTPConnection(urlsplit(base).netloc, timeout=PATIENCE)) as client:
        for number in range(count):
            client.request("GET", f"{LOCALIDADES}?page={1 + number % 3}" if number % 2 else f"{LOCALIDADES}10010001/")
            response = client.getresponse()
            response.read()
            assert response.status == 200
            time.sleep(0.005)


def test_slowloris_does_not_block_other_requests(strict: Live) -> None:
    before = most = open_files(strict)
    with closing(Slowloris(strict.base, 500)) as attack, ThreadPoolExecutor(1) as pool:
        attack.send_a_byte_each()
        ordinary = pool.submit(ask_in_turn, strict.base, 500)
        while not ordinary.done() or attack.refused <= 500:
            attack.send_a_byte_each()
            most = max(most, open_files(strict))
            time.sleep(0.2)
        ordinary.result()
        assert most > before + 400
    await_open_files(strict, before + 1)
