"""Histories of a service with two workers, asked over connections that are reused, and killed; its clock jumps."""

import asyncio
import os
import signal
from pathlib import Path

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.machine import RELEASE_POLL, Histories
from tests.support.waiting import eventually_async
from tests.support.wire import serving, workers_of

_WORKERS = 2
_IN_A_ROW = 10  # answers on new connections that show the same release, so that both workers do
_FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)  # Debian's package libfaketime


class HistoriesOfWorkers(Histories):
    """Histories of `localidades-api serve`."""

    async def serve(self) -> None:
        """Start the service; it has no release yet, or has one."""
        self.cache.mkdir(exist_ok=True)
        self._clock = self.cache / "clock"
        self._clock.write_text("+0")
        faketime = {
            "LD_PRELOAD": str(_FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        server = serving(
            self.url,
            *("--workers", str(_WORKERS)),
            probe="/livez",
            LOCALIDADES_RELEASE_POLL=str(RELEASE_POLL),
            LOCALIDADES_CACHE_DIR=str(self.cache),
            **(faketime if _FAKETIME else {}),
        )
        self.live = await asyncio.to_thread(self.resources.enter_context, server)
        self.client = await self.service.enter_async_context(httpx.AsyncClient(base_url=self.live.base, timeout=20))

    async def restart_service(self) -> None:
        """Replace the workers one by one."""
        before = workers_of(self.live)
        os.kill(self.live.process.pid, signal.SIGHUP)

        def are_replaced() -> bool:
            started = workers_of(self.live)
            return len(started) >= len(before) + _WORKERS and not any(map(_is_alive, before))

        try:
            await eventually_async(are_replaced)
        except TimeoutError:
            raise AssertionError(self.live.output.read_text()) from None

    @precondition(lambda _: _FAKETIME is not None)
    @rule(seconds=st.sampled_from([-86400, -60, 60, 86400]))
    def set_clock(self, seconds: int) -> None:
        """Set the clock of the service ahead or back; those of the database and of these readers stay."""
        self._clock.write_text(f"{seconds:+}")
        self.ask()

    @rule()
    def kill_worker(self) -> None:
        """Kill a worker, as the system does without memory."""
        before = workers_of(self.live)

        async def settle() -> None:
            # Until it is replaced, it may have the connections of the client.
            await eventually_async(lambda: len(workers_of(self.live)) > len(before) and not _is_alive(before[-1]))
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
