import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.names import index
from localidades_api.names.files import layout
from localidades_api.names.files.layout import FILES, FORMAT, META, IndexUnreadableError
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace
from localidades_api.names.suggestions.find import searched
from tests.support.names import PLACES, open_index

# Of the index of `PLACES`: whoever changes it adds 1 to FORMAT, and replaces the digest of the format before.
BYTES = {1: "ddc19d7c7d921b7432842aa6ce837a44b86d59069d87774e921b3f04846d2fa5"}


@pytest.mark.skipif(sys.byteorder != "little", reason="the bytes are of another order")
def test_format_is_that_of_the_bytes(tmp_path: Path) -> None:
    """Else `migrate` builds no index for a version that reads other ones, or a service reads one of another version."""
    with closing(open_index(tmp_path)):
        hashed = hashlib.sha256()
        files = [path for path in (tmp_path / "names").rglob("[!.]*") if path.is_file()]
        for path in sorted(files, key=lambda path: (path.parent.name, path.suffix, path.name)):
            if path.parent.name == "names" or path.name != "meta.json":  # where tantivy names segments at random
                hashed.update(path.read_bytes().partition(b'{"version"')[0])  # which tantivy appends
    assert {FORMAT: hashed.hexdigest()} == BYTES


def test_entity_tags_depend_on_the_index_and_on_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(folder: str) -> str:
        with closing(NameIndex(tmp_path / folder)) as names:
            return names.digest

    for folder in ("one", "other"):
        build_index(tmp_path / folder, PLACES)
    digests = [digest("one"), digest("one"), digest("other")]
    monkeypatch.setattr(index, "_digest_of_code", lambda: "of later code")
    assert len({*digests, digest("one")}) == 3


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
    with closing(open_index(tmp_path)) as index:
        shutil.rmtree(tmp_path)
        assert index.suggest("Guadalajara, Jalisco")[0].id == 140390001


@pytest.mark.parametrize("top", [3, 30])
def test_first_places_are_searched_first_and_all_if_these_are_too_few(
    index_of: Callable[..., NameIndex], index: NameIndex, monkeypatch: pytest.MonkeyPatch, top: int
) -> None:
    monkeypatch.setattr(layout, "MAX_TOP", top)
    other = index_of(*PLACES)
    for text in ("a", "san", "san juan mixtepec", "guadalajra", "ixtapa puerto", "zzz"):
        for limit in (1, 2, 10):
            assert other.suggest(text, limit=limit) == index.suggest(text, limit=limit)


FORKING = """
import sys
from pathlib import Path
from localidades_api.names.files.writer import write_index
from tests.support.names import PLACES
write_index(Path(sys.argv[1]), PLACES, in_parallel=True)
"""


def write_with_fork(folder: Path) -> str:
    """Write an index with a fork, in a process without other threads, and return its stderr."""
    command = [sys.executable, "-c", FORKING, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_fork_writes_the_same_index_or_fails_the_build(tmp_path: Path, index: NameIndex) -> None:
    assert write_with_fork(tmp_path) == ""
    with closing(NameIndex(tmp_path)) as forked:
        for place in PLACES:
            search = searched(place.nombre)
            assert forked.suggest(place.nombre[:5]) == index.suggest(place.nombre[:5]) != []
            assert forked.find(search, LocalityFilters()) == index.find(search, LocalityFilters()) != []
    failed = write_with_fork(tmp_path)  # where there are files already
    assert "FileExistsError" in failed
    assert "ChildProcessError" in failed
