"""Accept-Encoding on the wire: compressed resources use the coding that the client prefers."""

import gzip
import sys
from collections.abc import Callable, Mapping

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from tests.support.wire import LOCALIDADES, Answer, ask

if sys.version_info >= (3, 14):
    from compression.zstd import decompress as unpack_zstd
else:
    import zstandard

    def unpack_zstd(data: bytes) -> bytes:
        """Decompress a stream without a declared size."""
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)


UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    "zstd": unpack_zstd, "br": brotli.decompress, "gzip": gzip.decompress, "identity": bytes,
}  # fmt: skip
DOWNLOAD = f"{LOCALIDADES}download/?format=ndjson"
CODINGS = {
    DOWNLOAD: ("zstd", "br", "gzip"),  # in the service's order
    "/static/style.css": ("br", "gzip"),
    f"{LOCALIDADES}tiles/0/0/0.mvt": ("gzip",),
    f"{LOCALIDADES}backdrop.svg": ("gzip",),
    f"{LOCALIDADES}?page_size=51": ("br", "gzip"),
    f"{LOCALIDADES}?page_size=1000&estado_id=1&fields=nombre": ("br", "gzip"),
    "/api/census/municipios/?page_size=1000": ("br", "gzip"),
    "/api/census/estados/?page_size=51": ("br", "gzip"),
    "/api/census/releases/?page_size=100": ("br", "gzip"),
    "/api/census/releases/2020-01/changes/?since=2020-01&page_size=100": ("br", "gzip"),
}


@pytest.mark.parametrize("target", CODINGS)
def test_best_coding_of_a_resource_is_chosen(live_server: str, target: str) -> None:
    """tests/unit/test_negotiation.py has how it is chosen."""
    assert_coded(live_server + target, "gzip, br, zstd", CODINGS[target][0])
    for coding in CODINGS[target][1:]:
        assert_coded(live_server + target, coding, coding)
    for accepted in ("identity;q=0", "deflate", ""):
        assert_coded(live_server + target, accepted, "identity")  # uncompressed, rather than nothing


def assert_coded(address: str, accepted: str, expected: str) -> None:
    headers, body = fetch(address, accepted)
    assert headers.get("content-encoding", "identity") == expected
    assert "Accept-Encoding" in headers["vary"]
    assert UNPACK[expected](body) == fetch(address, "")[1]


def fetch(address: str, accepted: str) -> tuple[httpx.Headers, bytes]:
    """Return the headers and the undecoded body."""
    with httpx.stream("GET", address, headers={"Accept-Encoding": accepted}) as answer:
        assert answer.status_code == 200
        return answer.headers, b"".join(answer.iter_raw())


def test_list_of_the_default_size_is_not_compressed(live_server: str) -> None:
    for path in (LOCALIDADES, f"{LOCALIDADES}?page_size=50&sort=nombre", "/api/census/estados/"):
        plain = without_date(ask(live_server, path))
        assert plain.all("vary") == ["Accept"]
        assert without_date(ask(live_server, path, ("Accept-Encoding", "br, gzip, zstd, *"))) == plain


def test_each_coding_of_a_list_has_its_etag_and_304(live_server: str) -> None:
    target, tags = f"{LOCALIDADES}?page_size=100", set()
    for accepted in ("br", "gzip", ""):
        answer = ask(live_server, target, ("Accept-Encoding", accepted))
        tag = answer.one("etag")
        assert not tag.startswith("W/")
        tags.add(tag)
        held = ask(live_server, target, ("Accept-Encoding", accepted), ("If-None-Match", tag))
        assert (held.status, held.one("etag"), held.one("vary")) == (304, tag, answer.one("vary"))
    assert len(tags) == 3
    page = ask(live_server, f"{target}&format=api", ("Accept-Encoding", "br, gzip"))
    assert (page.one("vary"), page.all("content-encoding")) == ("Accept, Accept-Language", [])
    assert b"<b>Vary:</b> Accept, Accept-Encoding\n" in page.body


def without_date(answer: Answer) -> Answer:
    return Answer(answer.status, [header for header in answer.headers if header[0] != "date"], answer.body)
