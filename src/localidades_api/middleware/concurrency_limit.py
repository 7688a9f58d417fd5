"""Bounded work: so many requests in hand, so many waiting, and a refusal that costs next to nothing for the rest.

Without a bound a process that is asked for more than it can do takes on everything, answers everything late, and goes
on doing so after the load has gone: most of what it works on is wanted by nobody any more.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque

from starlette.types import Message, Receive, Scope, Send

from localidades_api.errors import OverloadedError
from localidades_api.middleware.cached_pages import RawResponse
from localidades_api.middleware.interface import Middleware, is_operational
from localidades_api.middleware.refusals import refuse, send_ready
from localidades_api.storage.pool import already_waited

_log = logging.getLogger("uvicorn.error")

_QUEUE_TIMEOUT = 0.5  # seconds for a place: whoever has waited that long is better served by another process
_LOG_INTERVAL = 10.0  # seconds between two lines of log about what is refused
_OVERLOADED = OverloadedError()


class _Slot:
    """What a request waits for; its turn ends when the place is given, the client hangs up, or it is too late."""

    def __init__(self, turn: asyncio.Timeout) -> None:
        self.turn = turn
        self.is_given = False

    def give(self) -> None:
        """End the waiting: no task besides the request's own is needed for that."""
        self.is_given = True
        if not self.turn.expired():
            self.turn.reschedule(0)


class ConcurrencyLimit:
    """Lets so many requests in at one time, and so many wait; what is at hand, probes and static files always pass.

    A request is in hand until its answer begins: a client that reads slowly, or a file that is sent for minutes, keeps
    nobody out. (Files have a bound of their own, `downloads.Transfers`.)
    """

    def __init__(self, inner: Middleware, *, max_in_flight: int, max_queued: int) -> None:
        self._inner = inner
        self._max_in_flight = max_in_flight
        self._max_queued = max_queued
        self._waiting: deque[_Slot] = deque()
        self._coming = 0
        self._refused = 0
        self._next_line = 0.0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return len(self._waiting)

    def ready(self, scope: Scope) -> RawResponse | None:
        """Return what is at hand, and where there is no place for more, a refusal."""
        answer = self._inner.ready(scope)
        if answer is None and _needs_place(scope):
            if self._is_full:
                return self._refuse(scope)
            self._expect_one()
        return answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on once there is a place, or refuse."""
        if scope["type"] == "lifespan":
            scope["state"].setdefault("front", self)
        if scope["type"] != "http" or not _needs_place(scope):
            await self._inner(scope, receive, send)
        elif self.in_flight < self._max_in_flight:
            self.in_flight += 1
            await self._pass_on(scope, receive, send)
        elif self._inner.ready(scope):  # what is pipelined has not been asked for what is at hand
            await self._inner(scope, receive, send)
        elif not self._is_full and await self._wait(receive):
            await self._pass_on(scope, receive, send)
        else:
            await send_ready(self._refuse(scope), send)

    @property
    def _is_full(self) -> bool:
        return self.in_flight + len(self._waiting) + self._coming >= self._max_in_flight + self._max_queued

    def _expect_one(self) -> None:
        """Count a request whose task has been made and will run once all have been read that have come by now."""
        if not self._coming:
            asyncio.get_running_loop().call_soon(self._expect_none)
        self._coming += 1

    def _expect_none(self) -> None:
        self._coming = 0

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold the place until the answer begins."""
        has_place = True

        async def send_and_leave(message: Message) -> None:
            nonlocal has_place
            if has_place:
                has_place = False
                self._leave()
            await send(message)

        try:
            await self._inner(scope, receive, send_and_leave)
        finally:
            if has_place:
                self._leave()

    async def _wait(self, receive: Receive) -> bool:
        """Tell whether a place has been given in time, before the client has hung up."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        place = _Slot(asyncio.timeout(_QUEUE_TIMEOUT))
        with contextlib.suppress(TimeoutError):  # it is ended early when a place is given
            try:
                async with place.turn:
                    self._waiting.append(place)
                    await _hang_up(receive)
            except asyncio.CancelledError:
                if place.is_given:
                    self._leave()
                raise
            finally:
                if not place.is_given:
                    self._waiting.remove(place)
                already_waited.set(loop.time() - began)
        return place.is_given

    def _leave(self) -> None:
        """Give the place to whoever has waited longest."""
        if self._waiting:
            self._waiting.popleft().give()
        else:
            self.in_flight -= 1

    def _refuse(self, scope: Scope) -> RawResponse:
        """Refuse, and say so in the log now and then."""
        self._refused += 1
        if (now := time.monotonic()) >= self._next_line:
            _log.warning("Overloaded: %d requests refused since this was said last.", self._refused)
            self._refused, self._next_line = 0, now + _LOG_INTERVAL
        return refuse(scope, _OVERLOADED)


async def _hang_up(receive: Receive) -> None:
    """Return when the client has gone; what else it sends is passed over, for no request here has a body."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _needs_place(scope: Scope) -> bool:
    return not (is_operational(scope) or scope["path"].startswith("/static/"))
