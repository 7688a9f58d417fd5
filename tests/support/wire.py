"""Starts the real command and sends raw requests to it."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.forkserver import ForkedProcess
from tests.support.service_address import database_timeout, service_address
from tests.support.waiting import IS_MEASURED, PATIENCE, eventually

ROOT = Path(__file__).parents[2]
LOCALIDADES = "/api/census/localidades/"
COMMAND = (sys.executable, "-c", "from localidades_api.cli import app; app()")
UVICORN = (sys.executable, "-m", "uvicorn")
NULL = os.open(os.devnull, os.O_RDWR)
RUN_FOLDER = "TEST_RUN_FOLDER"  # the variable of the folder that all processes of a test run share
_START_TIMEOUT = 2 * PATIENCE  # a first start creates a database and imports the demo


@dataclass(frozen=True)
class Answer:
    """A response as received from a socket."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name.lower()]

    def one(self, name: str) -> str:
        (value,) = self.all(name)
        return value

    @property
    def text(self) -> str:
        """Headers and body, to search for anything that must not be there."""
        return "\n".join(f"{name}: {value}" for name, value in self.headers) + "\n\n" + self.body.decode()


def ask(base: str, target: str, *headers: tuple[str, str], method: str = "GET", body: bytes = b"") -> Answer:
    """Send one request exactly as given and read until the connection is closed."""
    lines = [f"{method} {target} HTTP/1.1", "Host: test", "Connection: close"]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers]
    return parse(send(base, "\r\n".join([*lines, "", ""]).encode("latin-1") + body))


def send(base: str, data: bytes) -> bytes:
    """Send bytes and return everything received until the server closes the connection."""
    address = urlsplit(base)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def parse(received: bytes) -> Answer:
    head, _, body = received.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
    return Answer(int(status_line.split()[1]), headers, body)


Process = ForkedProcess | subprocess.Popen[bytes]


@dataclass(frozen=True)
class Live:
    """A running server."""

    base: str
    process: Process
    output: Path


def run_folder() -> Path:
    """Return the run's folder, which Postgres's user can reach and which is removed after the run."""
    return Path(os.environ[RUN_FOLDER])


def cache_folder() -> Path:
    """Return the run's folder for the indexes of names, in which any user may have one."""
    folder = run_folder() / "cache"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    return folder


def environment(url: str | None = None, **settings: str) -> dict[str, str]:
    """Return the environment for a command: this process's without its settings, plus the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOCALIDADES_", "MAKE"))}
    kept.pop("ARGS", None)  # of the `make` that runs the tests, as are MAKEFLAGS and the like
    kept["LOCALIDADES_CACHE_DIR"] = str(cache_folder())
    source = str(ROOT / "src")
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    if url is not None:
        kept |= {"DATABASE_URL": url, "LOCALIDADES_DATABASE_TIMEOUT": str(database_timeout(url))}
    return kept | settings


def start_command(
    *arguments: str,
    env: Mapping[str, str],
    stdin: int = NULL,
    stdout: int = NULL,
    stderr: int = NULL,
    command: Sequence[str] | None = None,
) -> Process:
    """Start a command in a new session.

    It is forked from a process with the modules loaded, unless `command` is given, such as `COMMAND`.
    """
    if command is None and FORKS:
        return ForkedProcess(arguments, (stdin, stdout, stderr), env=env, cwd=ROOT)
    words = [*(command or COMMAND), *arguments]
    return subprocess.Popen(words, env=env, cwd=ROOT, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)


# Elsewhere a fork with the system's libraries may crash, and coverage is measured from a process's start.
FORKS = sys.platform == "linux" and not IS_MEASURED


def run(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: int = NULL,
    stdout: int | None = None,
    stderr: int | None = None,
    command: Sequence[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it wrote to the streams that aren't given."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = {"stdout": stdout or out.fileno(), "stderr": stderr or err.fileno()}
        process = start_command(*arguments, env=env or environment(), stdin=stdin, **streams, command=command)
        try:
            status = process.wait(3 * PATIENCE)  # many rows take a minute on a busy machine
        finally:
            process.kill()
        printed = [os.pread(one.fileno(), os.fstat(one.fileno()).st_size, 0).decode() for one in (out, err)]
    return subprocess.CompletedProcess(arguments, status, *printed)


@contextmanager
def serving(
    url: str,
    *arguments: str,
    probe: str = "/readyz",
    command: Sequence[str] | None = None,
    serve: Sequence[str] = ("serve", "--port", "0"),
    **settings: str,
) -> Iterator[Live]:
    """Run `serve` on a free port and wait for its `probe`; fail if a process is left at the end.

    `command` is that of `start_command`.
    """
    env = environment(service_address(url), **settings)
    with tempfile.NamedTemporaryFile(prefix="localidades-serve-", suffix=".log") as output:
        said = output.fileno()
        process = start_command(*serve, *arguments, env=env, stdout=said, stderr=said, command=command)
        log = Path(output.name)
        try:
            yield Live(_await_ready(process, log, probe), process, log)
            if process.poll() is None:
                process.terminate()
                # After its shutdown, uvicorn raises the signal again.
                assert process.wait(PATIENCE) == (-signal.SIGTERM if command == UVICORN else 0), log.read_text()
            await_end_of_group(process.pid)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def serving_with_uvicorn(
    url: str, *arguments: str, application: str = "localidades_api.asgi:app", probe: str = "/readyz", **settings: str
) -> AbstractContextManager[Live]:
    """Run an application with the `uvicorn` command, as `serving` does with `serve`."""
    return serving(url, *arguments, probe=probe, command=UVICORN, serve=(application, "--port", "0"), **settings)


def await_names(base: str) -> None:
    """Wait until the names of the served release are indexed; those of the demo are a whole country's."""
    eventually(lambda: ask(base, f"{LOCALIDADES}suggest/?q=a").status == http.HTTPStatus.OK, within=2 * PATIENCE)


def await_end_of_group(group: int) -> None:

    def has_ended() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    eventually(has_ended, otherwise=lambda: "a process of the server is left")


def _await_ready(process: Process, log: Path, probe: str) -> str:
    """Return the URL that the server prints, once its probe succeeds."""
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        if printed := re.search(r"(?:list +|running on )(http://[^/\s]+)", log.read_text()):
            probes = re.search(r"probes +(http://[^/]+)/", log.read_text()) or printed
            connection = http.client.HTTPConnection(urlsplit(probes[1]).netloc, timeout=PATIENCE)
            with suppress(OSError, http.client.HTTPException), closing(connection):
                connection.request("GET", probe)
                if connection.getresponse().status < http.HTTPStatus.MULTIPLE_CHOICES:
                    return printed[1]
        time.sleep(0.05)
    raise AssertionError(f"the server is not ready:\n{log.read_text()}")


def connect(address: str, *, receive_buffer: int | None = None) -> socket.socket:
    """Connect to a server on a port or on a socket's path; `receive_buffer` is in bytes."""
    parts = urlsplit(address)
    connection = socket.socket(socket.AF_UNIX if parts.scheme == "unix" else socket.AF_INET)
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(PATIENCE)
    connection.connect(parts.path if parts.scheme == "unix" else (parts.hostname, parts.port))
    return connection


def head(target: str, *fields: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Return the head of a request to the host `test`."""
    return "\r\n".join([f"{method} {target} HTTP/{version}", "Host: test", *fields, "", ""]).encode()


def final_statuses(received: bytes) -> list[int]:
    """Return the statuses of responses that are not interim."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received)]


def read_to_the_end(connection: socket.socket) -> bytes:
    """Read until the server closes or resets the connection."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return bytes(received)


class Asking:
    """A request that has been sent and not answered yet."""

    def __init__(self, stack: ExitStack, live: Live, target: str, *headers: str) -> None:
        self.connection = stack.enter_context(connect(live.base))
        self.connection.sendall(head(target, "Connection: close", *headers))

    def waits(self, seconds: float = 0.25) -> bool:
        """Whether nothing is received for so many seconds."""
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b"never"
        except TimeoutError:
            return True

    def answer(self) -> Answer:
        """Read to the end."""
        self.connection.settimeout(PATIENCE)
        return parse(read_to_the_end(self.connection))


def workers_of(live: Live) -> list[int]:
    """Return the process ids of the workers that were started, oldest first."""
    return [int(number) for number in re.findall(r"Started server process \[(\d+)\]", live.output.read_text())]


def read_answer(connection: socket.socket) -> bytes:
    """Read one complete response from a connection that stays open."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        assert piece, received
        received += piece
    end = received.index(b"\r\n\r\n") + 4
    length = re.search(rb"(?i)content-length: (\d+)\r\n", received[:end])
    while len(received) < end + (int(length[1]) if length else 0):  # none with 204 and 304
        piece = connection.recv(65536)
        assert piece, received
        received += piece
    return received
