"""Fetches the indexes of names that a process needs, and keeps them open; a machine's processes share each folder.

The import of a release stores its index in the database (`releases.stored_indexes`). The first process on a machine
that needs it writes it into a folder, which all of them map (docs/decisions/names.md).
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from localidades_api.caches.index_folders import CODE, OpenIndex, index_root, locked, remove_unused, try_open, unpack
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database, already_waited
from localidades_api.errors import SearchUnavailableError, UnavailableError
from localidades_api.names.index import NameIndex
from localidades_api.observability.faults import FAULTS, is_refused
from localidades_api.observability.metrics import COUNTERS
from localidades_api.releases.single_flight import SingleFlight
from localidades_api.releases.stored_indexes import StoredIndex, find_index, read_part
from localidades_api.releases.tracker import ReleaseTracker

_log = logging.getLogger(__name__)

_MAX_OPEN = 3  # indexes per process: of the served release and of others in requests
_RETRY_INTERVAL = 10.0  # seconds after a failure


class IndexMissingError(Exception):
    """The database has no usable index of a release."""


class NameIndexes:
    """The indexes that this process has open. Requests wait at most `timeout` seconds for one to be fetched."""

    def __init__(self, database: Database, releases: ReleaseTracker, timeout: float, cache_dir: Path | None) -> None:
        self._database = database
        self._releases = releases
        self._timeout = timeout
        self._cache_dir = cache_dir
        self._open: dict[Release, OpenIndex] = {}  # the last opened one is at the end
        self._opening: SingleFlight[Release, None] = SingleFlight()
        self._failed_at: dict[Release, float] = {}

    async def get(self, release: Release) -> NameIndex:
        """Return a release's index for immediate use; raise SearchUnavailableError if it isn't there in time."""
        return (await self._ready(release)).names

    @asynccontextmanager
    async def using(self, release: Release) -> AsyncIterator[NameIndex]:
        """Keep a release's index open while it is used; raises as `get` does."""
        with (await self._ready(release)).used() as index:
            yield index

    async def _ready(self, release: Release) -> OpenIndex:
        with suppress(TimeoutError, SearchUnavailableError):
            async with asyncio.timeout(self._timeout - already_waited.get()):
                await self.prepare(release)
        if release in self._open:  # and was not closed to make room for others
            return self._open[release]
        is_refused.set(True)
        COUNTERS.refused[SearchUnavailableError.slug] += 1
        raise SearchUnavailableError

    def held(self, release: Release) -> NameIndex | None:
        """Return a release's index if it is open."""
        index = self._open.get(release)
        return index.names if index else None

    def is_awaited(self, release: Release) -> bool:
        """Return whether a release's index is not open yet, and could be fetched."""
        return release not in self._open and release not in self._failed_at

    async def prepare(self, release: Release) -> None:
        """Open a release's index, after fetching it if necessary.

        Raises SearchUnavailableError if that fails, whose cause is logged, or DatabaseUnavailableError.
        """
        if release in self._open:
            return
        if time.monotonic() < self._failed_at.get(release, -_RETRY_INTERVAL) + _RETRY_INTERVAL:
            raise SearchUnavailableError
        await self._opening.run(release, lambda: self._open_index(release))

    async def _open_index(self, release: Release) -> None:
        """Fetch and open an index; note a failure before another task can try again."""
        try:
            index = await self._find_index(release)
        except UnavailableError:
            raise
        except Exception as error:
            self._failed_at[release] = time.monotonic()
            is_foreseen = isinstance(error, OSError | IndexMissingError)  # such as no space
            message = "Can't fetch the names of release %s: %s"
            FAULTS.report(error, message, release.name, error, traceback=not is_foreseen)
            raise SearchUnavailableError from error
        self._failed_at.pop(release, None)
        self._open[release] = index
        self.close_surplus()

    async def _find_index(self, release: Release) -> OpenIndex:
        stored = await find_index(self._database, release, CODE)
        if stored is None:
            raise IndexMissingError("the database has none for this version: run `localidades-api migrate`.")
        root = index_root(self._cache_dir, "names")
        folder = root / stored.name
        # Opening one takes some fifty milliseconds, too long for the event loop.
        if index := await asyncio.to_thread(try_open, folder):
            return index
        async with locked(root):
            if index := await asyncio.to_thread(try_open, folder):
                return index
            began = time.monotonic()
            await self._fetch(release, stored, folder)
            index = await asyncio.to_thread(OpenIndex, folder)
            await asyncio.to_thread(remove_unused, root)
        _log.info("Fetched the names of release %s in %.1f s.", release.name, time.monotonic() - began)
        return index

    async def _fetch(self, release: Release, stored: StoredIndex, folder: Path) -> None:
        hashed = hashlib.sha256()
        with TemporaryFile(dir=folder.parent) as packed:
            for number in range(stored.parts):
                part = await read_part(self._database, release, CODE, number)
                hashed.update(part)
                packed.write(part)
            if hashed.hexdigest() != stored.sha256:
                raise IndexMissingError(
                    "the database has not all of it as it was stored: run `localidades-api migrate`, unless the release"
                    " is being retired."
                )
            packed.seek(0)
            await asyncio.to_thread(unpack, cast("BinaryIO", packed), folder)

    def close_surplus(self) -> None:
        """Close the indexes of removed releases, and the oldest ones above the limit."""
        surplus = list(self._open)[:-_MAX_OPEN]
        for release in list(self._open):
            is_removed = release not in self._releases.every
            if release != self._releases.served and (release in surplus or is_removed):
                self._open.pop(release).close()

    async def close(self) -> None:
        """Close every index; the folders stay for the next start."""
        await self._opening.close()
        while self._open:
            self._open.popitem()[1].close()
