"""Postgres's programs: their versions, environment and output, and the folder of the embedded server's socket."""

import errno
import os
import stat
import tempfile
from pathlib import Path

import pytest

from localidades_api.database.embedded_postgres.binaries import (
    DISK_FULL,
    find_binaries,
    find_reason,
    forget_client_variables,
    make_reachable,
    read_version,
    run_as,
)
from localidades_api.database.embedded_postgres.data_directory import make_socket_dir
from localidades_api.database.embedded_postgres.watchdog import SOCKET_NAME
from localidades_api.errors import EmbeddedPostgresError


def write(folder: Path, script: str) -> Path:
    """Write a `postgres` and an `initdb` that run a script; return their folder."""
    folder.mkdir(exist_ok=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("postgres (PostgreSQL) 18.1 (Debian 18.1-1)", "18.1"), ("postgres (PostgreSQL) 15beta2", "15"),
        ("postgres (PostgreSQL) 14.9", None), ("postgres 18", None),
    ],
)  # fmt: skip
def test_programs_are_used_from_version_15_on(tmp_path: Path, answer: str, version: str | None) -> None:
    folder = write(tmp_path / "bin", f'[ "$1" = --version ] && echo "{answer}"')
    if version:
        assert find_binaries(folder) == folder
        assert read_version(folder) == version
        assert make_reachable(folder, tmp_path, None) == folder
    else:
        with pytest.raises(EmbeddedPostgresError, match="of version 15 or newer that run on this machine"):
            find_binaries(folder)


def test_version_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="postgres does not report its version"):
        read_version(write(tmp_path / "bin", "echo nothing"))
    with pytest.raises(EmbeddedPostgresError, match=r"postgres can't be run: \[Errno 2\]"):
        read_version(tmp_path)
    (tmp_path / "bin" / "initdb").unlink()
    with pytest.raises(EmbeddedPostgresError, match="has no `postgres` and `initdb`"):
        find_binaries(tmp_path / "bin")


def test_program_has_its_input_and_no_variables_of_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("OTHER", "kept")
    folder = write(tmp_path / "bin", 'pwd; cat; echo "$PGDATA,$OTHER"; printf "\\303\\261 \\377"; echo aside >&2')
    assert run_as(None, [str(folder / "postgres")], stdin="given\n") == "/\ngiven\n,kept\nñ \N{REPLACEMENT CHARACTER}"
    forget_client_variables()
    assert "PGDATA" not in os.environ
    assert os.environ["OTHER"] == "kept"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("exit 3", "postgres failed: it ended with status 3."),
        ("echo only this; exit 1", "postgres failed: only this."),
        ("echo 'postgres: error: first' >&2; echo last; exit 1", "postgres failed: first."),
    ],
)
def test_failure_of_a_program_is_explained(tmp_path: Path, script: str, sentence: str) -> None:
    with pytest.raises(EmbeddedPostgresError) as caught:
        run_as(None, [str(write(tmp_path / "bin", script) / "postgres")])
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo.\n", "two."),
        ("2026-01-01 00:00:00 UTC [7] FATAL:  no room\nLOG:  the end\n", "no room."),
        ("FATAL:  file contains errors", "file contains errors."),
        (f"FATAL:  {os.strerror(errno.ENOSPC)}\nFATAL:  another", DISK_FULL),
        ("ERROR:  first\nERROR:  second\nHINT:  none", "second."),
    ],
)
def test_reason_is_the_last_error_of_a_log(text: str, reason: str) -> None:
    assert find_reason(text) == reason


# -- The folder of the socket

_LONGEST = 103  # bytes, as macOS allows
_TEMPORARY = Path(tempfile.gettempdir()).resolve()


def test_socket_is_in_a_private_folder_of_the_data(tmp_path: Path) -> None:
    for _ in range(2):
        folder = make_socket_dir(tmp_path, None)
        assert folder == tmp_path / "run"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o750)
    with pytest.raises(EmbeddedPostgresError, match="is not a private folder of the server's user: remove it"):
        make_socket_dir(tmp_path, None)


def test_socket_is_in_the_temporary_folder_if_the_path_would_not_do(tmp_path: Path) -> None:
    data_dirs = [tmp_path / name for name in ("a,b", "a\nb", "x" * 90)]
    for data_dir in data_dirs:
        data_dir.mkdir()
    folders = {make_socket_dir(data_dir, None) for data_dir in data_dirs}
    for folder in folders:
        folder.rmdir()
    assert {folder.parent for folder in folders} == {_TEMPORARY}
    assert len(folders) == len(data_dirs)


def test_path_of_the_socket_may_be_as_long_as_an_address() -> None:
    base = Path(tempfile.mkdtemp(dir="/tmp"))  # short
    try:
        for surplus in (0, 1):
            data_dir = base / ("x" * (_LONGEST - len(str(base / "run" / SOCKET_NAME)) - 1 + surplus))
            data_dir.mkdir()
            folder = make_socket_dir(data_dir, None)
            assert folder.parent == (_TEMPORARY if surplus else data_dir)
            folder.rmdir()
            data_dir.rmdir()
    finally:
        base.rmdir()
