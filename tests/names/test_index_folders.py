import os
import pwd
import tempfile
from pathlib import Path

import pytest

from localidades_api.caches import index_folders
from localidades_api.caches.index_folders import index_root, remove_unused

NAMES = f"names-{os.getuid()}"


def test_indexes_have_a_folder_of_their_user_in_the_chosen_one(tmp_path: Path) -> None:
    root = index_root(tmp_path / "a" / "b", "names")
    assert (root, root.stat().st_mode & 0o777) == (tmp_path / "a" / "b" / NAMES, 0o700)
    assert index_root(tmp_path / "a" / "b", "names") == root


def test_folder_that_cannot_be_used_is_an_error_if_it_was_chosen(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        index_root(tmp_path / "file", "names")
    (tmp_path / NAMES).symlink_to(elsewhere := tmp_path / "elsewhere")
    elsewhere.mkdir()
    with pytest.raises(PermissionError, match="belongs to another user"):
        index_root(tmp_path, "names")


def test_default_is_the_users_cache_and_the_temporary_folder_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_folders, "find_clone", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert index_root(None, "names") == tmp_path / "cache" / "localidades-api" / NAMES
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    there = tmp_path / f"localidades-api-{os.getuid()}" / NAMES
    assert index_root(None, "names") == there
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # the user is unknown
    assert index_root(None, "names") == there


def test_last_used_indexes_stay_and_nothing_unfinished(tmp_path: Path) -> None:
    for number, name in enumerate([".unfinished", *"cbadefgh", ".lock"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (number, number))
    remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", *"adefgh"]
