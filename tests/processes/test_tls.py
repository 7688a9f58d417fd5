"""TLS between the service and Postgres: an untrusted server counts as unavailable."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from alembic import command
from sqlalchemy import text

from localidades_api.database.dsn import Dsn
from localidades_api.database.embedded_postgres.data_directory import choose_account, make_cluster
from localidades_api.database.pool import Database
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from tests.support.application import import_into
from tests.support.machine import needed, reachable_folder
from tests.support.postgres import alembic_config, run_sql
from tests.support.servers import DEBIAN_15, Installation, Server, copy_cluster, running
from tests.support.waiting import eventually_async, in_thread

pytestmark = pytest.mark.tail

PASSWORD = "s3cr3t"  # noqa: S105  # must not be shown
NO_TLS, UNTRUSTED, EXPIRED, OTHER_NAME = "not offer TLS", "local issuer", "has expired", "not valid for '127.0.0.1'"


class TlsServers(NamedTuple):
    """Ports of servers by their defect, and the folder with their certificates and two authorities'."""

    folder: Path
    good: int
    expired: int
    plain: int

    def url(self, *ports: int, host: str = "localhost", query: str = "", root: str | Path = "authority.crt") -> str:
        """Return the URL of one or several of the servers, by default for a trusted one."""
        hosts = ",".join(f"{host}:{port}" for port in ports)
        query = query or f"sslmode=verify-full&sslrootcert={self.folder / root}"
        return f"postgresql://postgres:{PASSWORD}@{hosts}/localidades?{query}"

    def untrusted(self, fault: str) -> str:
        """Return a URL with a fault."""
        return {
            NO_TLS: self.url(self.plain, query="sslmode=require"),
            UNTRUSTED: self.url(self.good, root="stranger.crt"),
            EXPIRED: self.url(self.expired),
            OTHER_NAME: self.url(self.good, host="127.0.0.1"),
        }[fault]


def make_certificates(folder: Path) -> None:
    """Create certificates of two authorities and of servers, with openssl."""
    openssl = needed(shutil.which("openssl"), "install openssl")
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    naming = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    own = "req -x509 {key} -keyout {0}.key -out {0}.crt -subj /CN={0}"
    commands = [own.format(name, key=key) for name in ("authority", "stranger")]
    for name, days, authority in (("good", 2, "authority"), ("expired", -1, "authority"), ("renewed", 2, "stranger")):
        commands.append(f"req -new {key} -keyout {name}.key -out {name}.csr {naming}")
        signing = f"-CA {authority}.crt -CAkey {authority}.key -CAcreateserial -copy_extensions copyall -days {days}"
        commands.append(f"x509 -req -in {name}.csr {signing} -out {name}.crt")
    for words in commands:
        subprocess.run([openssl, *words.split()], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
async def servers(small_catalogue: Path) -> AsyncIterator[TlsServers]:
    """Run a trusted server with the small catalogue, one with an expired certificate, and one without TLS."""
    with reachable_folder() as folder:
        make_certificates(folder)
        account = choose_account(folder)
        installation = Installation(Path(needed(DEBIAN_15, "install PostgreSQL 15")), account)
        cluster = make_cluster(installation.binaries, folder, account)

        def server(name: str) -> Server:
            copy_cluster(cluster, copy := cluster.with_name(f"copy-{name}"))
            if name == "plain":
                return Server(installation, copy)
            for path in (folder / f"{name}.crt", folder / f"{name}.key"):
                if account:
                    os.chown(path, *account)
                path.chmod(0o600)
            files = {"ssl_cert_file": f"{folder}/{name}.crt", "ssl_key_file": f"{folder}/{name}.key"}
            return Server(installation, copy, {"ssl": "on", **files})

        async with (
            running(server("good")) as good,
            running(server("expired")) as expired,
            running(server("plain")) as plain,
        ):
            in_thread(lambda: command.upgrade(alembic_config(good.url()), "head"))
            await import_into(good.url(), small_catalogue)
            yield TlsServers(folder, good.port, expired.port, plain.port)


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Database]:
    database = Database.for_reading(url, pool_size=4, timeout=10)
    try:
        yield database
    finally:
        await database.dispose()


async def test_trusted_server_is_used_and_others_are_skipped(servers: TlsServers) -> None:
    async with reading(servers.url(servers.expired, servers.plain, servers.good)) as database:
        for _ in range(10):
            rows = await database.fetch(text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
            assert rows[0][0] is True
            await database.engine.dispose()  # so that the next request opens a connection to any of them


async def test_store_of_the_system_is_used(servers: TlsServers, monkeypatch: pytest.MonkeyPatch) -> None:
    for trusted in ("authority", "stranger"):
        monkeypatch.setenv("SSL_CERT_FILE", str(servers.folder / f"{trusted}.crt"))
        async with reading(servers.url(servers.good, query="sslrootcert=system")) as database:
            if trusted == "authority":
                await database.fetch(text("SELECT 1"))
            else:
                with pytest.raises(DatabaseUnavailableError, match=UNTRUSTED):
                    await database.fetch(text("SELECT 1"))


async def test_renewed_certificates_need_no_restart(servers: TlsServers, tmp_path: Path) -> None:
    """A certificate of another authority replaces the server's, and that authority the trusted one."""
    folder = servers.folder
    trusted = Path(shutil.copy(folder / "authority.crt", tmp_path / "trusted.crt"))
    used = [folder / "good.crt", folder / "good.key"]
    before = [path.read_bytes() for path in used]

    async def install(contents: list[bytes]) -> None:
        for path, content in zip(used, contents, strict=True):
            path.write_bytes(content)
        await run_sql(servers.url(servers.good, query="sslmode=require"), "SELECT pg_reload_conf()")

    async with reading(servers.url(servers.good, root=trusted)) as database:

        async def is_refused() -> bool:
            await database.engine.dispose()  # so that the next request connects
            try:
                await database.fetch(text("SELECT 1"))
            except DatabaseUnavailableError:
                return True
            return False

        try:
            assert not await is_refused()
            await install([(folder / name).read_bytes() for name in ("renewed.crt", "renewed.key")])
            await eventually_async(is_refused)
            shutil.copy(folder / "stranger.crt", trusted)
            assert not await is_refused()
        finally:
            await install(before)


@pytest.mark.parametrize("fault", [NO_TLS, UNTRUSTED, EXPIRED, OTHER_NAME])
async def test_untrusted_server_is_unavailable_with_a_reason(servers: TlsServers, fault: str) -> None:
    async with reading(servers.untrusted(fault)) as database:
        with pytest.raises(DatabaseUnavailableError, match=fault) as caught:
            await database.fetch(text("SELECT 1"))
    assert PASSWORD not in str(caught.value)
    assert caught.value.detail == "The database does not answer."


@pytest.mark.parametrize(
    ("query", "variables", "sentence"),
    [
        ("?sslmode=bogus", {}, "sslmode must be one of disable, allow, prefer"),
        ("?sslmode=verify-full&sslrootcert=/no/file", {}, "sslrootcert names a file that can.t be used .*No such file"),
        ("?pgbouncer=perhaps", {}, "pgbouncer must be one of false, true"),
        ("", {"PGTARGETSESSIONATTRS": "master"}, "PGTARGETSESSIONATTRS: target_session_attrs must be one of any"),
    ],
)
def test_bad_tls_option_is_refused_by_name(
    query: str, variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        Dsn.parse(f"postgresql://u:{PASSWORD}@h/d{query}")
    assert PASSWORD not in str(caught.value)


def test_url_takes_precedence_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SSLMODE": "verify-full", "SSLROOTCERT": "/no", "TARGETSESSIONATTRS": "prefer-standby"}.items():
        monkeypatch.setenv(f"PG{name}", value)
    assert Dsn.parse("postgresql://u@h/d?sslmode=disable").prefers_standby
    assert not Dsn.parse("postgresql://u@h/d?sslmode=disable&target_session_attrs=any").prefers_standby
