"""Starts the embedded server or attaches to it, and waits until it stops."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from localidades_api.database.embedded_postgres import watchdog
from localidades_api.database.embedded_postgres.binaries import (
    DISK_FULL,
    clean_environment,
    find_binaries,
    find_reason,
    make_reachable,
)
from localidades_api.database.embedded_postgres.data_directory import (
    choose_account,
    make_cluster,
    make_data_dir,
    make_socket_dir,
)
from localidades_api.database.embedded_postgres.watchdog import POLL_INTERVAL, lock_within, open_lock
from localidades_api.errors import DatabaseUnavailableError, EmbeddedPostgresError

if sys.platform != "win32":
    import fcntl

_START_TIMEOUT = 60.0  # seconds
_STOP_TIMEOUT = 15.0  # seconds
_DRAIN_TIMEOUT = 10.0  # seconds that the watchdog leaves users beyond the shutdown timeout of their requests
_MAX_LOG_BYTES = 10_000_000
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "client_connection_check_interval": "1s",  # release the lock of a killed importer
    "wal_level": "minimal",  # no replicas; COPY into a new table then skips the WAL
    "max_wal_senders": "0",
    "max_wal_size": "1GB",
}
if sys.platform == "linux":
    _SETTINGS["recovery_init_sync_method"] = (
        "syncfs"  # by default a start after a crash syncs each file, which takes seconds on a slow disk
    )


@contextmanager
def run_embedded(data_dir: Path, postgres_bin: Path | None, *, shutdown_timeout: float = 30) -> Iterator[str]:
    """Start the server of the folder, or attach to the running one, and yield its address.

    `postgresql://postgres@/localidades?host=%2Fsrv%2Flocalidades%2Frun&port=5432`
    On exit, the last user waits until the server has stopped. `shutdown_timeout` is the seconds that users take to
    finish their requests after SIGTERM. Raises EmbeddedPostgresError.
    """
    if sys.platform == "win32":
        raise EmbeddedPostgresError("The embedded Postgres does not run on Windows: set DATABASE_URL.")
    with _translate_system_errors(data_dir):
        data_dir = make_data_dir(data_dir)
        users = open_lock(data_dir / "users.lock")
    try:
        with _translate_system_errors(data_dir):
            if not lock_within(users, fcntl.LOCK_SH, _START_TIMEOUT):
                raise EmbeddedPostgresError(f"The Postgres in {data_dir} takes too long to stop: try again.")
            written = _size_of_log(data_dir)
            socket_dir = _start_or_attach(data_dir, postgres_bin, shutdown_timeout)
        yield f"postgresql://postgres@/localidades?host={quote(str(socket_dir), safe='')}&port=5432"
    except DatabaseUnavailableError as error:
        if DISK_FULL in (reason := _read_reason(data_dir, written)):
            raise EmbeddedPostgresError(f"The Postgres in {data_dir} failed{reason}") from error
        raise
    finally:
        with suppress(OSError):  # the folder was removed meanwhile
            _release(data_dir, users)
        os.close(users)


@contextmanager
def _translate_system_errors(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbeddedPostgresError(
            f"The embedded Postgres can't work in {data_dir}: {error}. Set LOCALIDADES_DATA_DIR to a folder "
            "that you own, or set DATABASE_URL."
        ) from error


def _start_or_attach(data_dir: Path, postgres_bin: Path | None, shutdown_timeout: float) -> Path:
    """Return the folder of the server's socket once it is ready; one process starts it while the others wait."""
    start = open_lock(data_dir / "start.lock")
    try:
        deadline = time.monotonic() + _START_TIMEOUT
        if not lock_within(start, fcntl.LOCK_EX, _START_TIMEOUT):
            raise EmbeddedPostgresError(
                f"Another process takes too long to start the Postgres in {data_dir}: try again."
            )
        launched = False
        written = _size_of_log(data_dir)
        while time.monotonic() < deadline:
            if _has_watchdog(data_dir):
                if socket_dir := _find_socket(data_dir):
                    return socket_dir
                time.sleep(POLL_INTERVAL)
            elif launched:
                break  # the watchdog has ended with the server
            else:
                launched = _launch(data_dir, postgres_bin, shutdown_timeout)
        raise EmbeddedPostgresError(f"The Postgres in {data_dir} did not start{_read_reason(data_dir, written)}")
    finally:
        os.close(start)


def _has_watchdog(data_dir: Path) -> bool:
    """Return True if a watchdog runs; a server without one counts as dead."""
    lock = open_lock(data_dir / "watchdog.lock")
    try:
        return not lock_within(lock, fcntl.LOCK_SH, 0)
    finally:
        os.close(lock)


def _find_socket(data_dir: Path) -> Path | None:
    """Find the socket of the running server, of any version; killed servers leave their pid files behind."""
    for cluster in data_dir.glob("cluster-*"):
        postmaster = watchdog.read_postmaster(cluster)
        if postmaster is not None:
            _, socket_dir, is_ready = postmaster
            if is_ready and watchdog.answers(socket_dir):
                return socket_dir
    return None


def _launch(data_dir: Path, postgres_bin: Path | None, shutdown_timeout: float) -> bool:
    """Create the missing folders and start a watchdog; return False if another one runs."""
    account = choose_account(data_dir)
    for leftover in data_dir.glob("*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)
    binaries = make_reachable(find_binaries(postgres_bin), data_dir, account)
    cluster = make_cluster(binaries, data_dir, account)
    socket_dir = make_socket_dir(data_dir, account)
    quoted = str(socket_dir).replace('"', '""')
    command = [str(binaries / "postgres"), "-D", str(cluster), "-c", f'unix_socket_directories="{quoted}"']
    for name, value in _SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    numbers = (*(account or (-1, -1)), shutdown_timeout + _DRAIN_TIMEOUT)
    return _run_watchdog(data_dir, [str(data_dir), str(cluster), str(socket_dir), *map(str, numbers), *command])


def _run_watchdog(data_dir: Path, arguments: list[str]) -> bool:
    log = _open_log(data_dir)
    try:
        status = subprocess.call(  # noqa: S603 - the arguments are built above
            [sys.executable, "-I", "-S", watchdog.__file__, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,  # not this process's streams, whose reader would wait until the watchdog ends
            stderr=log,
            cwd="/",
            env=clean_environment(),
            start_new_session=True,  # Ctrl-C must not reach the server
        )
    finally:
        os.close(log)
    return status == 0


def _open_log(data_dir: Path) -> int:
    path = data_dir / "postgres.log"
    if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
        path.replace(data_dir / "postgres.log.1")
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _size_of_log(data_dir: Path) -> int:
    """Return the size of the log before a start; 0 if the start will rotate it."""
    path = data_dir / "postgres.log"
    size = path.stat().st_size if path.exists() else 0
    return size if size <= _MAX_LOG_BYTES else 0


def _read_reason(data_dir: Path, written: int) -> str:
    """Return the end of a message: the reason for a failed start, from the log, and the path of the log."""
    path = data_dir / "postgres.log"
    with suppress(OSError), path.open("rb") as log:
        log.seek(written)
        if reason := find_reason(log.read(_MAX_LOG_BYTES).decode(errors="replace")):
            return f": {reason} Its log is {path}."
    return f"; its log is {path}."


def _release(data_dir: Path, users: int) -> None:
    """Release the lock of the users, and wait until the server has stopped unless others use it."""
    fcntl.flock(users, fcntl.LOCK_UN)
    deadline = time.monotonic() + _STOP_TIMEOUT
    while _has_watchdog(data_dir) and not _has_users(users) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL)


def _has_users(users: int) -> bool:
    """Return True if others hold the lock shared; a watchdog that stops the server holds it exclusively.

    Two processes that check at the same instant can mistake each other for a user, and then do not wait.
    """
    if lock_within(users, fcntl.LOCK_EX, 0):
        fcntl.flock(users, fcntl.LOCK_UN)
        return False
    if lock_within(users, fcntl.LOCK_SH, 0):
        fcntl.flock(users, fcntl.LOCK_UN)
        return True
    return False
