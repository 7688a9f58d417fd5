"""The watchdog: a small process that runs Postgres until its last user has ended.

Every user of the server holds `users.lock` shared. The watchdog waits for the same lock exclusively: the kernel grants
it when the last user has ended, even by kill -9, and then the watchdog stops the server and exits. It holds
`watchdog.lock` while it runs, because a pid could be reused. On SIGTERM it first gives users time to finish: a
service manager sends the signal to all processes at once.

It runs by its path with `python -I -S` and imports only the standard library, so it starts in 30 ms wherever the
package is installed. Its output goes to `postgres.log`.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

POLL_INTERVAL = 0.01  # seconds between two checks of a lock or a file
SOCKET_NAME = ".s.PGSQL.5432"
_PR_SET_PDEATHSIG = 1  # prctl(2)
_STOP_STEPS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
_SIGNALS = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1}


def open_lock(path: Path) -> int:
    """Open a lock file; Python opens it close-on-exec, so no child process keeps the lock."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def lock_within(lock: int, operation: int, seconds: float) -> bool:
    """Take a flock by polling, as it has no timeout; return False after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_INTERVAL)
        else:
            return True


def read_postmaster(cluster: Path) -> tuple[int, Path, bool] | None:
    """Read `postmaster.pid`: the pid, the folder of the socket, and whether the server is ready.

    PostgreSQL's pidfile.h defines the lines: 1 is the pid, 5 the folder of the socket, 8 the state. A killed server
    leaves the file behind.
    """
    try:
        lines = (cluster / "postmaster.pid").read_text(errors="surrogateescape").split("\n")
    except OSError:
        return None
    if not lines[0].isdigit():  # `postgres --single` writes its pid as a negative number
        return None
    lines += [""] * (8 - len(lines))
    return int(lines[0]), Path(lines[4]), lines[7].strip() == "ready"


def answers(socket_dir: Path) -> bool:
    """Return True if a process listens on the socket; Postgres does not log a client that sends nothing."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(socket_dir / SOCKET_NAME))
        except OSError:
            return False
        return True


def _find_server_processes(cluster: Path) -> set[int]:
    """Find the server processes of the folder, without trusting `postmaster.pid`.

    On Linux, by their working directory, which is the data folder. Elsewhere the pid in the file counts only while the
    private socket of the server has a listener.
    """
    if sys.platform != "linux":
        postmaster = read_postmaster(cluster)
        return {postmaster[0]} if postmaster and answers(postmaster[1]) else set()
    home = cluster.stat()
    living = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has exited, or belongs to another user
            runs_postgres = (process / "exe").readlink().name.startswith("postgres")
            if runs_postgres and os.path.samestat((process / "cwd").stat(), home):
                living.add(int(process.name))
    return living


def _stop_orphaned_server(cluster: Path, socket_dir: Path) -> None:
    """Stop a server whose watchdog was killed, and remove its pid files."""
    postmaster = read_postmaster(cluster)
    for number, timeout in _STOP_STEPS:
        living = _find_server_processes(cluster)
        if number == signal.SIGINT:  # which only the postmaster takes as a clean shutdown
            living &= {postmaster[0]} if postmaster else set()
        deadline = time.monotonic() + timeout
        for pid in living:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        while living and _find_server_processes(cluster) and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL)
    if sys.platform == "linux":
        # No server runs, so the files are stale. Postgres would refuse to start if their pid were in use again, or
        # that of a zombie, as in a container whose init does not reap.
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        (socket_dir / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)


def _die_with_parent() -> Callable[[], None]:
    """Return the function to run in the server's process, after the change of user and before exec."""
    watchdog = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
            if os.getppid() != watchdog:  # the watchdog was killed before the line above
                os._exit(1)

    return prepare


def _announce_last_user(users: int) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGUSR1)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """Stop the server: by a fast shutdown, then an immediate one (the next start recovers), then SIGKILL."""
    for number, timeout in _STOP_STEPS:
        if server.poll() is None:
            server.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                server.wait(timeout)


def _run_until_unused(users: int, account: tuple[int, int] | None, stop_timeout: float, command: list[str]) -> None:
    """Run the server until it exits or the last user is gone; after SIGTERM, for at most `stop_timeout` seconds."""
    # Signals are blocked and received by sigwait, so that none is lost and none interrupts; SIGCHLD, which is ignored
    # by default, is only queued if it has a handler.
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    server = subprocess.Popen(  # noqa: S603 - the command is built by `postgres_process`
        command,
        stdin=subprocess.DEVNULL,
        user=account and account[0],
        group=account and account[1],
        extra_groups=[] if account else None,
        preexec_fn=_die_with_parent(),  # noqa: PLW1509 - no other thread runs yet
    )
    threading.Thread(target=_announce_last_user, args=(users,), daemon=True).start()
    timer: threading.Timer | None = None
    while server.poll() is None:  # a stopped or continued child sends SIGCHLD too
        number = signal.sigwait(_SIGNALS)
        if number == signal.SIGUSR1:
            break
        if number != signal.SIGCHLD and timer is None:
            timer = threading.Timer(stop_timeout, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.daemon = True
            timer.start()
    _stop(server)


def main(arguments: list[str]) -> int:
    """Fork the watchdog; return 0 in the starter once the lock is held, or 1 if another watchdog holds it."""
    data_dir, cluster, socket_dir = (Path(argument) for argument in arguments[:3])
    uid, gid, stop_timeout = int(arguments[3]), int(arguments[4]), float(arguments[5])
    watchdog = open_lock(data_dir / "watchdog.lock")
    # Processes that check for a watchdog hold its lock for a moment.
    if not lock_within(watchdog, fcntl.LOCK_EX, 1):
        return 1
    # The starter waits for this; otherwise it could mistake the server that is being stopped for the new one.
    _stop_orphaned_server(cluster, socket_dir)
    if os.fork():
        return 0  # the child shares the lock, and init adopts and reaps it
    users = open_lock(data_dir / "users.lock")
    _run_until_unused(users, None if uid < 0 else (uid, gid), stop_timeout, arguments[6:])
    with suppress(OSError):
        socket_dir.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
