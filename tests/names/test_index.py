import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import localidades_api
from localidades_api.catalogue.schemas import Release
from localidades_api.name_indexes.build import fingerprint
from localidades_api.names import layout
from localidades_api.names.build import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import FILES, META, WORDS, IndexUnreadableError
from localidades_api.names.places import IndexedPlace
from localidades_api.names.vocabulary import read_everyday_names
from tests.support.names import PLACES


def test_index_that_another_process_wrote_meanwhile_stays(tmp_path: Path) -> None:
    build_index(tmp_path / "names", PLACES)
    before = (tmp_path / "names" / META).stat().st_ino
    build_index(tmp_path / "names", PLACES)
    assert (tmp_path / "names" / META).stat().st_ino == before
    assert [path.name for path in tmp_path.iterdir()] == ["names"]


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def places() -> list[IndexedPlace]:
        raise OSError("the database went away")

    with pytest.raises(OSError, match="went away"):
        build_index(tmp_path / "names", (place for place in places()))
    assert list(tmp_path.iterdir()) == []


RELEASE = Release(id=1, name="2020-01", source="x.csv", sha256="ab", published_at=datetime(2020, 1, 1, tzinfo=UTC),
                  states=1, municipalities=1, localities=1)  # fmt: skip


def fingerprint_by(package: Path) -> str:
    """Return what the code of a package calls the index of a release."""
    spec = spec_from_file_location("name_builder", package / "name_indexes" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.fingerprint(RELEASE, [RELEASE]))


def test_index_that_other_code_makes_has_another_name(tmp_path: Path) -> None:
    """`test_index_folders.py` says which files count."""
    left_out = shutil.ignore_patterns("__pycache__", "static")
    package = shutil.copytree(Path(localidades_api.__file__).parent, tmp_path / "package", ignore=left_out)
    for file, is_another in (("api/index.py", False), ("names/build.py", True)):
        with (package / file).open("a") as edited:
            edited.write("\n")
        assert (fingerprint_by(package) != fingerprint(RELEASE, [RELEASE])) == is_another


@pytest.mark.parametrize("size", [None, 0, 0.5], ids=["removed", "empty", "cut"])
def test_index_that_lacks_some_of_its_files_is_refused(tmp_path: Path, size: float | None) -> None:
    build_index(tmp_path / "names", PLACES)
    files = [path.relative_to(tmp_path / "names") for path in (tmp_path / "names").rglob("[!.]*") if path.is_file()]
    assert {*FILES, META} < {str(path) for path in files}
    for number, path in enumerate(files):
        damaged = shutil.copytree(tmp_path / "names", tmp_path / str(number))
        if size is None:
            (damaged / path).unlink()
        else:
            os.truncate(damaged / path, int((damaged / path).stat().st_size * size))
        with pytest.raises(IndexUnreadableError):
            NameIndex(damaged)


def test_opened_index_answers_when_its_folder_is_gone(tmp_path: Path) -> None:
    build_index(tmp_path / "names", PLACES)
    index = NameIndex(tmp_path / "names")
    shutil.rmtree(tmp_path / "names")
    assert index.suggest("Guadalajara, Jalisco")[0].id == 140390001
    index.close()


def test_rows_are_ranked_by_population(index: NameIndex) -> None:
    """A place of unknown population ranks with what makes it a town: that it is urban, or a cabecera."""
    points = [index.place(row).population_points for row in range(index.layout.rows)]
    assert points == sorted(points, reverse=True)


@pytest.mark.parametrize("top", [3, 30])
def test_first_places_are_searched_first_and_all_if_these_are_too_few(
    tmp_path: Path, index: NameIndex, monkeypatch: pytest.MonkeyPatch, top: int
) -> None:
    monkeypatch.setattr(layout, "MAX_TOP", top)
    build_index(tmp_path / "names", PLACES)
    other = NameIndex(tmp_path / "names")
    for text in ("a", "san", "san juan mixtepec", "guadalajra", "ixtapa puerto", "zzz"):
        for limit in (1, 2, 10):
            assert other.suggest(text, limit=limit) == index.suggest(text, limit=limit)
    other.close()


def test_only_the_first_places_are_found_without_their_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MAX_JOINED", 2)
    names = ("San Juan", "El Rosario", "La Venta")
    build_index(
        tmp_path / "names",
        [IndexedPlace(10010002 + at, name, 1001, "A", 1, "B", "R", 9 - at) for at, name in enumerate(names)],
    )
    index = NameIndex(tmp_path / "names")
    assert [index.layout.find(layout.JOINED, name) for name in ("sanjuan", "elrosario", "laventa")] == [[0], [1], []]
    index.close()


def test_everyday_names_have_keys_of_nine_digits() -> None:
    names = read_everyday_names()
    assert names
    assert all(1_000_0000 < key <= 329_999_999 and all(names[key]) for key in names)


FORKING = """
import sys
from pathlib import Path
from localidades_api.names.build import write_index
from tests.support.names import PLACES
write_index(Path(sys.argv[1]), PLACES, in_parallel=True)
"""


def write_with_fork(folder: Path) -> subprocess.CompletedProcess[str]:
    """Write an index with a fork, in a process without other threads."""
    return subprocess.run([sys.executable, "-c", FORKING, folder], capture_output=True, text=True, check=False)


def test_fork_writes_the_same_index(tmp_path: Path) -> None:
    build_index(tmp_path / "alone", PLACES)
    (tmp_path / "forked").mkdir()
    assert write_with_fork(tmp_path / "forked").returncode == 0
    for name in (*FILES, META):
        assert (tmp_path / "forked" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    alone, forked = NameIndex(tmp_path / "alone"), NameIndex(tmp_path / "forked")
    for place in PLACES:
        assert forked.suggest(place.nombre[:5]) == alone.suggest(place.nombre[:5]) != []
    alone.close()
    forked.close()


def test_fork_that_fails_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / WORDS).write_text("in the way")
    failed = write_with_fork(tmp_path)
    assert failed.returncode == 1
    assert "FileExistsError" in failed.stderr
    assert "ChildProcessError" in failed.stderr
