"""Histories of a service with two workers, asked over connections that are reused, and killed."""

import asyncio
import os
import signal

import httpx
from hypothesis.stateful import precondition, rule

from tests.model.machine import RELEASE_POLL, HistoriesOfDatabase
from tests.support.waiting import eventually_async
from tests.support.wire import serving, workers_of

_WORKERS = 2
_IN_A_ROW = 10  # answers on new connections that show the same release, so that both workers do


class HistoriesOfWorkers(HistoriesOfDatabase):
    """Histories of `localidades-api serve`."""

    async def serve(self) -> None:
        """Start the service; it has no release yet, or has one."""
        server = serving(
            self.url,
            *("--workers", str(_WORKERS)),
            probe="/livez",
            LOCALIDADES_RELEASE_POLL=str(RELEASE_POLL),
            LOCALIDADES_CACHE_DIR=str(self.cache),
        )
        self.live = await asyncio.to_thread(self.resources.enter_context, server)
        self.client = await self.service.enter_async_context(httpx.AsyncClient(base_url=self.live.base, timeout=20))

    async def restart_service(self) -> None:
        """Replace the workers one by one."""
        before = workers_of(self.live)
        os.kill(self.live.process.pid, signal.SIGHUP)

        async def are_replaced() -> bool:
            started = workers_of(self.live)
            return len(started) >= len(before) + _WORKERS and not any(map(_is_alive, before))

        await eventually_async(are_replaced)

    @precondition(lambda self: self.model.state.current)
    @rule()
    def kill_worker(self) -> None:
        """Kill a worker, as the system does without memory."""
        before = workers_of(self.live)

        async def is_replaced() -> bool:
            return len(workers_of(self.live)) > len(before) and not _is_alive(before[-1])

        async def settle() -> None:
            await eventually_async(is_replaced)  # until then it may have the connections of the client
            await self.settle(self.model.state)

        with self.model.changing(self.model.state, may_refuse=True):
            os.kill(before[-1], signal.SIGKILL)
            self.run(settle())
        self.ask()

    async def answers(self, target: str) -> list[httpx.Response]:
        """Return answers of all workers."""
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=self.live.base, timeout=20, limits=limits) as client:
            return [await client.get(target) for _ in range(_IN_A_ROW)]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
