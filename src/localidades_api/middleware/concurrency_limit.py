"""A limit on concurrent requests: some in flight, some queued, and a cheap refusal for the rest.

A process without a limit accepts more requests than it can handle, and answers all of them late. After the load has
gone, it still works on requests whose clients have given up.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api.probes import OPERATIONAL
from localidades_api.database.pool import already_waited
from localidades_api.errors import OverloadedError
from localidades_api.middleware.refusals import refusal
from localidades_api.observability.metrics import COUNTERS
from localidades_api.response_cache import Field, HeldResponse

STATE = "concurrency_limit"  # key of the limit in the lifespan's state, where the server finds it

_log = logging.getLogger("uvicorn.error")

_QUEUED_PER_SLOT = 4
_QUEUE_TIMEOUT = 0.5  # seconds that a request may queue; beyond that, another process would serve it sooner
_LOG_INTERVAL = 10.0  # seconds between two log lines about refusals
_OVERLOADED = OverloadedError()


class ConcurrencyLimit:
    """Limits the requests in flight and the requests in the queue.

    Probes, static files and pages of the list that are in memory are always admitted: they need no database.

    A request holds its slot until its response begins, so slow readers and long downloads hold none. (Downloads have a
    limit of their own, `http.transfers.Transfers`.)
    """

    def __init__(self, app: ASGIApp, is_in_memory: Callable[[Scope], bool], max_in_flight: int) -> None:
        self._app = app
        self._is_in_memory = is_in_memory
        self._slots = asyncio.Semaphore(max_in_flight)
        self._max_queued = max_in_flight * _QUEUED_PER_SLOT
        self._refused = 0
        self._next_line = 0.0
        self.queued = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for a slot and pass on, or refuse."""
        if scope["type"] == "lifespan" and "state" in scope:
            scope["state"][STATE] = self
        if scope["type"] != "http" or not self._needs_slot(scope):
            await self._app(scope, receive, send)
        elif await self._take_slot():
            await self._pass_on(scope, receive, send)
        else:
            await self._refuse(scope).send(send)

    @property
    def is_full(self) -> bool:
        """Whether a request that comes now is refused, if it needs a slot."""
        return self._slots.locked() and self.queued >= self._max_queued

    def refuse(self, target: bytes, fields: Sequence[Field]) -> HeldResponse | None:
        """Return the refusal of a GET request that needs a slot: a task for it would cost more than the refusal."""
        path, _, query = target.partition(b"?")
        scope = {"method": "GET", "path": path.decode("latin-1"), "query_string": query, "headers": fields}
        return self._refuse(scope) if self._needs_slot(scope) else None

    def _needs_slot(self, scope: Scope) -> bool:
        return not (scope["path"] in OPERATIONAL or scope["path"].startswith("/static/") or self._is_in_memory(scope))

    async def _take_slot(self) -> bool:
        """Return whether a slot came free in time."""
        if not self._slots.locked():
            return await self._slots.acquire()  # at once
        if self.is_full:
            return False
        began = time.monotonic()
        self.queued += 1
        try:
            async with asyncio.timeout(_QUEUE_TIMEOUT):
                return await self._slots.acquire()
        except TimeoutError:
            return False
        finally:
            self.queued -= 1
            already_waited.set(time.monotonic() - began)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and release the slot when the response begins."""
        has_slot = True

        async def send_and_release(message: Message) -> None:
            nonlocal has_slot
            if has_slot:
                has_slot = False
                self._slots.release()
            await send(message)

        try:
            await self._app(scope, receive, send_and_release)
        finally:
            if has_slot:
                self._slots.release()

    def _refuse(self, scope: Scope) -> HeldResponse:
        """Refuse, and log a count of refusals now and then."""
        self._refused += 1
        if (now := time.monotonic()) >= self._next_line:
            _log.warning("Overloaded: refused %d requests since the last message.", self._refused)
            self._refused, self._next_line = 0, now + _LOG_INTERVAL
        COUNTERS.refused[_OVERLOADED.slug] += 1
        return refusal(scope, _OVERLOADED)
