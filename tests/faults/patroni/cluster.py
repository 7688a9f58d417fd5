"""Three nodes and their etcd, with the settings that docs/operations/deploy.md shows."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from ruamel.yaml import YAML

from localidades_api.database.embedded_postgres.binaries import read_version
from tests.faults.patroni.node import IMPORTER, PASSWORDS, READER, Network, Node
from tests.faults.patroni.programs import Etcd, Programs
from tests.faults.proxy import proxied
from tests.support.machine import free_port
from tests.support.servers import IMMEDIATE, KILL
from tests.support.waiting import eventually, eventually_async
from tests.support.wire import ROOT

_PAGE = ROOT / "docs" / "operations" / "deploy.md"
_PATIENCE = 60.0
_BUILTIN_LOCALES = 17  # the first version with them
# fsync: processes are killed here, never the machine.
_ACCESS = ["host replication replicator samenet scram-sha-256", "host all all samenet scram-sha-256"]
_PARAMETERS = {"unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB", "max_connections": "40"}


class Cluster:
    """Three nodes and their etcd."""

    def __init__(self, etcd: Etcd, nodes: Sequence[Node]) -> None:
        self.etcd = etcd
        self.nodes = nodes

    def url(self, role: str, prefer: str) -> str:
        """Return the URL of all nodes for the service and imports."""
        hosts = ",".join(node.address for node in self.nodes)
        return (
            f"postgresql://{role}:{PASSWORDS[role]}@{hosts}/localidades?sslmode=disable&target_session_attrs={prefer}"
        )

    async def primary(self) -> Node:
        """Return the primary."""
        (primary,) = [node for node in self.nodes if await node.is_standby() is False]
        return primary

    @asynccontextmanager
    async def never_two_primaries(self) -> AsyncIterator[None]:
        """Check repeatedly while the block runs that at most one node accepts writes."""

        async def watch() -> None:
            while True:
                standbys = await asyncio.gather(*(node.is_standby() for node in self.nodes))
                assert standbys.count(False) <= 1
                await asyncio.sleep(0.5)  # logging in takes time of the proxies' process

        watching = asyncio.create_task(watch())
        try:
            yield
            assert not watching.done(), watching.exception()
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def await_health(self) -> None:
        """Wait until there are a primary, a synchronous standby and another standby, both streaming."""
        try:
            await eventually_async(self._is_healthy, within=_PATIENCE)
        except TimeoutError:
            raise AssertionError("\n\n".join(f"{node.name}: {node.log()}" for node in self.nodes)) from None

    async def _is_healthy(self) -> bool:
        whole = {("leader", "running"), ("sync_standby", "streaming"), ("replica", "streaming")}
        for node in self.nodes:
            if await node.members() != whole:
                return False
        standbys = [await node.is_standby() for node in self.nodes]
        return (standbys.count(True), standbys.count(False)) == (2, 1)

    def cut(self, lost: Node) -> None:
        """Cut a node off from its clients, its standbys and etcd.

        Its requests to other nodes are cut too. As their proxies can't distinguish callers, no node reaches
        Patroni's API on another one meanwhile.
        """
        for node in self.nodes:
            for proxy in node.network if node is lost else (node.network.api,):
                proxy.swallow()

    def heal(self) -> None:
        """Reconnect a node."""
        for node in self.nodes:
            for proxy in node.network:
                proxy.heal()


def _configure(programs: Programs) -> Path:
    """Write the settings of the page with those of this machine and Postgres."""
    yaml = YAML(typ="safe", pure=True)
    [shown] = re.findall(r"^```yaml\n(.*?)^```$", _PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    configuration = yaml.load(shown)
    bootstrap = configuration["bootstrap"]
    if int(read_version(programs.postgres.binaries).partition(".")[0]) < _BUILTIN_LOCALES:
        bootstrap["initdb"] = [
            one for one in bootstrap["initdb"] if not {"locale-provider", "builtin-locale"} & set(one)
        ]
    configuration["postgresql"] |= {"parameters": _PARAMETERS, "pg_hba": _ACCESS, "basebackup": {"checkpoint": "fast"}}
    path = programs.folder / "patroni.yml"
    yaml.dump(configuration, path)
    path.chmod(0o644)
    return path


@asynccontextmanager
async def running_cluster(programs: Programs) -> AsyncIterator[Cluster]:
    """Run a cluster; leave nothing running at the end."""
    configuration = _configure(programs)
    etcd = Etcd(programs)
    nodes = []
    async with AsyncExitStack() as stack:
        for number in (1, 2, 3):
            ports = (free_port(), free_port())
            network = Network(*[await stack.enter_async_context(proxied(port)) for port in (*ports, etcd.port)])
            nodes.append(Node(f"node{number}", programs, configuration, ports, network))
        cluster = Cluster(etcd, nodes)
        stack.callback(_end, cluster, programs.folder)
        etcd.start()
        for node in nodes:
            node.start()
        await cluster.await_health()
        await _create_database(await cluster.primary())
        yield cluster


async def _create_database(primary: Node) -> None:
    for role in (READER, IMPORTER):
        await primary.fetch(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORDS[role]}'", database="postgres")
    await primary.fetch("CREATE DATABASE localidades", database="postgres")


def _end(cluster: Cluster, folder: Path) -> None:
    """Kill every process of a cluster; Postgres gets time to release its shared memory."""
    for node in cluster.nodes:
        node.kill(IMMEDIATE)
    cluster.etcd.stop()
    with suppress(AssertionError):
        eventually(lambda: not _processes_of(folder))
    for process in _processes_of(folder):
        with suppress(ProcessLookupError):
            os.kill(process, KILL)


def _processes_of(folder: Path) -> list[int]:
    """Return the processes that run in a folder, or were started with a path in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command = (process / "cmdline").read_bytes()
            if str(folder).encode() in command or (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
    return found
