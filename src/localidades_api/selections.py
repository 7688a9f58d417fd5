"""What a filter or a comparison chooses of a release, found once and kept as a row of numbers.

A release never changes, so neither does what is chosen of it: with the positions at hand every page of a filtered list
costs what its first does, and its totals are known (decision 0008).
"""

import asyncio
import sys
from array import array
from collections.abc import Awaitable, Callable, Hashable

from cachetools import LRUCache

_LIMIT = 16 * 1024**2  # bytes: a dozen of the largest there can be, thousands of usual ones
_OVERHEAD = 400  # bytes that one takes besides its numbers: key, objects


class Selections:
    """Keeps the numbers that were used last, up to a limit of bytes; all who want one at one time share its finding."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._kept: LRUCache[Hashable, array[int]] = LRUCache(limit, getsizeof=_size)
        self._finding: dict[Hashable, asyncio.Task[array[int]]] = {}

    async def find(self, key: Hashable, fetch: Callable[[], Awaitable[bytes]]) -> "array[int]":
        """Return the numbers of a key, which `fetch` returns as four bytes each, the highest first."""
        kept: array[int] | None = self._kept.get(key)
        if kept is not None:
            return kept
        finding = self._finding.get(key)
        if finding is None:
            finding = self._finding[key] = asyncio.create_task(self._find(key, fetch))
            finding.add_done_callback(lambda _: self._finding.pop(key))
        return await asyncio.shield(finding)  # one who hangs up does not take it from the others

    async def _find(self, key: Hashable, fetch: Callable[[], Awaitable[bytes]]) -> "array[int]":
        numbers = array("i", await fetch())
        if sys.byteorder == "little":
            numbers.byteswap()
        if _size(numbers) <= self._kept.maxsize:
            self._kept[key] = numbers
        return numbers


def _size(numbers: "array[int]") -> int:
    return len(numbers) * numbers.itemsize + _OVERHEAD
