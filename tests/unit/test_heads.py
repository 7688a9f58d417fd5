"""Checks of request heads, and whether a body follows."""

import pytest

from localidades_api.errors import HeaderFieldsTooLargeError, RequestError
from localidades_api.http.headers import RawHeaders
from localidades_api.server.heads import MAX_HEAD, check_head, has_body

HOST = (b"host", b"test")
SMALLEST = len(b"GET / HTTP/1.1\r\nhost: test\r\nx: \r\n\r\n")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([HOST], False),
        ([HOST, (b"content-length", b"0")], False),
        ([HOST, (b"content-length", b"5")], True),
        ([HOST, (b"content-length", b"0"), (b"content-length", b"0")], True),
        ([HOST, (b"transfer-encoding", b"Chunked")], True),
    ],
)
def test_head_announces_a_body(fields: RawHeaders, *, expected: bool) -> None:
    check_head(b"GET", b"/", "1.1", fields)
    assert has_body(fields) is expected


def test_size_of_a_head_is_that_on_the_wire() -> None:
    check_head(b"GET", b"/", "1.1", [HOST, (b"x", b"a" * (MAX_HEAD - SMALLEST))])
    with pytest.raises(HeaderFieldsTooLargeError):
        check_head(b"GET", b"/", "1.1", [HOST, (b"x", b"a" * (MAX_HEAD + 1 - SMALLEST))])


@pytest.mark.parametrize(
    ("target", "version", "fields"),
    [
        (b"/", "2.0", [HOST]),
        (b"/", "1.1", []),
        (b"/", "1.0", [HOST, HOST]),
        (b"/", "1.1", [(b"host", b"a b")]),
        (b"http://a@test/", "1.1", [HOST]),
        (b"/", "1.1", [HOST, (b"transfer-encoding", b"gzip")]),
    ],
)
def test_ambiguous_head_is_refused(target: bytes, version: str, fields: RawHeaders) -> None:
    with pytest.raises(RequestError):
        check_head(b"GET", target, version, fields)
