"""Ready answers on the wire: pipelines, old clients, slow readers, and what comes after them on the connection."""

import re
import time

import httpx
import pytest

from tests.support.wire import LOCALIDADES, ask, connect, parse, read_answer, send, serving, statuses

PAGE = f"GET {LOCALIDADES}?page=2 HTTP/1.1\r\nHost: test\r\n\r\n".encode()
LARGE = PAGE.replace(b"?page=2", b"?page_size=1000")  # a thousand requests close a connection
BROWSABLE = f"GET {LOCALIDADES}?page=2&format=api HTTP/1.1\r\nHost: test\r\n\r\n".encode()
CSV = b"nombre,estado\nZurita,1\n"
LAST = f"GET {LOCALIDADES}?page=3 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize(
    "target",
    [
        LOCALIDADES, f"{LOCALIDADES}?page=2&format=api", f"{LOCALIDADES}10010001/", f"{LOCALIDADES}suggest/?q=lugar",
        f"{LOCALIDADES}tiles/0/0/0.mvt", "/api/census/estados/", "/api/census/", "/nothing", "/livez", "/match",
    ],
)  # fmt: skip
def test_what_is_held_is_written_as_it_was_at_first(live_server: str, target: str) -> None:
    """Byte for byte but for the date; what is conditional, or named by another host, is held by its own spelling."""
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


def test_download_without_a_record_ends_however_often_it_is_asked_for(live_server: str) -> None:
    """It comes in one piece, but its length is not said: chunks frame it."""
    with httpx.Client(base_url=live_server) as client:
        for _ in range(3):
            answer = client.get(f"{LOCALIDADES}download/?format=ndjson&municipio_id=1001&search=nonesuch")
            assert (answer.status_code, answer.content) == (200, b"")


def test_pipeline_is_answered_in_its_order(live_server: str) -> None:
    received = send(live_server, PAGE + BROWSABLE + PAGE + PAGE + LAST)
    assert statuses(received) == [b"200"] * 5
    types = re.findall(rb"^content-type: ([a-z/]+)", received, re.MULTILINE)
    assert types == [b"application/json", b"text/html", *[b"application/json"] * 3]


def test_long_pipeline_behind_a_slow_answer_is_answered_whole(live_server: str) -> None:
    """Answers that start each other must not go down the stack."""
    assert len(statuses(send(live_server, BROWSABLE + PAGE * 900 + LAST))) == 902


def test_client_that_asks_and_does_not_read_is_not_read_from_either(live_server: str) -> None:
    with connect(live_server) as connection:
        connection.settimeout(1)
        sent = 0
        try:
            for _ in range(10_000):  # many times what the buffers of both ends hold
                connection.sendall(LARGE * 100)
                sent += 100
        except (TimeoutError, ConnectionResetError):
            pass
        assert sent < 1_000_000, "the server took everything and keeps the answers in memory"
    assert ask(live_server, LOCALIDADES).status == 200


def test_old_client_gets_its_answer_and_the_end_of_the_connection(live_server: str) -> None:
    answer = parse(send(live_server, f"GET {LOCALIDADES} HTTP/1.0\r\n\r\n".encode()))
    assert answer.status == 200
    assert answer.one("connection") == "close"
    assert int(answer.one("content-length")) == len(answer.body)


def test_idle_connection_is_closed_and_a_busy_one_is_not(seeded_database: str) -> None:
    """The time that a connection is kept begins anew with each answer."""
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
def test_streamed_answer_to_an_old_client_ends_with_the_connection(live_server: str, head: str, body: bytes) -> None:
    """HTTP/1.0 has no chunks (RFC 9112 §6.1), and no interim answers (RFC 9110 §10.1.1)."""
    fields = f"Host: test\r\nContent-Type: text/csv\r\nContent-Length: {len(body)}\r\n" if body else "Host: test\r\n"
    old = send(live_server, f"{head} HTTP/1.0\r\n{fields}Expect: 100-continue\r\n\r\n".encode() + body)
    answer = parse(old)
    assert (answer.status, answer.one("connection")) == (200, "close")
    assert answer.all("transfer-encoding") == answer.all("content-length") == []
    method, target = head.split()
    headers = {"Content-Type": "text/csv", "Accept-Encoding": "identity"}
    assert answer.body == httpx.request(method, live_server + target, content=body, headers=headers).content
