"""Caches of results that take a while, which concurrent requests share; of arrays, some of which take long."""

import asyncio
import logging
from array import array
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

from cachetools import LRUCache

from localidades_api.database.pool import already_waited, may_use_database
from localidades_api.releases.single_flight import SingleFlight

_log = logging.getLogger(__name__)

MAX_SLOW_FETCHES = 2  # at a time per worker: each keeps a processor of the database busy
SLOW_TIMEOUT = 60.0  # seconds; two whole catalogues take up to one, on a busy machine a few times that
MAX_BYTES = 16 * 1024**2  # a dozen arrays of the largest size possible, or thousands of usual ones
_OVERHEAD = 400  # bytes per array in addition to its integers: key, objects


K = TypeVar("K")
V = TypeVar("V")


class ResultCache(Generic[K, V]):
    """Caches the most recent results, up to `limit` by their `size`; concurrent requests for one share its fetch."""

    def __init__(self, limit: int, size: Callable[[V], int] | None = None) -> None:
        self._held: LRUCache[K, V] = LRUCache(limit, size)
        self._fetching: SingleFlight[K, V] = SingleFlight()

    def held(self, key: K) -> V | None:
        """Return a result if it is cached."""
        held: V | None = self._held.get(key)
        return held

    def hold(self, key: K, result: V) -> V:
        """Cache a result, unless it alone is over the limit, and return it."""
        with suppress(ValueError):
            self._held[key] = result
        return result

    async def get(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        """Return a result from the cache, or fetch it."""
        if key not in self._held:
            return await self._fetching.run(key, lambda: self._fetch(key, fetch))
        held: V = self._held[key]
        return held

    async def close(self) -> None:
        """Cancel the fetches that are running."""
        await self._fetching.close()

    async def _fetch(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        return self.hold(key, await fetch())


class ArrayCache(ResultCache[Hashable, "array[int]"]):
    """Caches arrays, up to `limit` bytes.

    `slots` bounds how many slow fetches run at a time, and `timeout` the seconds that a request waits for one.
    """

    def __init__(self, slots: asyncio.Semaphore, timeout: float, limit: int = MAX_BYTES) -> None:
        super().__init__(limit, _size)
        self._slots = slots
        self._timeout = timeout

    async def get_slow(self, key: Hashable, fetch: Callable[[], Awaitable["array[int]"]]) -> "array[int]":
        """Return an array from the cache, or fetch it in a slot.

        Raises TimeoutError if that takes too long. The fetch continues, and a later request gets its result.
        """
        async with asyncio.timeout(self._timeout - already_waited.get()):
            if not self._is_known(key) and may_use_database.get():
                await self._slots.acquire()
                if self._is_known(key):
                    self._slots.release()
                else:
                    self._fetching.start(key, lambda: self._fetch(key, fetch)).add_done_callback(self._end_slow)
            return await self.get(key, fetch)

    def _is_known(self, key: Hashable) -> bool:
        return key in self._held or key in self._fetching

    def _end_slow(self, task: "asyncio.Task[array[int]]") -> None:
        self._slots.release()
        if not task.cancelled() and (error := task.exception()):
            _log.warning("A comparison or an order failed: %s", error)  # there may be no request left to receive it


def _size(integers: "array[int]") -> int:
    return len(integers) * integers.itemsize + _OVERHEAD
