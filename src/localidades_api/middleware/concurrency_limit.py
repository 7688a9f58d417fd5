"""A limit on concurrent requests: some in flight, some queued, and a cheap refusal for the rest.

A process without a limit accepts more requests than it can handle, and answers all of them late. After the load has
gone, it still works on requests whose clients have given up.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.errors import OverloadedError
from localidades_api.http.paths import takes_body
from localidades_api.middleware.refusals import refusal
from localidades_api.observability.metrics import COUNTERS
from localidades_api.router.probes import OPERATIONAL
from localidades_api.storage.pool import already_waited

_log = logging.getLogger("uvicorn.error")

_QUEUE_TIMEOUT = 0.5  # seconds that a request may queue; beyond that, another process would serve it sooner
_LOG_INTERVAL = 10.0  # seconds between two log lines about refusals
_OVERLOADED = OverloadedError()


class _Slot:
    """A queued request; its wait, `turn`, ends when a slot comes free, the client disconnects, or it times out."""

    def __init__(self, turn: asyncio.Timeout) -> None:
        self.turn = turn
        self.is_given = False

    def give(self) -> None:
        """End the wait; expiring its timeout needs no task besides the request's own."""
        self.is_given = True
        if not self.turn.expired():
            self.turn.reschedule(0)


class ConcurrencyLimit:
    """Limits the requests in flight and the requests in the queue.

    Probes, static files and pages of the list that are in memory are always admitted: they need no database.

    A request holds its slot until its response begins, so slow readers and long downloads hold none. (Downloads have a
    limit of their own, `http.transfers.Transfers`.)
    """

    def __init__(
        self, app: ASGIApp, is_in_memory: Callable[[Scope], bool], *, max_in_flight: int, max_queued: int
    ) -> None:
        self._app = app
        self._is_in_memory = is_in_memory
        self._max_in_flight = max_in_flight
        self._max_queued = max_queued
        self._waiting: deque[_Slot] = deque()
        self._refused = 0
        self._next_line = 0.0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a slot."""
        return len(self._waiting)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for a slot and pass on, or refuse."""
        if scope["type"] != "http" or not self._needs_slot(scope):
            await self._app(scope, receive, send)
        elif self.in_flight < self._max_in_flight:
            self.in_flight += 1
            await self._pass_on(scope, receive, send)
        elif not self._is_full and await self._wait(scope, receive):
            await self._pass_on(scope, receive, send)
        else:
            await self._refuse(scope)(scope, receive, send)

    def _needs_slot(self, scope: Scope) -> bool:
        return not (scope["path"] in OPERATIONAL or scope["path"].startswith("/static/") or self._is_in_memory(scope))

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= self._max_queued

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and release the slot when the response begins."""
        has_slot = True

        async def send_and_leave(message: Message) -> None:
            nonlocal has_slot
            if has_slot:
                has_slot = False
                self._leave()
            await send(message)

        try:
            await self._app(scope, receive, send_and_leave)
        finally:
            if has_slot:
                self._leave()

    async def _wait(self, scope: Scope, receive: Receive) -> bool:
        """Return whether a slot came free in time, before the client disconnected."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        slot = _Slot(asyncio.timeout(_QUEUE_TIMEOUT))
        with contextlib.suppress(TimeoutError):  # `give` makes it expire early
            try:
                async with slot.turn:
                    self._waiting.append(slot)
                    await _hang_up(scope, receive)
            except asyncio.CancelledError:
                if slot.is_given:
                    self._leave()
                raise
            finally:
                if not slot.is_given:
                    self._waiting.remove(slot)
                already_waited.set(loop.time() - began)
        return slot.is_given

    def _leave(self) -> None:
        """Pass the slot to the request that has waited longest, or free it."""
        if self._waiting:
            self._waiting.popleft().give()
        else:
            self.in_flight -= 1

    def _refuse(self, scope: Scope) -> Response:
        """Refuse, and log a count of refusals now and then."""
        self._refused += 1
        if (now := time.monotonic()) >= self._next_line:
            _log.warning("Overloaded: refused %d requests since the last message.", self._refused)
            self._refused, self._next_line = 0, now + _LOG_INTERVAL
        COUNTERS.refused[_OVERLOADED.slug] += 1
        return refusal(scope, _OVERLOADED)


async def _hang_up(scope: Scope, receive: Receive) -> None:
    """Return when the client has disconnected; never for a request whose body is read later."""
    if takes_body(scope):
        await asyncio.Event().wait()
    while (await receive())["type"] != "http.disconnect":
        pass
