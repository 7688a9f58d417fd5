"""Builds the index of a release: of a whole catalogue in a process, as it takes seconds of processor time, and memory.

That process reads the release from the database, or from its input while an import is still loading it.
"""

import asyncio
import logging
import os
import pickle
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from sqlalchemy import Row

from localidades_api.caches.name_indexes.folders import (
    OpenIndex,
    digest,
    digest_of_builder,
    locked,
    remove_unfinished,
    try_open,
)
from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository, list_localities
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.names.history import Areas, History
from localidades_api.names.writer import build_index

_log = logging.getLogger(__name__)

MAX_IN_THREAD = 20_000  # places; a separate process builds larger indexes
_TIMEOUT = 60.0  # seconds for a statement
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


def fingerprint(release: Release, releases: Collection[Release]) -> str:
    """Return the name of a release's index: a digest of the data and the code that it is made from."""
    sources = [release, *_earlier(release, releases)]
    return digest(digest_of_builder(), *(f"{source.name} {source.sha256} {source.localities}" for source in sources))


def _earlier(release: Release, releases: Collection[Release]) -> list[Release]:
    """Return the releases whose names lead to places of this one; the invented demo has no history.

    The names of later ones don't, or every publication would rebuild the indexes of all releases.
    """
    return [other for other in releases if other.is_demo == release.is_demo and other.id < release.id]


def is_large(localities: int) -> bool:
    """Return whether a separate process builds the index of so many localities."""
    return localities > MAX_IN_THREAD


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Database]:
    """Open a separate connection."""
    database = Database.for_reading(url, pool_size=1, timeout=_TIMEOUT)
    try:
        yield database
    finally:
        await database.dispose()


async def open_or_build(
    folder: Path,
    url: str,
    release: Release,
    releases: Collection[Release],
    *,
    nice: bool,
    imported: ImportedRelease | None = None,
) -> OpenIndex:
    """Open an index; if there is none, build it, or wait for the process that is building it.

    Raises as `run_builder` does.
    """
    async with locked(folder.with_suffix(".lock")):
        if index := await asyncio.to_thread(try_open, folder):
            return index
        remove_unfinished(folder)
        began = time.monotonic()
        if is_large(release.localities):
            await run_builder(url, release.name, folder, nice=nice, imported=imported)
        else:
            async with reading(url) as database:
                history = await _read(database, release, releases)
            await asyncio.to_thread(build_index, folder, history.places(), history.withdrawn())
        _log.info("Indexed the names of release %s in %.1f s.", release.name, time.monotonic() - began)
        return await asyncio.to_thread(OpenIndex, folder)


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
    database: Database, release: Release, releases: Collection[Release], imported: ImportedRelease | None = None
) -> History:
    """Return the localities of a release, compared with the earlier releases in the database."""
    catalogue = CatalogueRepository(database)
    if imported:
        history = imported.history()
    else:
        areas = Areas.of(await catalogue.list_states(release), await catalogue.list_municipalities(release, None))
        history = History(await _list_all(database, release), areas)
    for earlier in _earlier(release, releases):
        history.add(await _list_all(database, earlier), await catalogue.list_municipalities(earlier, None))
    return history


async def _list_all(database: Database, release: Release) -> list[Row[Any]]:
    return [row async for batch in list_localities(database, release) for row in batch]


async def _read_for(url: str, name: str, folder: Path, imported: ImportedRelease | None) -> History:
    """Return what the index in a folder is built from; exit if the folder is named after other releases or code."""
    async with reading(url) as database:
        releases = (await get_release_snapshot(database)).every
        by_name = {published.name: published for published in releases}
        release = imported.release if imported else by_name.get(name)
        if release is None or fingerprint(release, releases) != folder.name:
            raise SystemExit(_OUTDATED)
        return await _read(database, release, releases, imported)


def _main() -> None:
    name, folder, *options = sys.argv[1:]
    if options:
        os.nice(_NICENESS)
    with suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    received = sys.stdin.buffer.read()
    imported = pickle.loads(received) if received else None  # noqa: S301  # from `run_builder`
    del received
    history = asyncio.run(_read_for(os.environ["DATABASE_URL"], name, Path(folder), imported))
    # No other threads are left, so this process can fork.
    in_parallel = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
    try:
        build_index(Path(folder), history.places(), history.withdrawn(), in_parallel=in_parallel)
    except ChildProcessError as error:
        raise SystemExit(1) from error  # the last line on stderr is the child's


if __name__ == "__main__":
    _main()
