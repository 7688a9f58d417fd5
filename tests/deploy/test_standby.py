"""The scripts of deploy/postgres set up the primary and the standby of Compose."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest

from localidades_api.embedded_postgres import find_binaries
from localidades_api.embedded_postgres.binaries import Account, clean_environment, make_reachable
from localidades_api.embedded_postgres.data_directory import choose_account
from tests.support.machine import free_port, needed, reachable_folder
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import ROOT

pytestmark = pytest.mark.tail

SCRIPTS = ROOT / "deploy" / "postgres"
READER, IMPORTER = "localidades_reader", "localidades_importer"
PASSWORDS = {name: f"it's the {name}'s $1" for name in (READER, IMPORTER, "replicator")}


@dataclass(frozen=True)
class Machine:
    """A folder, Postgres's programs, and the user that runs them."""

    folder: Path
    binaries: Path
    account: Account | None

    def start(self, *command: str, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a program or script as a container does."""
        path = f"{self.binaries}:{os.environ['PATH']}"
        return subprocess.Popen(
            [shutil.which(command[0], path=path) or command[0], *command[1:]],
            cwd="/",
            env=clean_environment() | {"PATH": path} | variables,
            user=self.account and self.account.uid,
            group=self.account and self.account.gid,
            extra_groups=[] if self.account else None,
        )

    def run(self, *command: str, **variables: str) -> int:
        """Run it to its end."""
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


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Yield a folder owned by the servers' user."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    with reachable_folder() as folder:
        account = choose_account(folder)
        binaries = make_reachable(find_binaries(Path(chosen) if chosen else None), folder, account)
        needed(binaries / "pg_basebackup", "install Postgres with its client programs")
        needed(binaries / "psql", "install Postgres with its client programs")
        for script in SCRIPTS.iterdir():
            shutil.copy(script, folder)  # the servers' user may have no access to the clone
        if account is not None:
            os.chown(folder, *account)
        yield Machine(folder, binaries, account)


@contextmanager
def primary(machine: Machine, port: int) -> Iterator[None]:
    """Run a primary set up by the script, as the image's entrypoint does."""
    data = str(machine.folder / "primary")
    locale = ("--encoding=UTF8", "--locale=C.UTF-8")
    user = ("--username=localidades", "--auth-local=trust", "--auth-host=scram-sha-256")
    assert machine.run("initdb", *user, *locale, "--no-instructions", "--pgdata", data) == 0
    with machine.running(port, "postgres", "-D", data):
        at = {"PGHOST": str(machine.folder), "PGPORT": str(port)}
        assert machine.run("createdb", "--username=localidades", "localidades", **at) == 0
        container = {"PGDATA": data, "POSTGRES_USER": "localidades", "POSTGRES_DB": "localidades"}
        passwords = {f"{name.split('_')[-1].upper()}_PASSWORD": password for name, password in PASSWORDS.items()}
        assert machine.run(str(machine.folder / "primary.sh"), **at, **container, **passwords) == 0
        assert machine.run("pg_ctl", "reload", "--silent", "-D", data) == 0
        yield


async def fetch(port: int, statement: str, role: str = READER, password: str | None = None) -> object:
    """Run a statement over TCP, by default with the role's password."""
    known = quote(password or PASSWORDS[role])
    connection = await asyncpg.connect(f"postgresql://{role}:{known}@127.0.0.1:{port}/localidades", ssl=False)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def await_value(port: int, statement: str, value: object, role: str = READER) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := await fetch(port, statement, role)) != value:
        assert time.monotonic() < deadline, found


def administer(machine: Machine, port: int, statement: str) -> None:
    at = {"PGHOST": str(machine.folder), "PGPORT": str(port)}
    command = ("psql", "--quiet", "--username=localidades", "--dbname=localidades", "--command", statement)
    assert machine.run(*command, **at) == 0


def settings_of_standby(machine: Machine, port: int) -> dict[str, str]:
    data = str(machine.folder / "18" / "docker")  # the script creates the parent folder
    return {
        "PGDATA": data,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(port),
        "PGUSER": "replicator",
        "PGPASSWORD": PASSWORDS["replicator"],
    }


async def test_standby_follows_the_primary_and_can_be_promoted(machine: Machine) -> None:
    port, standby_port = free_port(), free_port()
    settings = settings_of_standby(machine, port)
    script = (str(machine.folder / "standby.sh"), "-c", "hot_standby_feedback=on")
    half_a_copy = machine.folder / "18" / "docker.partial"
    half_a_copy.mkdir(parents=True)
    (half_a_copy / "PG_VERSION").write_text("an interrupted start left this")
    if machine.account is not None:
        for path in (half_a_copy.parent, half_a_copy):
            os.chown(path, *machine.account)
    with primary(machine, port):
        administer(machine, port, f"CREATE TABLE told AS SELECT 1 AS value; GRANT SELECT ON told TO {READER}")
        with machine.running(standby_port, *script, **settings):
            assert not half_a_copy.exists()
            await await_value(standby_port, "SELECT max(value) FROM told", 1)
            administer(machine, port, "INSERT INTO told VALUES (2)")
            await await_value(standby_port, "SELECT max(value) FROM told", 2)
            assert await fetch(standby_port, "SELECT pg_is_in_recovery()") is True
            slots = "SELECT string_agg(slot_name || ' ' || active, ',') FROM pg_replication_slots"
            await await_value(port, slots, "standby true")
        administer(machine, port, "INSERT INTO told VALUES (3)")  # while the standby is away
        with machine.running(standby_port, *script, **settings):
            await await_value(standby_port, "SELECT max(value) FROM told", 3)
            assert machine.run("pg_ctl", "promote", "--silent", "-D", settings["PGDATA"]) == 0
            await await_value(standby_port, "SELECT pg_is_in_recovery()", value=False)


async def test_primary_requires_a_password(machine: Machine) -> None:
    port = free_port()
    with primary(machine, port):
        for role in PASSWORDS:
            assert await fetch(port, "SELECT current_user", role) == role
        rights = "SELECT string_agg(rolname, ',') FROM pg_roles WHERE rolreplication AND NOT rolsuper"
        assert await fetch(port, rights) == "replicator"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await fetch(port, "SELECT 1", password="another")  # noqa: S106  # a wrong one
        wrong = settings_of_standby(machine, port) | {"PGPASSWORD": "another"}
        assert machine.run(str(machine.folder / "standby.sh"), **wrong) != 0
        assert "docker" not in os.listdir(machine.folder / "18")  # noqa: PTH208  # a look that does not wait
