"""A cache of results that take a while, which concurrent requests share."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from cachetools import LRUCache

from localidades_api.releases.single_flight import SingleFlight

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
