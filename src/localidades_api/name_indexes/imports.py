"""Builds the index of a release's names while an import loads it, so that it is searched soon after."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.name_indexes.build import MAX_IN_THREAD, fingerprint, reading
from localidades_api.name_indexes.builder import ImportedRelease, run_builder
from localidades_api.name_indexes.folders import OpenIndex, index_root, listed_names, locked, try_open
from localidades_api.name_indexes.places import Areas
from localidades_api.observability.progress import ImportProgress, ImportStep

_log = logging.getLogger(__name__)

_FAILED = "Can't index the names of release %s during its import: %s"


class ImportIndexer:
    """Builds indexes during imports into a database if a service on this machine serves it, or `always`."""

    def __init__(self, url: str, cache_dir: Path | None, *, always: bool = False) -> None:
        self._url = url
        self._cache_dir = cache_dir
        self._always = always

    @asynccontextmanager
    async def building(
        self, name: str, sha256: str, areas: Areas, localities: Sequence[LocalityRow], progress: ImportProgress
    ) -> AsyncIterator[None]:
        """Build the index of a release beside the block that loads it, and wait for it after the block.

        If the block fails, the build is cancelled. If the build fails or is cancelled, the services build the index.
        """
        opened: list[OpenIndex] = []  # nobody lists the index yet, so without a lock a service could remove it
        # Read before the block, which publishes the release.
        every = await self._published(name) if len(localities) > MAX_IN_THREAD else None
        building = asyncio.create_task(self._build(name, sha256, areas, localities, every, opened))
        try:
            yield
            importing = asyncio.current_task()
            # An import that was cancelled after the publication has gone on, but need not wait.
            if not building.done() and importing is not None and not importing.cancelling():
                progress.begin(ImportStep.NAMES)
                with suppress(asyncio.CancelledError):
                    await building
        finally:
            building.cancel()
            await asyncio.wait([building])
            for index in opened:
                index.close()

    async def _published(self, name: str) -> Collection[Release] | None:
        """Return the releases, or None if they can't be read."""
        try:
            async with reading(self._url) as database:
                return (await get_release_snapshot(database)).every
        except Exception as error:  # noqa: BLE001  # as in `_build`
            _log.warning(_FAILED, name, error)
            return None

    async def _build(
        self,
        name: str,
        sha256: str,
        areas: Areas,
        localities: Sequence[LocalityRow],
        every: Collection[Release] | None,
        opened: list[OpenIndex],
    ) -> None:
        if every is None:
            return
        try:
            release = _release(name, sha256, areas, len(localities), every)
            root = index_root(self._cache_dir)
            if self._always or not listed_names(root).isdisjoint(fingerprint(one, every) for one in every):
                folder = root / fingerprint(release, every)
                imported = ImportedRelease.of(release, areas, localities)
                opened.append(await self._build_index(folder, imported))
        except Exception as error:  # noqa: BLE001  # the import goes on, and the services build the index
            _log.warning(_FAILED, name, error)

    async def _build_index(self, folder: Path, imported: ImportedRelease) -> OpenIndex:
        async with locked(folder.with_suffix(".lock")):
            if found := await asyncio.to_thread(try_open, folder):
                return found
            began = time.monotonic()
            name = imported.release.name
            await run_builder(self._url, name, folder, nice=not self._always, imported=imported)
            _log.info("Indexed the names of release %s in %.1f s.", name, time.monotonic() - began)
            return await asyncio.to_thread(OpenIndex, folder)


def _release(name: str, sha256: str, areas: Areas, localities: int, every: Collection[Release]) -> Release:
    """Return a release that has not been published yet, after every published one."""
    return Release(
        id=1 + max((one.id for one in every), default=0),
        name=name,
        source="",
        sha256=sha256,
        states=len(areas.estados),
        municipalities=len(areas.municipios),
        localities=localities,
        published_at=datetime.now(UTC),
    )
