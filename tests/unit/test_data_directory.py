"""The folder of the embedded server's socket, whose path has to be short and plain."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

import pytest

from localidades_api.database.embedded_postgres.data_directory import make_socket_dir
from localidades_api.database.embedded_postgres.watchdog import SOCKET_NAME
from localidades_api.errors import EmbeddedPostgresError

_LONGEST = 103  # bytes, as macOS allows


def folder_of(data_dir: Path) -> Path:
    name = f"localidades-{os.geteuid()}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}"
    return Path(tempfile.gettempdir()).resolve() / name


def test_socket_is_in_a_private_folder_of_the_data(tmp_path: Path) -> None:
    for _ in range(2):
        folder = make_socket_dir(tmp_path, None)
        assert folder == tmp_path / "run"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o750)
    with pytest.raises(EmbeddedPostgresError, match="is not a private folder of the server's user: remove it"):
        make_socket_dir(tmp_path, None)


@pytest.mark.parametrize("name", ["a,b", "a\nb", "x" * 90])
def test_socket_is_in_the_temporary_folder_if_the_path_would_not_do(tmp_path: Path, name: str) -> None:
    data_dir = tmp_path / name
    data_dir.mkdir()
    folder = make_socket_dir(data_dir, None)
    try:
        assert folder == folder_of(data_dir)
    finally:
        folder.rmdir()


def test_path_of_the_socket_may_be_as_long_as_an_address() -> None:
    base = Path(tempfile.mkdtemp(dir="/tmp"))  # short
    try:
        for surplus in (0, 1):
            data_dir = base / ("x" * (_LONGEST - len(str(base / "run" / SOCKET_NAME)) - 1 + surplus))
            data_dir.mkdir()
            folder = make_socket_dir(data_dir, None)
            assert folder == (folder_of(data_dir) if surplus else data_dir / "run")
            folder.rmdir()
            data_dir.rmdir()
    finally:
        base.rmdir()
