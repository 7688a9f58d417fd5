"""A process that builds the index of a whole catalogue: it takes seconds of processor time, and memory.

It reads the release from the database, or from its input while an import is still loading it.
"""

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.name_indexes.build import fingerprint, read, reading
from localidades_api.name_indexes.folders import remove_unfinished
from localidades_api.name_indexes.history import History
from localidades_api.name_indexes.places import Areas
from localidades_api.names.build import new_folder, write_index
from localidades_api.names.places import IndexedPlace, Withdrawn

_NICENESS = 10
_OOM_SCORE = "500"  # the kernel ends this process before the service and the database
_OUTDATED = 3  # exit code


class OutdatedIndexError(Exception):
    """The releases or the code have changed since an index was requested, so another one is needed."""


class ImportedRelease(NamedTuple):
    """A release that an import is loading: its localities as columns, which are quickly pickled."""

    release: Release
    areas: Areas
    columns: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, release: Release, areas: Areas, localities: Iterable[LocalityRow]) -> Self:
        """Take the rows of the localities."""
        return cls(release, areas, tuple(zip(*localities, strict=True)))

    def history(self) -> History:
        """Return the localities, to be compared with earlier releases."""
        return History(list(map(LocalityRow._make, zip(*self.columns, strict=True))), self.areas)


async def run_builder(
    url: str, release: str, folder: Path, *, nice: bool, imported: ImportedRelease | None = None
) -> None:
    """Build an index in a separate process, with less priority if `nice`.

    Raises OutdatedIndexError, or RuntimeError with the last message of the process.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, release, str(folder), *(["nice"] if nice else [])),
        env={**os.environ, "DATABASE_URL": url},
        stdin=PIPE if imported else DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        start_new_session=True,  # with its fork, as a group; uvloop has no `process_group`
    )
    try:
        _, stderr = await process.communicate(pickle.dumps(imported) if imported else None)
    except asyncio.CancelledError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await asyncio.to_thread(remove_unfinished, folder)
        raise
    if process.returncode == _OUTDATED:
        raise OutdatedIndexError
    if process.returncode:
        raise RuntimeError((stderr.decode(errors="replace").strip().splitlines() or ["It was killed."])[-1])


async def _read(
    url: str, name: str, folder: Path, imported: ImportedRelease | None
) -> tuple[Iterable[IndexedPlace], Iterable[Withdrawn]]:
    """Return the places of a release, and the withdrawn places."""
    async with reading(url) as database:
        every = (await get_release_snapshot(database)).every
        release = imported.release if imported else next((one for one in every if one.name == name), None)
        if release is None or fingerprint(release, every) != folder.name:
            raise SystemExit(_OUTDATED)
        return await read(database, release, every, imported.history() if imported else None)


def _main() -> None:
    name, folder, *options = sys.argv[1:]
    if options:
        os.nice(_NICENESS)
    with suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    received = sys.stdin.buffer.read()
    imported = pickle.loads(received) if received else None  # noqa: S301  # from `run_builder`
    del received
    places, withdrawn = asyncio.run(_read(os.environ["DATABASE_URL"], name, Path(folder), imported))
    with new_folder(Path(folder)) as working:
        # No other threads are left, so this process can fork.
        in_parallel = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
        try:
            write_index(working, places, withdrawn, in_parallel=in_parallel)
        except ChildProcessError as error:
            raise SystemExit(1) from error  # the last line on stderr is the child's


if __name__ == "__main__":
    _main()
