"""Programs, folders, ports and processes of this machine."""

import os
import random
import re
import shutil
import signal
import socket
import tempfile
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from threading import Event

import pytest

from tests.support.wire import ROOT, Live, ask

READERS = ROOT / "build" / "readers" / ".venv" / "bin" / "python"  # has pandas, geopandas and DuckDB

_MEMORY = Path("/dev/shm")  # noqa: S108  # of Linux; the folder made in it has a random name
_ROOM = 2 * 1024**3  # bytes; three times as much as a run needs


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Yield a folder that Postgres's user can reach if the tests run as root, which pytest's folders are not.

    It is in memory if there is room: a database has several hundred files, and creating them on a disk takes five
    times as long.
    """
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix="localidades-tests-", dir=_MEMORY if in_memory else None))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def needed(what: str | Path | None, missing: str) -> str:
    """Return the path of a program or file that a test needs. If it is missing, CI fails and others skip."""
    if what is None or not Path(what).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    return str(what)


def memory_of(live: Live, name: str) -> int:
    """Return a value from /proc/PID/status in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{live.process.pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def forget_peak_memory(live: Live) -> None:
    """Reset the peak memory of the process (VmHWM): see proc(5), clear_refs."""
    Path(f"/proc/{live.process.pid}/clear_refs").write_text("5")


MAX_HELD = 0.2  # seconds of processor time that a server may spend while a probe waits


def ask_watched(live: Live, target: str, header: tuple[str, str], body: bytes = b"") -> float:
    """Send a request; return the most that the server has worked while a probe waited meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, live.base, target, header, method="POST" if body else "GET", body=body)
        held = 0.0
        while not answer.done():
            before = _processor_time(live)
            assert ask(live.base, "/livez").status == HTTPStatus.NO_CONTENT
            held = max(held, _processor_time(live) - before)
        assert answer.result().status < HTTPStatus.INTERNAL_SERVER_ERROR, target
        return held


def _processor_time(live: Live) -> float:
    fields = Path(f"/proc/{live.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files(live: Live) -> int:
    """Count the open files of a server except for the indexes of names, of which there are three at most."""
    indexes = f"/names-{os.getuid()}/"
    return sum(indexes not in target for target in open_targets(live))


def open_targets(live: Live) -> list[str]:
    """Return the paths of a server's open files; deleted ones end in ` (deleted)`."""
    targets = []
    for link in Path(f"/proc/{live.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has been closed since
            targets.append(str(link.readlink()))
    return targets


def free_port() -> int:
    """Choose a port outside the range that the system assigns, so it stays free while its server is down."""
    while True:
        port = random.randrange(20_000, 30_000)  # noqa: S311  # no secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def interrupt_within_callback() -> None:
    """Raise SIGINT in the callback of a weak reference, where Python prints and drops KeyboardInterrupt."""
    thing = Event()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    assert reference() is None
