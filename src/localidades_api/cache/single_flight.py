"""One fetch for all who ask for the same thing at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs a fetch once per key at a time; a client that hangs up does not end it for the others."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._running

    def start(self, key: K, fetch: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        """Start a fetch that no other is under way for."""
        task = self._running[key] = asyncio.create_task(_run(fetch))
        task.add_done_callback(lambda _: self._running.pop(key))
        return task

    async def run(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        """Return what the fetch returns that is under way for the key, or that is started now."""
        return await asyncio.shield(self._running.get(key) or self.start(key, fetch))

    async def close(self) -> None:
        """Cancel what is under way."""
        for task in (running := list(self._running.values())):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _run(fetch: Callable[[], Awaitable[V]]) -> V:
    return await fetch()
