"""A downloaded file is kept once it is published, with those of the newest releases, and other files stay."""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from localidades_api.errors import OutputError
from localidades_api.importer.kept_files import KEPT_RELEASES, KeptFiles
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
    path = KeptFiles(folder).keep(Source(name, source.file, source.sha256), release)
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
    KeptFiles(folder).keep(source, "2025-12")
    assert names_in(folder) == sorted([*others, *kept, "catun_localidad_2025-01.csv"])
    KeptFiles(folder).keep(source, "2026-01")
    assert names_in(folder) == sorted([*others, *kept[1:], "catun_localidad_2026-01.zip"])


def test_file_of_an_old_release_stays_when_it_has_just_been_kept(folder: Path, source: Source) -> None:
    for month in range(1, 13):
        (folder / f"catun_localidad_2025-{month:02d}.zip").write_text("x")
    KeptFiles(folder).keep(source, "2012-06")
    assert len(names_in(folder)) == 13
    KeptFiles(folder).keep(source, "2025-12")
    assert names_in(folder)[0] == "catun_localidad_2025-01.zip"


def test_file_that_cannot_be_copied_leaves_nothing(folder: Path, source: Source) -> None:
    (folder / "catun_localidad_2026-11.zip").mkdir()
    with pytest.raises(
        OutputError, match=f"Release 2026-11 is published, but .* kept in {folder} \\(Is a directory\\)"
    ):
        KeptFiles(folder).keep(source, "2026-11")
    assert names_in(folder) == ["catun_localidad_2026-11.zip"]
    with pytest.raises(OutputError, match=r"\(No such file or directory\)"):
        KeptFiles(folder / "gone").keep(source, "2026-11")


# -- The command


@dataclass
class Inegi:
    """A server with a catalogue at one address, which is replaced each month."""

    path: Path
    address: str = ""
    requests: list[Request] = field(default_factory=list)

    def offer(self, count: int) -> bytes:
        """Replace the catalogue, and return it."""
        return write_catalogue(self.path, many(count)).read_bytes()

    def answer(self, request: Request) -> Response:
        """Answer with the present catalogue."""
        self.requests.append(request)
        return Response(self.path.read_bytes())


@pytest.fixture
def inegi(tmp_path: Path) -> Iterator[Inegi]:
    """Run the server."""
    server = Inegi(tmp_path / "catun_localidad.csv")
    with http_server(server.answer) as root:
        server.address = f"{root}/contenidos/catun_localidad.csv"
        yield server


def test_published_file_is_kept_once(database: str, inegi: Inegi, folder: Path) -> None:
    options = ("--keep", str(folder))
    first = inegi.offer(130)
    done = invoke("import", inegi.address, "--release", "2026-11", *options, url=database)
    kept = folder / "catun_localidad_2026-11.csv"
    assert (done.returncode, names_in(folder)) == (0, [kept.name]), done.stderr
    assert f"the downloaded file is kept as {kept}\n" in done.stderr
    assert kept.read_bytes() == first
    # INEGI has no new file in December.
    done = invoke("import", inegi.address, "--release", "2026-12", *options, url=database)
    assert (done.returncode, names_in(folder)) == (3, [kept.name]), done.stderr
    second = inegi.offer(133)
    assert invoke("import", inegi.address, "--release", "2027-01", *options, url=database).returncode == 0
    assert names_in(folder) == [kept.name, "catun_localidad_2027-01.csv"]
    assert (folder / "catun_localidad_2027-01.csv").read_bytes() == second
    assert kept.read_bytes() == first


def test_published_file_that_is_missing_is_kept_by_the_next_run(database: str, inegi: Inegi, folder: Path) -> None:
    content = inegi.offer(130)
    assert invoke("import", inegi.address, "--release", "2026-11", url=database).returncode == 0
    done = invoke("import", inegi.address, "--release", "2026-12", "--keep", str(folder), url=database)
    assert (done.returncode, names_in(folder)) == (3, ["catun_localidad_2026-11.csv"]), done.stderr
    assert (folder / "catun_localidad_2026-11.csv").read_bytes() == content


def test_refused_file_and_dry_run_are_not_kept(database: str, inegi: Inegi, folder: Path) -> None:
    options = ("--keep", str(folder))
    inegi.offer(130)
    done = invoke("import", inegi.address, "--release", "2026-11", "--dry-run", *options, url=database)
    assert (done.returncode, names_in(folder)) == (0, []), done.stderr
    assert invoke("import", inegi.address, "--release", "2026-11", url=database).returncode == 0
    done = invoke("import", inegi.address, "--release", "2026-12", "--dry-run", *options, url=database)
    assert (done.returncode, names_in(folder)) == (3, []), done.stderr
    inegi.offer(60)
    done = invoke("import", inegi.address, "--release", "2026-12", *options, url=database)
    assert (done.returncode, names_in(folder)) == (1, [])
    assert "over 10%" in done.stderr


def test_published_file_that_cannot_be_kept_is_an_error_of_the_output(
    database: str, inegi: Inegi, folder: Path
) -> None:
    inegi.offer(130)
    (folder / "catun_localidad_2026-11.csv").mkdir()
    done = invoke("import", inegi.address, "--release", "2026-11", "--keep", str(folder), "--json", url=database)
    assert (done.returncode, done.stdout) == (74, "")
    assert f"error: Release 2026-11 is published, but its file can't be kept in {folder}" in done.stderr
    assert "2026-11" in invoke("releases", url=database).stdout


@pytest.mark.parametrize("made", [False, True], ids=["missing", "a file"])
def test_folder_that_is_none_is_refused_before_the_download(
    database: str, inegi: Inegi, tmp_path: Path, *, made: bool
) -> None:
    if made:
        (tmp_path / "kept").touch()
    done = invoke("import", inegi.address, "--keep", str(tmp_path / "kept"), url=database)
    assert (done.returncode, done.stdout, inegi.requests) == (2, "", [])
    assert f"'{tmp_path}/kept' {'is a file' if made else 'does not exist'}" in done.stderr


def test_file_that_is_not_downloaded_is_not_kept(database: str, inegi: Inegi, folder: Path) -> None:
    inegi.offer(130)
    done = invoke("import", str(inegi.path), "--release", "2026-11", "--keep", str(folder), url=database)
    assert (done.returncode, names_in(folder)) == (2, [])
    assert "--keep is for a file that is downloaded" in done.stderr
