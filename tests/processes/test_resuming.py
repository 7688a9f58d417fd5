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
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, Live, ask, serving

DOWNLOAD = f"{LOCALIDADES}download/"
TEXT = ["csv", "excel", "ndjson", "geojson"]
CHANGES = "/api/census/releases/2021-01/changes/?since=2020-01&format=ndjson"
GEOJSON = pytest.param(f"{DOWNLOAD}?format=geojson&release=2020-01", marks=pytest.mark.tail)
TARGETS = [
    f"{DOWNLOAD}?format=csv&release=2020-01",
    *(pytest.param(f"{DOWNLOAD}?format={format_}&release=2020-01", marks=pytest.mark.tail) for format_ in TEXT[1:]),
    f"{DOWNLOAD}?format=csv&estado_id=2",
    CHANGES,
]


@pytest.fixture(scope="module")
def live(server: str, large: str, large_rows: list[Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yield a server with two workers, because another one may serve the rest of a file."""
    later = [replace(place, nombre=f"{place.nombre} II") for place in large_rows[:5000]] + large_rows[5000:]
    with new_database(server, large) as url:
        import_file(url, write_catalogue(tmp_path_factory.mktemp("later") / "catun_localidad_2021-01.csv", later))
        with serving(url, "--workers", "2", LOCALIDADES_PAGE_CACHE_BYTES="0") as live:
            yield live


def fetch(live: Live, target: str, *, method: str = "GET", **headers: str) -> httpx.Response:
    wanted = {"Accept-Encoding": "identity", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.request(method, live.base + target, headers=wanted, timeout=PATIENCE)


@pytest.mark.parametrize("target", TARGETS)
def test_ranges_are_parts_of_the_whole_file(live: Live, target: str) -> None:
    whole = fetch(live, target)
    size = len(whole.content)
    assert (whole.status_code, whole.headers["accept-ranges"]) == (200, "bytes")
    assert size > 1_000_000
    assert not whole.headers["etag"].startswith("W/")
    for wanted, start, stop in [
        ("0-0", 0, 1),
        ("0-", 0, size),
        (f"{size // 2}-", size // 2, size),
        (f"{size // 3}-{size // 3 + 500_000}", size // 3, size // 3 + 500_001),
        (f"{size - 1}-", size - 1, size),
        (f"{size - 3}-{size * 2}", size - 3, size),
        ("-10", size - 10, size),
        (f"-{size * 2}", 0, size),
    ]:
        part = fetch(live, target, Range=f"bytes={wanted}")
        assert part.status_code == 206, wanted
        assert part.headers["content-range"] == f"bytes {start}-{stop - 1}/{size}"
        assert int(part.headers["content-length"]) == stop - start
        assert part.content == whole.content[start:stop], wanted
        apart = {"date", "content-range", "content-length", "transfer-encoding"}
        assert {n: v for n, v in part.headers.items() if n not in apart} == {
            n: v for n, v in whole.headers.items() if n not in apart
        }
    for wanted in (f"{size}-", f"{size + 1}-{size + 2}", "-0"):
        beyond = fetch(live, target, Range=f"bytes={wanted}")
        assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}"), wanted
        assert beyond.json()["type"] == "/problems#range-not-satisfiable"


def test_bad_or_outdated_range_gets_the_whole_file(live: Live) -> None:
    target = f"{DOWNLOAD}?estado_id=2"
    whole = fetch(live, target)
    tag = whole.headers["etag"]
    assert fetch(live, target, Range="bytes=5-", If_Range=tag).status_code == 206
    assert fetch(live, target, Range="BYTES = 5-9").content == whole.content[5:10]
    others = [
        {"Range": "bytes=5-", "If-Range": other}
        for other in ('"x"', f"W/{tag}", f'{tag[:-1]}-gzip"', tag.strip('"'), whole.headers["last-modified"], "",
                      fetch(live, f"{target}&release=2020-01").headers["etag"])
    ]  # fmt: skip
    others += [
        {"Range": f"{wanted}"}
        for wanted in ("", "bytes", "bytes=", "bytes=-", "bytes=x-", "bytes=9-5", "bytes=0-1,5-6", "bytes=-1-2",
                       "rows=0-5", "bytes=0x1-", f"bytes={'9' * 30}-")
    ]  # fmt: skip
    for headers in others:
        answer = fetch(live, target, **headers)
        assert (answer.status_code, answer.content) == (200, whole.content), headers
    assert fetch(live, target, Range="bytes=5-", If_None_Match=tag).status_code == 304
    head = fetch(live, target, method="HEAD", Range="bytes=5-")
    assert (head.status_code, head.headers["accept-ranges"], head.content) == (200, "bytes", b"")


def test_filtered_download_has_ranges(live_server: str) -> None:
    target = f"{DOWNLOAD}?format=csv&search=zurita"
    whole, part = ask(live_server, target), ask(live_server, target, ("Range", "bytes=-3"))
    assert (part.status, part.one("etag")) == (206, whole.one("etag"))
    assert part.one("content-range").startswith("bytes ")
    assert len(part.body) == 3


def test_file_that_is_not_reproducible_has_no_ranges(live: Live) -> None:
    for format_ in FILE_TYPES.keys() - set(TEXT):
        answer = fetch(live, f"{DOWNLOAD}?format={format_}&municipio_id=1001", Range="bytes=5-")
        assert (answer.status_code, answer.headers.get("accept-ranges")) == (200, None)
        assert answer.headers["etag"].startswith("W/")
    packed = fetch(live, f"{DOWNLOAD}?municipio_id=1001", Range="bytes=5-", Accept_Encoding="gzip")
    assert (packed.status_code, packed.headers["content-encoding"]) == (200, "gzip")
    assert packed.headers["etag"].startswith("W/")
    assert "accept-ranges" not in packed.headers


PROGRAMS = {
    "curl": ("curl", "--silent", "--show-error", "--continue-at", "-", "--output"),
    "wget": ("wget", "--quiet", "--continue", "--output-document"),
}


def resume(program: str, file: Path, address: str) -> subprocess.CompletedProcess[bytes]:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return subprocess.run([*PROGRAMS[program], str(file), address], timeout=PATIENCE, capture_output=True, check=False)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("target", [f"{DOWNLOAD}?format=csv", GEOJSON, CHANGES])
def test_broken_download_is_resumed(live: Live, tmp_path: Path, program: str, target: str) -> None:
    whole, file = fetch(live, target).content, tmp_path / "file"
    for held in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        file.write_bytes(whole[:held])
        ended = resume(program, file, live.base + target)
        assert ended.returncode == 0, ended.stderr
        assert file.read_bytes() == whole, held


def test_download_is_resumed_after_a_lost_connection(live: Live, tmp_path: Path) -> None:
    """The client has the bytes received before its timeout."""
    target, file = f"{DOWNLOAD}?format=ndjson", tmp_path / "file"
    slowly = [*PROGRAMS["curl"], str(file), "--limit-rate", "2M", "--max-time", "1.5", live.base + target]
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    assert subprocess.run(slowly, timeout=PATIENCE, check=False, capture_output=True).returncode == 28  # timed out
    whole = fetch(live, target).content
    assert 0 < file.stat().st_size < len(whole)
    assert resume("curl", file, live.base + target).returncode == 0
    assert file.read_bytes() == whole
