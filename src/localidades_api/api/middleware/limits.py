"""Limits how many requests are handled at once, and refuses those beyond."""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from fastapi import FastAPI
from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api.middleware.response_cache import Field, HeldResponse, ResponseCache
from localidades_api.api.probes import OPERATIONAL
from localidades_api.api.problems import ResponsePreferences, problem_of
from localidades_api.api.route_table import RouteTable, allowed_methods
from localidades_api.database.pool import already_waited, may_use_database
from localidades_api.errors import LocalidadesError, OverloadedError
from localidades_api.http.headers import complete, on_wire
from localidades_api.http.paths import STATIC, is_census, path_of, root_of
from localidades_api.observability.metrics import COUNTERS

_log = logging.getLogger("uvicorn.error")

_QUEUED_PER_SLOT = 4  # and as many whose bodies are on their way
_QUEUE_TIMEOUT = 0.5  # seconds that a request may queue; beyond that, another process would serve it sooner
_LOG_INTERVAL = 10.0  # seconds between two log lines about refusals
_OVERLOADED = OverloadedError()
_NEGOTIATED = (b"accept", b"accept-language")
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestLimit:
    """The requests in flight, and those that wait for a slot."""

    def __init__(self, max_in_flight: int) -> None:
        self._slots = asyncio.Semaphore(max_in_flight)
        self.max_queued = max_in_flight * _QUEUED_PER_SLOT
        self._refused = 0
        self._next_line = 0.0
        self.queued = 0
        self.receiving = 0  # requests whose bodies are on their way

    @property
    def is_full(self) -> bool:
        """Whether a request that comes now is refused, if it needs a slot."""
        return self._slots.locked() and self.queued >= self.max_queued

    async def acquire(self) -> bool:
        """Return whether a slot came free in time."""
        if not self._slots.locked():
            return await self._slots.acquire()  # at once
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

    def release(self) -> None:
        """Free a slot."""
        self._slots.release()

    def refuse(self, scope: Scope) -> HeldResponse:
        """Return the refusal of a request; a log line now and then counts them."""
        self._refused += 1
        if (now := time.monotonic()) >= self._next_line:
            _log.warning("Overloaded: refused %d requests since the last message.", self._refused)
            self._refused, self._next_line = 0, now + _LOG_INTERVAL
        COUNTERS.refused[_OVERLOADED.slug] += 1
        return refusal(scope, _OVERLOADED)


class ConcurrencyLimit:
    """Limits how many requests are handled at once, and how many wait.

    Probes and static files are always admitted: all probes of a second share one read. So are held responses, since the
    response cache comes first. A request that no slot came free for in time goes on without the database: pages in
    memory are answered while it hangs.

    A request holds its slot from the end of its body until its response begins, so slow clients and long downloads hold
    none. (Downloads and answers to rows have another limit, `http.transfers.Transfers`.)
    """

    def __init__(self, app: ASGIApp, limit: RequestLimit) -> None:
        self.app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for a slot and pass on, or refuse."""
        already_waited.set(0.0)  # with pipelining, the task of one request starts the next
        may_use_database.set(True)
        has_body = scope.get("method") not in _WITHOUT_BODY
        if scope["type"] != "http" or not _needs_slot(path_of(scope)):
            await self.app(scope, receive, send)
        elif self._limit.is_full or (has_body and self._limit.receiving >= self._limit.max_queued):
            await self._limit.refuse(scope).send(send)
        elif has_body or await self._limit.acquire():
            await self._pass_on(scope, receive, send, is_receiving=has_body)
        else:
            may_use_database.set(False)
            await self.app(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, *, is_receiving: bool) -> None:
        """Pass on with a slot, or wait for one at the end of the body; release it when the response begins."""
        has_slot = not is_receiving
        self._limit.receiving += is_receiving

        async def receive_and_acquire() -> Message:
            nonlocal has_slot
            message = await receive()
            if is_receiving and not message.get("more_body"):
                end()
                has_slot = await self._limit.acquire()
                may_use_database.set(has_slot)
            return message

        async def send_and_release(message: Message) -> None:
            end()
            await send(message)

        def end() -> None:
            nonlocal has_slot, is_receiving
            self._limit.receiving -= is_receiving
            if has_slot:
                self._limit.release()
            has_slot = is_receiving = False

        try:
            await self.app(scope, receive_and_acquire, send_and_release)
        finally:
            end()


def _needs_slot(path: str) -> bool:
    return path not in OPERATIONAL and not path.startswith(f"{STATIC}/")


class DirectResponses(NamedTuple):
    """Responses that a server can send without calling the application: held ones, and refusals at capacity.

    `serve` finds them in the lifespan's state, unless added middleware must see every request.
    """

    app: FastAPI
    cache: ResponseCache
    limit: RequestLimit

    def refuse(self, target: bytes, fields: Sequence[Field]) -> HeldResponse | None:
        """Return the refusal of a GET request that needs a slot: a task for it would cost more than the refusal."""
        path, _, query = target.partition(b"?")
        name = path.decode("latin-1")
        scope = {"app": self.app, "method": "GET", "path": name, "query_string": query, "headers": fields}
        return self.limit.refuse(scope) if self.limit.is_full and _needs_slot(name) else None


def refusal(scope: Scope, error: LocalidadesError) -> HeldResponse:
    """Return the problem response that routing would make; it is cached, so pass the same `error` every time."""
    query = [part for part in scope["query_string"].split(b"&") if part.startswith((b"format=", b"lang="))]
    headers = [header for header in scope["headers"] if header[0] in _NEGOTIATED]
    allow = allowed_methods(scope) if is_census(scope) else None
    cors = not RouteTable.of(scope).has_cors
    return _make(error, b"&".join(query), tuple(headers), root_of(scope), allow, cors=cors)


@lru_cache(maxsize=64)
def _make(  # keyed by all that the response depends on; clients send a handful of variants
    error: LocalidadesError, query: bytes, headers: tuple[Field, ...], root: str, allow: str | None, *, cors: bool
) -> HeldResponse:
    response = problem_of(error, ResponsePreferences(Headers(raw=list(headers)), QueryParams(query), root))
    complete(response.headers, allow, cors=cors)
    return HeldResponse(response.status_code, on_wire(response.raw_headers), bytes(response.body), "none")
