"""What a filter or a comparison chooses of a release, found once and kept as a row of numbers.

A release never changes, so neither does what is chosen of it: with the positions at hand every page of a filtered list
costs what its first does, and its totals are known (decision 0008).
"""

import asyncio
import sys
from array import array
from collections.abc import Awaitable, Callable, Hashable, Sequence

from cachetools import LRUCache

from localidades_api.filters import EVERY_STATE, LocalityFilters
from localidades_api.repository import CatalogueRepository, ChangesRepository
from localidades_api.schemas import Release

_LIMIT = 16 * 1024**2  # bytes: a dozen of the largest there can be, thousands of usual ones
_OVERHEAD = 400  # bytes that one takes besides its numbers: key, objects


class Selections:
    """Keeps the numbers that were used last, up to a limit of bytes; all who want some at one time share a search."""

    def __init__(self, repository: CatalogueRepository, changes: ChangesRepository, limit: int = _LIMIT) -> None:
        self._repository = repository
        self._changes = changes
        self._kept: LRUCache[Hashable, array[int]] = LRUCache(limit, getsizeof=_size)
        self._finding: dict[Hashable, asyncio.Task[array[int]]] = {}

    async def choose(self, release: Release, filters: LocalityFilters) -> Sequence[int]:
        """Return the positions of the localities that filters choose, in order."""
        if not filters.key:
            return range(1, release.localities + 1)
        return await self._find((release, filters.key), lambda: self._repository.find_positions(release, filters))

    async def compare(self, old: Release, new: Release) -> "array[int]":
        """Return what changed between two releases: pairs of a kind's number and a key, in this order."""
        return await self._find((new, old), lambda: self._changes.find_changes(old, new))

    async def foresee(self, release: Release) -> None:
        """Find the large choices that a form begins with, so that nobody waits for them: 2.4 MB of a whole country."""
        for filters in _FORESEEN:
            await self.choose(release, filters)

    async def _find(self, key: Hashable, fetch: Callable[[], Awaitable[bytes]]) -> "array[int]":
        """Return the numbers of a key, which `fetch` returns as four bytes each, the highest first."""
        kept: array[int] | None = self._kept.get(key)
        if kept is not None:
            return kept
        finding = self._finding.get(key)
        if finding is None:
            finding = self._finding[key] = asyncio.create_task(self._fetch(key, fetch))
            finding.add_done_callback(lambda _: self._finding.pop(key))
        return await asyncio.shield(finding)  # one who hangs up does not take it from the others

    async def _fetch(self, key: Hashable, fetch: Callable[[], Awaitable[bytes]]) -> "array[int]":
        numbers = array("i", await fetch())
        if sys.byteorder == "little":
            numbers.byteswap()
        if _size(numbers) <= self._kept.maxsize:
            self._kept[key] = numbers
        return numbers


_FORESEEN = (
    LocalityFilters(ambito="U"),
    LocalityFilters(ambito="R"),
    *(LocalityFilters(estado_id=state) for state in EVERY_STATE),
)


def _size(numbers: "array[int]") -> int:
    return len(numbers) * numbers.itemsize + _OVERHEAD
