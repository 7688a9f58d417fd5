"""Builds the index of a release's names: of a whole catalogue in a process, as it takes seconds of processor time.

That process reads the release from its input while an import is still loading it, or from the database for `migrate`.
"""

import asyncio
import ctypes
import logging
import os
import pickle
import shutil
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from sqlalchemy import Row

from localidades_api.caches.index_folders import CODE, digest, pack
from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository, list_localities
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.errors import IndexingError
from localidades_api.importer.transform import CatalogueRecords
from localidades_api.names.files.history import Areas, History
from localidades_api.names.files.writer import build_index
from localidades_api.observability.progress import ImportStep, StepProgress
from localidades_api.releases.stored_indexes import list_incomplete, remove_old_indexes, store_index

_log = logging.getLogger(__name__)

MAX_IN_THREAD = 20_000  # places; a separate process builds larger indexes
_TIMEOUT = 60.0  # seconds for a statement
_NICENESS = 10
_OOM_SCORE = "500"  # the kernel ends this process before the service and the database
_PR_SET_PDEATHSIG = 1  # prctl(2)


class Source(NamedTuple):
    """What an index is made from: a release, the ones before it, and what an import has read but not yet published.

    The localities are columns, which are quickly pickled.
    """

    release: Release
    earlier: list[Release]
    areas: Areas | None = None
    columns: tuple[tuple[Any, ...], ...] = ()

    @classmethod
    def of(cls, release: Release, published: Collection[Release]) -> Self:
        """Take a release, and of the published ones those whose names lead to its places.

        The demo is invented, so it has no history. The names of later releases don't lead to places of earlier ones.
        """
        earlier = [old for old in published if old.is_demo == release.is_demo and old.id < release.id]
        return cls(release, earlier)

    @property
    def name(self) -> str:
        """The name of the index: a digest of the releases and of `CODE`."""
        return digest(
            CODE,
            *(f"{release.name} {release.sha256} {release.localities}" for release in (self.release, *self.earlier)),
        )

    async def read(self, database: Database) -> History:
        """Return the localities of the release, compared with the earlier releases in the database."""
        catalogue, release = CatalogueRepository(database), self.release
        if self.areas:
            history = History(list(map(LocalityRow._make, zip(*self.columns, strict=True))), self.areas)
        else:
            areas = Areas.of(await catalogue.list_states(release), await catalogue.list_municipalities(release, None))
            history = History(await _list_all(database, release), areas)
        for earlier in self.earlier:
            history.add(await _list_all(database, earlier), await catalogue.list_municipalities(earlier, None))
        return history


async def _list_all(database: Database, release: Release) -> list[Row[Any]]:
    return [row async for batch in list_localities(database, release) for row in batch]


async def read_source(url: str, name: str, sha256: str, catalogue: CatalogueRecords) -> Source:
    """Return what the index of a release that is being imported is made from."""
    async with _reading(url) as database:
        published = (await get_release_snapshot(database)).every
    release = Release(
        id=1 + max((release.id for release in published), default=0),
        name=name,
        source="",
        sha256=sha256,
        states=len(catalogue.states),
        municipalities=len(catalogue.municipalities),
        localities=len(catalogue.localities),
        published_at=datetime.now(UTC),
    )
    return Source.of(release, published)._replace(
        areas=Areas.of(catalogue.states.values(), catalogue.municipalities.values()),
        columns=tuple(zip(*catalogue.localities, strict=True)),
    )


async def complete_indexes(database: Database, progress: StepProgress) -> None:
    """Build and store what releases lack to be searched by this code; remove what only older code could read.

    Raises IndexingError or DatabaseUnavailableError; the next run continues.
    """
    async with database.connect() as connection:
        incomplete = await list_incomplete(connection, CODE)
    every = (await get_release_snapshot(database)).every
    releases = {release.id: release for release in every}
    for release_id in filter(releases.__contains__, incomplete):
        progress.begin(ImportStep.NAMES)
        async with building(database.url, Source.of(releases[release_id], every)) as index:
            packed = await index
            async with database.connect() as connection:
                await store_index(connection, release_id, CODE, packed)
                await connection.commit()
    async with database.connect() as connection:
        await remove_old_indexes(connection, CODE)
        await connection.commit()


@asynccontextmanager
async def building(url: str, source: Source) -> AsyncIterator[asyncio.Task[Path]]:
    """Build an index beside the block, which awaits it; its files are there until the end of the block.

    The task raises IndexingError. If the block fails, the build is cancelled, and nothing of it is left.
    """
    with TemporaryDirectory(prefix="localidades-index-", ignore_cleanup_errors=True) as folder:
        task = asyncio.create_task(_build(url, source, Path(folder)))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # otherwise asyncio logs one that the block has not awaited


async def _build(url: str, source: Source, folder: Path) -> Path:
    began = time.monotonic()
    try:
        if source.release.localities > MAX_IN_THREAD:
            await _run_builder(url, source, folder)
        else:
            history = await _read(url, source)
            writing = asyncio.ensure_future(asyncio.to_thread(_write, source, history, folder))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait([writing])  # a thread can't be cancelled
                raise
    except (OSError, RuntimeError, ValueError) as error:  # no space, no memory; tantivy raises the last
        raise IndexingError(f"Can't index the names of release {source.release.name}: {error}") from error
    _log.info("Indexed the names of release %s in %.1f s.", source.release.name, time.monotonic() - began)
    return folder / "packed" / source.name


@asynccontextmanager
async def _reading(url: str) -> AsyncIterator[Database]:
    """Open a separate connection as an import does: to the primary, which has every release."""
    database = Database.for_writing(url, _TIMEOUT)
    try:
        yield database
    finally:
        await database.dispose()


def _write(source: Source, history: History, folder: Path, *, in_parallel: bool = False) -> None:
    build_index(folder / "index", history.places(), history.withdrawn(), in_parallel=in_parallel)
    (folder / "packed").mkdir()
    pack(folder / "index", folder / "packed" / source.name)


async def _run_builder(url: str, source: Source, folder: Path) -> None:
    """Build an index in a separate process; raise RuntimeError with its last message, or OSError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(folder), str(os.getpid())),
        env={**os.environ, "DATABASE_URL": url},
        stdin=PIPE,
        stdout=DEVNULL,
        stderr=PIPE,
        start_new_session=True,  # with its fork, as a group; uvloop has no `process_group`
    )
    try:
        _, stderr = await process.communicate(pickle.dumps(source))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode:
        raise RuntimeError((stderr.decode(errors="replace").strip().splitlines() or ["it was killed."])[-1])


async def _read(url: str, source: Source) -> History:
    async with _reading(url) as database:
        return await source.read(database)


def _end_with(parent: int, folder: Path) -> None:
    """End this process and its fork, and remove their files, if the one that started it is killed."""

    def end(*_: object) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before the line above
            sys.exit(1)


def _main() -> None:
    folder = Path(sys.argv[1])
    try:
        _end_with(int(sys.argv[2]), folder)
        os.nice(_NICENESS)
        with suppress(OSError):  # not on Linux
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
        source: Source = pickle.load(sys.stdin.buffer)  # noqa: S301  # from `_run_builder`
        history = asyncio.run(_read(os.environ["DATABASE_URL"], source))
        # No other threads are left, so this process can fork.
        in_parallel = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
        source = source._replace(columns=())  # they are not needed any more
        _write(source, history, folder, in_parallel=in_parallel)
    except ChildProcessError as error:
        raise SystemExit(1) from error  # the last line on stderr is the child's
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # who made it may have been killed
        raise


if __name__ == "__main__":
    _main()
