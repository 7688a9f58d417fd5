"""What tests need of this machine, and what they see of its processes."""

import os
import random
import re
import shutil
import signal
import socket
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import pytest

from tests.support.wire import ROOT, Live

READERS = ROOT / "build" / "readers" / ".venv" / "bin" / "python"  # has pandas, geopandas and DuckDB

_MEMORY = Path("/dev/shm")  # noqa: S108  # of Linux; the folder made in it has a random name
_ROOM = 2 * 1024**3  # bytes; a run takes a third of it


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Lend a folder that the server's user can reach when the tests run as root (pytest's own is closed to it).

    It is in memory where there is room: a database of a test is several hundred files, which take five times as long
    on a disk.
    """
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix="localidades-tests-", dir=_MEMORY if in_memory else None))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def needed(what: str | Path | None, missing: str) -> str:
    """Return what a test needs of this machine; without it CI fails, and others skip."""
    if what is None or not Path(what).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    return str(what)


def memory_of(live: Live, name: str) -> int:
    """Return a figure of the process in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{live.process.pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def children_of(process: int) -> set[int]:
    """Return the processes that a process has started, and that have not ended."""
    return set(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def forget_peak_memory(live: Live) -> None:
    """Count the process's peak (VmHWM) from now on: see proc(5), clear_refs."""
    Path(f"/proc/{live.process.pid}/clear_refs").write_text("5")


def open_files(live: Live) -> int:
    """Count what a server has open, without the indexes of names: those come with releases, and are three at most."""
    indexes = f"/localidades-api-{os.getuid()}/"
    return sum(indexes not in target for target in open_targets(live))


def open_targets(live: Live) -> list[str]:
    """Return the paths of what a server has open; a file without a name ends in ` (deleted)`."""
    targets = []
    for link in Path(f"/proc/{live.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has been closed since
            targets.append(str(link.readlink()))
    return targets


def free_port() -> int:
    """Choose a port that stays free while its server is down: below those that the system gives to clients."""
    while True:
        port = random.randrange(20_000, 30_000)  # noqa: S311  # no secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def interrupt_within_callback() -> None:
    """Raise SIGINT in a callback of a weak reference, where Python prints and drops the KeyboardInterrupt."""
    thing = Event()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    assert reference() is None
