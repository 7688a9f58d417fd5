"""TLS between the service and Postgres: an untrusted server counts as unavailable."""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
from alembic import command
from sqlalchemy import text

from localidades_api.database.dsn import Dsn
from localidades_api.database.pool import Database
from localidades_api.embedded_postgres.data_directory import choose_account, make_cluster
from localidades_api.errors import ConfigurationError, DatabaseUnavailableError
from tests.support.application import import_into
from tests.support.machine import needed, reachable_folder
from tests.support.postgres import alembic_config, run_sql
from tests.support.servers import DEBIAN_15, Installation, Server, running
from tests.support.waiting import eventually_async, in_thread
from tests.support.wire import LOCALIDADES, ask, environment, run, serving

pytestmark = pytest.mark.tail

PASSWORD = "s3cr3t"  # noqa: S105  # must not be shown
NO_TLS, UNTRUSTED, EXPIRED, OTHER_NAME = "not offer TLS", "local issuer", "has expired", "not valid for '127.0.0.1'"


class Certificates(NamedTuple):
    """Certificates of two authorities and of servers, with their keys."""

    authority: Path
    stranger: Path
    good: Path
    expired: Path
    renewed: Path


class TlsServers(NamedTuple):
    """Servers by their defect, and the authority that signed their certificates."""

    certificates: Certificates
    good: int
    expired: int
    plain: int

    def url(self, *ports: int, host: str = "localhost", mode: str = "verify-full", root: Path | None = None) -> str:
        """Return the URL of one or several of the servers."""
        hosts = ",".join(f"{host}:{port}" for port in ports)
        trusted = f"&sslrootcert={root or self.certificates.authority}" if mode.startswith("verify") else ""
        return f"postgresql://postgres:{PASSWORD}@{hosts}/localidades?sslmode={mode}{trusted}"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def certificates(folder: Path) -> Certificates:
    """Create the certificates with openssl."""
    openssl = needed(shutil.which("openssl"), "install openssl")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

    def run_openssl(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    for name in ("authority", "stranger"):
        run_openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")
    signed = (("good", "2", "authority"), ("expired", "-1", "authority"), ("renewed", "2", "stranger"))
    for name, days, authority in signed:
        naming = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
        run_openssl("req", "-new", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", *naming)
        signing = ("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial")
        copying = ("-copy_extensions", "copyall")
        run_openssl("x509", "-req", "-in", f"{name}.csr", *signing, *copying, "-days", days, "-out", f"{name}.crt")
    return Certificates(*(folder / f"{name}.crt" for name in Certificates._fields))


@pytest.fixture(scope="module")
async def servers(folder: Path, certificates: Certificates, small_catalogue: Path) -> AsyncIterator[TlsServers]:
    """Run a trusted server with the small catalogue, one with an expired certificate, and one without TLS."""
    binaries = Path(needed(DEBIAN_15, "install PostgreSQL 15"))
    account = choose_account(folder)
    installation = Installation(binaries, account)
    cluster = make_cluster(binaries, folder, account)

    def server(name: str) -> Server:
        copy = cluster.with_name(f"copy-{name}")
        command_line = ["cp", "-a", str(cluster), str(copy)]  # with its owner
        subprocess.run(command_line, check=True)
        settings = {}
        if name != "plain":
            for path in (folder / f"{name}.crt", folder / f"{name}.key"):
                if account:
                    os.chown(path, *account)
                path.chmod(0o600)
            settings = {"ssl": "on", "ssl_cert_file": f"{folder}/{name}.crt", "ssl_key_file": f"{folder}/{name}.key"}
        return Server(installation, copy, settings)

    async with (
        running(server("good")) as good,
        running(server("expired")) as expired,
        running(server("plain")) as plain,
    ):
        in_thread(lambda: command.upgrade(alembic_config(good.url()), "head"))
        await import_into(good.url(), small_catalogue)
        yield TlsServers(certificates, good.port, expired.port, plain.port)


def untrusted(servers: TlsServers) -> dict[str, str]:
    """Return a URL for each defect of a server, by its error message."""
    return {
        NO_TLS: servers.url(servers.plain, mode="require"),
        UNTRUSTED: servers.url(servers.good, root=servers.certificates.stranger, mode="verify-ca"),
        EXPIRED: servers.url(servers.expired),
        OTHER_NAME: servers.url(servers.good, host="127.0.0.1"),
    }


async def test_trusted_server_is_used(servers: TlsServers) -> None:
    database = Database.for_reading(servers.url(servers.good), pool_size=1, timeout=10)
    try:
        rows = await database.fetch(text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
        assert rows[0][0] is True
    finally:
        await database.dispose()


async def test_store_of_the_system_is_used(servers: TlsServers, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"postgresql://postgres:{PASSWORD}@localhost:{servers.good}/localidades?sslrootcert=system"
    for trusted, is_trusted in ((servers.certificates.authority, True), (servers.certificates.stranger, False)):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        database = Database.for_reading(url, pool_size=1, timeout=10)
        try:
            with nullcontext() if is_trusted else pytest.raises(DatabaseUnavailableError, match=UNTRUSTED):
                await database.fetch(text("SELECT 1"))
        finally:
            await database.dispose()


async def test_renewed_certificates_need_no_restart(servers: TlsServers, tmp_path: Path) -> None:
    """A certificate of another authority replaces the server's, and that authority the trusted one."""
    certificates = servers.certificates
    trusted = Path(shutil.copy(certificates.authority, tmp_path / "trusted.crt"))
    used = [certificates.good, certificates.good.with_suffix(".key")]
    renewed = [certificates.renewed, certificates.renewed.with_suffix(".key")]
    before = [path.read_bytes() for path in used]
    database = Database.for_reading(servers.url(servers.good, root=trusted), pool_size=1, timeout=10)

    async def install(contents: list[bytes]) -> None:
        for path, content in zip(used, contents, strict=True):
            path.write_bytes(content)
        await run_sql(servers.url(servers.good, mode="require"), "SELECT pg_reload_conf()")

    async def is_refused() -> bool:
        await database.engine.dispose()  # so that the next request connects
        try:
            await database.fetch(text("SELECT 1"))
        except DatabaseUnavailableError:
            return True
        return False

    try:
        assert not await is_refused()
        await install([path.read_bytes() for path in renewed])
        await eventually_async(is_refused)
        shutil.copy(certificates.stranger, trusted)
        assert not await is_refused()
    finally:
        await install(before)
        await database.dispose()


@pytest.mark.parametrize("fault", [NO_TLS, UNTRUSTED, EXPIRED, OTHER_NAME])
async def test_untrusted_server_is_unavailable_with_a_reason(servers: TlsServers, fault: str) -> None:
    database = Database.for_reading(untrusted(servers)[fault], pool_size=1, timeout=10)
    try:
        with pytest.raises(DatabaseUnavailableError, match=fault) as caught:
            await database.fetch(text("SELECT 1"))
    finally:
        await database.dispose()
    assert PASSWORD not in str(caught.value)
    assert caught.value.detail == "The database does not answer."


async def test_untrusted_server_is_skipped_for_another(servers: TlsServers) -> None:
    database = Database.for_reading(servers.url(servers.expired, servers.plain, servers.good), pool_size=4, timeout=10)
    try:
        for _ in range(10):
            await database.fetch(text("SELECT 1"))
            await database.engine.dispose()  # so that the next request opens a connection to any of them
    finally:
        await database.dispose()


@pytest.mark.parametrize("fault", [NO_TLS, EXPIRED])
def test_service_without_a_trusted_server_answers_503_and_logs_once(servers: TlsServers, fault: str) -> None:
    with serving(untrusted(servers)[fault], probe="/livez") as live:
        for target in [LOCALIDADES, f"{LOCALIDADES}?municipio_id=1001", f"{LOCALIDADES}10010001/"] * 3:
            answer = ask(live.base, target)
            assert answer.status == 503
            assert json.loads(answer.body)["type"] == "/problems#database-unavailable"
            assert "DATABASE_URL" not in answer.text
        log = live.output.read_text()
    assert fault in log
    assert "Traceback" not in log
    assert PASSWORD not in log


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("h/d?sslmode=bogus", "sslmode must be one of disable, allow, prefer"),
        ("h/d?target_session_attrs=master", "target_session_attrs must be one of any, primary"),
        (
            "h/d?sslmode=verify-full&sslrootcert=/no/such/file",
            "sslrootcert names a file that can.t be used .*No such file",
        ),
        ("h/d?sslkey=/", "sslkey names a file that can.t be used .*directory"),
        ("h/d?pgbouncer=perhaps", "pgbouncer must be one of false, true"),
    ],
)
def test_bad_tls_parameter_is_refused_by_name(url: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        Dsn.parse(f"postgresql://u:{PASSWORD}@{url}")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("PGTARGETSESSIONATTRS", "master", "PGTARGETSESSIONATTRS must be one of any, primary"),
        ("PGSSLROOTCERT", "/no/such/file", "PGSSLROOTCERT names a file that can.t be used"),
    ],
)
def test_bad_tls_variable_is_refused_by_name(
    variable: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"^{sentence}"):
        Dsn.parse("postgresql://u@h/d")


@pytest.mark.parametrize(
    ("query", "variables", "sentence"),
    [
        ("sslmode=verify-full", {}, 'root certificate file ".*/.postgresql/root.crt" does not exist'),
        ("sslmode=require&sslnegotiation=bogus", {}, "`sslnegotiation` parameter must be one of: postgres, direct"),
        ("sslmode=require", {"PGSSLMINPROTOCOLVERSION": "SSLv3"}, "SSLv3"),
    ],
)
async def test_url_refused_by_the_driver_is_unavailable_with_a_reason(
    query: str, variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the default place of the authority's certificate
    monkeypatch.delenv("PGSSLROOTCERT", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    database = Database.for_reading(f"postgresql://u:{PASSWORD}@localhost:1/d?{query}", pool_size=1, timeout=10)
    with pytest.raises(DatabaseUnavailableError, match=sentence) as caught:
        await database.fetch(text("SELECT 1"))
    await database.dispose()
    assert PASSWORD not in str(caught.value)


def test_url_takes_precedence_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", "/no/such/file")
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "prefer-standby")
    assert Dsn.parse("postgresql://u@h/d?sslmode=disable").prefers_standby
    assert not Dsn.parse("postgresql://u@h/d?sslmode=disable&target_session_attrs=any").prefers_standby


def test_wrong_kind_of_server_is_explained(seeded: str) -> None:
    ended = run("releases", env=environment(seeded, PGTARGETSESSIONATTRS="standby"))
    sentence = "No server is what target_session_attrs in DATABASE_URL, or PGTARGETSESSIONATTRS, asks for."
    assert (ended.returncode, ended.stderr) == (1, f"error: {sentence}\n")
