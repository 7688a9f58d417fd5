"""The parts of the contract that only show on a connection: escapes, methods, HEAD, codings.

tests/http/test_contract.py has the whole responses; test_bad_clients.py the limits on requests.
"""

import gzip
import sys
from collections.abc import Callable, Mapping

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from tests.http.test_contract import INDEX, assert_contract, read_requests, section
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ask, serving_with_uvicorn


def test_responses_of_both_servers_equal_the_golden_file(live_server: str, server: str, seeded: str) -> None:
    with (
        new_database(server, seeded) as url,
        serving_with_uvicorn(
            url, "--factory", "--no-server-header", application="localidades_api.app:create_app"
        ) as live,
    ):
        for base in (live_server, live.base):
            sections = []
            for request in read_requests("wire"):
                answer = ask(base, request.target, *request.read()[0].items(), method=request.method)
                sections.append(section(request, answer.status, answer.headers, answer.body))
                assert answer.one("date")
            assert_contract("wire", sections)


TARGETS = (
    "/", "/docs", "/openapi.json", "/problems?format=api", "/livez", "/static/style.css", "/static/nothing", "/nothing",
    INDEX, LOCALIDADES, LOCALIDADES[:-1], f"{LOCALIDADES}?format=api", f"{LOCALIDADES}?page=99", f"{LOCALIDADES}?x",
    f"{LOCALIDADES}10010001/", f"{LOCALIDADES}download/", "/wscatgeo/mgee/01",
)  # fmt: skip


def test_head_has_the_headers_of_get(live_server: str) -> None:
    of_the_body = ("transfer-encoding", "chunked")  # of a file, whose length is unknown
    for target in TARGETS:
        got, head = (ask(live_server, target, method=method) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (got.status, b""), target
        kept = [header for header in got.headers if header[0] != "date" and header != of_the_body]
        assert [header for header in head.headers if header[0] != "date"] == kept, target
        if of_the_body not in got.headers and got.body:
            assert int(head.one("content-length")) == len(got.body), target


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/api/census/localidades?", "localidades/"),
        ("/api/census/localidades?a=%0D%0AX:%20y", "localidades/?a=%0D%0AX:%20y"),
        ("/api/census/localidades?//evil.example/", "localidades/?//evil.example/"),
        ('/api/census/localidades?a="<>', "localidades/?a=%22%3C%3E"),
        ("/docs/?lang=es", "../docs?lang=es"),
        ("/match/?lang=es", "../match?lang=es"),
    ],
)
def test_slash_redirects_relatively(live_server: str, target: str, location: str) -> None:
    answer = ask(live_server, target, ("X-Forwarded-Host", "evil.example"))
    assert (answer.status, answer.one("location")) == (308, location)


# -- Codings

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
