"""Runs the project's commands by forking a process that has already imported their modules.

The imports take a second of processor time, and a run of the tests starts some 400 commands. A forked command is
otherwise the real one: it has its own session, environment, streams and limits, and exits as Python does.

That process runs this module as a script.
"""

import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

# Not `localidades_api.cli`, whose output depends on the streams at import.
PRELOADED = (
    "localidades_api.app",
    "localidades_api.name_indexes.builder",
    "localidades_api.importer.run",
    "localidades_api.releases.retire",
    "localidades_api.server.protocol",
    "localidades_api.server.run",
    "localidades_api.embedded_postgres",
    "localidades_api.database.roles",
    "alembic.command",
    "httpx",
    "typer",
    "rich.console",
    "rich.progress",
)
_MEASURES = "COVERAGE_PROCESS_START"  # coverage starts in a forked command, not in the process that it is forked from
_STREAMS = 3  # stdin, stdout, stderr
_LENGTH = struct.Struct("!I")


class ForkedProcess:
    """A forked command, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = int(self._read())
        self.returncode: int | None = None

    def _read(self) -> bytes:
        (length,) = _LENGTH.unpack(_receive(self._connection, _LENGTH.size))
        return _receive(self._connection, length)

    def poll(self) -> int | None:
        """Return the exit code (negative for a signal), or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; raise subprocess.TimeoutExpired after `timeout` seconds."""
        if self.returncode is None:
            poll = select.poll()  # select() refuses descriptors from 1024
            poll.register(self._connection, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("localidades-api", timeout or 0)
            self.returncode = int(self._read())
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Starts and uses the process that commands are forked from. All processes of a test run share it."""

    def __init__(self, folder: Path, run: int) -> None:
        """Start it unless another process has. `folder` has its socket and log; it exits with the process `run`."""
        self._path = folder / "forkserver.sock"
        with (folder / "forkserver.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._path.exists():
                with (folder / "forkserver.log").open("ab") as log:
                    self._started = subprocess.Popen(
                        [sys.executable, __file__, str(self._path), str(run)],
                        env={name: value for name, value in os.environ.items() if name != _MEASURES},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                while not self._path.exists():
                    assert self._started.poll() is None, (folder / "forkserver.log").read_text()
                    time.sleep(0.01)

    def start(
        self,
        arguments: Sequence[str],
        streams: Sequence[int],
        *,
        env: Mapping[str, str],
        cwd: Path,
        files: str | None = None,
    ) -> ForkedProcess:
        """Run a command with arguments, the three standard streams, and a limit on open files."""
        request = json.dumps({"arguments": arguments, "env": dict(env), "cwd": str(cwd), "files": files}).encode()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self._path))
        socket.send_fds(connection, [_LENGTH.pack(len(request))], list(streams))
        connection.sendall(request)
        return ForkedProcess(connection)


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise ConnectionError("The process that commands are forked from has ended.")
        received += piece
    return received


class _Server:
    """Forks a process for each request and reports its exit code over the request's connection."""

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}.new")
        self._listener.listen(64)
        os.rename(f"{path}.new", path)  # noqa: PTH104  # nobody can connect before it listens
        self._wakeup, wakening = os.pipe()
        for end in (self._wakeup, wakening):
            os.set_blocking(end, False)  # the system's signature
        signal.set_wakeup_fd(wakening)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._children: dict[int, socket.socket] = {}
        self._inherited = [self._listener.fileno(), self._wakeup, wakening]

    def serve(self, run: int) -> dict[str, Any]:
        """Return a request in the process that is forked for it; exit once the test run has ended."""
        while _is_alive(run):
            ready, _, _ = select.select([self._listener.fileno(), self._wakeup], [], [], 1)
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                self._report_ended()
            if self._listener.fileno() in ready:
                connection, _ = self._listener.accept()
                request = _read_request(connection)
                pid = os.fork()
                if not pid:
                    self._leave(connection)
                    return request
                for stream in request["streams"]:
                    os.close(stream)
                self._children[pid] = connection
                _answer(connection, pid)
        sys.exit()

    def _report_ended(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._children.pop(ended[0]) as connection:
                    _answer(connection, os.waitstatus_to_exitcode(ended[1]))

    def _leave(self, connection: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (connection, *self._children.values()):
            one.close()
        for descriptor in self._inherited:
            os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _answer(connection: socket.socket, number: int) -> None:
    said = str(number).encode()
    with suppress(OSError):  # the process of the tests has ended
        connection.sendall(_LENGTH.pack(len(said)) + said)


def _read_request(connection: socket.socket) -> dict[str, Any]:
    head, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, _STREAMS)
    request: dict[str, Any] = json.loads(_receive(connection, _LENGTH.unpack(head)[0]))
    return {**request, "streams": streams}


def _become(request: dict[str, Any]) -> None:
    """Set up this process as the request says."""
    os.setsid()
    for target, stream in enumerate(request["streams"]):
        os.dup2(stream, target)
    for stream in request["streams"]:
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # as above
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115  # as above
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    if request["files"]:
        limit = int(request["files"])
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    sys.argv = ["localidades-api", *request["arguments"]]
    if _MEASURES in os.environ:
        import_module("coverage").process_startup()


if __name__ == "__main__":
    sys.path[0] = ""  # as with `python -c`
    for name in PRELOADED:
        import_module(name)
    _become(_Server(sys.argv[1]).serve(int(sys.argv[2])))
    del __file__  # multiprocessing would load this script in its children
    from localidades_api.cli import app

    app()
