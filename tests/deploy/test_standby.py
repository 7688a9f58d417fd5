"""The scripts of deploy/postgres set up the primary and the standby of Compose."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest

from localidades_api.database.embedded_postgres.binaries import clean_environment
from tests.support.machine import free_port, needed, reachable_folder
from tests.support.postgres import run_sql
from tests.support.servers import Installation
from tests.support.waiting import PATIENCE, eventually, eventually_async
from tests.support.wire import ROOT

pytestmark = pytest.mark.tail

READER, IMPORTER = "localidades_reader", "localidades_importer"
PASSWORDS = {name: f"it's the {name}'s $1" for name in (READER, IMPORTER, "replicator")}


@dataclass(frozen=True)
class Machine:
    """A folder, and the installed Postgres with the user that runs it."""

    folder: Path
    installation: Installation

    def start(self, *command: str, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a program or script as a container does."""
        path, account = f"{self.installation.binaries}:{os.environ['PATH']}", self.installation.account
        return subprocess.Popen(
            [shutil.which(command[0], path=path) or command[0], *command[1:]],
            cwd="/",
            env=clean_environment() | {"PATH": path} | variables,
            user=account and account.uid,
            group=account and account.gid,
            extra_groups=[] if account else None,
        )

    def run(self, *command: str, **variables: str) -> int:
        return self.start(*command, **variables).wait(PATIENCE)

    @contextmanager
    def running(self, port: int, *command: str, **variables: str) -> Iterator[None]:
        """Start a server, wait until it answers, and stop it at the end."""
        options = ("-k", str(self.folder), "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
        server = self.start(*command, *options, **variables)
        try:
            eventually(lambda: self.run("pg_isready", "--quiet", "--host=127.0.0.1", f"--port={port}") == 0)
            yield
        finally:
            server.terminate()
            server.wait(PATIENCE)

    @contextmanager
    def running_primary(self, port: int) -> Iterator[None]:
        """Run a primary set up by the script and the SQL, as the image's entrypoint does."""
        data = str(self.folder / "primary")
        known = ("--username=localidades", "--auth-local=trust", "--auth-host=scram-sha-256")
        assert self.run("initdb", *known, "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata", data) == 0
        with self.running(port, "postgres", "-D", data):
            at = {"PGHOST": str(self.folder), "PGPORT": str(port)}
            assert self.run("createdb", "--username=localidades", "localidades", **at) == 0
            container = {"PGDATA": data, "POSTGRES_USER": "localidades", "POSTGRES_DB": "localidades"}
            container |= {f"{name.split('_')[-1].upper()}_PASSWORD": password for name, password in PASSWORDS.items()}
            assert self.run(str(self.folder / "primary.sh"), **at, **container) == 0
            rights = ("--no-psqlrc", "--username=localidades", "--file", str(self.folder / "roles.sql"), "localidades")
            assert self.run("psql", *rights, **at) == 0
            assert self.run("pg_ctl", "reload", "--silent", "-D", data) == 0
            yield


@pytest.fixture
def machine(installation: Installation) -> Iterator[Machine]:
    for program in ("pg_basebackup", "psql"):
        needed(installation.binaries / program, "install Postgres with its client programs")
    with reachable_folder() as folder:
        for script in (ROOT / "deploy" / "postgres").iterdir():
            shutil.copy(script, folder)  # the servers' user may have no access to the clone
        if installation.account is not None:
            os.chown(folder, *installation.account)
        yield Machine(folder, installation)


async def fetch(port: int, statement: str, role: str = READER, password: str = "") -> object:
    """Run a statement over TCP, by default with the role's password."""
    known = quote(password or PASSWORDS[role])
    url = f"postgresql://{role}:{known}@127.0.0.1:{port}/localidades?sslmode=disable"
    return (await run_sql(url, statement))[0][0]


async def await_value(port: int, statement: str, value: object) -> None:
    async def is_found() -> bool:
        return await fetch(port, statement) == value

    await eventually_async(is_found)


async def test_standby_follows_the_primary_and_can_be_promoted(machine: Machine) -> None:
    port, standby_port = free_port(), free_port()
    data = machine.folder / "18" / "docker"
    settings = {"PGDATA": str(data), "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "replicator"}
    settings |= {"PGPASSWORD": PASSWORDS["replicator"]}
    script = (str(machine.folder / "standby.sh"), "-c", "hot_standby_feedback=on")

    owner = f"postgresql://localidades@/localidades?host={machine.folder}&port={port}"
    with machine.running_primary(port):
        for role in PASSWORDS:
            assert await fetch(port, "SELECT current_user", role) == role
        rights = "SELECT string_agg(rolname, ',') FROM pg_roles WHERE rolreplication AND NOT rolsuper"
        assert await fetch(port, rights) == "replicator"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await fetch(port, "SELECT 1", password="another")  # noqa: S106  # a wrong one
        assert machine.run(script[0], **settings | {"PGPASSWORD": "another"}) != 0
        assert not data.exists()
        half_a_copy = data.with_suffix(".partial")
        assert machine.run("mkdir", "--parents", str(half_a_copy)) == 0
        assert machine.run("touch", str(half_a_copy / "PG_VERSION")) == 0  # an interrupted start left this
        for statement in ("CREATE TABLE told AS SELECT 1 AS value", f"GRANT SELECT ON told TO {READER}"):
            await run_sql(owner, statement)
        with machine.running(standby_port, *script, **settings):
            assert not half_a_copy.exists()
            await await_value(standby_port, "SELECT max(value) FROM told", 1)
            await run_sql(owner, "INSERT INTO told VALUES (2)")
            await await_value(standby_port, "SELECT max(value) FROM told", 2)
            assert await fetch(standby_port, "SELECT pg_is_in_recovery()") is True
            slots = "SELECT string_agg(slot_name || ' ' || active, ',') FROM pg_replication_slots"
            await await_value(port, slots, "standby true")
        await run_sql(owner, "INSERT INTO told VALUES (3)")  # while the standby is away
        with machine.running(standby_port, *script, **settings):
            await await_value(standby_port, "SELECT max(value) FROM told", 3)
            assert machine.run("pg_ctl", "promote", "--silent", "-D", str(data)) == 0
            await await_value(standby_port, "SELECT pg_is_in_recovery()", value=False)
