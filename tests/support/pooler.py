"""Runs PgBouncer in front of a Postgres, with the settings that docs/operations/deploy.md shows."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

from localidades_api.database.embedded_postgres.data_directory import choose_account
from tests.support import service_address
from tests.support.machine import free_port, needed, reachable_folder
from tests.support.postgres import execute, own_name
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import ROOT

PAGE = ROOT / "docs" / "operations" / "deploy.md"
# PGBOUNCER=/path/to/pgbouncer chooses another version than the system's.
PROGRAM = os.environ.get("PGBOUNCER") or shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


class Pooler:
    """A running PgBouncer; it needs no password, like the tests' Postgres."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, direct: str, role: str = "postgres") -> str:
        name = urlsplit(direct).path
        return f"postgresql://{role}@127.0.0.1:{self.port}{name}?sslmode=disable&pgbouncer=true"


@contextmanager
def pooling(hosts: str, roles: Collection[str] = (), mode: str = "transaction", **settings: object) -> Iterator[Pooler]:
    """Run PgBouncer in front of one or more `hosts:port` or `folder:port`; `postgres` and `roles` may connect."""
    pgbouncer = needed(PROGRAM, "install pgbouncer")
    port = free_port()
    with reachable_folder() as folder:
        account = choose_account(folder)  # like Postgres, it doesn't run as root
        [shown] = re.findall(r"^```ini\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        users = folder / "users.txt"
        users.write_text("".join(f'"{role}" ""\n' for role in ("postgres", *roles)))
        own = {"listen_addr": "127.0.0.1", "listen_port": port, "unix_socket_dir": "", "admin_users": "postgres"}
        own |= {"auth_type": "trust", "auth_file": users, "log_connections": 0, "log_disconnections": 0}
        own |= {"pool_mode": mode, **settings}
        lines = "\n".join(f"{name} = {value}" for name, value in own.items())
        file = folder / "test.ini"
        names, _, server_port = hosts.rpartition(":")
        address = f"host={names} port={server_port}"
        databases = f"[databases]\nlocalidades = {address}\n* = {address}\n"
        file.write_text(f"{databases}{shown}{lines}\n")
        process = subprocess.Popen(
            [pgbouncer, "--quiet", str(file)],
            cwd="/",
            user=account and account.uid,
            group=account and account.gid,
            extra_groups=[] if account else None,
        )
        try:
            pooler = Pooler(port)
            _await_answer(pooler, process)
            yield pooler
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _await_answer(pooler: Pooler, process: "subprocess.Popen[bytes]") -> None:
    def listens() -> bool:
        assert process.poll() is None, "PgBouncer has ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", pooler.port)) == 0

    eventually(listens)


@contextmanager
def pooling_the_service(server: str, mode: str) -> Iterator[None]:
    """Connect every service of the tests to its database through PgBouncer, as a role that reads."""
    role = own_name("pooled_service")
    execute(server, f"CREATE ROLE {role} LOGIN SUPERUSER")  # tests break tables of other owners
    options = parse_qs(urlsplit(server).query)
    # A template database can't be copied while anyone is connected to it.
    with (
        pooling(f"{options['host'][0]}:{options['port'][0]}", roles=[role], mode=mode, server_idle_timeout=1) as pooler,
        service_address.through(lambda url: pooler.url(url, role), server),
    ):
        yield
