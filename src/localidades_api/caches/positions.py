"""Caches of the positions that filters and searches select, and of the changes between two releases, as arrays.

A release never changes, so neither does what a filter selects from it. With the positions cached, every page of a
filtered list costs as much as its first, and its totals are known (docs/decisions/pages.md). Comparing two whole
releases, or sorting one, may outlast the request that started it; it goes on, and a later request gets its result.
"""

import asyncio
import logging
import sys
from array import array
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from cachetools import LRUCache

from localidades_api.catalogue.filters import DEFAULT_SORT, LocalityFilters, Sort
from localidades_api.catalogue.keys import STATE_KEYS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import already_waited
from localidades_api.database.queries import CatalogueRepository, ChangesRepository
from localidades_api.errors import ComparisonRunningError, DatabaseUnavailableError
from localidades_api.name_indexes.open_indexes import NameIndexes
from localidades_api.names.find import INDEXED, searched
from localidades_api.names.index import NameIndex
from localidades_api.single_flight import SingleFlight

_log = logging.getLogger(__name__)

MAX_LONG_SEARCHES = 2  # at a time per worker: each keeps a processor of the database busy
LONG_TIMEOUT = 60.0  # seconds; two whole catalogues take one or two, on a busy machine a few times that
_MAX_BYTES = 16 * 1024**2  # bytes: a dozen arrays of the largest size possible, or thousands of usual ones
_OVERHEAD = 400  # bytes per array besides its numbers: key, objects


class PositionCache:
    """Caches the most recently used arrays, up to `limit` bytes; concurrent requests for one share one search.

    `sorting` has connections of its own. `timeout` is how many seconds a request waits for a comparison or an order.
    """

    def __init__(
        self,
        repository: CatalogueRepository,
        sorting: CatalogueRepository,
        changes: ChangesRepository,
        names: NameIndexes,
        timeout: float,
        limit: int = _MAX_BYTES,
    ) -> None:
        self._repository = repository
        self._sorting = sorting
        self._changes = changes
        self._names = names
        self._timeout = timeout
        self._slots = asyncio.Semaphore(MAX_LONG_SEARCHES)
        self._kept: LRUCache[Hashable, array[int]] = LRUCache(limit, getsizeof=_size)
        self._boxes: LRUCache[Hashable, array[int]] = LRUCache(limit // 4, getsizeof=_size)
        self._finding: SingleFlight[Hashable, array[int]] = SingleFlight()

    async def get(self, release: Release, filters: LocalityFilters, sort: Sort = DEFAULT_SORT) -> Sequence[int]:
        """Return the positions of the localities that the filters select, in order.

        Raises SearchUnavailableError for a search where the index of names is not ready, and DatabaseUnavailableError
        if the order is not ready in time: it is still being found.
        """
        if filters.search is not None:
            return await self._search(release, filters, sort, searched(filters.search))
        if not filters.chosen and sort == DEFAULT_SORT:
            return range(1, release.localities + 1)
        return await self._select(_key(release, "", filters.chosen, sort), filters)

    async def _search(self, release: Release, filters: LocalityFilters, sort: Sort, text: str) -> "array[int]":
        names = await self._names.get(release)
        in_list_order = _key(release, names.digest, filters.chosen | {"search": text})
        found: array[int] | None = self._cache_of(in_list_order).get(in_list_order)
        if found is None:
            found = self._keep(in_list_order, array("i", await self._search_names(names, release, filters)))
        if sort == DEFAULT_SORT or not found:
            return found
        folded = filters.model_copy(update={"search": text})
        return await self._select(in_list_order._replace(sort=sort), folded, among=found)

    async def _search_names(self, names: NameIndex, release: Release, filters: LocalityFilters) -> Sequence[int]:
        found = names.find(filters)
        others = {name: value for name, value in filters.chosen.items() if name not in INDEXED}
        if not others:
            return found
        selected = set(await self.get(release, LocalityFilters.model_validate(others)))
        return [position for position in found if position in selected]

    async def _select(
        self, key: "_Filtered", filters: LocalityFilters, among: Sequence[int] | None = None
    ) -> "array[int]":
        async def fetch() -> "array[int]":
            find = self._repository.find_positions if key.sort == DEFAULT_SORT else self._sorting.find_positions
            return await self._fetch(key, find(key.release, filters, key.sort, among))

        if key.sort == DEFAULT_SORT:
            return await self._find(key, fetch)
        try:
            return await self._find_long(key, fetch)
        except TimeoutError:
            raise DatabaseUnavailableError from None

    async def compare(self, old: Release, new: Release) -> "array[int]":
        """Return what changed between two releases, as a kind's number and a key in turn, by kind, then key.

        Raises ComparisonRunningError if the result is not ready in time: it is still running, or all slots are taken.
        """
        key = (new, old)

        async def fetch() -> "array[int]":
            return await self._fetch(key, self._changes.find_changes(old, new))

        try:
            return await self._find_long(key, fetch)
        except TimeoutError:
            raise ComparisonRunningError from None

    async def _find_long(self, key: Hashable, fetch: Callable[[], Awaitable["array[int]"]]) -> "array[int]":
        """Do as `_find`, but raise TimeoutError after a while, and let the search go on."""
        async with asyncio.timeout(self._timeout - already_waited.get()):
            if not self._is_known(key):
                await self._slots.acquire()
                if self._is_known(key):
                    self._slots.release()
                else:
                    self._finding.start(key, fetch).add_done_callback(self._end_long)
            return await self._find(key, fetch)

    def _end_long(self, finding: "asyncio.Task[array[int]]") -> None:
        self._slots.release()
        if not finding.cancelled() and (error := finding.exception()):
            _log.warning("A comparison or an order failed: %s", error)  # there may be no request left to receive it

    async def close(self) -> None:
        """Cancel the searches that are running."""
        await self._finding.close()

    async def prewarm(self, release: Release) -> None:
        """Cache what the filter form offers first, so that no request waits for it: 2.4 MB for all of Mexico."""
        for filters in _PREWARMED:
            await self.get(release, filters)

    async def _find(self, key: Hashable, fetch: Callable[[], Awaitable["array[int]"]]) -> "array[int]":
        kept: array[int] | None = self._cache_of(key).get(key)
        return await self._finding.run(key, fetch) if kept is None else kept

    def _is_known(self, key: Hashable) -> bool:
        return key in self._cache_of(key) or key in self._finding

    async def _fetch(self, key: Hashable, packed: Awaitable[bytes]) -> "array[int]":
        """Cache the numbers of a key, and return them; `packed` has big-endian integers of four bytes."""
        numbers = array("i", await packed)
        if sys.byteorder == "little":
            numbers.byteswap()
        return self._keep(key, numbers)

    def _keep(self, key: Hashable, numbers: "array[int]") -> "array[int]":
        cache = self._cache_of(key)
        if _size(numbers) <= cache.maxsize:
            cache[key] = numbers
        return numbers

    def _cache_of(self, key: Hashable) -> "LRUCache[Hashable, array[int]]":
        """Return the cache for a key; a map asks for thousands of boxes, which must not evict what others filter by."""
        return self._boxes if isinstance(key, _Filtered) and key.bbox else self._kept


_PREWARMED = (
    LocalityFilters(ambito="U"),
    LocalityFilters(ambito="R"),
    *(LocalityFilters(estado_id=state) for state in STATE_KEYS),
)


class _Filtered(NamedTuple):
    """The key of what filters select."""

    release: Release
    names: str  # digest of the index that answers a search
    bbox: str | None
    chosen: tuple[tuple[str, str], ...]
    sort: Sort


def _key(release: Release, names: str, chosen: Mapping[str, str], sort: Sort = DEFAULT_SORT) -> _Filtered:
    return _Filtered(release, names, chosen.get("bbox"), tuple(chosen.items()), sort)


def _size(numbers: "array[int]") -> int:
    return len(numbers) * numbers.itemsize + _OVERHEAD
