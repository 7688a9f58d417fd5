"""A downloaded file is kept once it is published, with those of the newest releases, and other files stay."""

import hashlib
import io
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localidades_api.importer.kept_files import KEPT_RELEASES, keep_file
from localidades_api.importer.source import Source
from tests.support.catalogue import many, write_catalogue
from tests.support.commands import invoke
from tests.support.http_server import Request, Response, http_server

CONTENT = bytes(range(256)) * 5_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder."""
    (made := tmp_path / "inegi").mkdir()
    return made


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    """Lend a downloaded file that has been read."""
    (path := tmp_path / "content").write_bytes(CONTENT)
    with path.open("rb") as file:
        file.read(70_000)
        with io.FileIO(file.fileno(), closefd=False) as other:
            other.seek(0, io.SEEK_END)
        yield Source("catun_localidad.zip", file, hashlib.sha256(CONTENT).hexdigest())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "release", "kept"),
    [
        ("catun_localidad.zip", "2026-11", "catun_localidad_2026-11.zip"),
        ("AGEEML.CSV.gz", "2026-11-05", "catun_localidad_2026-11-05.csv.gz"),
        ("localidades.xlsx", "prueba", "catun_localidad_prueba.xlsx"),
        ("catalogue", "2026-11", "catun_localidad_2026-11"),
        ("../../etc/passwd", "2026-11", "catun_localidad_2026-11"),
        ("download.php", "2026-11", "catun_localidad_2026-11"),
    ],
)
def test_file_is_kept_under_the_name_of_its_release(
    folder: Path, source: Source, name: str, release: str, kept: str
) -> None:
    path = keep_file(folder, Source(name, source.file, source.sha256), release)
    assert (path, names_in(folder)) == (folder / kept, [kept])
    assert path.read_bytes() == CONTENT


def test_files_of_the_oldest_releases_are_removed_and_no_others(folder: Path, source: Source) -> None:
    others = [
        "catun_localidad.zip", "catun_localidad_prueba.zip", "catun_localidad_2001-01.zip.part",
        "catun_localidad_2001-13.zip", "old_catun_localidad_2001-01.zip", "catun_localidad_2001-01-notes.txt",
        ".catun_localidad_2001-01.zip", "localidades.dump",
    ]  # fmt: skip
    months = [f"2025-{month:02d}" for month in range(1, 13)]
    kept = [f"catun_localidad_{month}.zip" for month in months]
    for name in (*others, *kept, "catun_localidad_2025-01.csv"):
        (folder / name).write_text("x")
    assert len(kept) == KEPT_RELEASES == 12
    (folder / "catun_localidad_2000-01").mkdir()
    others.append("catun_localidad_2000-01")
    keep_file(folder, source, "2025-12")
    assert names_in(folder) == sorted([*others, *kept, "catun_localidad_2025-01.csv"])
    keep_file(folder, source, "2012-06")  # the one just kept stays
    assert names_in(folder) == sorted([*others, *kept, "catun_localidad_2025-01.csv", "catun_localidad_2012-06.zip"])
    keep_file(folder, source, "2026-01")
    assert names_in(folder) == sorted([*others, *kept[1:], "catun_localidad_2026-01.zip"])


# -- The command


class _Inegi:
    """A server with a catalogue at one address, which is replaced each month."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = ""
        self.requests: list[Request] = []

    def offer(self, count: int) -> bytes:
        return write_catalogue(self.path, many(count)).read_bytes()

    def answer(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(self.path.read_bytes())


@pytest.fixture
def inegi(tmp_path: Path) -> Iterator[_Inegi]:
    server = _Inegi(tmp_path / "catun_localidad.csv")
    with http_server(server.answer) as root:
        server.address = f"{root}/contenidos/catun_localidad.csv"
        yield server


Import = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_import(database: str, inegi: _Inegi, folder: Path) -> Import:
    """Return a function that imports what INEGI offers, and keeps it unless told otherwise."""

    def run(
        release: str, *options: str, source: str = "", keep: Path | None = folder
    ) -> "subprocess.CompletedProcess[str]":
        keeping = ("--keep", str(keep)) if keep else ()
        return invoke("import", source or inegi.address, "--release", release, *keeping, *options, url=database)

    return run


def test_published_file_is_kept_once(run_import: Import, inegi: _Inegi, folder: Path) -> None:
    kept = folder / "catun_localidad_2026-11.csv"
    first = inegi.offer(130)
    assert run_import("2026-11", keep=None).returncode == 0
    # INEGI has no new file in December; that of November is missing.
    done = run_import("2026-12")
    assert (done.returncode, names_in(folder), kept.read_bytes()) == (3, [kept.name], first), done.stderr
    assert (run_import("2026-12").returncode, names_in(folder)) == (3, [kept.name])
    second = inegi.offer(133)
    done = run_import("2027-01")
    assert done.returncode == 0
    later = folder / "catun_localidad_2027-01.csv"
    assert f"the downloaded file is kept as {later}\n" in done.stderr
    assert names_in(folder) == [kept.name, later.name]
    assert (kept.read_bytes(), later.read_bytes()) == (first, second)


def test_refused_file_and_dry_run_are_not_kept(run_import: Import, inegi: _Inegi, folder: Path) -> None:
    inegi.offer(130)
    done = run_import("2026-11", "--dry-run")
    assert (done.returncode, names_in(folder)) == (0, []), done.stderr
    assert run_import("2026-11", keep=None).returncode == 0
    done = run_import("2026-12", "--dry-run")
    assert (done.returncode, names_in(folder)) == (3, []), done.stderr
    inegi.offer(60)
    done = run_import("2026-12")
    assert (done.returncode, names_in(folder), "over 10%" in done.stderr) == (1, [], True)


def test_published_file_that_cannot_be_kept_is_an_error_of_the_output(
    run_import: Import, database: str, inegi: _Inegi, folder: Path
) -> None:
    inegi.offer(130)
    (folder / "catun_localidad_2026-11.csv").mkdir()
    done = run_import("2026-11", "--json")
    assert (done.returncode, done.stdout) == (74, "")
    assert f"error: Release 2026-11 is published, but its file can't be kept in {folder} (Is a direct" in done.stderr
    assert names_in(folder) == ["catun_localidad_2026-11.csv"]
    assert "2026-11" in invoke("releases", url=database).stdout


def test_keeping_that_makes_no_sense_is_refused_before_the_download(
    run_import: Import, inegi: _Inegi, tmp_path: Path, folder: Path
) -> None:
    inegi.offer(130)
    for name, fault in (("gone", "does not exist"), (inegi.path.name, "is a file")):
        done = run_import("2026-11", keep=tmp_path / name)
        assert (done.returncode, done.stdout, inegi.requests) == (2, "", [])
        assert f"'{tmp_path / name}' {fault}" in done.stderr
    done = run_import("2026-11", source=str(inegi.path))
    assert (done.returncode, names_in(folder)) == (2, [])
    assert "--keep is for a file that is downloaded" in done.stderr
