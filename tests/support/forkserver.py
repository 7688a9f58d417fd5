"""Runs the project's commands by forking a process that has already imported their modules.

The imports take a second of processor time, and a run of the tests starts hundreds of commands. A forked command is
otherwise the real one: it has its own session, environment and streams, and exits as Python does.

That process runs this module as a script. It ends with the process of tests that started it.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# Not `localidades_api.cli`, whose output depends on the streams at import.
PRELOADED = (
    "localidades_api.app", "localidades_api.importer.run",
    "localidades_api.releases.retire", "localidades_api.server.protocol", "localidades_api.server.run",
    "localidades_api.database.embedded_postgres", "alembic.command", "httpx", "typer",
    "rich.console", "rich.progress",
)  # fmt: skip


@cache
def _server() -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)  # a request is one message
    with theirs:
        return ours, subprocess.Popen([sys.executable, __file__], stdin=theirs.fileno(), start_new_session=True)


class ForkedProcess:
    """A forked command, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, arguments: Sequence[str], streams: Sequence[int], *, env: Mapping[str, str], cwd: Path) -> None:
        request = {"arguments": arguments, "env": dict(env), "cwd": str(cwd)}
        self._answers, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(_server()[0], [json.dumps(request).encode()], [theirs.fileno(), *streams])
        self.pid = int(self._answers.recv(32))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code (negative for a signal), or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; raise subprocess.TimeoutExpired after `timeout` seconds."""
        if self.returncode is None:
            poll = select.poll()  # select() refuses descriptors from 1024
            poll.register(self._answers, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("localidades-api", timeout or 0)
            self.returncode = int(self._answers.recv(32))
            self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _await_request(requests: socket.socket) -> dict[str, Any]:
    """Return a request in a process forked for it, whose parent sends its process id and then its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those parents
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1024**2, 4)
        if not message:
            sys.exit()
        if not os.fork():
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests.detach()
    answers, *streams = descriptors
    if command := os.fork():
        for stream in streams:
            os.close(stream)
        os.write(answers, b"%d" % command)
        ended = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        with suppress(OSError):  # the process of the tests has ended
            os.write(answers, b"%d" % ended)
        os._exit(0)
    os.close(answers)
    request: dict[str, Any] = json.loads(message)
    return request | {"streams": streams}


def _become(request: dict[str, Any]) -> None:
    os.setsid()
    for target, stream in enumerate(request["streams"]):
        os.dup2(stream, target)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # likewise
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115  # likewise
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = ["localidades-api", *request["arguments"]]


if __name__ == "__main__":
    sys.path[0] = ""  # as with `python -c`
    for name in PRELOADED:
        import_module(name)
    _become(_await_request(socket.socket(fileno=0)))
    del __file__  # multiprocessing would load this script in its children
    from localidades_api.cli import app

    app()
