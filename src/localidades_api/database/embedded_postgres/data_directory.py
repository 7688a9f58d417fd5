"""Creates the folders of the embedded Postgres, owned by the user that runs it."""

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from localidades_api.database.embedded_postgres.binaries import Account, read_version, run_as
from localidades_api.database.embedded_postgres.watchdog import SOCKET_NAME
from localidades_api.errors import EmbeddedPostgresError

if sys.platform != "win32":
    import pwd

_BUILTIN_LOCALES = 17  # the first version with builtin locales
_MAX_SOCKET_PATH = 103  # bytes: sockaddr_un takes 104 with the final NUL on macOS, 108 on Linux


def make_data_dir(data_dir: Path) -> Path:
    """Create the folder and its parents if they are missing; existing folders keep their mode."""
    folder = data_dir.resolve()
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                if os.geteuid() == 0:
                    path.chmod(0o755)  # the server's user must be able to enter, whatever the umask
    return folder


def choose_account(data_dir: Path) -> Account | None:
    """Return the account that runs the server: `nobody` instead of root, or None for the current user."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedPostgresError(
            "Postgres does not run as root, and there is no user `nobody` to run it: use another account, or "
            "set DATABASE_URL."
        ) from None
    account = Account(nobody.pw_uid, nobody.pw_gid)
    for folder in reversed((data_dir, *data_dir.parents)):
        if not _can_enter(folder, account):
            raise EmbeddedPostgresError(
                f"Postgres does not run as root but as `nobody`, which can't enter {folder}: set "
                "LOCALIDADES_DATA_DIR to a folder that everybody can enter, such as "
                "/var/lib/localidades-api, or set DATABASE_URL."
            )
    return account


def _can_enter(folder: Path, account: Account) -> bool:
    found = folder.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    return bool(found.st_mode & (stat.S_IXGRP if found.st_gid == account.gid else stat.S_IXOTH))


def make_cluster(binaries: Path, data_dir: Path, account: Account | None) -> Path:
    """Create the data folder of this version, with the database `localidades`, if it is missing.

    It gets its name when it is complete. Raises EmbeddedPostgresError if the folder has data of another version, which
    a new cluster would silently replace with the demo.
    """
    version = read_version(binaries).partition(".")[0]
    cluster = data_dir / f"cluster-{version}"
    if cluster.exists():
        return cluster
    others = sorted(path for path in data_dir.glob("cluster-*") if (path / "PG_VERSION").is_file())
    if others:
        raise EmbeddedPostgresError(_explain_other_version(binaries, data_dir, others[-1].name.partition("-")[2]))
    partial = Path(tempfile.mkdtemp(prefix=f"{cluster.name}.", suffix=".partial", dir=data_dir))
    if account is not None:
        os.chown(partial, *account)
    # Sorting must not depend on the machine. With the plain C locale, `lower` would change no letter with an accent.
    locale = ["--locale=C.UTF-8"]
    if int(version) >= _BUILTIN_LOCALES:
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options = ["--encoding=UTF8", "--auth=trust", "--username=postgres", "--no-instructions", *locale]
    run_as(account, [str(binaries / "initdb"), *options, "-D", str(partial)])
    single = [str(binaries / "postgres"), "--single", "-c", "exit_on_error=on", "-D", str(partial)]
    run_as(account, [*single, "template1"], stdin="CREATE DATABASE localidades\n")
    partial.rename(cluster)
    return cluster


def _explain_other_version(binaries: Path, data_dir: Path, old: str) -> str:
    new = read_version(binaries).partition(".")[0]
    return (
        f"PostgreSQL {old} made the data in {data_dir}, and {binaries} is PostgreSQL {new}, which can't read them."
        f" To stay with {old}, set LOCALIDADES_POSTGRES_BIN to the folder with its `postgres`. To move to {new}, dump"
        f" and restore as docs/operations/recover.md describes (A new major version of Postgres). To start over, move"
        f" {data_dir / f'cluster-{old}'} away, or set LOCALIDADES_DATA_DIR to another folder."
    )


def make_socket_dir(data_dir: Path, account: Account | None) -> Path:
    """Create the private folder of the socket, at a short path without special characters."""
    owner, group = account or (os.geteuid(), os.getegid())
    folder = _choose_socket_dir(data_dir, account, owner)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == stat.S_IRWXU
    if not (is_private and found.st_uid in {owner, os.geteuid()}):
        raise EmbeddedPostgresError(f"{folder} is not a private folder of the server's user: remove it.")
    if found.st_uid != owner:
        os.chown(folder, owner, group, follow_symlinks=False)
    return folder


def _choose_socket_dir(data_dir: Path, account: Account | None, owner: int) -> Path:
    name = f"localidades-{owner}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}"
    temporary = (Path(tempfile.gettempdir()).resolve(), Path("/tmp"))  # noqa: S108 - checked by the caller
    for folder in (data_dir / "run", *(place / name for place in temporary)):
        reachable = account is None or all(_can_enter(parent, account) for parent in folder.parents)
        if reachable and _is_plain(folder):
            return folder
    raise EmbeddedPostgresError(
        f"No folder has a path short enough for the socket of {data_dir}: set TMPDIR to a short one."
    )


def _is_plain(socket_dir: Path) -> bool:
    """Return True if the path fits a socket address and a URL, where drivers split hosts at commas."""
    path = str(socket_dir / SOCKET_NAME)
    return path.isprintable() and "," not in path and len(os.fsencode(path)) <= _MAX_SOCKET_PATH
