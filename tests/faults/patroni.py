"""Three Postgres under Patroni, as deploy/postgres/patroni.yml has them, and an etcd; a node can lose its network."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import httpx
from ruamel.yaml import YAML

from localidades_api.errors import EmbeddedPostgresError
from localidades_api.storage.embedded.binaries import Account, clean_environment, read_version, run_as
from localidades_api.storage.embedded.watchdog import _die_with_parent
from tests.faults.proxy import Proxy, proxied
from tests.support.machine import free_port, needed
from tests.support.servers import IMMEDIATE, KILL, Installation, make_private
from tests.support.waiting import eventually, eventually_async
from tests.support.wire import ROOT

OWNER, READER, IMPORTER = "localidades", "localidades_reader", "localidades_importer"
_PACKAGES = ROOT / "build" / "patroni"
_FILES = ROOT / "deploy" / "postgres"
_PATIENCE = 60.0
_BUILTIN_LOCALES = 17  # the first version that has them
# fsync: processes are killed here, never the machine.
_PARAMETERS = {"unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB", "max_connections": "40"}


class Member(NamedTuple):
    """What Patroni says of a node."""

    name: str
    role: str
    state: str


@dataclass(frozen=True)
class Programs:
    """Postgres, Patroni and etcd, which `make faults` and .ci/run have installed, and a folder of their user's."""

    postgres: Installation
    etcd: str
    python: tuple[str, ...]
    folder: Path

    def start(self, log: str, command: list[str], **variables: str) -> "subprocess.Popen[bytes]":
        """Start a program, from the main thread: it dies with whoever started it."""
        account = self.postgres.account
        with (self.folder / f"{log}.log").open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=clean_environment() | variables,
                user=account and account.uid,
                group=account and account.gid,
                extra_groups=[] if account else None,
                preexec_fn=_die_with_parent(),  # noqa: PLW1509  # asyncio has no thread of its own here
            )


def find_programs(installation: Installation, folder: Path) -> Programs:
    """Find the programs; without one of them CI fails, and others skip."""
    etcd = needed(shutil.which("etcd"), "install etcd, as .ci/run does")
    needed(installation.binaries / "pg_rewind", "install Postgres with its programs for servers")
    needed(_PACKAGES, "`make faults` installs Patroni")
    own = folder / "patroni"
    make_private(own, installation.account)
    return Programs(installation, etcd, _find_python(own, installation.account), own)


def _find_python(folder: Path, account: Account | None) -> tuple[str, ...]:
    """Return the command that runs Python with Patroni; the clone and its Python may be closed to root's account."""
    packages = _PACKAGES
    if account:
        packages = folder / "packages"
        shutil.copytree(_PACKAGES, packages)
    for python in (str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        command = ("/usr/bin/env", f"PYTHONPATH={packages}", "PYTHONDONTWRITEBYTECODE=1", python)
        with suppress(EmbeddedPostgresError, OSError):
            run_as(account, [*command, "-c", "import patroni.ctl, psycopg"])
            return command
    return (needed(None, "`make faults` installs Patroni, for a Python that the servers' user can run"),)


class Etcd:
    """An etcd that can be stopped for a while."""

    def __init__(self, programs: Programs) -> None:
        self.port = free_port()
        self._programs = programs
        self._peers = f"http://127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it on the data that it has left."""
        clients = f"http://127.0.0.1:{self.port}"
        command = [self._programs.etcd, "--name=etcd", f"--data-dir={self._programs.folder / 'etcd'}"]
        command += [f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"]
        command += [f"--listen-peer-urls={self._peers}", f"--initial-advertise-peer-urls={self._peers}"]
        command += [f"--initial-cluster=etcd={self._peers}", "--logger=zap", "--log-level=warn"]
        self._process = self._programs.start("etcd", command)

    def stop(self) -> None:
        """Kill it."""
        if self._process:
            self._process.kill()
            self._process.wait()


class Network(NamedTuple):
    """The proxies that others reach a node through, and it etcd."""

    postgres: Proxy
    api: Proxy
    etcd: Proxy


class Node:
    """A Patroni with its Postgres."""

    def __init__(self, name: str, programs: Programs, configuration: Path, ports: tuple[int, int]) -> None:
        self.name = name
        self._programs = programs
        self._configuration = configuration
        self._port, self._api_port = ports
        self._process: subprocess.Popen[bytes] | None = None
        self.network: Network | None = None

    @property
    def address(self) -> str:
        """The host and port that clients know."""
        assert self.network
        return f"127.0.0.1:{self.network.postgres.port}"

    @property
    def _variables(self) -> Mapping[str, str]:
        """What compose.patroni.yml sets, for ports and folders of this machine."""
        assert self.network
        binaries = str(self._programs.postgres.binaries)
        return {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "READER_PASSWORD": READER,
            "IMPORTER_PASSWORD": IMPORTER,
            "PATRONI_NAME": self.name,
            "PATRONI_ETCD3_PROXY": f"http://127.0.0.1:{self.network.etcd.port}",  # and not the address that etcd names
            "PATRONI_RESTAPI_LISTEN": f"127.0.0.1:{self._api_port}",
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"127.0.0.1:{self.network.api.port}",
            "PATRONI_POSTGRESQL_LISTEN": f"127.0.0.1:{self._port}",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": self.address,
            "PATRONI_POSTGRESQL_BIN_DIR": binaries,
            "PATRONI_POSTGRESQL_DATA_DIR": str(self._cluster),
            "PATRONI_POSTGRESQL_PGPASS": str(self._programs.folder / f"{self.name}.pgpass"),
            "PATRONI_SUPERUSER_USERNAME": OWNER,
            "PATRONI_SUPERUSER_PASSWORD": OWNER,
            "PATRONI_REPLICATION_USERNAME": "replicator",
            "PATRONI_REPLICATION_PASSWORD": "replicator",
        }

    @property
    def _cluster(self) -> Path:
        return self._programs.folder / self.name

    def start(self) -> None:
        """Start Patroni, which starts Postgres."""
        command = [*self._programs.python, "-m", "patroni", str(self._configuration)]
        self._process = self._programs.start(self.name, command, **self._variables)

    def kill(self, number: signal.Signals = KILL) -> None:
        """Kill Patroni and, by a signal, Postgres: by default as a machine does that loses its power."""
        if self._process:
            self._process.kill()  # first, or it would start Postgres again
            self._process.wait()
        with suppress(FileNotFoundError, ProcessLookupError):
            postmaster = int((self._cluster / "postmaster.pid").read_text().partition("\n")[0])
            os.kill(postmaster, number)

    async def control(self, *arguments: str) -> None:
        """Run patronictl."""
        program = [*self._programs.python, "-c", "from patroni.ctl import ctl; ctl()", "-c", str(self._configuration)]
        ended = self._programs.start("patronictl", [*program, *arguments], **self._variables)
        assert await asyncio.to_thread(ended.wait, _PATIENCE) == 0, self.log("patronictl")

    def log(self, name: str | None = None) -> str:
        """Return the end of a log, the node's own by default."""
        return (self._programs.folder / f"{name or self.name}.log").read_text(errors="replace")[-3000:]

    async def members(self) -> list[Member]:
        """Return what this node knows of all, from etcd; nothing while it does not answer."""
        with suppress(httpx.HTTPError):
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self._api_port}", timeout=2) as client:
                answer = (await client.get("/cluster")).json()
            return [Member(one["name"], one["role"], one["state"]) for one in answer.get("members", ())]
        return []

    async def fetch(self, statement: str, *values: object, database: str = "localidades") -> list[Any]:
        """Run a statement as the owner, over a connection that needs no network."""
        address = f"postgresql://{OWNER}:{OWNER}@127.0.0.1:{self._port}/{database}?sslmode=disable"
        connection = await asyncpg.connect(address, timeout=2, command_timeout=5)
        try:
            return list(await connection.fetch(statement, *values))
        finally:
            connection.terminate()

    async def is_standby(self) -> bool | None:
        """Return whether the server only replays, or None while it does not answer."""
        with suppress(OSError, asyncpg.PostgresError):
            return bool((await self.fetch("SELECT pg_is_in_recovery()", database="postgres"))[0][0])
        return None

    async def has_release(self, name: str) -> bool:
        """Return whether the server has a release."""
        return bool(await self.fetch("SELECT FROM releases WHERE name = $1", name))

    async def service_connections(self) -> int:
        """Count the connections that the service has to this server."""
        rows = await self.fetch("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'localidades-api'")
        return int(rows[0][0])


class Cluster:
    """Three nodes and their etcd."""

    def __init__(self, etcd: Etcd, nodes: tuple[Node, ...]) -> None:
        self.etcd = etcd
        self.nodes = nodes

    def url(self, role: str, prefer: str) -> str:
        """Return the address of all nodes, as the service and imports get it."""
        hosts = ",".join(node.address for node in self.nodes)
        return f"postgresql://{role}:{role}@{hosts}/localidades?sslmode=disable&target_session_attrs={prefer}"

    async def primary(self) -> Node:
        """Return the one that takes writes."""
        (primary,) = [node for node in self.nodes if await node.is_standby() is False]
        return primary

    async def await_health(self) -> None:
        """Wait until there are a primary, a synchronous standby and another one, and both stream."""
        try:
            await eventually_async(self._is_healthy, within=_PATIENCE)
        except TimeoutError:
            raise AssertionError("\n\n".join(f"{node.name}: {node.log()}" for node in self.nodes)) from None

    async def _is_healthy(self) -> bool:
        told = [await node.members() for node in self.nodes]
        standbys = [await node.is_standby() for node in self.nodes]
        whole = {("leader", "running"), ("sync_standby", "streaming"), ("replica", "streaming")}
        return sorted(map(str, standbys)) == ["False", "True", "True"] and all(
            {(one.role, one.state) for one in members} == whole for members in told
        )

    def cut(self, lost: Node) -> None:
        """Let nothing through between a node and its clients, its standbys and etcd.

        Its network is cut for what it asks of other nodes too. As their proxies can't tell who asks, no node reaches
        Patroni's API on another one meanwhile.
        """
        for node in self.nodes:
            assert node.network
            for proxy in node.network if node is lost else (node.network.api,):
                proxy.swallow()

    def heal(self) -> None:
        """Let everything through again."""
        for node in self.nodes:
            assert node.network
            for proxy in node.network:
                proxy.heal()


def _configure(programs: Programs) -> Path:
    """Return the file of deploy/, with what this machine and this Postgres need."""
    yaml = YAML(typ="safe", pure=True)
    configuration = yaml.load(_FILES / "patroni.yml")
    bootstrap = configuration["bootstrap"]
    script = shutil.copy(_FILES / "patroni-init.sh", programs.folder)  # the clone may be closed to the servers' user
    assert bootstrap["post_init"] == f"/{Path(script).name}"
    bootstrap["post_init"] = script
    if int(read_version(programs.postgres.binaries).partition(".")[0]) < _BUILTIN_LOCALES:
        bootstrap["initdb"] = [
            one for one in bootstrap["initdb"] if not {"locale-provider", "builtin-locale"} & set(one)
        ]
    configuration["postgresql"]["parameters"] = dict(_PARAMETERS)
    path = programs.folder / "patroni.yml"
    yaml.dump(configuration, path)
    path.chmod(0o644)
    return path


@asynccontextmanager
async def running_cluster(programs: Programs) -> AsyncIterator[Cluster]:
    """Run a cluster; nothing of it is left."""
    configuration = _configure(programs)
    etcd = Etcd(programs)
    ports = [(free_port(), free_port()) for _ in range(3)]
    nodes = tuple(Node(f"node{n}", programs, configuration, each) for n, each in enumerate(ports, 1))
    async with AsyncExitStack() as stack:
        for node, (port, api_port) in zip(nodes, ports, strict=True):
            leading = [await stack.enter_async_context(proxied(one)) for one in (port, api_port, etcd.port)]
            node.network = Network(*leading)
        cluster = Cluster(etcd, nodes)
        stack.callback(_end, cluster, programs.folder)
        etcd.start()
        for node in nodes:
            node.start()
        await cluster.await_health()
        yield cluster


def _end(cluster: Cluster, folder: Path) -> None:
    """Kill every process of a cluster; a Postgres gets the time to give its shared memory back."""
    for node in cluster.nodes:
        node.kill(IMMEDIATE)
    cluster.etcd.stop()
    with suppress(AssertionError):
        eventually(lambda: not _processes_of(folder))
    for process in _processes_of(folder):
        os.kill(process, KILL)


def _processes_of(folder: Path) -> list[int]:
    """Return the processes that work in a folder, or were started with a path in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command = (process / "cmdline").read_bytes()
            if str(folder).encode() in command or (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
    return found
