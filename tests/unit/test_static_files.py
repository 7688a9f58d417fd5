"""Static files: codings, validators, and vendored scripts."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from localidades_api.html.static_files import CompressedStaticFiles
from localidades_api.http.caching import CACHE_CONTROL
from localidades_api.http.conditional import ConditionalRequests
from tests.browser.vendored import VENDORED, Vendored
from tests.support.machine import needed

PLAIN = b"export const text = 'Zipolite';\n" * 100
DECODERS: dict[str, Callable[[bytes], bytes]] = {"br": brotli.decompress, "gzip": gzip.decompress, "": bytes}


async def fetch(folder: Path, name: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """Return the answer and its body as sent."""
    headers = {"accept-encoding": "", **{name.replace("_", "-"): value for name, value in headers.items()}}
    files = ConditionalRequests(CompressedStaticFiles(directory=folder))
    client = httpx.AsyncClient(transport=httpx.ASGITransport(files))
    async with client, client.stream("GET", f"http://test/{name}", headers=headers) as answer:
        return answer, b"".join([part async for part in answer.aiter_raw()])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a script, a script stored compressed only, and a binary file."""
    (tmp_path / "plain.js").write_bytes(PLAIN)
    (tmp_path / "packed.mjs.br").write_bytes(brotli.compress(PLAIN))
    (tmp_path / "other.bin").write_bytes(b"\0\1")
    return tmp_path


@pytest.mark.parametrize("name", ["plain.js", "packed.mjs"])
@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"), ("gzip, deflate", "gzip"), ("br;q=0.0,gzip;q=0", ""), ("", ""), ("*", "br"),
    ],
)  # fmt: skip
async def test_text_is_sent_in_the_best_accepted_coding(folder: Path, name: str, accepted: str, coding: str) -> None:
    answer, body = await fetch(folder, name, accept_encoding=accepted)
    assert answer.status_code == 200
    assert answer.headers.get("content-encoding", "") == coding
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(body)
    assert DECODERS[coding](body) == PLAIN


async def test_etag_depends_on_content_and_coding(folder: Path) -> None:
    tags = {
        accepted: (await fetch(folder, "plain.js", accept_encoding=accepted))[0].headers["etag"]
        for accepted in DECODERS
    }
    assert len(set(tags.values())) == 3
    for accepted, tag in tags.items():
        kept, body = await fetch(folder, "plain.js", accept_encoding=accepted, if_none_match=f'"x", W/{tag}')
        assert (kept.status_code, body, kept.headers["etag"]) == (304, b"", tag)
        assert kept.headers["cache-control"] == CACHE_CONTROL
        assert (await fetch(folder, "plain.js", accept_encoding=accepted, if_none_match='"x"'))[0].status_code == 200
    same, _ = await fetch(folder, "packed.mjs", accept_encoding="br")
    assert same.headers["etag"] == tags["br"]


async def test_changed_text_is_read_again(folder: Path) -> None:
    before, _ = await fetch(folder, "plain.js")
    (folder / "plain.js").write_bytes(b"0;")
    os.utime(folder / "plain.js", ns=(1, 1))
    after, body = await fetch(folder, "plain.js", if_none_match=before.headers["etag"])
    assert (after.status_code, body) == (200, b"0;")


async def test_binary_file_is_sent_unchanged(folder: Path) -> None:
    answer, body = await fetch(folder, "other.bin", accept_encoding="br, gzip")
    assert (body, "content-encoding" in answer.headers) == (b"\0\1", False)
    kept, nothing = await fetch(folder, "other.bin", if_none_match=answer.headers["etag"])
    assert (kept.status_code, nothing) == (304, b"")
    assert {one.headers["cache-control"] for one in (answer, kept)} == {CACHE_CONTROL}


@pytest.mark.parametrize("vendored", VENDORED, ids=lambda vendored: vendored.folder.name)
def test_vendored_script_matches_the_pinned_package(vendored: Vendored) -> None:
    package, folder, scripts, licence = vendored
    needed(package, f"{package.name} is not installed: `make test` does it, with npm")
    assert {path.name for path in folder.iterdir()} == {licence, *(f"{Path(script).name}.br" for script in scripts)}
    for script in scripts:
        ours = brotli.decompress((folder / f"{Path(script).name}.br").read_bytes())
        assert ours == (package / script).read_bytes(), "`make vendored` brings it up to date"
    assert (folder / licence).read_bytes() == (package / licence).read_bytes()
