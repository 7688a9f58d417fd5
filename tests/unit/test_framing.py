"""What a head announces is read from it alone, whatever came before it on its connection."""

import httptools
from hypothesis import example, given
from hypothesis import strategies as st

from localidades_api.errors import RequestError
from localidades_api.server.framing import HeadCheck

Head = tuple[str, str, str, list[tuple[bytes, bytes]]]

HOST = (b"host", b"test")
FIELDS: list[list[tuple[bytes, bytes]]] = [
    [], [HOST], [(b"accept", b"*/*")], [HOST, HOST], [(b"host", b"a b")], [HOST, (b"content-length", b"0")],
    [HOST, (b"content-length", b"5")], [HOST, (b"transfer-encoding", b"gzip")],
]  # fmt: skip
HEADS = st.tuples(
    st.sampled_from(["GET", "CONNECT"]),
    st.sampled_from(["/", "http://a@test/"]),
    st.sampled_from(["1.0", "1.1", "2.0"]),
    st.sampled_from(FIELDS),
)


def decide(check: HeadCheck, head: Head) -> bool | str:
    """Return whether a head announces a body, or why it is refused."""
    method, target, version, fields = head
    parser = httptools.HttpRequestParser(object())
    parser.feed_data(f"{method} / HTTP/{version}\r\n".encode())
    try:
        return check.announces_body(parser, target.encode(), fields)
    except RequestError as error:
        return str(error)


@example(heads=[("GET", "/", "1.0", []), ("GET", "/", "1.1", [])])  # only the older needs no host
@given(heads=st.lists(HEADS, max_size=20))
def test_head_is_judged_as_if_it_were_the_first(heads: list[Head]) -> None:
    check = HeadCheck()
    for head in heads:
        assert decide(check, head) == decide(HeadCheck(), head)


def test_fields_that_changed_since_they_were_sound_are_read_again() -> None:
    check, fields = HeadCheck(), [(b"host", b"test")]
    assert decide(check, ("GET", "/", "1.1", fields)) is False
    fields.append((b"content-length", b"5"))
    assert decide(check, ("GET", "/", "1.1", fields)) is True
