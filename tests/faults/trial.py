"""A trial: the service under load during a fault, and the checks that every fault must pass."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from tests.faults.load import Load, Question, load
from tests.support.machine import open_files
from tests.support.waiting import eventually_async
from tests.support.wire import Live

POOL_SIZE = 6
RECOVERED_WITHIN = 5.0  # seconds, as the service promises
_ORDINARY = 1.0  # minimal seconds of traffic before the fault
_SETTLED = 1.5  # seconds without a refusal that end the recovery
_PATIENCE = 10.0


class Counted(Protocol):
    """A server that counts the service's connections."""

    async def service_connections(self) -> int:
        """Return their number."""


@dataclass
class Trial:
    """A service under load during a fault of its database."""

    load: Load
    returned: float | None = None  # by the load's clock

    async def ordinary(self) -> None:
        """Let it run for a while before the fault; every request is answered."""
        await asyncio.sleep(_ORDINARY)
        # A machine that stalled for this second has answered nothing yet.
        await eventually_async(self._has_outcomes)
        assert self.load.count("answered") == len(self.load.outcomes)

    async def recovered(self) -> None:
        """Note that the database is back, and wait until every request has been answered for a while."""
        self.returned = began = self.load.clock()
        while self.load.clock() - began < RECOVERED_WITHIN + _PATIENCE:
            await asyncio.sleep(0.05)
            since = self.load.clock() - _SETTLED
            ended = [outcome for outcome in self.load.outcomes if outcome.ended >= since]
            if since > began and ended and all(outcome.kind == "answered" for outcome in ended):
                return

    async def _has_outcomes(self) -> bool:
        return bool(self.load.outcomes)

    @property
    def recovery(self) -> float:
        """Return the seconds from the database's return to the end of the last refused request."""
        began = self.returned or float("inf")
        return max((o.ended - began for o in self.load.outcomes if o.kind != "answered" and o.sent >= began), default=0)


@asynccontextmanager
async def trial(live: Live, questions: Sequence[Question], *servers: Counted, rate: float = 40) -> AsyncIterator[Trial]:
    """Send requests while the block causes a fault, and check the invariants."""
    descriptors = open_files(live)
    tried = Trial(Load())
    async with load(tried.load, live.base, questions, rate):
        yield tried
    assert not tried.load.wrong(), tried.load.wrong()
    assert tried.recovery <= RECOVERED_WITHIN
    assert all(outcome.kind == "answered" for outcome in tried.load.outcomes if outcome.question.is_held)
    assert live.process.poll() is None
    await _assert_nothing_leaks(live, servers, descriptors)


async def _assert_nothing_leaks(live: Live, servers: Sequence[Counted], descriptors: int) -> None:
    """Wait until the service has no more connections and files than it may; abandoned ones end by themselves."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        connections = sum([await server.service_connections() for server in servers])
        opened = open_files(live) - descriptors
        if connections <= POOL_SIZE and opened <= POOL_SIZE:
            return
        assert time.monotonic() < deadline, f"{connections} connections, {opened} more descriptors than before"
        await asyncio.sleep(0.1)
