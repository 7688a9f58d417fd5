"""Writes units in parallel processes, each with an upstream of its own."""

import asyncio
import fcntl
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import cast

from localidades_api.cli.mirroring.in_process import open_in_process
from localidades_api.cli.mirroring.plan import Unit
from localidades_api.cli.mirroring.release_folder import ReleaseFolder
from localidades_api.cli.mirroring.remote import open_remote
from localidades_api.cli.mirroring.upstream import Upstream
from localidades_api.errors import LocalidadesError, MirrorError
from localidades_api.settings import Settings

_WRITERS = ".writers"  # locked by every process that writes


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """Where answers come from: the service at `url`, or else the database at `database`."""

    settings: Settings
    url: str | None = None
    database: str = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Upstream]:
        """Open an upstream."""
        if self.url is not None:
            async with open_remote(self.url) as remote:
                yield remote
        else:
            async with open_in_process(self.database, self.settings) as own:
                yield own


def await_writers(mirror: Path) -> None:
    """Wait for processes that outlive a command that was killed: each ends after its unit."""
    with (mirror / _WRITERS).open("w") as writers:
        fcntl.flock(writers, fcntl.LOCK_EX)


def write_units(
    address: UpstreamAddress,
    folder: Path,
    release: str,
    units: Iterable[Unit],
    processes: int,
    advance: Callable[[int], None],
) -> None:
    """Write every unit, and count files as they are written; raise MirrorError for the first that fails."""
    left = iter(units)
    with _started(address, folder, release, processes) as idle:
        busy: set[Connection] = set()
        for connection in idle:
            _give(connection, left, busy)
        while busy:
            for connection in cast("list[Connection]", wait(list(busy))):
                advance(_take(connection))
                busy.discard(connection)
                _give(connection, left, busy)


def _give(connection: Connection, left: Iterator[Unit], busy: set[Connection]) -> None:
    if unit := next(left, None):
        connection.send(unit)
        busy.add(connection)


def _take(connection: Connection) -> int:
    try:
        told: int | str = connection.recv()
    except (EOFError, ConnectionError):
        raise MirrorError(
            "A process that wrote the mirror was killed, perhaps for lack of memory. Run the command again to go on."
        ) from None
    if isinstance(told, str):
        raise MirrorError(told)
    return told


@contextmanager
def _started(address: UpstreamAddress, folder: Path, release: str, processes: int) -> Iterator[list[Connection]]:
    """Start processes that end with their connection, so none outlives this one, however it ends."""
    context = get_context("spawn")
    running: list[tuple[SpawnProcess, Connection]] = []
    try:
        for _ in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, address, folder, release), daemon=True)
            process.start()
            theirs.close()
            running.append((process, ours))
        yield [connection for _, connection in running]
    finally:
        for process, connection in running:
            connection.close()
            process.terminate()
        for process, _ in running:
            process.join()


def _work(connection: Connection, address: UpstreamAddress, folder: Path, release: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the first process ends this one
    try:
        with (folder.parent / _WRITERS).open("w") as writers:
            fcntl.flock(writers, fcntl.LOCK_SH)
            asyncio.run(_write_all(connection, address, ReleaseFolder(folder), release))
    except (EOFError, ConnectionError):
        return  # there is no more to do
    except LocalidadesError as error:
        connection.send(error.detail)
    except OSError as error:
        connection.send(f"The mirror can't be written: {error}.")


async def _write_all(connection: Connection, address: UpstreamAddress, folder: ReleaseFolder, release: str) -> None:
    async with address.open() as upstream:
        while True:
            unit: Unit = connection.recv()
            connection.send(await folder.write(unit, upstream, release))
