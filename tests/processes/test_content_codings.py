"""Accept-Encoding on the wire: compressed resources use the coding that the client prefers."""

import gzip
import sys
from collections.abc import Callable, Mapping

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ask

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
CODINGS = {
    f"{LOCALIDADES}download/?format=ndjson": ("zstd", "br", "gzip"),  # in the service's order
    "/static/style.css": ("br", "gzip"),
    f"{LOCALIDADES}tiles/0/0/0.mvt": ("gzip",),
    f"{LOCALIDADES}backdrop.svg": ("gzip",),
    f"{LOCALIDADES}?page_size=51": ("br", "gzip"),
    "/api/census/municipios/?page_size=1000": ("br", "gzip"),
    "/api/census/releases/?page_size=100": ("br", "gzip"),
    LOCALIDADES: (),  # lists of the default size
    "/api/census/estados/": (),
}


@pytest.mark.parametrize("target", CODINGS)
def test_best_coding_of_a_resource_is_chosen(live_server: str, target: str) -> None:
    """tests/unit/test_negotiation.py has how it is chosen."""
    offered = CODINGS[target]
    asked = {"gzip, br, zstd": offered[0] if offered else "identity", **{coding: coding for coding in offered}}
    asked |= dict.fromkeys(("identity;q=0", "deflate", ""), "identity")  # uncompressed, rather than nothing
    bodies = set()
    for accepted, expected in asked.items():
        with httpx.stream(
            "GET", live_server + target, headers={"Accept-Encoding": accepted}, timeout=PATIENCE
        ) as answer:
            assert answer.status_code == 200
            assert answer.headers.get("content-encoding", "identity") == expected
            assert ("Accept-Encoding" in answer.headers["vary"]) == bool(offered)
            bodies.add(UNPACK[expected](b"".join(answer.iter_raw())))
    assert len(bodies) == 1


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
