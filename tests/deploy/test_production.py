"""The guide to production, followed from its first block to its last, on Debian's Postgres."""

import os
import pwd
import re
import shlex
import shutil
import socket
import subprocess
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from localidades_api.database.embedded_postgres.binaries import Account, run_as
from localidades_api.database.embedded_postgres.data_directory import choose_account
from tests.deploy.guides import SERVICE, blocks_of, follow
from tests.deploy.nginx import copy_distribution, reload_with_tls, running_distribution
from tests.support.catalogue import many, write_catalogue
from tests.support.http_server import Request, Response, http_server
from tests.support.machine import needed, reachable_folder
from tests.support.wire import ROOT, environment, serving

GUIDE = "guides/production.md"
INEGI = "https://www.inegi.org.mx/contenidos/app/ageeml/catun_localidad.zip"
BINARIES = Path("/usr/lib/postgresql/15/bin")
HOST = "localidades.example.mx"
SYSTEMCTL = r"^(?:nginx -t && )?(systemctl .*)$"
ROLES = ("postgres", "localidades_reader", "localidades_importer")
# Of a new machine.
FOLDERS = ("etc/ssl/certs", "etc/systemd/system", "opt", "usr/local/bin", "var/cache", "var/lib")
# The test has one user of the system, which may be any of the three roles.
SUDO = '#!/bin/sh\n[ "$1" = -u ] || exit 64\nuser=$2; shift 2\nexec env PGUSER="$user" "$@"\n'


class Postgres(NamedTuple):
    """A running server: the folder of its socket, its port, its certificate, and how to restart it."""

    folder: Path
    port: int
    certificate: Path
    restart: Callable[[], str]


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a server as Debian's: with peer authentication, and a certificate for the name of the machine."""
    needed(BINARIES / "postgres", "install postgresql-15")
    with reachable_folder() as folder:
        account, data = choose_account(folder), folder / "data"
        if account is not None:
            os.chown(folder, *account)
        cluster = ["--pgdata", str(data)]
        known = ["--username=postgres", "--auth-local=peer", "--auth-host=scram-sha-256", "--locale=C"]
        run_as(account, [str(BINARIES / "initdb"), *cluster, *known])
        hba = data / "pg_hba.conf"
        mapped = re.sub(r"peer$", "peer map=machine", hba.read_text(), flags=re.MULTILINE)
        hba.write_text(re.sub(r"^host .*\n", "", mapped, flags=re.MULTILINE))
        me = pwd.getpwuid(os.geteuid()).pw_name
        (data / "pg_ident.conf").write_text("".join(f"machine {me} {role}\n" for role in ROLES))
        with (data / "postgresql.conf").open("a") as conf:
            conf.write("listen_addresses = ''\n")
        certificate = make_certificate(data, account)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]
        options = f"-k {folder} -p {port} -c ssl=on -c fsync=off"
        control = [str(BINARIES / "pg_ctl"), *cluster, "--log", str(folder / "log"), "--wait"]
        run_as(account, [*control, "--options", options, "start"])
        try:
            restart = [*control, "--mode=fast", "--options", options, "restart"]
            yield Postgres(folder, port, certificate, partial(run_as, account, restart))
        finally:
            run_as(account, [*control, "--mode=immediate", "stop"])


def make_certificate(data: Path, account: Account | None) -> Path:
    """Make a certificate and its key in a server's folder, where it looks for them."""
    openssl = needed(shutil.which("openssl"), "install openssl")
    named = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 {named} -out server.crt -keyout server.key"
    subprocess.run([openssl, *words.split()], cwd=data, check=True, capture_output=True)
    if account is not None:
        os.chown(data / "server.key", *account)
    return data / "server.crt"


class Service(NamedTuple):
    """A unit of deploy/ that runs commands one after the other."""

    commands: list[list[str]]
    variables: dict[str, str]
    success: set[int]  # exit codes


@dataclass(frozen=True)
class Machine:
    """A new machine below a folder, with replacements for the guide's addresses."""

    postgres: Postgres
    root: Path
    variables: dict[str, str]
    addresses: dict[str, str]

    def own(self, text: str) -> str:
        """Return a text of the guide or a unit with this machine's paths and addresses."""
        for one, other in self.addresses.items():
            text = text.replace(one, other)
        return re.sub(r"(?<![\w.])/(etc|opt|usr/local|var)/", rf"{self.root}/\1/", text)

    def read(self, path: str) -> str | None:
        file = Path(self.own(path))
        return file.read_text(encoding="utf-8") if file.exists() else None

    def service(self, unit: str) -> Service:
        """Read a unit as systemd does, with this machine's paths and addresses."""
        text = (ROOT / "deploy" / "systemd" / f"{unit}.service").read_text(encoding="utf-8")
        found: dict[str, list[str]] = defaultdict(list)
        for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
            found[name].append(value)
        lines = found["Environment"]
        for path in found["EnvironmentFile"]:
            given = self.read(path.removeprefix("-"))
            assert given is not None or path.startswith("-"), path
            lines += (given or "").splitlines()
        variables = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
        for name in found["StateDirectory"]:
            variables["STATE_DIRECTORY"] = f"/var/lib/{name}"

        def own(word: str) -> str:
            named = re.sub(r"\$\{(\w+)\}", lambda given: variables[given[1]], word)
            return self.own(named.replace("$$", "$").replace("%%", "%"))

        commands = [[own(word) for word in shlex.split(command)] for command in found["ExecStart"]]
        settings = {name: self.own(value) for name, value in variables.items()} | {"PGUSER": found["User"][0]}
        return Service(commands, settings, {0, *map(int, found["SuccessExitStatus"])})

    def import_release(self) -> None:
        """Run the unit of the timer."""
        service = self.service("localidades-import")
        for words in service.commands:
            ended = subprocess.run(words, env=environment() | self.variables | service.variables, check=False)
            assert ended.returncode in service.success

    def start(self, command: str, stack: ExitStack) -> None:
        unit = command.rsplit(maxsplit=1)[-1]
        if unit == "postgresql":
            self.postgres.restart()
        elif unit == "nginx" and "http://127.0.0.1/" in self.addresses:
            port = reload_with_tls(self.root / "etc" / "nginx")
            self.addresses[f"{HOST}:443"] = f"{HOST}:{port}"
            self.addresses[f"https://{HOST}/"] = f"https://{HOST}:{port}/"
        elif unit == "nginx":
            front = running_distribution(self.root / "etc" / "nginx", f"http://{self.addresses[SERVICE]}")
            self.addresses["http://127.0.0.1/"] = stack.enter_context(front).base + "/"
        elif unit == "localidades-import.timer":
            self.import_release()
            self.import_release()  # the same file
        elif unit != "daemon-reload":
            service = self.service(unit)
            ((program, serve, *options),) = service.commands
            assert serve == "serve"
            settings = self.variables | service.variables
            live = stack.enter_context(serving(settings["DATABASE_URL"], *options, command=[program], **settings))
            self.addresses[SERVICE] = live.base.removeprefix("http://")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Yield a machine prepared with the steps that a test can't take: Debian's packages, and access to INEGI."""
    root = tmp_path / "machine"
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    sudo = root / "usr" / "local" / "bin" / "sudo"
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    copy_distribution(root)
    asked: list[Request] = []
    catalogue = tmp_path / "catun_localidad.zip"

    def inegi(request: Request) -> Response:
        asked.append(request)
        if len(asked) < 3:  # then INEGI has no new file
            table = write_catalogue(tmp_path / "AGEEML_utf.csv", many(132 if len(asked) == 1 else 135))
            with zipfile.ZipFile(catalogue, "w") as zipped:
                zipped.write(table, table.name)
        return Response(catalogue.read_bytes())

    with postgres() as server, http_server(inegi) as address:
        shutil.copy(server.certificate, root / "etc" / "ssl" / "certs" / "localhost.pem")
        path = f"{sudo.parent}:{BINARIES}:{os.environ['PATH']}"
        variables = {"PATH": path, "PGHOST": str(server.folder), "PGPORT": str(server.port), "PYTHONPATH": ""}
        addresses = {
            INEGI: f"{address}/catun_localidad.zip",
            "2026-11": "2018-09",  # a past month, because the timer's import is named after the present one
            "db.internal": "localhost",
            "listen_addresses = '*'": "listen_addresses = '127.0.0.1'",
            "10.0.0.0/8": "127.0.0.0/8",
        }
        yield Machine(server, root, variables, addresses)


@pytest.mark.tail
@pytest.mark.timeout(600)
def test_production_guide_gives_a_working_service(machine: Machine) -> None:
    with ExitStack() as stack:
        for block in blocks_of(GUIDE):
            if block.is_tried:
                follow(block.language, machine.own(block.text), ROOT, **machine.variables)
            for command in re.findall(SYSTEMCTL, block.text, re.MULTILINE) if not block.is_tried else ():
                machine.start(command, stack)
        administrator = environment() | machine.variables | {"PGUSER": "postgres"}

        def ask(statement: str) -> list[str]:
            command = ["psql", "--no-align", "--tuples-only", "--dbname=localidades", "--command", statement]
            asked = subprocess.run(command, env=administrator, capture_output=True, text=True, check=True)
            return asked.stdout.split()

        assert ask("SELECT localities FROM releases ORDER BY id") == ["132", "135"]
        kept = sorted((machine.root / "var" / "lib" / "localidades-api").glob("catun_localidad_*"))
        releases = ask("SELECT name FROM releases ORDER BY id")
        assert [path.name for path in kept] == [f"catun_localidad_{name}.zip" for name in releases]
        assert ask("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'") == ["localidades_importer"]
        service = "FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE application_name = 'localidades-api'"
        assert ask(f"SELECT DISTINCT usename {service}") == ["localidades_reader"]
        assert ask(f"SELECT DISTINCT ssl {service} AND client_addr IS NOT NULL") == ["t"]
