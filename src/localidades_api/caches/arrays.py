"""A cache of arrays of integers, and slots for the queries that take long."""

import asyncio
import logging
from array import array
from collections.abc import Awaitable, Callable, Hashable

from localidades_api.caches.results import ResultCache
from localidades_api.database.pool import already_waited, may_use_database

_log = logging.getLogger(__name__)

MAX_SLOW_FETCHES = 2  # at a time per worker: each keeps a processor of the database busy
SLOW_TIMEOUT = 60.0  # seconds; two whole catalogues take up to one, on a busy machine a few times that
MAX_BYTES = 16 * 1024**2  # a dozen arrays of the largest size possible, or thousands of usual ones
_OVERHEAD = 400  # bytes per array in addition to its integers: key, objects


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
