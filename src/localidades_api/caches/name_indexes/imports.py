"""Builds the index of a release's names while an import loads it, so that it is searched soon after."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from localidades_api.caches.name_indexes.builder import ImportedRelease, fingerprint, is_large, open_or_build, reading
from localidades_api.caches.name_indexes.folders import OpenIndex, index_root, listed_names
from localidades_api.catalogue.columns import LocalityRow
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.names.history import Areas
from localidades_api.observability.progress import ImportProgress, ImportStep

_log = logging.getLogger(__name__)


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
        build: asyncio.Task[OpenIndex] | None = None
        with _failures_logged(name):
            build = await self._begin(name, sha256, areas, localities)
        try:
            yield
            importing = asyncio.current_task()
            # An import that was cancelled after the publication has gone on, but need not wait.
            if build and not build.done() and importing and not importing.cancelling():
                progress.begin(ImportStep.NAMES)
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([build])
        finally:
            if build:
                build.cancel()
                await asyncio.wait([build])
                if not build.cancelled():
                    with _failures_logged(name):
                        # Open until now: nobody lists the index yet, so without a lock a service could remove it.
                        build.result().close()

    async def _begin(
        self, name: str, sha256: str, areas: Areas, localities: Sequence[LocalityRow]
    ) -> asyncio.Task[OpenIndex] | None:
        """Begin to build the index of a release that has not been published yet, if it is wanted."""
        if not is_large(len(localities)):
            return None
        async with reading(self._url) as database:
            every = (await get_release_snapshot(database)).every
        release = Release(
            id=1 + max((published.id for published in every), default=0),
            name=name,
            source="",
            sha256=sha256,
            states=len(areas.estados),
            municipalities=len(areas.municipios),
            localities=len(localities),
            published_at=datetime.now(UTC),
        )
        root = index_root(self._cache_dir)
        is_served = not listed_names(root).isdisjoint(fingerprint(published, every) for published in every)
        if not (self._always or is_served):
            return None
        imported = ImportedRelease.of(release, areas, localities)
        folder = root / fingerprint(release, every)
        building = open_or_build(folder, self._url, release, every, nice=not self._always, imported=imported)
        return asyncio.create_task(building)


@contextmanager
def _failures_logged(name: str) -> Iterator[None]:
    """Log an error: the import goes on, and the services build the index."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # whatever it is
        _log.warning("Can't index the names of release %s during its import: %s", name, error)
