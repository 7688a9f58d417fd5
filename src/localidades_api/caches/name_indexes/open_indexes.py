"""Keeps the indexes of names that a process has open; a machine's processes share each index.

An index is a folder in a cache folder, built once. Its name is a digest of the data and the code that it is made from:
the release, the earlier ones, and the code of `names`. So a process finds the index that another has built, and a new
release changes no existing index. Processes hold a shared lock on each index that they have open, and
list those that they can reach. At a start, and when a release is added or removed, indexes that no service lists are
removed (docs/decisions/names.md).
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from localidades_api.caches.name_indexes.builder import OutdatedIndexError, fingerprint, is_large, open_or_build
from localidades_api.caches.name_indexes.folders import (
    OpenIndex,
    digest,
    digest_of_builder,
    index_root,
    remove_unreachable,
    try_open,
)
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import already_waited
from localidades_api.errors import SearchUnavailableError, UnavailableError
from localidades_api.names.index import NameIndex
from localidades_api.observability.faults import FAULTS, is_refused
from localidades_api.observability.metrics import COUNTERS
from localidades_api.releases.single_flight import SingleFlight
from localidades_api.releases.tracker import ReleaseTracker

_log = logging.getLogger(__name__)

_MAX_OPEN = 3  # indexes per process: of the served release and of others in requests
_LIST_INTERVAL = 86_400.0  # seconds after which a list of indexes is renewed
_TIDY_INTERVAL = 10.0  # seconds until another attempt to remove an index that was open
_READ_INTERVAL = 60.0  # seconds; reading from memory takes nine milliseconds of a thread
_RETRY_INTERVAL = 30.0  # seconds after a build that failed: each takes much processor time


class NameIndexes:
    """The indexes that this process has open.

    Requests wait at most `timeout` seconds for an index to be opened, or built from a small catalogue. They don't wait
    for the index of a whole catalogue, which takes half a minute: they would leave no room for other requests.
    """

    def __init__(self, url: str, releases: ReleaseTracker, timeout: float, cache_dir: Path | None) -> None:
        self._url = url
        self._releases = releases
        self._timeout = timeout
        self._cache_dir = cache_dir
        self._open: dict[Release, OpenIndex] = {}  # the last opened one is at the end
        self._opening: SingleFlight[str, None] = SingleFlight()
        self._building: set[str] = set()  # names of indexes of whole catalogues, for which requests don't wait
        self._failed_at: dict[str, float] = {}
        self._refused: Counter[Release] = Counter()  # searches, since they began to be refused
        # Identifies this build and database: other versions keep their own list.
        self._service = digest(digest_of_builder(), url)
        self._tidied: tuple[object, ...] = ()
        self._tidy_again_at = math.inf

    async def get(self, release: Release) -> NameIndex:
        """Return a release's index for immediate use; raise SearchUnavailableError if it isn't ready in time."""
        return (await self._ready(release)).names

    @asynccontextmanager
    async def using(self, release: Release) -> AsyncIterator[NameIndex]:
        """Keep a release's index open while it is used; raises as `get` does."""
        with (await self._ready(release)).used() as index:
            yield index

    async def _ready(self, release: Release) -> OpenIndex:
        """Return an open index; count a search that is refused, and log the first, as `_find_index` logs the end."""
        with suppress(TimeoutError, OutdatedIndexError, SearchUnavailableError):
            if release not in self._open and fingerprint(release, self._releases.every) not in self._building:
                async with asyncio.timeout(self._timeout - already_waited.get()):
                    await self.prepare(release)
        if release in self._open:  # and was not closed to make room for others
            return self._open[release]
        is_refused.set(True)
        COUNTERS.refused[SearchUnavailableError.slug] += 1
        self._refused[release] += 1
        if self._refused[release] == 1:
            _log.warning("The names of release %s are not indexed yet: searches in it are refused.", release.name)
        raise SearchUnavailableError

    def held(self, release: Release) -> NameIndex | None:
        """Return a release's index if it is open."""
        index = self._open.get(release)
        return index.names if index else None

    def is_ready(self, release: Release) -> bool:
        """Return whether a release's index is open and made from the present releases."""
        index = self._open.get(release)
        return index is not None and index.folder.name == fingerprint(release, self._releases.every)

    def is_awaited(self, release: Release) -> bool:
        """Return whether a release's index is not open yet and its build has not failed."""
        return release not in self._open and fingerprint(release, self._releases.every) not in self._failed_at

    async def tidy(self) -> None:
        """Close the indexes of removed releases, and delete those that no service on this machine can reach."""
        every, now = self._releases.every, time.monotonic()
        state = (*every, self._releases.served, self._releases.searched, now // _LIST_INTERVAL)
        if state != self._tidied or now >= self._tidy_again_at:
            self._tidied, self._tidy_again_at = state, now + _TIDY_INTERVAL
            self._close_surplus(every)
            with suppress(OSError):  # the next build reports the reason
                if await self._remove_unreachable(every):
                    self._tidy_again_at = math.inf

    async def _remove_unreachable(self, every: Collection[Release]) -> bool:
        names = [fingerprint(release, every) for release in every]
        return await asyncio.to_thread(remove_unreachable, index_root(self._cache_dir), self._service, names)

    async def prepare(self, release: Release) -> None:
        """Open a release's index, after building it if necessary.

        Raises SearchUnavailableError or DatabaseUnavailableError if it can't be built, and OutdatedIndexError if a
        release was added or removed and `releases` has not noticed yet.
        """
        every = self._releases.every
        name = fingerprint(release, every)
        if time.monotonic() < self._failed_at.get(name, -_RETRY_INTERVAL) + _RETRY_INTERVAL:
            raise SearchUnavailableError
        await self._opening.run(name, lambda: self._open_index(release, every, name))

    async def _open_index(self, release: Release, every: Collection[Release], name: str) -> None:
        """Open or build an index; note a failure before another task can try again."""
        try:
            await self._find_index(release, every, name)
        except (UnavailableError, OutdatedIndexError):
            raise
        except Exception as error:
            self._failed_at[name] = time.monotonic()
            is_foreseen = isinstance(error, OSError | RuntimeError)  # no space, no memory
            message = "Can't index the names of release %s: %s"
            FAULTS.report(error, message, release.name, error, traceback=not is_foreseen)
            raise SearchUnavailableError from error

    async def _find_index(self, release: Release, every: Collection[Release], name: str) -> None:
        folder = index_root(self._cache_dir) / name
        # It takes some fifty milliseconds, too long for the event loop.
        if not (index := await asyncio.to_thread(try_open, folder)):
            await self._remove_unreachable(every)  # an index is listed before it is built
            if is_large(release.localities):
                self._building.add(name)
            try:
                # Requests have priority, unless none can search until the index is there.
                index = await open_or_build(folder, self._url, release, every, nice=bool(self._open))
            finally:
                self._building.discard(name)
        if previous := self._open.pop(release, None):
            previous.close()
            self._tidied = ()
        self._open[release] = index
        if refused := self._refused.pop(release, 0):
            _log.warning("The names of release %s are indexed: %d searches were refused.", release.name, refused)
        self._close_surplus(every)

    def _close_surplus(self, every: Collection[Release]) -> None:
        """Close the indexes of removed releases, and the oldest ones above the limit."""
        surplus = list(self._open)[:-_MAX_OPEN]
        for release in list(self._open):
            is_needed = release in {self._releases.served, self._releases.searched}
            if not is_needed and (release in surplus or release not in every):
                self._open.pop(release).close()

    async def keep_in_memory(self) -> None:
        """Read the open indexes once a minute: otherwise the system reuses their memory after a long silence."""
        while True:
            for index in list(self._open.values()):
                await asyncio.to_thread(index.read_ahead)
            await asyncio.sleep(_READ_INTERVAL)

    async def close(self) -> None:
        """Close every index; the folders stay for the next start."""
        await self._opening.close()
        while self._open:
            self._open.popitem()[1].close()
