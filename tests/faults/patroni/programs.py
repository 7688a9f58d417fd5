"""Runs Postgres, Patroni and etcd as the user who may run Postgres."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localidades_api.database.embedded_postgres.binaries import Account, clean_environment, run_as
from localidades_api.database.embedded_postgres.watchdog import _die_with_parent
from localidades_api.errors import EmbeddedPostgresError
from tests.support.machine import free_port, needed
from tests.support.servers import Installation, make_private
from tests.support.wire import ROOT

_PACKAGES = ROOT / "build" / "patroni"


@dataclass(frozen=True)
class Programs:
    """Postgres, Patroni and etcd, as installed by `make faults` and `.ci/install night`, and a folder of their user."""

    postgres: Installation
    etcd: str
    python: tuple[str, ...]
    folder: Path

    def start(self, log: str, command: list[str], **variables: str) -> "subprocess.Popen[bytes]":
        """Start a program, which dies with this process; call this in the main thread."""
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
                preexec_fn=_end_with_parent(),  # noqa: PLW1509  # asyncio starts no thread here
            )


def _end_with_parent() -> Callable[[], None]:
    """Return the function to run before exec; shells start background jobs with SIGINT ignored."""
    die_with_parent = _die_with_parent()

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        die_with_parent()

    return prepare


def find_programs(installation: Installation, folder: Path) -> Programs:
    """Find the programs. If one is missing, CI fails and others skip."""
    etcd = needed(shutil.which("etcd"), "install etcd, as `.ci/install night` does")
    needed(installation.binaries / "pg_rewind", "install Postgres with its programs for servers")
    needed(_PACKAGES, "`make faults` installs Patroni")
    own = folder / "patroni"
    make_private(own, installation.account)
    return Programs(installation, etcd, _find_python(own, installation.account), own)


def _find_python(folder: Path, account: Account | None) -> tuple[str, ...]:
    """Return the command that runs Python with Patroni, which the account may have no access to in the clone."""
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
        """Start it on its existing data."""
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
