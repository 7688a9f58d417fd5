"""Request bodies under the protocol of `serve`, as routes of an extended application receive them."""

import http.client
import json
import logging
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.processes.serving_app import serving_app
from tests.support.waiting import PATIENCE
from tests.support.wire import connect, parse, read_answer, send, statuses

BODY = b'{"name":"Aguascalientes"}'
CHUNKED = b"%x\r\n%b\r\n0\r\nContent-Type: text/plain\r\n\r\n" % (len(BODY), BODY)  # with a trailer
SMUGGLED = b"GET /echo HTTP/1.1\r\nHost: test\r\n\r\n"
FRAMED = {
    "length": ([f"Content-Length: {len(BODY)}"], BODY),
    "chunked": (["Transfer-Encoding: chunked"], CHUNKED),
    "extension": (["Transfer-Encoding: chunked"], CHUNKED.replace(b"\r\n", b";a=b\r\n", 1)),
    "upgrade": ([f"Content-Length: {len(BODY)}", "Connection: Upgrade", "Upgrade: foo"], BODY),
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


ROUTES = [
    Route("/echo", echo, methods=WITH_BODY + WITHOUT_BODY),
    Route("/count", count, methods=["PUT"]),
    Route("/refuse", refuse, methods=["PUT"]),
]


@pytest.fixture(scope="module")
def live() -> Iterator[str]:
    """Yield a server with routes that this project doesn't have."""
    with serving_app(Starlette(routes=ROUTES)) as base:
        yield base


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the server logs an error."""
    yield
    assert [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR] == []


def request(method: str, target: str, *fields: str) -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: test", *fields, "", ""]).encode()


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("shape", FRAMED)
def test_body_reaches_the_route_and_ends_the_connection(live: str, method: str, shape: str) -> None:
    framing, sent = FRAMED[shape]
    head = request(method, "/echo", "Content-Type: application/json", *framing)
    received = send(live, head + sent + SMUGGLED)
    with connect(live) as late:  # the body comes once the head has been read
        late.sendall(head)
        late.sendall(sent + SMUGGLED)
        assert statuses(read_answer(late)) == [b"200"]
        with suppress(ConnectionResetError):
            assert late.recv(1) == b""
    assert statuses(received) == [b"200"]
    answer = parse(received)
    assert answer.one("connection") == "close"
    assert json.loads(answer.body) == {"method": method, "body": BODY.decode(), "types": ["application/json"]}


@pytest.mark.parametrize("method", WITHOUT_BODY)
@pytest.mark.parametrize("shape", ["length", "chunked"])
def test_body_of_a_get_is_discarded(live: str, method: str, shape: str) -> None:
    framing, sent = FRAMED[shape]
    received = send(live, request(method, "/echo", *framing) + sent + SMUGGLED)
    assert statuses(received) == [b"200"]
    answer = parse(received)
    assert answer.one("connection") == "close"
    if method != "HEAD":
        assert json.loads(answer.body) == {"method": method, "body": "", "types": []}


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_request_without_a_body_keeps_its_connection(live: str, method: str) -> None:
    last = request("GET", "/echo", "Connection: close")
    received = send(live, request(method, "/echo", "Content-Length: 0") * 2 + last)
    assert statuses(received) == [b"200"] * 3


def test_body_larger_than_any_buffer_is_streamed(live: str) -> None:
    size = 20_000_000
    received = send(live, request("PUT", "/count", f"Content-Length: {size}") + bytes(size))
    assert json.loads(parse(received).body) == size


def test_refusal_reaches_a_client_that_is_still_sending(live: str) -> None:
    """Most clients, such as Python's, send the whole body first and would only notice a closed connection."""
    for _ in range(3):
        with closing(http.client.HTTPConnection(urlsplit(live).netloc, timeout=PATIENCE)) as client:
            client.request("PUT", "/refuse", body=bytes(5_000_000))
            assert client.getresponse().status == 413
