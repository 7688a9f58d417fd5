"""Exported releases, served by a real nginx with the shipped site."""

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from localidades_api import __version__
from localidades_api.downloads.formats import FILE_TYPES
from tests.deploy.nginx import serving_export
from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.machine import needed
from tests.support.postgres import execute, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import COMMAND, LOCALIDADES, ask, environment, run, serving, start_command

pytestmark = pytest.mark.tail

CENSUS = "/api/census/"
FILES = {f"{LOCALIDADES}download/localidades-2020-01{one.ending}": name for name, one in FILE_TYPES.items()}
CHANGES = f"{CENSUS}releases/2020-01/changes/"
# Each file, and the URL where the service responds with the same bytes.
ADDRESSES = {
    f"{CENSUS}index.json": CENSUS,
    f"{CENSUS}estados/page/1.json": f"{CENSUS}estados/",
    f"{CENSUS}estados/02.json": f"{CENSUS}estados/2/",
    f"{CENSUS}estados/02/municipios/page/1.json": f"{CENSUS}municipios/?estado_id=2&page_size=1000",
    f"{CENSUS}municipios/page/1.json": f"{CENSUS}municipios/",
    f"{CENSUS}municipios/01001.json": f"{CENSUS}municipios/1001/",
    f"{CENSUS}municipios/01001/localidades/page/1.json": f"{LOCALIDADES}?municipio_id=1001&page_size=1000",
    **{f"{LOCALIDADES}page/{number}.json": f"{LOCALIDADES}?page={number}" for number in (1, 2, 3)},
    f"{CENSUS}releases/page/1.json": f"{CENSUS}releases/",
    f"{CHANGES}2019-01.ndjson": f"{CHANGES}?since=2019-01&format=ndjson",
    **{path: f"{LOCALIDADES}download/?format={name}" for path, name in FILES.items()},
}


@dataclass(frozen=True)
class Exported:
    """An export of the newer of two releases, nginx on it, and the service on the same database."""

    folder: Path
    base: str
    live: str
    database: str
    catalogue: Path


@pytest.fixture(scope="module")
def exported(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    scratch = tmp_path_factory.mktemp("export")
    places = many(137)
    older = write_catalogue(scratch / "catun_localidad_2019-01.csv", places)
    renamed = [replace(place, nombre="Otro") if place.nombre == "Lugar 9" else place for place in places[5:]]
    newer = write_catalogue(scratch / "catun_localidad_2020-01.csv", renamed)
    with new_database(server, migrated) as url:
        import_file(url, older)
        import_file(url, newer)
        folder = scratch / "releases" / "2020-01"
        written = run("export", str(folder), env=environment(url))
        assert written.returncode == 0, written.stderr
        with serving(url) as live, serving_export(folder, scratch) as base:
            yield Exported(folder, base, live.base, url, newer)


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", ADDRESSES)
def test_exported_file_equals_the_response(exported: Exported, path: str) -> None:
    identity = {"Accept": "application/json", "Accept-Encoding": "identity"}
    urls = (exported.base + path, exported.live + ADDRESSES[path])
    file, answer = (httpx.get(url, headers=identity, timeout=PATIENCE) for url in urls)
    assert (file.status_code, answer.status_code) == (200, 200)
    assert file.headers["content-type"] == answer.headers["content-type"]
    assert file.content == answer.content


def test_every_locality_is_exported(exported: Exported) -> None:
    listed = json.loads(ask(exported.live, f"{LOCALIDADES}?page_size=1000").body)["results"]
    records = {path.name: path.read_bytes() for path in (exported.folder / LOCALIDADES[1:]).glob("*.json")}
    assert records == {f"{one['id']:09d}.json": ask(exported.live, f"{LOCALIDADES}{one['id']}/").body for one in listed}


def test_checksums_and_compressed_copies_match(exported: Exported) -> None:
    files, sums = files_of(exported.folder), exported.folder / "SHA256SUMS"
    sha256sum = needed(shutil.which("sha256sum"), "install coreutils")
    subprocess.run([sha256sum, "--check", "--strict", "--quiet", sums], cwd=exported.folder, check=True)
    listed = {line.partition("  ")[2] for line in sums.read_text().splitlines()}
    assert files - listed == {"SHA256SUMS", "api/census/manifest.json"}
    alone = {path for path in ADDRESSES if {f"{path[1:]}.gz", f"{path[1:]}.br"}.isdisjoint(files)}
    small = {f"{CENSUS}index.json", f"{CENSUS}estados/02.json", f"{CENSUS}municipios/01001.json"}
    assert alone == small | {path for path in FILES if path.endswith((".xlsx", ".parquet"))}
    unpack = {".gz": gzip.decompress, ".br": brotli.decompress}
    for copy in [exported.folder / path for path in files if path.endswith((".gz", ".br"))]:
        assert unpack[copy.suffix](copy.read_bytes()) == copy.with_suffix("").read_bytes(), copy
    manifest = json.loads(ask(exported.base, f"{CENSUS}manifest.json").body)
    assert manifest == {
        "release": "2020-01",
        "source": exported.catalogue.name,
        "sha256": json.loads(ask(exported.live, CENSUS).body)["sha256"],
        "version": __version__,
        "localidades": 132,
        "files": len(listed),
        "bytes": sum((exported.folder / path).stat().st_size for path in listed),
    }


def test_nginx_sends_compressed_copies_and_validators(exported: Exported) -> None:
    page = f"{LOCALIDADES}page/1.json"
    plain, coded = ask(exported.base, page), ask(exported.base, page, ("Accept-Encoding", "gzip, br"))
    assert coded.one("content-encoding") == "gzip"
    assert gzip.decompress(coded.body) == plain.body
    assert plain.one("etag") != coded.one("etag")
    for answer, encoding in ((plain, "identity"), (coded, "gzip")):
        assert answer.all("vary") == ["Accept-Encoding", "Accept"]
        assert answer.one("content-type") == "application/json"
        assert answer.one("cache-control").startswith("public, max-age=60,")
        known = ("If-None-Match", answer.one("etag"))
        assert ask(exported.base, page, known, ("Accept-Encoding", encoding)).status == 304
    part = ask(exported.base, f"{LOCALIDADES}download/localidades-2020-01.csv", ("Range", "bytes=3-9"))
    assert (part.status, len(part.body)) == (206, 7)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{LOCALIDADES}?page=2", 404),  # queries aren't supported: page 1 would be a wrong answer
        ("GET", LOCALIDADES.rstrip("/"), 404),
        ("GET", f"{LOCALIDADES}page/4.json", 404),
        ("GET", f"{LOCALIDADES}%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd", 400),
        ("HEAD", f"{LOCALIDADES}page/1.json", 200),
        ("POST", f"{LOCALIDADES}page/1.json", 405),
        ("OPTIONS", f"{LOCALIDADES}page/1.json", 405),
    ],
)
def test_responses_have_allow_and_errors_are_problems(exported: Exported, method: str, path: str, status: int) -> None:
    answer = ask(exported.base, path, method=method)
    assert answer.status == status
    assert answer.all("allow") == ["GET"]
    assert "Accept" in answer.all("vary")
    assert answer.one("access-control-allow-origin") == "*"
    if status in {404, 405}:
        assert (answer.one("content-type"), answer.all("cache-control")) == ("application/problem+json", [])
        assert json.loads(answer.body)["status"] == status


def test_older_release_is_exported_without_records(exported: Exported, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "2019-01"
    written = run("export", str(folder), "--release", "2019-01", "--no-records", env=environment(exported.database))
    assert written.returncode == 0, written.stderr
    files = files_of(folder)
    assert len(files) > 100
    assert not [path for path in files if Path(path).parent.name == "localidades" or "/changes/" in path]
    assert json.loads((folder / "api/census/manifest.json").read_text())["release"] == "2019-01"
    assert written.stderr.splitlines()[-1].startswith(f"{folder} holds release 2019-01: {len(files) - 2} files, ")


def test_failed_export_leaves_nothing(exported: Exported, tmp_path: Path) -> None:
    new = tmp_path / "new"
    limited = ("sh", "-c", 'trap "" XFSZ; ulimit -f 40; exec "$@"', "sh", *COMMAND)  # writes fail as on a full disk
    for arguments, command, error in (
        ([exported.folder], None, f"{exported.folder} exists already: name a new folder."),
        ([new, "--release", "2031-01"], None, "There is no such release."),
        ([new], limited, "The system reports an error: File too large."),
    ):
        failed = run("export", *map(str, arguments), env=environment(exported.database), command=command)
        assert (failed.returncode, failed.stderr.splitlines()[-1]) == (1, f"error: {error}")
        assert not list(tmp_path.iterdir())
    (tmp_path / ".new.part").mkdir()
    busy = run("export", str(new), env=environment(exported.database))
    assert busy.returncode == 1
    assert f"{tmp_path}/.new.part exists: another export is writing it" in busy.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".new.part"]


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_export_that_breaks_off_leaves_nothing(
    server: str, large: str, tmp_path: Path, *, is_interrupted: bool
) -> None:
    folder = tmp_path / "exports"
    with (tmp_path / "said").open("wb") as said, new_database(server, large) as url:
        arguments = ("export", str(folder / "new"), "--no-records")
        command = start_command(*arguments, env=environment(url), stderr=said.fileno())
        eventually(lambda: any(path.stat().st_size for path in folder.rglob("*.csv")))
        if is_interrupted:
            command.terminate()
        else:
            execute(url, "DELETE FROM localities WHERE position = 39999")  # of 40,000, which take ten statements
        assert command.wait(PATIENCE) == (143 if is_interrupted else 1)
    error = r"^error: The response to \S+format=csv\S* is incomplete: the log says why\.$"
    assert is_interrupted or re.search(error, (tmp_path / "said").read_text(), re.MULTILINE)
    assert not list(folder.iterdir())
