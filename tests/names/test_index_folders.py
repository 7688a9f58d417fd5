import os
import pwd
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localidades_api.caches.name_indexes import folders
from localidades_api.caches.name_indexes.builder import fingerprint
from localidades_api.caches.name_indexes.folders import (
    OpenIndex,
    digest_of_builder,
    index_root,
    listed_names,
    locked_by_thread,
    remove_unreachable,
)
from localidades_api.catalogue.schemas import Release
from localidades_api.names.writer import build_index
from tests.support.machine import needed
from tests.support.names import PLACES
from tests.support.wire import ROOT

NAMES = f"names-{os.getuid()}"
OWNER, OTHER, GROUP = 54321, 54322, 54320

# -- Where indexes are


def test_indexes_have_a_folder_of_their_user_in_the_chosen_one(tmp_path: Path) -> None:
    root = index_root(tmp_path / "a" / "b")
    assert (root, root.stat().st_mode & 0o777) == (tmp_path / "a" / "b" / NAMES, 0o700)
    assert index_root(tmp_path / "a" / "b") == root


def test_folder_that_cannot_be_used_is_an_error_if_it_was_chosen(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        index_root(tmp_path / "file")
    (tmp_path / NAMES).symlink_to(elsewhere := tmp_path / "elsewhere")
    elsewhere.mkdir()
    with pytest.raises(PermissionError, match="belongs to another user"):
        index_root(tmp_path)


def test_default_is_the_users_cache_and_the_temporary_folder_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "find_clone", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert index_root(None) == tmp_path / "cache" / "localidades-api" / NAMES
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    there = tmp_path / f"localidades-api-{os.getuid()}" / NAMES
    assert index_root(None) == there
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # the user is unknown
    assert index_root(None) == there


# -- Folders that a group shares


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """Yield a folder of `OWNER` that its group may write, where others than root reach it."""
    if os.geteuid():
        pytest.skip("only root can act as two users")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, OWNER, GROUP)
        folder.chmod(0o770)
        yield folder


def as_user(uid: int, work: Callable[[], object]) -> None:
    """Do work in a fork as another user of the group, and fail if it fails."""
    if not (pid := os.fork()):
        try:
            os.setgroups([])
            os.setgid(GROUP)
            os.setuid(uid)
            os.umask(0o007)  # as in the units
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001  # the fork must not go on with the tests
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def test_users_of_a_group_share_the_indexes_of_a_folder(shared_folder: Path, tmp_path: Path) -> None:
    is_open = all(one.stat().st_mode & 0o001 for one in (ROOT, *ROOT.parents))
    needed(ROOT if is_open else None, "other users can't enter the folder of this clone")
    build_index(tmp_path / "before", PLACES)  # imports modules that other users may not be able to read
    OpenIndex(tmp_path / "before").close()
    root, name = shared_folder / f"names-{OWNER}", "a" * 24

    def serve() -> None:
        assert index_root(shared_folder) == root
        remove_unreachable(root, "service", [name])

    def import_() -> None:
        assert index_root(shared_folder) == root
        assert listed_names(root) == {name}
        with suppress(RuntimeError), locked_by_thread(root / f"{name}.lock"):
            build_index(root / name, PLACES)
            raise RuntimeError  # the lock stays, as after `kill -9`

    def search() -> None:
        with locked_by_thread(root / f"{name}.lock"):
            index = OpenIndex(root / name)
        assert index.names.suggest("oaxaca", limit=1)
        index.close()
        assert remove_unreachable(root, "service", [])
        assert not (root / name).exists()

    as_user(OWNER, serve)
    as_user(OTHER, import_)
    as_user(OWNER, search)


def test_other_users_of_a_shared_folder_have_their_own_until_its_owner_has_one(shared_folder: Path) -> None:
    """The service would refuse a folder that an import has made for it."""

    def use(user: int, owner: int) -> None:
        def assert_root() -> None:
            assert index_root(shared_folder) == shared_folder / f"names-{owner}"

        as_user(user, assert_root)

    use(OTHER, OTHER)
    use(OWNER, OWNER)
    use(OTHER, OWNER)
    modes = {path.name: path.stat().st_mode & 0o777 for path in shared_folder.iterdir()}
    assert modes == {f"names-{OTHER}": 0o700, f"names-{OWNER}": 0o770}
    shared_folder.chmod(0o1777)  # as /tmp: its users share nothing
    use(OTHER, OTHER)
    shared_folder.chmod(0o770)
    for user in (OTHER + 1, 0):  # 0 is this user
        os.chown(shared_folder / f"names-{OWNER}", user, GROUP)
        with pytest.raises(PermissionError, match="belongs to another user"):
            index_root(shared_folder)


# -- Names of indexes


def test_releases_code_and_schema_decide_the_name_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    newest, older = (
        Release(id=id_, name=f"202{id_}-01", source="x.csv", sha256="ab", published_at=datetime(2020, 1, 1, tzinfo=UTC),
                states=1, municipalities=1, localities=1)
        for id_ in (2, 1)
    )  # fmt: skip
    names = [fingerprint(newest, [newest]), fingerprint(newest, [newest, older]), fingerprint(older, [newest, older])]
    digest_of_builder.cache_clear()
    monkeypatch.setattr(folders, "SCHEMA", folders.SCHEMA + 1)
    names.append(fingerprint(newest, [newest]))
    digest_of_builder.cache_clear()
    monkeypatch.setattr(folders, "_CODE", Path(__file__).parent)
    names.append(fingerprint(newest, [newest]))
    digest_of_builder.cache_clear()
    assert len(set(names)) == len(names)


# -- What stays and what goes


def test_tasks_of_one_process_may_list_indexes_at_once(tmp_path: Path) -> None:
    def list_indexes(number: int) -> None:
        for _ in range(100):
            remove_unreachable(tmp_path, "service", [str(number)])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(list_indexes, range(8))) == [None] * 8
    assert [path.name for path in tmp_path.iterdir()] == ["service.list"]
