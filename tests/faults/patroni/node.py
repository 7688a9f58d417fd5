"""A node of the cluster: Patroni and its Postgres, reached through proxies."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import httpx

from tests.faults.patroni.programs import Programs
from tests.faults.proxy import Proxy
from tests.support.servers import KILL

OWNER, READER, IMPORTER = "localidades", "localidades_reader", "localidades_importer"
PASSWORDS = {OWNER: "localidades", READER: "reader", IMPORTER: "importer"}
_PATIENCE = 60.0


class Network(NamedTuple):
    """The proxies through which others reach a node, and through which it reaches etcd."""

    postgres: Proxy
    api: Proxy
    etcd: Proxy


class Node:
    """Patroni with its Postgres."""

    def __init__(
        self, name: str, programs: Programs, configuration: Path, ports: tuple[int, int], network: Network
    ) -> None:
        self.name = name
        self.network = network
        self.address = f"127.0.0.1:{network.postgres.port}"  # that clients know
        self._programs = programs
        self._configuration = configuration
        self._port, self._api_port = ports
        unkept = httpx.Limits(max_keepalive_connections=0)
        self._api = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self._api_port}", timeout=2, limits=unkept)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _variables(self) -> Mapping[str, str]:
        """The settings of a node, with ports and folders of this machine."""
        binaries = str(self._programs.postgres.binaries)
        return {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "PATRONI_SCOPE": "localidades",
            "PATRONI_NAME": self.name,
            "PATRONI_SUPERUSER_USERNAME": OWNER,
            "PATRONI_SUPERUSER_PASSWORD": PASSWORDS[OWNER],
            "PATRONI_REPLICATION_USERNAME": "replicator",
            "PATRONI_REPLICATION_PASSWORD": "replicator",
            # Unlike HOSTS, PROXY keeps Patroni from asking etcd for its address.
            "PATRONI_ETCD3_PROXY": f"http://127.0.0.1:{self.network.etcd.port}",
            "PATRONI_RESTAPI_LISTEN": f"127.0.0.1:{self._api_port}",
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"127.0.0.1:{self.network.api.port}",
            "PATRONI_POSTGRESQL_LISTEN": f"127.0.0.1:{self._port}",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": self.address,
            "PATRONI_POSTGRESQL_BIN_DIR": binaries,
            "PATRONI_POSTGRESQL_DATA_DIR": str(self._cluster),
            "PATRONI_POSTGRESQL_PGPASS": str(self._programs.folder / f"{self.name}.pgpass"),
        }

    @property
    def _cluster(self) -> Path:
        return self._programs.folder / self.name

    def start(self) -> None:
        """Start Patroni, which starts Postgres."""
        command = [*self._programs.python, "-m", "patroni", str(self._configuration)]
        self._process = self._programs.start(self.name, command, **self._variables)

    def kill(self, number: signal.Signals = KILL) -> None:
        """Kill Patroni, and Postgres by a signal; by default as in a power failure."""
        if self._process:
            self._process.kill()  # first, or it would start Postgres again
            self._process.wait()
        with suppress(FileNotFoundError, ProcessLookupError):
            postmaster = (self._cluster / "postmaster.pid").read_text().partition("\n")[0]
            if Path(f"/proc/{postmaster}/cwd").readlink() == self._cluster:  # the file outlives a server that is killed
                os.kill(int(postmaster), number)

    async def control(self, *arguments: str) -> None:
        """Run patronictl."""
        program = [*self._programs.python, "-c", "from patroni.ctl import ctl; ctl()", "-c", str(self._configuration)]
        ended = self._programs.start("patronictl", [*program, *arguments], **self._variables)
        assert await asyncio.to_thread(ended.wait, _PATIENCE) == 0, self.log("patronictl")

    def log(self, name: str | None = None) -> str:
        """Return the end of a log, by default the node's."""
        return (self._programs.folder / f"{name or self.name}.log").read_text(errors="replace")[-3000:]

    async def members(self) -> set[tuple[str, str]]:
        """Return each node's role and state as this node knows them from etcd; none while it doesn't answer."""
        with suppress(httpx.HTTPError):
            answer = (await self._api.get("/cluster")).json()
            return {(one["role"], one["state"]) for one in answer.get("members", ())}
        return set()

    async def fetch(self, statement: str, *values: object, database: str = "localidades") -> list[Any]:
        """Run a statement as the owner over the socket."""
        address = f"postgresql://{OWNER}:{PASSWORDS[OWNER]}@127.0.0.1:{self._port}/{database}?sslmode=disable"
        connection = await asyncpg.connect(address, timeout=2, command_timeout=5)
        try:
            return list(await connection.fetch(statement, *values))
        finally:
            connection.terminate()

    async def is_standby(self) -> bool | None:
        """Return whether the server is in recovery, or None while it doesn't answer."""
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return bool((await self.fetch("SELECT pg_is_in_recovery()", database="postgres"))[0][0])
        return None

    async def has_release(self, name: str) -> bool:
        """Return whether the server has a release."""
        return bool(await self.fetch("SELECT FROM releases WHERE name = $1", name))

    async def service_connections(self) -> int:
        """Count the connections that the service has to this server."""
        rows = await self.fetch("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'localidades-api'")
        return int(rows[0][0])
