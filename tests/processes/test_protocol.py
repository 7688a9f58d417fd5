"""The protocol of `serve`: cached responses, pipelines, HTTP/1.0, slow readers, and streamed bodies."""

import asyncio
import json
import logging
import re
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from threading import Event

import httpx
import pytest
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from localidades_api.http.transfers import TRANSPORT
from tests.processes.serving_app import serving_app
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, ask, connect, parse, read_answer, send, serving, statuses

PAGE = f"GET {LOCALIDADES}?page=2 HTTP/1.1\r\nHost: test\r\n\r\n".encode()
LARGE = PAGE.replace(b"?page=2", b"?page_size=1000")  # a thousand requests close a connection
BROWSABLE = f"GET {LOCALIDADES}?page=2&format=api HTTP/1.1\r\nHost: test\r\n\r\n".encode()
CSV = b"nombre,estado\nZurita,1\n"
LAST = f"GET {LOCALIDADES}?page=3 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize(
    "target",
    [
        LOCALIDADES, f"{LOCALIDADES}?page=2&format=api", f"{LOCALIDADES}10010001/", f"{LOCALIDADES}tiles/0/0/0.mvt",
        "/nothing", "/livez", "/match",
    ],
)  # fmt: skip
def test_cached_response_is_identical_on_the_wire(live_server: str, target: str) -> None:
    """Identical except for the date; conditional requests and other hosts have separate cache entries."""
    with connect(live_server) as connection:

        def ask_again(*fields: str) -> bytes:
            lines = [f"GET {target} HTTP/1.1", *(fields or ["Host: test"]), "Accept-Encoding: gzip", "", ""]
            connection.sendall("\r\n".join(lines).encode())
            return re.sub(rb"date: [^\r]+", b"", read_answer(connection))

        first = ask_again()
        assert ask_again() == ask_again("Host: test", "User-Agent: x") == first
        if etag := re.search(rb'etag: ((?:W/)?"[^"]+")', first):
            condition = f"If-None-Match: {etag[1].decode()}"
            assert ask_again("Host: test", condition) == ask_again("Host: test", condition)
            assert statuses(ask_again("Host: test", condition)) == [b"304"]
        assert statuses(ask_again("Host: a b")) == [b"400"]


def test_repeated_empty_download_ends(live_server: str) -> None:
    """It is sent at once, but chunked, without a length."""
    with httpx.Client(base_url=live_server) as client:
        for _ in range(3):
            answer = client.get(f"{LOCALIDADES}download/?format=ndjson&municipio_id=1001&search=nonesuch")
            assert (answer.status_code, answer.content) == (200, b"")


def test_pipeline_is_answered_in_order(live_server: str) -> None:
    received = send(live_server, PAGE + BROWSABLE + PAGE + PAGE + LAST)
    assert statuses(received) == [b"200"] * 5
    types = re.findall(rb"^content-type: ([a-z/]+)", received, re.MULTILINE)
    assert types == [b"application/json", b"text/html", *[b"application/json"] * 3]


def test_long_pipeline_after_a_slow_response_is_answered_completely(live_server: str) -> None:
    """Responses that trigger each other must not recurse."""
    assert len(statuses(send(live_server, BROWSABLE + PAGE * 900 + LAST))) == 902


def test_client_that_does_not_read_is_not_read_from(live_server: str) -> None:
    with connect(live_server) as connection:
        connection.settimeout(1)
        sent = 0
        try:
            for _ in range(10_000):  # many times the buffers of both ends
                connection.sendall(LARGE * 100)
                sent += 100
        except (TimeoutError, ConnectionResetError):
            pass
        assert sent < 1_000_000, "the server took everything and keeps the answers in memory"
    assert ask(live_server, LOCALIDADES).status == 200


def test_http_1_0_response_ends_the_connection(live_server: str) -> None:
    answer = parse(send(live_server, f"GET {LOCALIDADES} HTTP/1.0\r\n\r\n".encode()))
    assert answer.status == 200
    assert answer.one("connection") == "close"
    assert int(answer.one("content-length")) == len(answer.body)


@pytest.mark.parametrize(
    ("line", "status"), [("HEAD {} HTTP/1.1", 200), ("OPTIONS {} HTTP/1.1", 204), ("DELETE {} HTTP/1.1", 405)]
)
def test_other_methods_get_no_cached_response(live_server: str, line: str, status: int) -> None:
    """The server itself answers only GET requests; the application answers these, without the page."""
    for _ in range(3):
        ask(live_server, LOCALIDADES)
    last = "GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    answers = send(live_server, f"{line.format(LOCALIDADES)}\r\nHost: test\r\n\r\n{last}".encode())
    assert answers.startswith(f"HTTP/1.1 {status} ".encode())
    assert b'"quantity"' not in answers
    assert b"HTTP/1.1 204 " in answers.partition(b"\r\n\r\n")[2]


def test_only_idle_connections_are_closed(seeded_database: str) -> None:
    """The keep-alive timeout starts again with each response."""
    with serving(seeded_database, LOCALIDADES_KEEP_ALIVE_TIMEOUT="2.5") as live, connect(live.base) as connection:
        for pause in (1.3, 1.3, 0):
            asked = time.monotonic()
            connection.sendall(PAGE)
            assert b"200" in read_answer(connection)
            time.sleep(pause)
        assert connection.recv(1) == b""
        assert time.monotonic() - asked >= 2.5


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (f"GET {LOCALIDADES}download/", b""),
        (f"GET {LOCALIDADES}download/?format=parquet", b""),
        (f"POST {LOCALIDADES}match/", CSV),
        (f"POST {LOCALIDADES}nearest/", b"latitud,longitud\n21.88,-102.29\n"),
    ],
)
def test_http_1_0_stream_ends_with_the_connection(live_server: str, head: str, body: bytes) -> None:
    """HTTP/1.0 has no chunks (RFC 9112 §6.1), and no interim answers (RFC 9110 §10.1.1)."""
    fields = f"Host: test\r\nContent-Type: text/csv\r\nContent-Length: {len(body)}\r\n" if body else "Host: test\r\n"
    old = send(live_server, f"{head} HTTP/1.0\r\n{fields}Expect: 100-continue\r\n\r\n".encode() + body)
    answer = parse(old)
    assert (answer.status, answer.one("connection")) == (200, "close")
    assert answer.all("transfer-encoding") == answer.all("content-length") == []
    method, target = head.split()
    headers = {"Content-Type": "text/csv", "Accept-Encoding": "identity"}
    assert answer.body == httpx.request(method, live_server + target, content=body, headers=headers).content


def test_http_1_0_client_leaving_a_download_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    has_ended = Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield bytes(65536)
                    await asyncio.sleep(0)
            finally:
                has_ended.set()

        await StreamingResponse(pieces())(scope, receive, send)

    with serving_app(endless) as base:
        with connect(base) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert client.recv(65536)
        assert has_ended.wait(PATIENCE)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("leaving", ["closes", "resets"])
@pytest.mark.parametrize("begins", ["before", "after"])
@pytest.mark.parametrize("headers", [[], [(b"content-length", b"2")]])
def test_http_1_0_client_that_has_left_is_not_an_error(
    caplog: pytest.LogCaptureFixture, headers: list[tuple[bytes, bytes]], begins: str, leaving: str
) -> None:
    """The application may go on with a response whose transport is closed."""
    is_running, has_ended = Event(), Event()

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        transport: asyncio.Transport = scope[TRANSPORT]
        start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        if begins == "before":
            await send(start)
        is_running.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        while transport.get_extra_info("socket").fileno() != -1:  # noqa: ASYNC110  # no event says so
            await asyncio.sleep(0.01)  # connection_lost is called before
        if begins == "after":
            await send(start)
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})
        has_ended.set()

    with serving_app(late) as base:
        with connect(base) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert is_running.wait(PATIENCE)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", leaving == "resets", 0))
        assert has_ended.wait(PATIENCE)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("ending", ["fails", "is cut off"])
def test_aborted_http_1_0_stream_resets_the_connection(ending: str) -> None:
    """An HTTP/1.0 client can't recognize a truncated response by anything else."""

    async def broken(scope: Scope, _: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await asyncio.sleep(0.1)  # the sent bytes must have left
        if ending == "fails":
            raise RuntimeError
        transport: asyncio.Transport = scope[TRANSPORT]
        transport.abort()
        await asyncio.sleep(0)

    with serving_app(broken) as base, connect(base) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        received = read_until(client, b"\r\n\r\na")
        assert b"content-length" not in received
        with pytest.raises(ConnectionResetError):
            client.recv(1)


MATCH = f"{LOCALIDADES}match/"
RECONCILE = "/api/census/reconcile/"
NDJSON = ("Content-Type", "application/x-ndjson")
ROW = b'{"nombre":"Aguascalientes","municipio":"Municipio 001","estado":"Ags."}\n'


def head(*fields: str, target: str = MATCH) -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: test", "Content-Type: application/x-ndjson", *fields, "", ""]
    return "\r\n".join(lines).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def dechunked(body_: bytes) -> bytes:
    """Decode a chunked body; fail if its last chunk is missing."""
    content, rest = b"", body_
    while True:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert rest == b"\r\n"
            return content
        content, rest = content + rest[:length], rest[length + 2 :]


def outcomes(content: bytes) -> list[str]:
    return [json.loads(line)["outcome"] for line in content.splitlines()]


def read_until(client: socket.socket, wanted: bytes, received: bytes = b"") -> bytes:
    while wanted not in received:
        piece = client.recv(65536)
        assert piece, received
        received += piece
    return received


def read_to_the_end(client: socket.socket, received: bytes = b"") -> bytes:
    with suppress(ConnectionResetError):
        while piece := client.recv(65536):
            received += piece
    return received


def test_client_may_read_after_sending_everything(live_server: str) -> None:
    rows = 15_000  # 8 MB of responses, more than a connection buffers
    data = ROW * rows
    with connect(live_server, receive_buffer=4096) as client:
        client.sendall(head(f"Content-Length: {len(data)}") + data)
        answer = parse(read_to_the_end(client))
    assert outcomes(dechunked(answer.body)) == ["exact"] * rows


def test_expect_continue_is_answered(live_server: str) -> None:
    with connect(live_server) as client:
        client.sendall(head(f"Content-Length: {len(ROW)}", "Expect: 100-continue"))
        told = read_until(client, b"\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 100 ")
        client.sendall(ROW)
        received = read_to_the_end(client).removeprefix(told)
    assert outcomes(dechunked(parse(received).body)) == ["exact"]


H2C = (
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
)
UPGRADES = {
    "to HTTP/2": (head(f"Content-Length: {2 * len(ROW)}", *H2C), ROW * 2),  # as Java's client sends it
    "to something else": (head("Upgrade: foo", "Connection: Upgrade", f"Content-Length: {2 * len(ROW)}"), ROW * 2),
    "to WebSocket": (head(f"Content-Length: {2 * len(ROW)}", "Connection: Upgrade", "Upgrade: websocket"), ROW * 2),
    "chunked": (head(*H2C, "Transfer-Encoding: chunked"), chunk(ROW) * 2 + b"0\r\nA: b\r\n\r\n"),
    "expects": (head(f"Content-Length: {2 * len(ROW)}", *H2C, "Expect: 100-continue"), ROW * 2),
}


@pytest.mark.parametrize("shape", UPGRADES)
def test_body_of_an_upgrade_is_read(live_server: str, shape: str) -> None:
    data = b"".join(UPGRADES[shape])
    for size in (7, 1_000_000):
        with connect(live_server) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start in range(0, len(data), size):
                client.sendall(data[start : start + size])
            received = read_to_the_end(client)
        answer = parse(received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"))
        assert outcomes(dechunked(answer.body)) == ["exact", "exact"]
        assert b"connection: close" in received


def test_malformed_body_of_an_upgrade_is_refused(live_server: str) -> None:
    with connect(live_server) as client:
        client.sendall(head("Transfer-Encoding: chunked", *H2C) + chunk(ROW) + b"x\r\n")
        received = read_to_the_end(client)
    assert re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received) == [b"400"]


BROKEN = {
    "chunk of no size": b"x\r\n",
    "chunk longer than it says": b"1\r\nab\r\n",
    "trailer that is none": b"0\r\nA b\r\n\r\n",
    "trailer without end": b"0\r\n" + b"A: b" * 100_000,
}


@pytest.mark.parametrize("shape", BROKEN)
def test_badly_framed_body_is_refused(live_server: str, shape: str) -> None:
    with connect(live_server) as client:
        client.sendall(head("Transfer-Encoding: chunked") + chunk(ROW))
        with suppress(ConnectionError):
            client.sendall(BROKEN[shape])
        received = read_to_the_end(client)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 400") == 1


def test_pipelined_request_with_a_body_is_answered_in_order(live_server: str) -> None:
    before = f"GET {LOCALIDADES}?page=1&format=json HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    received = send(live_server, before * 2 + head(f"Content-Length: {len(ROW)}") + ROW)
    assert re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received) == [b"200"] * 3
    assert received.count(b'"outcome":"exact"') == 1


@pytest.mark.parametrize("shape", BROKEN)
def test_requests_before_a_badly_framed_body_are_answered(live_server: str, shape: str) -> None:
    keys = [b"10010001", b"10010002", b"10010003"]
    before = b"".join(b"GET %s%s/ HTTP/1.1\r\nHost: test\r\n\r\n" % (LOCALIDADES.encode(), key) for key in keys)
    received = send(live_server, before + head("Transfer-Encoding: chunked") + BROKEN[shape])
    assert re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received) == [b"200"] * 3 + [b"400"]
    assert re.findall(rb'"id":(1001\d{4})', received) == keys


def test_refused_large_body_does_not_break_the_connection(live_server: str) -> None:
    data = b"x" * 3_000_000
    with connect(live_server) as client:
        client.sendall(head(f"Content-Length: {len(data)}").replace(b"x-ndjson", b"pdf"))
        with suppress(ConnectionError):
            client.sendall(data[:500_000])
        received = read_until(client, b'"supported"')
    assert received.startswith(b"HTTP/1.1 415 ")


def test_disconnected_client_frees_its_slot(live_server: str) -> None:
    """More clients than the limit, one after the other, each disconnecting within its body."""
    for _ in range(10):
        with connect(live_server) as client:
            client.sendall(head("Transfer-Encoding: chunked", "Expect: 100-continue"))
            read_until(client, b"\r\n\r\n")
            client.sendall(chunk(ROW))
    eventually(lambda: ask(live_server, MATCH, NDJSON, method="POST", body=ROW).status == 200)


def test_client_disconnecting_within_its_body_is_not_an_error(server: str, seeded: str) -> None:
    rows, form = ("application/x-ndjson", ROW[:20]), ("application/x-www-form-urlencoded", b"queries=%7B")
    with new_database(server, seeded) as url, serving(url, LOCALIDADES_ACCESS_LOG="on") as live:
        for target, (content_type, sent) in ((MATCH, rows), (RECONCILE, form)):
            with connect(live.base) as client:
                lines = [f"POST {target} HTTP/1.1", "Host: test", f"Content-Type: {content_type}"]
                client.sendall("\r\n".join([*lines, "Content-Length: 1000", "", ""]).encode() + sent)
        eventually(lambda: live.output.read_text().count(" 400 ") == 2)
        logged = live.output.read_text()
    assert " 500 " not in logged
    assert " error " not in logged
    assert "Traceback" not in logged
