"""A catalogue's index is built once, whoever opens it, and never half."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from localidades_api.caches.index_folders import locked_by_thread
from localidades_api.errors import CatalogueError, ConfigurationError
from localidades_api.observability.progress import Step, StepProgress
from localidades_api.offline import Catalogue
from localidades_api.offline.indexes import CatalogueStep
from tests.support.catalogue import HEADER, Place, lines_of, many, write_catalogue
from tests.support.commands import assert_error, invoke
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, environment


class _Steps(StepProgress):
    """Collects the steps of a build, and its amounts."""

    def __init__(self) -> None:
        self.begun: list[Step] = []
        self.amounts: dict[Step, int] = {}

    def begin(self, step: Step) -> None:
        self.begun.append(step)

    def advance(self, amount: int) -> None:
        step = self.begun[-1]
        self.amounts[step] = self.amounts.get(step, 0) + amount


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return this test's own cache folder."""
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def indexes_in(cache: Path) -> list[Path]:
    """Return the folders of indexes, those of killed builds among them."""
    return [path for path in (cache / f"catalogues-{os.getuid()}").iterdir() if path.is_dir()]


def content_of(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Return the inode and the time of the last change of each file."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def named(catalogue: Catalogue) -> object:
    return catalogue.get("010010004")["nombre"]


def test_index_is_built_once(own_cache: Path, releases: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    first, second = _Steps(), _Steps()
    with Catalogue.open(*releases, progress=first) as catalogue:
        expected = catalogue.match(["Asientos, Ags."])
    assert first.begun == [CatalogueStep.READ, CatalogueStep.READ_EARLIER, CatalogueStep.INDEX]
    assert first.amounts[CatalogueStep.READ] == first.amounts[CatalogueStep.INDEX] == 132
    [folder] = indexes_in(own_cache)
    before = content_of(folder)
    with Catalogue.open(*map(str, releases), progress=second) as catalogue:
        assert catalogue.match(["Asientos, Ags."]) == expected
    assert (second.begun, indexes_in(own_cache), content_of(folder)) == ([], [folder], before)
    for shown in (["reading the catalogue"], []):  # where no observer is given
        Catalogue.open(releases[0]).close()
        assert capsys.readouterr().err.splitlines()[:1] == shown


def test_index_of_other_content_is_another_one(own_cache: Path, tmp_path: Path) -> None:
    source = write_catalogue(tmp_path / "catun_localidad.csv", many(40))
    with Catalogue.open(source) as catalogue:
        changed = [replace(one, nombre="Otro nombre") if one.cvegeo == "010010004" else one for one in many(40)]
        write_catalogue(source, changed)
        with Catalogue.open(source) as other:
            shutil.rmtree(own_cache)  # as if many others had been used since
            assert (named(catalogue), named(other)) == ("Ardillas de Abajo (Las Ardillas)", "Otro nombre")


def test_index_of_a_version_with_other_columns_is_another_one(
    own_cache: Path, small_catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("localidades_api.offline.records.STORED", ("id",))
        earlier.setattr("localidades_api.offline.indexes.STORED", ("id",))
        Catalogue.open(small_catalogue).close()
    with Catalogue.open(small_catalogue) as catalogue:
        assert "carta" in catalogue.get("010010001")
    assert len(indexes_in(own_cache)) == 2


def test_order_of_releases_decides_which_is_current(own_cache: Path, releases: list[Path]) -> None:
    current, earlier = releases
    with Catalogue.open(current, earlier) as catalogue, Catalogue.open(earlier, current) as reverse:
        assert (named(catalogue), named(reverse)) == ("Ardillas de Abajo (Las Ardillas)", "Ardillas Viejas")
    assert len(indexes_in(own_cache)) == 2


@pytest.mark.usefixtures("own_cache")
def test_names_of_the_older_of_two_earlier_releases_are_found(tmp_path: Path) -> None:
    def release(name: str, *places: Place) -> Path:
        return write_catalogue(tmp_path / f"{name}.csv", [*places, Place("010010002", "La Loma")])

    files = [
        release("2020-01", Place("010010001", "Nueva")),
        release("2015-01", Place("010010001", "Vieja"), Place("010010009", "Hacienda Vieja")),
        release("2010-01", Place("010010001", "Antigua"), Place("010010009", "Hacienda Antigua")),
    ]
    with Catalogue.open(*files) as catalogue:
        places = catalogue.match([{"nombre": name, "municipio": "1001"} for name in ("Nueva", "Vieja", "Antigua")])
        assert [row["match_cvegeo"] for row in places] == ["010010001"] * 3
        gone = catalogue.match([{"nombre": f"Hacienda {name}", "municipio": "1001"} for name in ("Vieja", "Antigua")])
        assert [row["match_withdrawn"] for row in gone] == ["010010009", None]  # the last release that had it


# -- Several processes

OPENING = """
import os, signal, sys, time
from localidades_api.offline import Catalogue

class Slow:
    def begin(self, step):
        print(step.name, flush=True)
        if step.name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.3)
    def expect(self, amount): pass
    def advance(self, amount): pass

Catalogue.open(sys.argv[2], progress=Slow()).close()
print("opened", flush=True)
"""


def start_opening(cache: Path, source: Path, killed_at: str = "never") -> "subprocess.Popen[str]":
    """Open a catalogue in a process that lingers at each step."""
    command = [sys.executable, "-c", OPENING, killed_at, str(source)]
    env = environment(LOCALIDADES_CACHE_DIR=str(cache))
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env)


def test_processes_that_start_at_once_build_one_index(tmp_path: Path, small_catalogue: Path) -> None:
    processes = [start_opening(tmp_path, small_catalogue) for _ in range(3)]
    outputs = [process.communicate(timeout=PATIENCE)[0].split() for process in processes]
    assert [output[-1] for output in outputs] == ["opened"] * 3
    assert sorted(map(len, outputs)) == [1, 1, 3]
    assert len(indexes_in(tmp_path)) == 1


def test_index_that_is_built_is_opened_while_its_lock_is_held(own_cache: Path, small_catalogue: Path) -> None:
    Catalogue.open(small_catalogue).close()
    [folder] = indexes_in(own_cache)
    with locked_by_thread(folder.parent):
        process = start_opening(own_cache, small_catalogue)
        try:
            assert process.communicate(timeout=PATIENCE / 4)[0].split() == ["opened"]
        finally:
            process.kill()
            process.wait()


def test_killed_build_leaves_nothing_broken(own_cache: Path, small_catalogue: Path) -> None:
    process = start_opening(own_cache, small_catalogue, killed_at="INDEX")
    assert process.communicate(timeout=PATIENCE)[0].split()[-1] == "INDEX"
    assert process.returncode == -signal.SIGKILL
    assert [path.name[0] for path in indexes_in(own_cache)] == ["."]
    for _ in range(2):
        with Catalogue.open(small_catalogue) as catalogue:
            assert catalogue.match(["Asientos, Ags."])[0]["match_cvegeo"] == "010020001"
        [folder] = indexes_in(own_cache)
        assert folder.name[0] != "."
        (folder / "lookup").write_bytes(b"")  # an incomplete one is built again


def test_interrupted_build_leaves_nothing(own_cache: Path, small_catalogue: Path) -> None:
    class Interrupting(StepProgress):
        def begin(self, step: Step) -> None:
            if step is CatalogueStep.INDEX:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Catalogue.open(small_catalogue, progress=Interrupting())
    assert indexes_in(own_cache) == []


# -- Refusals


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("nowhere.zip", None, "There is no file "),
        ("cut.zip", b"PK\x03\x04" + b"\0" * 40, "The file is damaged, cut short or locked"),
        ("other.csv", b"folio,nombre\n1,Asientos\n",
         "This is not a catalogue of localities: its first line does not name CVE_ENT"),
        ("short.csv", "\r\n".join(lines_of([place.values() for place in many(20)], HEADER)).encode()[:-30],
         "The file is cut short: line 21"),
    ],
)  # fmt: skip
def test_bad_file_is_refused_as_by_the_import(
    own_cache: Path, tmp_path: Path, small_catalogue: Path, seeded: str, name: str, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / name
    if content:
        file.write_bytes(content)
    (rows := tmp_path / "rows.csv").write_text("localidad\nAsientos\n")
    for files in ([file], [small_catalogue, file]):
        with pytest.raises(CatalogueError, match=f"^{sentence}"):
            Catalogue.open(*files)
        ended = invoke("match", str(rows), *(word for one in files for word in ("--catalogue", str(one))))
        assert_error(ended, sentence)
    importing = invoke("import", str(file), "--release", "2030-01", "--dry-run", url=seeded)
    assert importing.stderr.splitlines()[-1] == ended.stderr.splitlines()[-1]
    assert importing.returncode == ended.returncode
    assert not (tmp_path / "rows.matched.csv").exists()
    assert not own_cache.exists() or indexes_in(own_cache) == []


def test_what_cannot_be_opened_is_explained(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_catalogue: Path
) -> None:
    for source in ("https://example.org/catun.zip", "-"):
        with pytest.raises(CatalogueError, match="read from a file: download it"):
            Catalogue.open(source)
    assert not own_cache.exists()
    (rows := tmp_path / "rows.csv").write_text("localidad\nAsientos\n")
    for options in (("--url", "http://127.0.0.1:1"), ("--release", "2018-09")):
        ended = invoke("match", str(rows), "--catalogue", str(small_catalogue), *options)
        assert ended.returncode == 2
        assert "--catalogue reads files only: leave out --url and --release" in ended.stderr
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(rows / "cache"))
    sentence = r"^The folder of indexes can't be used by user [0-9]+ \(.*: Not a directory\): set LOCALIDADES_CACHE_DIR"
    with pytest.raises(ConfigurationError, match=sentence):
        Catalogue.open(small_catalogue)
