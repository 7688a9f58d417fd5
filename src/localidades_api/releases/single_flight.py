"""Shares one fetch among concurrent requests for the same key."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from localidades_api.database.pool import may_use_database

K = TypeVar("K")
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs one fetch per key at a time, and keeps its outcome for `keep` seconds more.

    A client that disconnects does not cancel it for the others.
    """

    def __init__(self, keep: float = 0.0) -> None:
        self._keep = keep
        self._running: dict[K, asyncio.Task[V]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._running

    def start(self, key: K, fetch: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        """Start a fetch for a key that has none running."""
        task = self._running[key] = asyncio.create_task(_run(fetch))
        task.add_done_callback(lambda _: task.get_loop().call_later(self._keep, self._running.pop, key))
        return task

    async def run(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        """Return the result of the key's running fetch, or of a new one."""
        if key not in self._running and not may_use_database.get():
            return await fetch()  # its refusal must not be that of others
        return await asyncio.shield(self._running.get(key) or self.start(key, fetch))

    async def close(self) -> None:
        """Cancel all running fetches, and wait for them to end."""
        for task in (running := list(self._running.values())):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _run(fetch: Callable[[], Awaitable[V]]) -> V:
    return await fetch()
