"""Shares one fetch among concurrent requests for the same key."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs one fetch per key at a time; a client that disconnects does not cancel it for the others."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._running

    def start(self, key: K, fetch: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        """Start a fetch for a key that has none running."""
        task = self._running[key] = asyncio.create_task(_run(fetch))
        task.add_done_callback(lambda _: self._running.pop(key))
        return task

    async def run(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        """Return the result of the key's running fetch, or of a new one."""
        return await asyncio.shield(self._running.get(key) or self.start(key, fetch))

    async def close(self) -> None:
        """Cancel all running fetches, and wait for them to end."""
        for task in (running := list(self._running.values())):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _run(fetch: Callable[[], Awaitable[V]]) -> V:
    return await fetch()
