"""Checks of request heads, and bounds of bodies, whatever pieces they come in."""

import io
from collections.abc import Sequence

import pytest
from starlette.requests import Request
from starlette.types import Message

from localidades_api.errors import ContentTooLargeError, HeaderFieldsTooLargeError, RequestError, UnavailableError
from localidades_api.http.body import read_body, spool_body
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


# -- Bodies

LIMIT = 12


def request_of(pieces: Sequence[bytes]) -> Request:
    """Return a request whose body comes in these pieces."""
    messages = iter([{"type": "http.request", "body": piece, "more_body": True} for piece in pieces])

    async def receive() -> Message:
        return next(messages, {"type": "http.request", "body": b"", "more_body": False})

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


@pytest.mark.parametrize("sizes", [(), (12,), (6, 6), (5, 4, 3), (1,) * 12])
async def test_body_of_the_limit_is_read_and_of_a_byte_more_refused(sizes: Sequence[int]) -> None:
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    file = io.BytesIO(b"x")
    file.seek(0)
    await spool_body(request_of(pieces), file, LIMIT)
    assert file.tell() == 0
    assert file.read() == (b"".join(pieces) or b"x")
    assert await read_body(request_of(pieces), LIMIT) == b"".join(pieces)
    longer = [*pieces, b"y"] if pieces else [b"y" * (LIMIT + 1)]
    file = io.BytesIO()
    for reading in (spool_body(request_of(longer), file, LIMIT), read_body(request_of(longer), LIMIT)):
        with pytest.raises(ContentTooLargeError, match=str(LIMIT)):
            await reading
    assert len(file.getvalue()) <= LIMIT


async def test_full_disk_is_503() -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(UnavailableError, match="its disk is full"):  # noqa: ASYNC230, PTH123  # of this machine
        await spool_body(request_of([b"a"]), full, LIMIT)
