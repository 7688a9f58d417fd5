"""The watchdog: a small process that runs one Postgres for as long as somebody uses it.

Who uses the server holds `users.lock` shared. The watchdog waits for the same lock exclusively: the kernel
grants it when the last user has gone, even by kill -9, and then the watchdog stops the server and ends. It
holds `watchdog.lock` all its life, so that anybody can see whether it lives: a pid may be another's by now.
Told to stop, it gives users time to go first: a service manager tells all processes at once.

It is run by its path with `python -I -S`, and imports nothing but the standard library: it starts in 30 ms,
and works wherever the package was imported from. Its output goes to `postgres.log`.
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

POLL_INTERVAL = 0.01  # seconds between two looks at a lock or a file
SOCKET_NAME = ".s.PGSQL.5432"
_PR_SET_PDEATHSIG = 1  # prctl(2)
_STOP_STEPS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
_WAKING = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1}


def open_lock(path: Path) -> int:
    """Open a lock file; Python marks the descriptor close-on-exec, so no child process keeps the lock."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def lock_within(lock: int, operation: int, seconds: float, given_up: threading.Event | None = None) -> bool:
    """Take a flock, or return False after `seconds` or once it is given up; polls, for flock has no deadline."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline or (given_up and given_up.is_set()):
                return False
            time.sleep(POLL_INTERVAL)
        else:
            return True


def read_postmaster(cluster: Path) -> tuple[int, Path, bool] | None:
    """Read `postmaster.pid`: the pid, the folder of the socket, and whether the server said that it is ready.

    The lines are those of PostgreSQL's pidfile.h: 1 is the pid, 5 the socket's folder, 8 the state. The file
    outlives a killed server.
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
    """Tell whether a process listens on the socket; Postgres does not log a caller who says nothing."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(socket_dir / SOCKET_NAME))
        except OSError:
            return False
        return True


def _find_living(cluster: Path) -> set[int]:
    """Find the server processes of the folder, whatever `postmaster.pid` says.

    On Linux by their working directory, which Postgres sets to its data folder. Elsewhere the pid of the file
    counts only while the server's private socket has a listener.
    """
    if sys.platform != "linux":
        postmaster = read_postmaster(cluster)
        return {postmaster[0]} if postmaster and answers(postmaster[1]) else set()
    home = cluster.stat()
    living = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or belongs to somebody else
            runs_postgres = (process / "exe").readlink().name.startswith("postgres")
            if runs_postgres and os.path.samestat((process / "cwd").stat(), home):
                living.add(int(process.name))
    return living


def _clear_remains(cluster: Path, socket_dir: Path) -> None:
    """Stop the server that a killed watchdog may have left, and remove the files that name its pid."""
    postmaster = read_postmaster(cluster)
    for number, timeout in _STOP_STEPS:
        living = _find_living(cluster)
        if number == signal.SIGINT and not (postmaster and postmaster[0] in living):
            continue  # only the postmaster shuts down in good order
        deadline = time.monotonic() + timeout
        for pid in living:
            # SIGINT means another thing to the postmaster's children, which follow it anyway.
            if number != signal.SIGINT or (postmaster and pid == postmaster[0]):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        while _find_living(cluster) and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL)
    if sys.platform == "linux":
        # Nothing runs here: the files are stale. Postgres would not start if their pid were in use again, or
        # a zombie's, as it is in a container whose first process does not reap.
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        (socket_dir / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)


def _die_with_parent() -> Callable[[], None]:
    """Make the function that runs in the server's process, after the change of user and before exec."""
    watchdog = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKING)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
            if os.getppid() != watchdog:  # it was killed before the line above
                os._exit(1)

    return prepare


def _announce_last_user(users: int) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGUSR1)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """End the server: a fast shutdown, an immediate one (the next start recovers), and at last by force."""
    for number, timeout in _STOP_STEPS:
        if server.poll() is None:
            server.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                server.wait(timeout)


def _run_until_unused(users: int, account: tuple[int, int] | None, stop_timeout: float, command: list[str]) -> None:
    """Run the server until it ends or the last user has gone; after SIGTERM, for `stop_timeout` seconds at most."""
    # Signals are blocked and waited for, so none is lost and none interrupts; one that is ignored by default
    # needs a handler to be kept.
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)
    server = subprocess.Popen(  # noqa: S603 - the command is built by `embedded`
        command,
        stdin=subprocess.DEVNULL,
        user=account and account[0],
        group=account and account[1],
        extra_groups=[] if account else None,
        preexec_fn=_die_with_parent(),  # noqa: PLW1509 - there is no other thread yet
    )
    threading.Thread(target=_announce_last_user, args=(users,), daemon=True).start()
    timer: threading.Timer | None = None
    while server.poll() is None:  # a child that is only stopped or continued sends SIGCHLD too
        number = signal.sigwait(_WAKING)
        if number == signal.SIGUSR1:
            break
        if number != signal.SIGCHLD and timer is None:
            timer = threading.Timer(stop_timeout, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.daemon = True
            timer.start()
    _stop(server)


def main(arguments: list[str]) -> int:
    """Become the watchdog; return (to the starter) when the lock is held, or 1 if another watchdog holds it."""
    data_dir, cluster, socket_dir = (Path(argument) for argument in arguments[:3])
    uid, gid, stop_timeout = int(arguments[3]), int(arguments[4]), float(arguments[5])
    watchdog = open_lock(data_dir / "watchdog.lock")
    # Those who look whether a watchdog lives hold its lock for an instant.
    if not lock_within(watchdog, fcntl.LOCK_EX, 1):
        return 1
    # The starter waits for what follows, lest it take the server that is being stopped for the new one.
    _clear_remains(cluster, socket_dir)
    if os.fork():
        return 0  # the other process shares the lock, and is nobody's child that has to be waited for
    users = open_lock(data_dir / "users.lock")
    _run_until_unused(users, None if uid < 0 else (uid, gid), stop_timeout, arguments[6:])
    with suppress(OSError):
        socket_dir.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
