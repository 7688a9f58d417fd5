"""Reads hostile files in a process of its own, with little memory."""

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from localidades_api.errors import CatalogueError

MEGABYTE = 1024**2
# A process that has loaded what reads a file already, and forks for each.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["localidades_api.importer.run", "localidades_api.extensions.outlines.files", __name__]
)


def refusal(read: Callable[[Path], object], path: Path, memory: int = 200 * MEGABYTE) -> str:
    """Read a file with so much memory besides what there is already, and return the sentence that refuses it."""
    hears, tells = _PROCESSES.Pipe(duplex=False)
    reading = _PROCESSES.Process(target=_tell, args=(read, path, memory, tells))
    reading.start()
    tells.close()
    try:
        sentence: str = hears.recv()  # raises EOFError if it ends without one
    finally:
        reading.join()
    assert reading.exitcode == 0
    return sentence


def _tell(read: Callable[[Path], object], path: Path, memory: int, told: Connection) -> None:
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        read(path)
    except CatalogueError as error:
        told.send(str(error))
