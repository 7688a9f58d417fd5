"""Folders and processes of the embedded Postgres."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.machine import reachable_folder
from tests.support.wire import ROOT

IS_ROOT = os.geteuid() == 0
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@contextmanager
def lend_folder() -> Iterator[Path]:
    """Yield a folder for the data of a server; fail if a process of it is left."""
    with reachable_folder() as folder:
        yield folder
        left = find_processes(folder)
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
        assert not left


def copy_clone(folder: Path) -> Path:
    """Copy the package, its migrations and the guides, laid out as in a clone."""
    for name in ("src/localidades_api", "migrations", "docs/guides", "docs/es/guides"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def find_processes(folder: Path) -> dict[str, int]:
    """Find the watchdog and the postmaster of the servers below the folder."""
    found = {}
    parents = {}
    for process in psutil.process_iter(["pid", "ppid", "cmdline"]):
        pid, parent = process.info["pid"], process.info["ppid"]
        command = " ".join(process.info["cmdline"] or ())  # None for a process that this user may not look at
        if f" {folder}" in command and "watchdog.py" in command:
            found["watchdog"] = pid
        elif f" -D {folder}" in command:
            parents[pid] = parent
    for pid, parent in parents.items():
        if parent not in parents:  # a process that it has just forked has the same command line for a moment
            found["postmaster"] = pid
    return found
