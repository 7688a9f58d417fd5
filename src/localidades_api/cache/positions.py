"""The positions that a filter selects, and what changed between two releases: found once, kept as arrays of numbers.

A release never changes, so neither does what a filter selects of it. With the positions cached, every page of a
filtered list costs what its first does, and its totals are known (decision 0008). A comparison of two whole releases
may take longer than a request: it goes on and serves the next client that asks (decision 0018).
"""

import asyncio
import logging
import sys
from array import array
from collections.abc import Awaitable, Callable, Hashable, Sequence

from cachetools import LRUCache

from localidades_api.cache.single_flight import SingleFlight
from localidades_api.domain.filters import STATE_KEYS, LocalityFilters
from localidades_api.domain.schemas import Release
from localidades_api.errors import ComparisonRunningError
from localidades_api.storage.pool import already_waited
from localidades_api.storage.repository import CatalogueRepository, ChangesRepository

_log = logging.getLogger(__name__)

MAX_COMPARISONS = 2  # that a worker makes at one time: each keeps a processor of the database busy
COMPARISON_TIMEOUT = 60.0  # seconds: two whole catalogues take one or two, on a busy machine a few times that
_MAX_BYTES = 16 * 1024**2  # bytes: a dozen of the largest there can be, thousands of usual ones
_OVERHEAD = 400  # bytes that one takes besides its numbers: key, objects


class PositionCache:
    """Caches the arrays that were used last, up to a limit of bytes; concurrent requests share one search.

    `timeout` is the number of seconds for which a request waits for a comparison.
    """

    def __init__(
        self, repository: CatalogueRepository, changes: ChangesRepository, timeout: float, limit: int = _MAX_BYTES
    ) -> None:
        self._repository = repository
        self._changes = changes
        self._timeout = timeout
        self._slots = asyncio.Semaphore(MAX_COMPARISONS)
        self._kept: LRUCache[Hashable, array[int]] = LRUCache(limit, getsizeof=_size)
        self._finding: SingleFlight[Hashable, array[int]] = SingleFlight()

    async def positions_for(self, release: Release, filters: LocalityFilters) -> Sequence[int]:
        """Return the positions of the localities that filters select, in order."""
        if not filters.key:
            return range(1, release.localities + 1)
        key = (release, filters.key)
        return await self._find(key, lambda: self._fetch(key, self._repository.find_positions(release, filters)))

    async def compare(self, old: Release, new: Release) -> "array[int]":
        """Return what changed between two releases: pairs of a kind's number and a key, in this order.

        Raises ComparisonRunningError where it is not there in time: it goes on, or others had every slot.
        """
        key = (new, old)

        async def fetch() -> "array[int]":
            return await self._fetch(key, self._changes.find_changes(old, new))

        try:
            async with asyncio.timeout(self._timeout - already_waited.get()):
                if not self._is_known(key):
                    await self._slots.acquire()
                    if self._is_known(key):
                        self._slots.release()
                    else:
                        self._finding.start(key, fetch).add_done_callback(self._end_comparison)
                return await self._find(key, fetch)
        except TimeoutError:
            raise ComparisonRunningError from None

    def _end_comparison(self, finding: "asyncio.Task[array[int]]") -> None:
        self._slots.release()
        if not finding.cancelled() and (error := finding.exception()):
            _log.warning("Comparing two releases failed: %s", error)  # there may be nobody left to be told

    async def close(self) -> None:
        """Cancel the searches that are under way."""
        await self._finding.close()

    async def prewarm(self, release: Release) -> None:
        """Find what the filter form offers first, so that nobody waits for it: 2.4 MB for a whole country."""
        for filters in _PREWARMED:
            await self.positions_for(release, filters)

    async def _find(self, key: Hashable, fetch: Callable[[], Awaitable["array[int]"]]) -> "array[int]":
        kept: array[int] | None = self._kept.get(key)
        return await self._finding.run(key, fetch) if kept is None else kept

    def _is_known(self, key: Hashable) -> bool:
        return key in self._kept or key in self._finding

    async def _fetch(self, key: Hashable, packed: Awaitable[bytes]) -> "array[int]":
        """Keep the numbers of a key, which come as four bytes each, the highest first."""
        numbers = array("i", await packed)
        if sys.byteorder == "little":
            numbers.byteswap()
        if _size(numbers) <= self._kept.maxsize:
            self._kept[key] = numbers
        return numbers


_PREWARMED = (
    LocalityFilters(ambito="U"),
    LocalityFilters(ambito="R"),
    *(LocalityFilters(estado_id=state) for state in STATE_KEYS),
)


def _size(numbers: "array[int]") -> int:
    return len(numbers) * numbers.itemsize + _OVERHEAD
