"""Request smuggling: each response goes to the client that sent the request."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.machine import needed
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, connect, send

SMUGGLED = f"GET {LOCALIDADES}10010004/ HTTP/1.1\r\nHost: test\r\n\r\n".encode()  # its response belongs to no client
LENGTH = b"Content-Length: %d\r\n" % len(SMUGGLED)
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: foo\r\n"


def request(
    fields: bytes, method: bytes = b"POST", target: str = f"{LOCALIDADES}?page=2", version: str = "1.1"
) -> bytes:
    """Return the head of a request."""
    return b"%b %b HTTP/%b\r\nHost: test\r\n%b\r\n" % (method, target.encode(), version.encode(), fields)


# Heads and the bytes behind them, sent at once or one after the other.
BODIES = {
    "upgrade": (request(UPGRADE + LENGTH), SMUGGLED),
    "upgrade of a GET": (request(UPGRADE + LENGTH, b"GET"), SMUGGLED),
    "upgrade to h2c": (request(b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + LENGTH), SMUGGLED),
    "upgrade to websocket": (request(UPGRADE.replace(b"foo", b"websocket") + LENGTH, b"GET"), SMUGGLED),
    "upgrade, chunked": (request(UPGRADE + CHUNKED), CHUNK),
    "upgrade, close": (request(b"Connection: close, Upgrade\r\nUpgrade: foo\r\n" + LENGTH), SMUGGLED),
    "upgrade that expects": (request(UPGRADE + LENGTH + b"Expect: 100-continue\r\n"), SMUGGLED),
    "connect": (request(b"", b"CONNECT", "/"), SMUGGLED),
    "connect with a body": (request(LENGTH, b"CONNECT", "/"), SMUGGLED),
    "content-length": (request(LENGTH), SMUGGLED),
    "content-length of a GET": (request(LENGTH, b"GET"), SMUGGLED),
    "content-length with zeros": (request(LENGTH.replace(b": ", b": 000")), SMUGGLED),
    "content-length and blanks": (request(LENGTH.replace(b"\r", b" \t\r")), SMUGGLED),
    "content-length of 1.0": (request(LENGTH + b"Connection: keep-alive\r\n", version="1.0"), SMUGGLED),
    "1.0 without a body": (request(b"Connection: keep-alive\r\n", b"GET", version="1.0"), SMUGGLED),
    "content-length too short": (request(b"Content-Length: 1\r\n"), b"a" + SMUGGLED),
    "expects": (request(LENGTH + b"Expect: 100-continue\r\n"), SMUGGLED),
    "expects, as a GET": (request(LENGTH + b"Expect: 100-continue\r\n", b"GET"), SMUGGLED),
    "expects something else": (request(LENGTH + b"Expect: x 100-continue\r\n"), SMUGGLED),
    "chunked": (request(CHUNKED), CHUNK),
    "chunked of a GET": (request(CHUNKED, b"GET"), CHUNK),
    "chunked of 1.0": (request(CHUNKED + b"Connection: keep-alive\r\n", version="1.0"), CHUNK),
    "chunk extension": (request(CHUNKED), CHUNK.replace(b"\r\n", b";a=b\r\n", 1)),
    "chunk extension, quoted": (request(CHUNKED), CHUNK.replace(b"\r\n", b';a="\n"\r\n', 1)),
    "chunk extension, bare LF": (request(CHUNKED), b"2;\nxx\r\n" + CHUNK),
    "chunk, bare LF": (request(CHUNKED), CHUNK.replace(b"\r\n", b"\n", 1)),
    "chunk without end": (request(CHUNKED), b"0\r\n" + SMUGGLED),
    "trailer with a length": (request(CHUNKED), b"0\r\n" + LENGTH + b"\r\n" + SMUGGLED),
    "trailer, bare LF": (request(CHUNKED), b"0\r\nA: b\n\r\n" + SMUGGLED),
    "absolute form": (request(LENGTH, target=f"http://test{LOCALIDADES}?page=2"), SMUGGLED),
}  # fmt: skip

# Those that are not a valid body: 400, unless the response is already in progress.
MALFORMED = {
    "chunk extension, quoted", "chunk extension, bare LF", "chunk, bare LF", "chunk without end",
    "trailer with a length", "trailer, bare LF",
}  # fmt: skip

# Heads that two servers could read differently: a single response, 400.
REFUSED = {
    "length and chunked": LENGTH + CHUNKED,
    "chunked and length": CHUNKED + LENGTH,
    "length of nothing and chunked": b"Content-Length: 0\r\n" + CHUNKED,
    "two lengths": LENGTH + b"Content-Length: 0\r\n",
    "two lengths that agree": LENGTH + LENGTH,
    "list of lengths": LENGTH.replace(b"\r\n", b", 0\r\n"),
    "length with a sign": LENGTH.replace(b": ", b": +"),
    "length in hexadecimal": b"Content-Length: 0x10\r\n",
    "length of nothing": b"Content-Length:\r\n",
    "length that overflows": b"Content-Length: 18446744073709551617\r\n",
    "length, blank before the colon": LENGTH.replace(b":", b" :"),
    "length on two lines": b"Content-Length: 1\r\n 0\r\n",
    "chunked, blank before the colon": CHUNKED.replace(b":", b" :"),
    "chunked on two lines": b"Transfer-Encoding:\r\n chunked\r\n",
    "chunked behind a tabulator": CHUNKED.replace(b"\r", b"\t\r"),
    "vertical tabulator": CHUNKED.replace(b": ", b": \x0b"),
    "identity": b"Transfer-Encoding: identity\r\n",
    "identity and chunked": b"Transfer-Encoding: identity\r\n" + CHUNKED,
    "chunked and identity": CHUNKED + b"Transfer-Encoding: identity\r\n",
    "chunked twice": CHUNKED + CHUNKED,
    "chunked within a list": b"Transfer-Encoding: gzip, chunked\r\n",
    "chunked behind a comma": b"Transfer-Encoding: , chunked\r\n",
    "not quite chunked": b"Transfer-Encoding: xchunked\r\n",
    "chunked in quotes": b'Transfer-Encoding: "chunked"\r\n',
    "header on two lines": b"X: a\r\n b\r\n",
    "bare LF": b"X: a\n" + LENGTH,
    "bare CR": b"X: a\r" + LENGTH,
    "NUL": b"X: a\x00b\r\n",
    "header without a colon": b"X\r\n",
}  # fmt: skip


def read_final_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Return the status and body of one final response; 0 if none came."""
    received = b""
    while not (
        head := re.match(rb"(?:HTTP/1\.1 100 .*?\r\n\r\n)?HTTP/1\.1 ([2-5]\d\d) .*?\r\n\r\n", received, re.DOTALL)
    ):
        if not (piece := connection.recv(65536)):
            return 0, received
        received += piece
    length = re.search(rb"content-length: (\d+)", head[0], re.IGNORECASE)
    expected = int(length[1]) if length else 0
    while len(received) < head.end() + expected and (piece := connection.recv(65536)):
        received += piece
    return int(head[1]), received[head.end() : head.end() + expected]


def read_to_the_end(connection: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def final_statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received)]


@pytest.mark.parametrize("shape", BODIES)
def test_split_body_is_not_a_request(live_server: str, shape: str) -> None:
    head, body = BODIES[shape]
    with connect(live_server) as connection:
        connection.sendall(head)
        status, _ = read_final_answer(connection)
        assert status in {200, 405}
        with suppress(ConnectionError):
            connection.sendall(body)
        assert read_to_the_end(connection) == b""


@pytest.mark.parametrize("shape", REFUSED)
def test_ambiguous_head_is_400_and_closes(live_server: str, shape: str) -> None:
    received = send(live_server, request(REFUSED[shape], b"GET") + CHUNK + SMUGGLED)
    assert final_statuses(received) == [400]
    assert b"connection: close" in received


# -- After requests that are answered from the cache

SOUND = request(b"", b"GET") * 2


@pytest.mark.parametrize("shape", BODIES)
def test_pipelined_body_is_not_a_request(live_server: str, shape: str) -> None:
    received = send(live_server, SOUND + b"".join(BODIES[shape]))
    assert final_statuses(received) in [[200, 200, last] for last in ([400] if shape in MALFORMED else [200, 405])]
    assert b"connection: close" in received


@pytest.mark.parametrize("shape", REFUSED)
def test_pipelined_ambiguous_head_is_400(live_server: str, shape: str) -> None:
    assert final_statuses(send(live_server, SOUND + request(REFUSED[shape]) + CHUNK + SMUGGLED)) == [200, 200, 400]


@pytest.mark.parametrize(
    "head",
    [
        SOUND[: len(SOUND) // 2].replace(b"Host: test\r\n", b""),
        request(b"Host: test\r\n", b"GET"),
        request(b"", b"GET", version="0.9"),
        request(b"", b"GET", version="2.0"),
        request(b"", b"GET", target=f"http://a@test{LOCALIDADES}"),
    ],
)
def test_pipelined_bad_head_is_400(live_server: str, head: bytes) -> None:
    assert final_statuses(send(live_server, SOUND + head + SMUGGLED)) == [200, 200, 400]


@pytest.mark.parametrize("size", [1, 7, 50, 500])
def test_upgrade_is_refused_and_closes(live_server: str, size: int) -> None:
    data = request(b"", b"GET") + request(UPGRADE, b"GET") + SMUGGLED
    with connect(live_server) as connection, suppress(ConnectionError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(data), size):
            connection.sendall(data[start : start + size])
        received = read_to_the_end(connection)
    assert final_statuses(received) == [200, 200]
    assert received.count(b"connection: close") == 1


def test_response_reaches_a_client_that_is_still_sending(live_server: str) -> None:
    """Closing a connection with unread bytes resets it, and the client may lose a response not read yet."""
    with connect(live_server) as connection:
        connection.sendall(request(b"Content-Length: 300000\r\n"))
        for _ in range(30):
            connection.sendall(b"a" * 10_000)
        assert final_statuses(read_to_the_end(connection)) == [405]


# -- Host


@pytest.mark.parametrize(
    "host",
    ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host: a b\r\n", "Host: a/b\r\n", "Host: a@b\r\n",
     "Host: a:b\r\n", "Host: a:1:2\r\n", "Host: http://a\r\n", "Host: [::1\r\n", "Host: a#\r\n", "Host: a?b\r\n",
     "Host: a, b\r\n", "Host: a%2\r\n", 'Host: "a"\r\n', "Host: <a>\r\n", "Host: ñ\r\n"],
)  # fmt: skip
def test_bad_host_header_is_rejected(live_server: str, host: str) -> None:
    for target in (LOCALIDADES, "/livez"):  # with and without a cached response
        received = send(live_server, f"GET {target} HTTP/1.1\r\n{host}\r\n".encode() + SMUGGLED)
        assert final_statuses(received) == [400]
        assert b"connection: close" in received
        assert b'"/problems#bad-request"' in received


@pytest.mark.parametrize(
    "host",
    ["a", "a:80", "a:", "192.0.2.1:8000", "[::1]", "[::1]:8000", "[fe80::1%25eth0]", "xn--a-2ja.example.", "a_b", "",
     "a%C3%B1"],
)  # fmt: skip
def test_good_host_header_is_accepted(live_server: str, host: str) -> None:
    received = send(live_server, f"GET {LOCALIDADES} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert final_statuses(received) == [200]


@pytest.mark.parametrize(("host", "status"), [("", 200), ("Host: a\r\n", 200), ("Host: a\r\nHost: a\r\n", 400)])
def test_http_1_0_needs_no_host_header(live_server: str, host: str, status: int) -> None:
    assert final_statuses(send(live_server, f"GET {LOCALIDADES} HTTP/1.0\r\n{host}\r\n".encode())) == [status]


def test_response_without_a_host_is_not_cached(live_server: str) -> None:
    target = f"GET {LOCALIDADES}?page=2&format=json HTTP/"
    for _ in range(2):
        assert final_statuses(send(live_server, f"{target}1.0\r\n\r\n".encode())) == [200]
    assert final_statuses(send(live_server, f"{target}1.1\r\n\r\n".encode() + SMUGGLED)) == [400]


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [("http://api.test/livez", "api.test", 204), ("http://api.test:80/docs", "other.test", 200),
     ("http://other.test/docs", "api.test", 200), ("http://api.test@other.test/docs", "api.test", 400),
     ("http://a@api.test/docs", "api.test", 400), ("http://api.test?a", "api.test", 400)],
)  # fmt: skip
def test_absolute_target_needs_a_host(live_server: str, target: str, host: str, status: int) -> None:
    received = send(live_server, f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert final_statuses(received) == [status]


# -- Through a proxy that reuses connections for different clients

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log stderr emerg;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    upstream service {{ server {service}; keepalive 1; }}
    server {{
        listen unix:{folder}/listen;
        location / {{ proxy_pass http://service; }}
        proxy_http_version 1.1;
        proxy_set_header Host $host;
        {options}
    }}
}}
"""
# A proxy configured as in most guides, one that also passes upgrades, and one that streams bodies.
NGINX_OPTIONS = {
    "nginx": 'proxy_set_header Connection "";',
    "nginx, upgrades": "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;",
    "nginx, upgrades and bodies at once": "proxy_set_header Upgrade $http_upgrade; "
    "proxy_set_header Connection $connection_upgrade; proxy_request_buffering off;",
}
HAPROXY = """
global
    tune.bufsize 32768
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 5s
    http-reuse always
    {options}
frontend public
    bind unix@{folder}/listen
    default_backend service
backend service
    server service {service}
"""
HAPROXY_OPTIONS = {"haproxy": "", "haproxy, lenient": "option accept-invalid-http-request"}


@contextmanager
def proxying(program: str, configuration: str, service: str, options: str) -> Iterator[str]:
    """Run a proxy in front of a server, on a socket in a new folder."""
    path = needed(shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin"), f"install {program}")
    with tempfile.TemporaryDirectory(prefix="proxy-") as folder:
        file = Path(folder) / "proxy.conf"
        file.write_text(configuration.format(folder=folder, service=urlsplit(service).netloc, options=options))
        arguments = (
            ["-db", "-f", str(file)] if program == "haproxy" else ["-e", "stderr", "-p", folder, "-c", str(file)]
        )
        process = subprocess.Popen([path, *arguments], stdout=subprocess.DEVNULL)
        try:
            listening = Path(folder) / "listen"
            eventually(lambda: listening.exists() or process.poll() is not None)
            assert process.poll() is None, f"{program} does not start"
            yield f"unix://{folder}/listen"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="module", params=[*NGINX_OPTIONS, *HAPROXY_OPTIONS])
def proxy(request: pytest.FixtureRequest, live_server: str) -> Iterator[str]:
    """Yield a proxy in front of the service."""
    if request.param in NGINX_OPTIONS:
        running = proxying("nginx", NGINX, live_server, NGINX_OPTIONS[request.param])
    else:
        running = proxying("haproxy", HAPROXY, live_server, HAPROXY_OPTIONS[request.param])
    with running as address:
        yield address


def attack(proxy: str, head: bytes, body: bytes, pause: float) -> None:
    """Send a head and the bytes behind it, and disconnect after a response."""
    with connect(proxy) as connection, suppress(OSError):
        connection.settimeout(1)
        connection.sendall(head)
        time.sleep(pause)
        connection.sendall(body)
        read_final_answer(connection)


def read_own_answers(proxy: str, key: str, over: threading.Event) -> Counter[str]:
    """Request a record repeatedly; count correct and other responses."""
    counts: Counter[str] = Counter()
    while not over.is_set():
        with connect(proxy) as connection:
            for _ in range(20):
                connection.sendall(request(b"", b"GET", f"{LOCALIDADES}{key}/"))
                status, body = read_final_answer(connection)
                is_own = status == 200 and str(json.loads(body).get("id")) == key
                counts["own" if is_own else f"{status} of somebody else"] += 1
                if not is_own:
                    break
    return counts


@pytest.mark.tail
def test_responses_behind_a_proxy_match_their_requests(proxy: str) -> None:
    shapes = BODIES | {shape: (request(fields), CHUNK + SMUGGLED) for shape, fields in REFUSED.items()}
    over = threading.Event()
    with ThreadPoolExecutor(6) as pool:
        victims = [pool.submit(read_own_answers, proxy, key, over) for key in ("10010001", "10010002", "10010003")]
        attacks = [
            pool.submit(attack, proxy, head, body, pause)
            for head, body in shapes.values()
            for pause in (0, 0.001, 0.002, 0.003) * 4
        ]
        try:
            for one in attacks:
                one.result()
        finally:
            over.set()
        counts = sum((one.result() for one in victims), Counter())
    assert set(counts) == {"own"}, counts
    assert counts["own"] > 20
