"""The protocol of `serve`: cached responses, pipelines, HTTP/1.0, and request bodies."""

import asyncio
import http.client
import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import product
from threading import Event, Thread
from typing import cast
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.transfers import TRANSPORT
from localidades_api.server.connections import Connections
from localidades_api.server.deadlines import Timeouts
from localidades_api.server.run import _make_protocol
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    LOCALIDADES,
    ask,
    connect,
    final_statuses,
    head,
    parse,
    read_answer,
    read_to_the_end,
    send,
    serving,
)

PAGE, BROWSABLE = head(f"{LOCALIDADES}?page=2"), head(f"{LOCALIDADES}?page=2&format=api")
LAST = head(f"{LOCALIDADES}?page=3", "Connection: close")
MATCH = f"{LOCALIDADES}match/"
ROW = b'{"nombre":"Aguascalientes","municipio":"Municipio 001","estado":"Ags."}\n'


# -- Responses


@pytest.mark.parametrize("target", [f"{LOCALIDADES}?page=2&format=api", f"{LOCALIDADES}10010001/", "/none", "/livez"])
def test_cached_response_is_identical_on_the_wire(live_server: str, target: str) -> None:
    """Identical except for the date; conditional requests and other hosts have separate cache entries."""
    with connect(live_server) as connection:

        def ask_again(*fields: str) -> bytes:
            connection.sendall(head(target, "Accept-Encoding: gzip", *fields))
            return re.sub(rb"date: [^\r]+", b"", read_answer(connection))

        first = ask_again()
        assert ask_again() == ask_again("User-Agent: x") == first
        if etag := re.search(rb'etag: ((?:W/)?"[^"]+")', first):
            condition = f"If-None-Match: {etag[1].decode()}"
            assert final_statuses(ask_again(condition) + ask_again(condition)) == [304, 304]
        assert final_statuses(ask_again("Host: test")) == [400]


def test_repeated_empty_download_ends(live_server: str) -> None:
    """It is sent at once, but chunked, without a length."""
    with httpx.Client(base_url=live_server, timeout=PATIENCE) as client:
        for _ in range(3):
            answer = client.get(f"{LOCALIDADES}download/?format=ndjson&municipio_id=1001&search=nonesuch")
            assert (answer.status_code, answer.content) == (200, b"")


def test_pipeline_is_answered_in_order(live_server: str) -> None:
    """Responses that trigger each other must not recurse; the thousandth is the last on a connection."""
    received = send(live_server, PAGE + BROWSABLE + PAGE * 1000)
    assert final_statuses(received) == [200] * 1000
    types = re.findall(rb"^content-type: ([a-z/]+)", received, re.MULTILINE)
    assert types == [b"application/json", b"text/html", *[b"application/json"] * 998]
    assert received.count(b"connection: close") == 1


@pytest.mark.parametrize("missing", [1, 2, 3, 4])
def test_head_whose_end_is_split_is_one_request(live_server: str, missing: int) -> None:
    """The application answers HEAD, so the second request waits."""
    first = head(LOCALIDADES, method="HEAD")
    with connect(live_server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(first[:-missing])
        time.sleep(0.05)  # for a packet of its own
        connection.sendall(first[-missing:] + LAST)
        assert final_statuses(read_to_the_end(connection)) == [200, 200]


def test_client_that_does_not_read_is_not_read_from(live_server: str) -> None:
    with connect(live_server) as connection:
        connection.settimeout(1)
        asked = head(f"{LOCALIDADES}?page_size=1000") * 100  # a thousand requests close a connection
        with suppress(TimeoutError, ConnectionResetError):
            for _ in range(10_000):  # many times the buffers of both ends
                connection.sendall(asked)
            pytest.fail("the server took everything and keeps the answers in memory")
    assert ask(live_server, LOCALIDADES).status == 200


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("OPTIONS", 204), ("DELETE", 405)])
def test_other_methods_get_no_cached_response(live_server: str, method: str, status: int) -> None:
    """The server itself answers only GET requests; the application answers these, without the page."""
    for _ in range(3):
        ask(live_server, LOCALIDADES)
    answers = send(live_server, head(LOCALIDADES, method=method) + head("/livez", "Connection: close"))
    assert final_statuses(answers) == [status, 204]
    assert b'"quantity"' not in answers


# -- HTTP/1.0


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", LOCALIDADES, b""),
        ("GET", f"{LOCALIDADES}download/", b""),
        ("GET", f"{LOCALIDADES}download/?format=parquet", b""),
        ("POST", MATCH, b"nombre,estado\nZurita,1\n"),
    ],
)
def test_http_1_0_response_ends_with_the_connection(live_server: str, method: str, target: str, body: bytes) -> None:
    """HTTP/1.0 has no chunks (RFC 9112 §6.1), and no interim answers (RFC 9110 §10.1.1)."""
    fields = ["Content-Type: text/csv", f"Content-Length: {len(body)}"] if body else []
    fields += ["Connection: keep-alive", "Expect: 100-continue"]
    answer = parse(send(live_server, head(target, *fields, method=method, version="1.0") + body))
    assert (answer.status, answer.one("connection"), answer.all("transfer-encoding")) == (200, "close", [])
    assert answer.all("content-length") == ([str(len(answer.body))] if target == LOCALIDADES else [])
    headers = {"Content-Type": "text/csv", "Accept-Encoding": "identity"}
    again = httpx.request(method, live_server + target, content=body, headers=headers, timeout=PATIENCE)
    assert answer.body == again.content


@contextmanager
def serving_app(app: ASGIApp, timeout: float = PATIENCE) -> Iterator[str]:
    """Serve an application in a thread, with the protocol of `serve`; yield its root URL."""
    protocol = cast("type[asyncio.Protocol]", partial(_make_protocol, Connections(100, Timeouts(timeout, timeout))))
    server = uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            eventually(lambda: server.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the server logs an error."""
    yield
    assert [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR] == []


@pytest.mark.usefixtures("no_errors")
@pytest.mark.parametrize("begins", ["before", "after"])
@pytest.mark.parametrize("headers", [[], [(b"content-length", b"2")]])
def test_http_1_0_client_that_has_left_is_not_an_error(headers: list[tuple[bytes, bytes]], begins: str) -> None:
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
            client.sendall(head("/", version="1.0"))
            assert is_running.wait(PATIENCE)
        assert has_ended.wait(PATIENCE)


def test_aborted_http_1_0_stream_resets_the_connection() -> None:
    """An HTTP/1.0 client can't recognize a truncated response by anything else."""

    async def broken(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await asyncio.sleep(0.1)  # the sent bytes must have left
        raise RuntimeError

    with serving_app(broken) as base, connect(base) as client:
        client.sendall(head("/", version="1.0"))
        received = b""
        while not received.endswith(b"\r\n\r\na"):
            received += client.recv(65536)
        assert b"content-length" not in received
        with pytest.raises(ConnectionResetError):
            client.recv(1)


# -- Bodies, as routes of an extended application receive them

BODY = b'{"name":"Aguascalientes"}'
LENGTH, CHUNKED = f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"
CHUNKS = b"%x\r\n%b\r\n0\r\nContent-Type: text/plain\r\n\r\n" % (len(BODY), BODY)  # with a trailer
SMUGGLED = head("/echo")
H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUA")
FRAMED: dict[str, tuple[list[str], bytes]] = {
    "length": ([LENGTH], BODY),
    "chunked": ([CHUNKED], CHUNKS),
    "extension": ([CHUNKED], CHUNKS.replace(b"\r\n", b";a=b\r\n", 1)),
    "expects": ([LENGTH, "Expect: 100-continue"], BODY),
    "upgrade": ([LENGTH, "Connection: Upgrade", "Upgrade: foo"], BODY),
    "upgrade to WebSocket": ([LENGTH, "Connection: Upgrade", "Upgrade: websocket"], BODY),
    "upgrade to HTTP/2": ([LENGTH, *H2C], BODY),  # as Java's client sends it
    "upgrade, chunked": ([*H2C, CHUNKED], CHUNKS),
    "upgrade that expects": ([*H2C, LENGTH, "Expect: 100-continue"], BODY),
}
WITH_BODY = ["POST", "PUT", "PATCH", "DELETE", "QUERY"]
WITHOUT_BODY = ["GET", "HEAD", "OPTIONS", "TRACE"]


async def echo(request: Request) -> Response:
    body = await request.body()
    types = request.headers.getlist("content-type")
    return JSONResponse({"method": request.method, "body": body.decode(), "types": types})


async def count(request: Request) -> Response:
    return JSONResponse(len(await request.body()))


async def refuse(_: Request) -> Response:
    return Response("too much", 413)


@pytest.fixture(scope="module")
def extended() -> Iterator[str]:
    """Yield a server with routes that this project doesn't have."""
    routes = [
        Route("/echo", echo, methods=WITH_BODY + WITHOUT_BODY),
        Route("/count", count, methods=["PUT"]),
        Route("/refuse", refuse, methods=["PUT"]),
    ]
    with serving_app(Starlette(routes=routes)) as base:
        yield base


@pytest.mark.usefixtures("no_errors")
@pytest.mark.parametrize(
    ("method", "shape"),
    [*(("POST", shape) for shape in FRAMED), *product(WITH_BODY[1:] + WITHOUT_BODY, ["length", "chunked"])],
)
def test_body_reaches_the_route_or_is_discarded_and_ends_the_connection(extended: str, method: str, shape: str) -> None:
    fields, body = FRAMED[shape]
    asked = head("/echo", "Content-Type: application/json", *fields, method=method)
    data = asked + body + SMUGGLED
    read = BODY.decode() if method in WITH_BODY else ""
    for pieces in ([data], [asked, body + SMUGGLED], [data[start : start + 7] for start in range(0, len(data), 7)]):
        with connect(extended) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(ConnectionError):
                for piece in pieces:
                    client.sendall(piece)
            received = read_to_the_end(client)
        assert final_statuses(received) == [200]
        answer = parse(received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"))
        assert answer.one("connection") == "close"
        echoed = {"method": method, "body": read, "types": ["application/json"]}
        assert method == "HEAD" or json.loads(answer.body) == echoed


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_request_without_a_body_keeps_its_connection(extended: str, method: str) -> None:
    asked = head("/echo", "Content-Length: 0", method=method) * 2 + head("/echo", "Connection: close")
    assert final_statuses(send(extended, asked)) == [200] * 3


def test_silent_client_is_disconnected() -> None:
    with serving_app(Response(), timeout=0.1) as base:
        assert send(base, b"") == b""


def test_expecting_client_is_told_to_continue(extended: str) -> None:
    with connect(extended) as client:
        client.sendall(head("/echo", *FRAMED["expects"][0], method="POST"))
        assert read_answer(client) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(BODY)
        assert BODY.decode() in json.loads(parse(read_to_the_end(client)).body)["body"]


def test_body_larger_than_any_buffer_is_streamed(extended: str) -> None:
    size = 20_000_000
    received = send(extended, head("/count", f"Content-Length: {size}", method="PUT") + bytes(size))
    assert json.loads(parse(received).body) == size


def test_refusal_reaches_a_client_that_is_still_sending(extended: str) -> None:
    """Most clients, such as Python's, send the whole body first and would only notice a closed connection."""
    for _ in range(3):
        with closing(http.client.HTTPConnection(urlsplit(extended).netloc, timeout=PATIENCE)) as client:
            client.request("PUT", "/refuse", body=bytes(5_000_000))
            assert client.getresponse().status == 413


# -- Rows


def test_client_may_read_after_sending_everything(live_server: str) -> None:
    rows = 15_000  # 8 MB of responses, more than a connection buffers
    data = ROW * rows
    fields = ["Content-Type: application/x-ndjson", f"Content-Length: {len(data)}"]
    with connect(live_server, receive_buffer=4096) as client:
        client.sendall(head(MATCH, *fields, method="POST") + data)
        received = read_to_the_end(client)
    assert received.count(b'"outcome":"exact"') == rows
    assert received.endswith(b"\r\n0\r\n\r\n")


def test_client_disconnecting_within_its_body_is_not_an_error_and_frees_its_slot(server: str, seeded: str) -> None:
    rows, form = ("application/x-ndjson", ROW[:20]), ("application/x-www-form-urlencoded", b"queries=%7B")
    with new_database(server, seeded) as url, serving(
        url, LOCALIDADES_ACCESS_LOG="on", LOCALIDADES_MAX_TRANSFERS="1"
    ) as live:  # fmt: skip
        for target, (content_type, sent) in [(MATCH, rows), ("/api/census/reconcile/", form)]:
            with connect(live.base) as client:
                fields = [f"Content-Type: {content_type}", "Content-Length: 1000"]
                client.sendall(head(target, *fields, method="POST") + sent)
        eventually(lambda: live.output.read_text().count(" 400 ") == 2)
        logged = live.output.read_text()
        ndjson = ("Content-Type", rows[0])
        eventually(lambda: ask(live.base, MATCH, ndjson, method="POST", body=ROW).status == 200)
    assert not any(words in logged for words in (" 500 ", " error ", "Traceback"))
