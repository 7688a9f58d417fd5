"""The servers under measurement and their database: started on free ports, and none left when the program ends."""

import asyncio
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import asyncpg

from localidades_api.catalogue.schemas import DEMO_RELEASE
from localidades_api.database.embedded_postgres import run_embedded
from localidades_api.errors import LocalidadesError

ROOT = Path(__file__).parents[1]
PATH = "/api/census/localidades/"
COMMAND = (str(Path(sys.executable).parent / "localidades-api"),)
PEERS = ROOT / "benchmarks" / "peers"
PEERS_BIN = ROOT / "benchmarks" / ".venv" / "bin"
RANDOM, FIRST, LAST = "random pages", "page 1", "last page"

_TEMPLATE = "localidades"
_START_PATIENCE = 30.0
_STOP_PATIENCE = 10.0
_HELD_PATIENCE = 60.0


class BenchmarkError(Exception):
    """A reason why nothing can be measured, as a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """A server; `{port}` and `{folder}` in its command are replaced with the port and a temporary folder."""

    title: str
    command: tuple[str, ...]
    targets: tuple[str, ...] = (RANDOM, FIRST, LAST)
    settings: Mapping[str, str] = field(default_factory=dict)


_SERVE = (*COMMAND, "serve", "--port", "{port}")
OURS = Contender("**localidades-api, warm**", _SERVE)
DEPLOYED = Contender("**localidades-api, two workers, as deployed**", (*_SERVE, "--workers", "2"))
UNCACHED = Contender("**localidades-api, page cache off**", _SERVE, settings={"LOCALIDADES_PAGE_CACHE_BYTES": "0"})
DRF = Contender(
    "Django REST Framework, gunicorn with 4 threads",
    (str(PEERS_BIN / "gunicorn"), "-w1", "--threads=4", "-b", "127.0.0.1:{port}", "benchmarks.peers.drf.wsgi"),
)
# As `serve` runs it: without an access log.
FASTAPI = Contender(
    "FastAPI, SQLAlchemy, pydantic",
    (str(PEERS_BIN / "uvicorn"), "--port", "{port}", "--no-access-log", "benchmarks.peers.plain_fastapi:app"),
)
FASTIFY = Contender("Fastify, pg, on Node", ("node", str(PEERS / "fastify" / "server.js")))
NGINX = Contender(
    "nginx: page 1 as a static file",
    ("nginx", "-e", "error.log", "-p", "{folder}", "-c", "{folder}/nginx-{port}.conf"),
    targets=(RANDOM,),
)
CONTENDERS = (DRF, FASTAPI, FASTIFY, UNCACHED, OURS, DEPLOYED, NGINX)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; `seconds` is the time from the start of its process to its first page."""

    base: str
    process: subprocess.Popen[bytes]
    log: Path
    seconds: float

    def resident(self) -> float:
        """Return the resident memory of the processes that answer requests, in MB (1,000,000 bytes)."""
        return sum(_read_kibibytes(pid, "VmRSS") for pid in _workers(self.process.pid)) * 1024 / 1e6

    def cpu_seconds(self) -> float:
        """Return the processor time of these processes so far, which doesn't include other load on the machine."""
        return sum(map(_read_cpu, _workers(self.process.pid)))

    def await_pages_held(self, workers: int = 1) -> None:
        """Wait until the page cache of each worker of the service is warm."""
        deadline = time.monotonic() + _HELD_PATIENCE
        while self.log.read_text(errors="replace").count("The page cache holds all") < workers:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"The page cache is not warm after {_HELD_PATIENCE:.0f} s; see {self.log}")
            time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a server."""

    status: int
    headers: Message
    body: bytes


def fetch(address: str) -> Answer:
    """Send one request, over a new connection."""
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=_START_PATIENCE)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}".rstrip("?"))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


@contextmanager
def start(contender: Contender, url: str, folder: Path) -> Iterator[Server]:
    """Run a contender on a database; `folder` keeps its log."""
    port = _free_port()
    if contender is NGINX:
        conf = (PEERS / "nginx.conf").read_text().replace("{port}", str(port))
        (folder / f"nginx-{port}.conf").write_text(conf)
    command = [part.replace("{port}", str(port)).replace("{folder}", str(folder)) for part in contender.command]
    log = folder / f"{port}.log"
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**environment(url), **contender.settings, "PORT": str(port)},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        base = f"http://127.0.0.1:{port}"
        _await_first_page(base + PATH, process, log)
        yield Server(base, process, log, time.perf_counter() - started)
    finally:
        _stop(process)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


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
    return [child for child in children if helpers not in Path(f"/proc/{child}/cmdline").read_bytes()] or [pid]


def _read_kibibytes(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))


def _read_cpu(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


# -- The database


@contextmanager
def seeded_postgres(catalogue: Path | None) -> Iterator[tuple[Path, str]]:
    """Run a Postgres with a file's release or the demo; yield a temporary folder and the database's address."""
    source = str(catalogue.resolve()) if catalogue else DEMO_RELEASE
    with tempfile.TemporaryDirectory(prefix="localidades-bench-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # as root, Postgres and nginx run as other users
        print("Seeding a database", flush=True)
        with run_embedded(folder / "postgres", None) as url:
            done = subprocess.run(
                [sys.executable, "-m", "alembic", "upgrade", "head"],
                env={**environment(url), "LOCALIDADES_SEED": source},
                cwd=ROOT,
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise BenchmarkError(f"{source} was not imported:\n{done.stderr[-2000:]}")
            execute(url, "VACUUM (FREEZE, ANALYZE)")
            yield folder, url


def execute(url: str, *statements: str) -> None:
    """Run statements, each in its own transaction."""

    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def read_rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""

    async def run() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    return asyncio.run(run())


def count_localities(url: str) -> int:
    """Return the number of localities in the current release."""
    statement = "SELECT localities FROM releases JOIN current_release ON release_id = id"
    return int(read_rows(url, statement)[0][0])


def clone(url: str, name: str) -> str:
    """Return the address of a copy of the seeded database; nobody may be connected to it."""
    execute(url.replace(f"/{_TEMPLATE}?", "/postgres?"), f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    return url.replace(f"/{_TEMPLATE}?", f"/{name}?")


def environment(url: str) -> dict[str, str]:
    """Return this process's environment with the database's address, for the service and the drivers of all peers."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOCALIDADES_")}
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    return inherited | {
        "DATABASE_URL": url,
        "PGHOST": query["host"][0],
        "PGPORT": query["port"][0],
        "PGUSER": parts.username or "",
        "PGDATABASE": parts.path.lstrip("/"),
    }


# -- The program


def check_tools() -> None:
    """Raise BenchmarkError if a tool is missing."""
    if missing := [name for name in ("wrk", "nginx", "node") if shutil.which(name) is None]:
        raise BenchmarkError(
            f"make bench needs {', '.join(missing)}: install with your system's package manager,"
            " as in `apt-get install wrk nginx nodejs`."
        )
    if not (PEERS_BIN / "gunicorn").exists() or not (PEERS / "fastify" / "node_modules").is_dir():
        raise BenchmarkError("The peers are not installed: run `make bench`, which installs them first.")


def run_command(measure: Callable[[], None]) -> None:
    """Run a command; a BenchmarkError ends it with its message, and SIGTERM stops the servers too."""

    def end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # the signature of a handler
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        measure()
    except (BenchmarkError, LocalidadesError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
