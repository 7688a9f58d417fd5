"""Bodies on a real connection: streamed both ways, framed without doubt, and no longer than the server's patience."""

import json
import re
import socket
from contextlib import suppress

import pytest

from tests.support.postgres import new_database
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, ask, connect, parse, send, serving

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
    """Return the content of a chunked body; fail if its last chunk is missing."""
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


def test_client_that_reads_only_when_it_has_sent_everything_gets_every_answer(live_server: str) -> None:
    rows = 15_000  # 8 MB of answers, more than a connection holds
    data = ROW * rows
    with connect(live_server, receive_buffer=4096) as client:
        client.sendall(head(f"Content-Length: {len(data)}") + data)
        answer = parse(read_to_the_end(client))
    assert outcomes(dechunked(answer.body)) == ["exact"] * rows


def test_client_that_waits_to_be_told_to_continue_is_told(live_server: str) -> None:
    with connect(live_server) as client:
        client.sendall(head(f"Content-Length: {len(ROW)}", "Expect: 100-continue"))
        told = read_until(client, b"\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 100 ")
        client.sendall(ROW)
        received = read_to_the_end(client).removeprefix(told)
    assert outcomes(dechunked(parse(received).body)) == ["exact"]


FRAMED = {
    "length": (head(f"Content-Length: {len(ROW)}"), ROW),
    "chunked": (head("Transfer-Encoding: chunked"), chunk(ROW) + b"0\r\n\r\n"),
    "upgrade": (head(f"Content-Length: {len(ROW)}", "Connection: Upgrade", "Upgrade: foo"), ROW),
    "trailer": (head("Transfer-Encoding: chunked"), chunk(ROW) + b"0\r\nContent-Type: text/csv\r\n\r\n"),
    "extension": (head("Transfer-Encoding: chunked"), chunk(ROW).replace(b"\r\n", b";a=b\r\n", 1) + b"0\r\n\r\n"),
}


@pytest.mark.parametrize("shape", FRAMED)
@pytest.mark.parametrize("is_late", [False, True])
def test_what_follows_a_body_is_no_request(live_server: str, shape: str, *, is_late: bool) -> None:
    smuggled = f"GET {LOCALIDADES}10010004/ HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    start, sent = FRAMED[shape]
    with connect(live_server) as client:
        if is_late:
            client.sendall(start)
            client.sendall(sent + smuggled)
        else:
            client.sendall(start + sent + smuggled)
        received = read_to_the_end(client)
    assert re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received) == [b"200"]
    assert b"connection: close" in received
    assert b"10010004" not in received


BROKEN = {
    "chunk of no size": b"x\r\n",
    "chunk longer than it says": b"1\r\nab\r\n",
    "trailer that is none": b"0\r\nA b\r\n\r\n",
    "trailer without end": b"0\r\n" + b"A: b" * 100_000,
}


@pytest.mark.parametrize("shape", BROKEN)
def test_body_that_is_framed_wrongly_is_refused(live_server: str, shape: str) -> None:
    with connect(live_server) as client:
        client.sendall(head("Transfer-Encoding: chunked") + chunk(ROW))
        with suppress(ConnectionError):
            client.sendall(BROKEN[shape])
        received = read_to_the_end(client)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 400") == 1


def test_body_behind_a_pipelined_request_is_read_and_its_answer_comes_second(live_server: str) -> None:
    before = f"GET {LOCALIDADES}?page=1&format=json HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    received = send(live_server, before * 2 + head(f"Content-Length: {len(ROW)}") + ROW)
    assert re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received) == [b"200"] * 3
    assert received.count(b'"outcome":"exact"') == 1


@pytest.mark.parametrize("shape", BROKEN)
def test_requests_before_a_body_that_is_framed_wrongly_are_answered(live_server: str, shape: str) -> None:
    keys = [b"10010001", b"10010002", b"10010003"]
    before = b"".join(b"GET %s%s/ HTTP/1.1\r\nHost: test\r\n\r\n" % (LOCALIDADES.encode(), key) for key in keys)
    received = send(live_server, before + head("Transfer-Encoding: chunked") + BROKEN[shape])
    assert re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received) == [b"200"] * 3 + [b"400"]
    assert re.findall(rb'"id":(1001\d{4})', received) == keys


def test_large_body_that_is_refused_is_no_broken_connection(live_server: str) -> None:
    data = b"x" * 3_000_000
    with connect(live_server) as client:
        client.sendall(head(f"Content-Length: {len(data)}").replace(b"x-ndjson", b"pdf"))
        with suppress(ConnectionError):
            client.sendall(data[:500_000])
        received = read_until(client, b'"supported"')
    assert received.startswith(b"HTTP/1.1 415 ")


def test_client_that_goes_gives_its_place_back(live_server: str) -> None:
    """More clients than may be answered at a time, one after the other, each gone in the middle of its body."""
    for _ in range(10):
        with connect(live_server) as client:
            client.sendall(head("Transfer-Encoding: chunked", "Expect: 100-continue"))
            read_until(client, b"\r\n\r\n")
            client.sendall(chunk(ROW))
    eventually(lambda: ask(live_server, MATCH, NDJSON, method="POST", body=ROW).status == 200)


def test_client_that_goes_amid_its_body_is_no_fault_of_the_service(server: str, seeded: str) -> None:
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
