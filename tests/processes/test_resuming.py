"""Resumed downloads: ranges, and the programs that people resume with."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from localidades_api.downloads.formats import FILE_TYPES
from tests.support.application import import_file
from tests.support.catalogue import Place, write_catalogue
from tests.support.downloads import DOWNLOAD
from tests.support.machine import needed
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import Live, serving

TEXT = ["csv", "excel", "ndjson", "geojson"]
CHANGES = "/api/census/releases/2021-01/changes/?since=2020-01&format=ndjson"
FILES = [f"{DOWNLOAD}?format={format_}&release=2020-01" for format_ in TEXT]


@pytest.fixture(scope="module")
def live(server: str, large: str, large_rows: list[Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yield a server with two workers, because another one may serve the rest of a file."""
    later = [replace(place, nombre=f"{place.nombre} II") for place in large_rows[:5000]] + large_rows[5000:]
    with new_database(server, large) as url:
        import_file(url, write_catalogue(tmp_path_factory.mktemp("later") / "catun_localidad_2021-01.csv", later))
        with serving(url, "--workers", "2", LOCALIDADES_PAGE_CACHE_BYTES="0") as live:
            yield live


def fetch(base: str, target: str, *, method: str = "GET", **headers: str) -> httpx.Response:
    wanted = {"Accept-Encoding": "identity", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.request(method, base + target, headers=wanted, timeout=PATIENCE)


def assert_has_ranges(base: str, target: str) -> None:
    whole = fetch(base, target)
    size = len(whole.content)
    assert (whole.status_code, whole.headers["accept-ranges"]) == (200, "bytes")
    assert not whole.headers["etag"].startswith("W/")
    for wanted, start, stop in [
        ("0-0", 0, 1),
        ("0-", 0, size),
        (f"{size // 3}-{size // 2}", size // 3, size // 2 + 1),
        (f"{size - 1}-", size - 1, size),
        (f"{size - 3}-{size * 2}", size - 3, size),
        ("-10", size - 10, size),
        (f"-{size * 2}", 0, size),
    ]:
        part = fetch(base, target, Range=f"bytes={wanted}")
        assert part.status_code == 206, wanted
        assert part.headers["content-range"] == f"bytes {start}-{stop - 1}/{size}"
        assert int(part.headers["content-length"]) == stop - start
        assert part.content == whole.content[start:stop], wanted
        apart = {"date", "content-range", "content-length", "transfer-encoding"}
        differing = {name for name, _ in {*part.headers.items()} ^ {*whole.headers.items()}}
        assert differing <= apart
    for wanted in (f"{size}-", f"{size + 1}-{size + 2}", "-0"):
        beyond = fetch(base, target, Range=f"bytes={wanted}")
        assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}"), wanted
        assert beyond.json()["type"] == "/problems#range-not-satisfiable"


@pytest.mark.parametrize("query", ["format=csv", "format=geojson&release=2020-01", "search=zurita"])
def test_ranges_are_parts_of_the_whole_file(live_server: str, query: str) -> None:
    assert_has_ranges(live_server, f"{DOWNLOAD}?{query}")


@pytest.mark.tail
def test_file_of_another_release_is_not_continued(live: Live) -> None:
    target = f"{DOWNLOAD}?municipio_id=2001"
    older = fetch(live.base, f"{target}&release=2020-01").headers["etag"]
    assert fetch(live.base, target, Range="bytes=5-", If_Range=older).status_code == 200


def test_bad_or_outdated_range_gets_the_whole_file(live_server: str) -> None:
    target = f"{DOWNLOAD}?municipio_id=1001"
    whole = fetch(live_server, target)
    tag = whole.headers["etag"]
    assert fetch(live_server, target, Range="bytes=5-", If_Range=tag).status_code == 206
    assert fetch(live_server, target, Range="BYTES = 5-9").content == whole.content[5:10]
    tags = ('"x"', f"W/{tag}", f'{tag[:-1]}-gzip"', tag.strip('"'), whole.headers["last-modified"], "")
    ranges = ("", "bytes", "bytes=", "bytes=-", "bytes=x-", "bytes=9-5", "bytes=0-1,5-6", "bytes=-1-2", "rows=0-5",
              "bytes=0x1-", f"bytes={'9' * 30}-")  # fmt: skip
    for headers in [*({"Range": "bytes=5-", "If-Range": one} for one in tags), *({"Range": one} for one in ranges)]:
        answer = fetch(live_server, target, **headers)
        assert (answer.status_code, answer.content) == (200, whole.content), headers
    assert fetch(live_server, target, Range="bytes=5-", If_None_Match=tag).status_code == 304
    head = fetch(live_server, target, method="HEAD", Range="bytes=5-")
    assert (head.status_code, head.headers["accept-ranges"], head.content) == (200, "bytes", b"")


def test_file_that_is_not_reproducible_has_no_ranges(live_server: str) -> None:
    others = [(f"{DOWNLOAD}?format={one}&municipio_id=1001", "identity") for one in FILE_TYPES.keys() - set(TEXT)]
    for target, coding in [*others, (f"{DOWNLOAD}?municipio_id=1001", "gzip")]:
        answer = fetch(live_server, target, Range="bytes=5-", Accept_Encoding=coding)
        assert (answer.status_code, answer.headers.get("accept-ranges")) == (200, None)
        assert answer.headers.get("content-encoding", "identity") == coding
        assert answer.headers["etag"].startswith("W/")


PROGRAMS = {
    "curl": ("--silent", "--show-error", "--continue-at", "-", "--output"),
    "wget": ("--quiet", "--continue", "--output-document"),
}


def resume(program: str, file: Path, address: str) -> int:
    command = needed(shutil.which(program), f"install {program}")
    words = [command, *PROGRAMS[program], str(file), address]
    return subprocess.run(words, timeout=PATIENCE, check=False).returncode


@pytest.mark.tail
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("target", [FILES[0], CHANGES])
def test_broken_download_is_resumed(live: Live, tmp_path: Path, program: str, target: str) -> None:
    whole, file = fetch(live.base, target).content, tmp_path / "file"
    for held in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        file.write_bytes(whole[:held])
        assert resume(program, file, live.base + target) == 0
        assert file.read_bytes() == whole, held
