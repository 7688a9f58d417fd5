"""Request smuggling: each response goes to the client that sent the request."""

from contextlib import suppress

import pytest

from tests.support.wire import LOCALIDADES, connect, final_statuses, parse, read_answer, read_to_the_end, send

SMUGGLED = f"GET {LOCALIDADES}10010004/ HTTP/1.1\r\nHost: test\r\n\r\n".encode()  # its response belongs to no client
LENGTH = b"Content-Length: %d\r\n" % len(SMUGGLED)
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
CHUNKED, EXPECT = b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n"
UPGRADE, KEEP = b"Connection: Upgrade\r\nUpgrade: foo\r\n", b"Connection: keep-alive\r\n"


def request(
    fields: bytes, method: bytes = b"POST", target: str = f"{LOCALIDADES}?page=2", version: str = "1.1"
) -> bytes:
    """Return the head of a request."""
    return b"%b %b HTTP/%b\r\nHost: test\r\n%b\r\n" % (method, target.encode(), version.encode(), fields)


# Heads and the bytes behind them, sent at once or one after the other.
BODIES = {
    "upgrade": (request(UPGRADE + LENGTH), SMUGGLED),
    "upgrade of a GET": (request(UPGRADE + LENGTH, b"GET"), SMUGGLED),
    "upgrade without a body": (request(UPGRADE, b"GET"), SMUGGLED),
    "upgrade to h2c": (request(b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + LENGTH), SMUGGLED),
    "upgrade to websocket": (request(UPGRADE.replace(b"foo", b"websocket") + LENGTH, b"GET"), SMUGGLED),
    "upgrade, chunked": (request(UPGRADE + CHUNKED), CHUNK),
    "upgrade, close": (request(b"Connection: close, Upgrade\r\nUpgrade: foo\r\n" + LENGTH), SMUGGLED),
    "upgrade that expects": (request(UPGRADE + LENGTH + EXPECT), SMUGGLED),
    "connect": (request(b"", b"CONNECT", "/"), SMUGGLED),
    "connect with a body": (request(LENGTH, b"CONNECT", "/"), SMUGGLED),
    "content-length": (request(LENGTH), SMUGGLED),
    "content-length of a GET": (request(LENGTH, b"GET"), SMUGGLED),
    "content-length with zeros": (request(LENGTH.replace(b": ", b": 000")), SMUGGLED),
    "content-length of 1.0": (request(LENGTH + KEEP, version="1.0"), SMUGGLED),
    "1.0 without a body": (request(KEEP, b"GET", version="1.0"), SMUGGLED),
    "content-length too short": (request(b"Content-Length: 1\r\n"), b"a" + SMUGGLED),
    "expects": (request(LENGTH + EXPECT), SMUGGLED),
    "expects, as a GET": (request(LENGTH + EXPECT, b"GET"), SMUGGLED),
    "chunked": (request(CHUNKED), CHUNK),
    "chunked of a GET": (request(CHUNKED, b"GET"), CHUNK),
    "chunked of 1.0": (request(CHUNKED + KEEP, version="1.0"), CHUNK),
    "chunk extension": (request(CHUNKED), CHUNK.replace(b"\r\n", b";a=b\r\n", 1)),
    "absolute form": (request(LENGTH, target=f"http://test{LOCALIDADES}?page=2"), SMUGGLED),
    # Not a valid body: 400, unless the response is already in progress.
    "malformed: extension, quoted": (request(CHUNKED), CHUNK.replace(b"\r\n", b';a="\n"\r\n', 1)),
    "malformed: extension, bare LF": (request(CHUNKED), b"2;\nxx\r\n" + CHUNK),
    "malformed: bare LF": (request(CHUNKED), CHUNK.replace(b"\r\n", b"\n", 1)),
    "malformed: no size": (request(CHUNKED), b"x\r\n" + SMUGGLED),
    "malformed: longer than it says, upgrade": (request(UPGRADE + CHUNKED), b"1\r\nab\r\n" + SMUGGLED),
    "malformed: without end": (request(CHUNKED), b"0\r\n" + SMUGGLED),
    "malformed: trailer with a length": (request(CHUNKED), b"0\r\n" + LENGTH + b"\r\n" + SMUGGLED),
    "malformed: trailer, bare LF": (request(CHUNKED), b"0\r\nA: b\n\r\n" + SMUGGLED),
}  # fmt: skip

# Heads that two servers could read differently, and what isn't HTTP/1.1.
REFUSED = {
    **{fields.decode("latin-1"): request(fields) for fields in [
        LENGTH + CHUNKED, CHUNKED + LENGTH, b"Content-Length: 0\r\n" + CHUNKED, LENGTH + b"Content-Length: 0\r\n",
        LENGTH + LENGTH, LENGTH.replace(b"\r\n", b", 0\r\n"), LENGTH.replace(b": ", b": +"), b"Content-Length: x\r\n",
        b"Content-Length: 0x10\r\n", b"Content-Length:\r\n", b"Content-Length: 18446744073709551617\r\n",
        LENGTH.replace(b":", b" :"), b"Content-Length: 1\r\n 0\r\n", CHUNKED.replace(b":", b" :"),
        b"Transfer-Encoding:\r\n chunked\r\n", CHUNKED.replace(b"\r", b"\t\r"), CHUNKED.replace(b": ", b": \x0b"),
        b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: identity\r\n" + CHUNKED,
        CHUNKED + b"Transfer-Encoding: identity\r\n", CHUNKED + CHUNKED, b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: , chunked\r\n", b"Transfer-Encoding: xchunked\r\n", b'Transfer-Encoding: "chunked"\r\n',
        b"X: a\r\n b\r\n", b"X: a\n" + LENGTH, b"X: a\r" + LENGTH, b"X: a\x00b\r\n", b"X\r\n", b"X y: a\r\n",
        b"Host: test\r\n",
    ]},
    **{f"host {host}": b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode() for host in [
        "a b", "a/b", "a@b", "a:b", "a:1:2", "http://a", "[::1", "a#", "a?b", "a, b", "a%2", '"a"', "<a>", "ñ",
    ]},
    "no host": f"GET {LOCALIDADES}?page=2 HTTP/1.1\r\n\r\n".encode(),
    "two hosts of 1.0": request(b"Host: test\r\n", b"GET", version="1.0"),
    **{f"target {target}": request(b"", b"GET", target) for target in [
        f"http://a@test{LOCALIDADES}", "http://api.test@other.test/docs", "http://api.test?a", "http://["]},
    **{f"method {method}": request(b"", method.encode()) for method in ("FROB", "<script>")},
    **{f"version {version}": request(b"", b"GET", version=version) for version in ("0.9", "2.0", "9.9")},
    **{str(sent): sent for sent in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"hello\r\n\r\n", b"\x00garbage\r\n\r\n"]},
}  # fmt: skip

BEFORE = request(b"", b"GET") * 2 + request(b"", b"GET", f"{LOCALIDADES}10010001/")  # cached, and from the database


@pytest.mark.parametrize("shape", BODIES)
def test_body_is_not_a_request(live_server: str, shape: str) -> None:
    asked, body = BODIES[shape]
    received = send(live_server, BEFORE + asked + body)
    last = {400} if shape.startswith("malformed") else {200, 405}
    assert final_statuses(received)[:-1] == [200] * 3
    assert final_statuses(received)[-1] in last
    assert b"connection: close" in received
    with connect(live_server) as connection:  # the body comes after the response
        connection.sendall(asked)
        assert parse(read_answer(connection)).status in {200, 405}
        with suppress(ConnectionError):
            connection.sendall(body)
        assert read_to_the_end(connection) == b""


@pytest.mark.parametrize("shape", REFUSED)
def test_ambiguous_head_is_400_and_closes(live_server: str, shape: str) -> None:
    for before in (b"", BEFORE):
        received = send(live_server, before + REFUSED[shape] + CHUNK + SMUGGLED)
        assert final_statuses(received) == [200] * before.count(b"GET") + [400]
        assert received.count(b"connection: close") == received.count(b'"/problems#bad-request"') == 1


def test_good_host_and_absolute_target_are_accepted(live_server: str) -> None:
    for host in (
        "a:80", "a:", "192.0.2.1:8000", "[::1]:8000", "[fe80::1%25eth0]", "xn--a-2ja.example.", "a_b", "", "%C3%B1",
    ):  # fmt: skip
        asked = f"GET {LOCALIDADES} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        assert final_statuses(send(live_server, asked)) == [200], host
    for target in ("http://test/docs", "http://test:80/docs", "http://other.test/docs"):
        asked = request(b"Connection: close\r\n", b"GET", target)
        assert final_statuses(send(live_server, asked)) == [200], target


def test_response_without_a_host_is_not_cached_for_http_1_1(live_server: str) -> None:
    for _ in range(2):
        assert final_statuses(send(live_server, f"GET {LOCALIDADES}?page=2 HTTP/1.0\r\n\r\n".encode())) == [200]
    assert final_statuses(send(live_server, REFUSED["no host"] + SMUGGLED)) == [400]
