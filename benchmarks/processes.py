"""Servers under measurement: each in its own process group, and none left when the suite ends, however it ends."""

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
PATH = "/api/census/localidades/"
_START_PATIENCE = 30.0
_STOP_PATIENCE = 10.0


class BenchmarkError(Exception):
    """A reason why the suite can't measure, as a sentence."""


def unwind_at_sigterm() -> None:
    """Make SIGTERM raise an exception, so that every server is stopped."""

    def end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # the signature of a handler
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; `seconds` is the time from the start of its process to its first page."""

    base: str
    process: subprocess.Popen[bytes]
    log: Path
    seconds: float

    def resident(self) -> float:
        """Return the resident memory of the processes that answer requests, in MB (1,000,000 bytes)."""
        return self._memory("VmRSS")

    def peak(self) -> float:
        """Return the peak of the resident memory, in MB."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> float:
        return sum(_read_memory(pid, name) for pid in _workers(self.process.pid))

    def cpu_seconds(self) -> float:
        """Return the processor time of these processes so far, which doesn't include other load on the machine."""
        return sum(map(_read_cpu, _workers(self.process.pid)))

    def wait_for(self, sentence: str, times: int, patience: float) -> None:
        """Wait until the server has logged a sentence this many times."""
        deadline = time.monotonic() + patience
        while self.log.read_text(errors="replace").count(sentence) < times:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"The server did not log {sentence!r} within {patience:.0f} s; see {self.log}")
            time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a server."""

    status: int
    headers: Message
    body: bytes


def fetch(address: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Send one request, over a new connection."""
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=_START_PATIENCE)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}".rstrip("?"), headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(
    command: list[str], port: int, environment: Mapping[str, str], log: Path, probe: str = PATH
) -> Iterator[Server]:
    """Run a server on the port while the context is open; it has started once `probe` is 200."""
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**environment, "PORT": str(port)},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        base = f"http://127.0.0.1:{port}"
        _await_first_page(base + probe, process, log)
        yield Server(base, process, log, time.perf_counter() - started)
    finally:
        _stop(process)


def _await_first_page(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, http.client.HTTPException):
            if fetch(address).status == http.HTTPStatus.OK:
                return
        time.sleep(0.005)
    raise BenchmarkError(f"A server does not start: {process.args!r}\n{log.read_text(errors='replace')[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the server to stop, then check that nothing of its process group is left."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _workers(pid: int) -> list[int]:
    """Return the children of a server that answer requests (of gunicorn, nginx, several workers), else the server."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    helpers = b"multiprocessing.resource_tracker"  # Python's spawn starts it
    return [one for one in children if helpers not in Path(f"/proc/{one}/cmdline").read_bytes()] or [pid]


def _read_memory(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    kibibytes = next(line.split()[1] for line in status.splitlines() if line.startswith(name))
    return int(kibibytes) * 1024 / 1e6


def _read_cpu(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
