"""The middleware between server and routing, from the outside in: telemetry, management port, limit on requests."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import count
from time import perf_counter
from urllib.parse import parse_qsl

from fastapi import FastAPI
from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api import Services
from localidades_api.api.probes import OPERATIONAL
from localidades_api.api.problems import ResponsePreferences, problem_of
from localidades_api.database.pool import already_waited
from localidades_api.errors import LocalidadesError, NotFoundError, OverloadedError
from localidades_api.html.renderer import root_of
from localidades_api.http.headers import complete, on_wire
from localidades_api.http.paths import LOCALIDADES, allowed, is_api, operation_of
from localidades_api.observability.faults import cause
from localidades_api.observability.logging import Line, RequestLog, request_id
from localidades_api.observability.metrics import COUNTERS
from localidades_api.response_cache import CachedResponses, Field, HeldResponse
from localidades_api.settings import Settings

STATE = "concurrency_limit"  # key of the limit in the lifespan's state, where the server finds it

_log = logging.getLogger("uvicorn.error")

_QUEUED_PER_SLOT = 4
_QUEUE_TIMEOUT = 0.5  # seconds that a request may queue; beyond that, another process would serve it sooner
_LOG_INTERVAL = 10.0  # seconds between two log lines about refusals
_OVERLOADED = OverloadedError()
_MAX_QUERY = 200  # bytes; no plain query for a page is longer
_FAULT = 500  # from this status on, a call always logs the request and adds its id to the response
_NOT_FOUND = NotFoundError("There is nothing at this address.")
_NEGOTIATED = (b"accept", b"accept-language")


def build_middleware_stack(app: FastAPI, settings: Settings) -> ASGIApp:
    """Build the middleware that the settings enable, from the inside out, and return the outermost."""
    limit = ConcurrencyLimit(app, partial(_is_page_in_memory, app), settings.max_in_flight)
    stack: ASGIApp = CachedResponses(limit)
    if settings.management_port is not None:
        stack = ManagementPort(stack, settings.management_port)
    return Telemetry(stack, settings)


class Telemetry:
    """Counts and logs requests."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._log = RequestLog(settings.log_format)
        self._logs_all = settings.access_log
        self._process = os.urandom(4).hex()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, then count and log the response."""
        if scope["type"] != "http":
            await self._observe(scope, receive, send)
            return
        id_ = self._next_id()
        request_id.set(id_)
        cause.set(None)  # with pipelining, the task of one request starts the next
        watch = _Watch(id_, send)
        COUNTERS.in_flight += 1
        try:
            await self._app(scope, receive, watch)
        finally:
            COUNTERS.in_flight -= 1
            seconds = perf_counter() - watch.began
            operation = operation_of(scope)
            COUNTERS.count(operation, watch.status, seconds)
            if self._logs_all or watch.status >= _FAULT:
                told = (watch.status, seconds * 1000, watch.release, watch.bytes, cause.get())
                self._log.add(Line(id_, scope["method"], operation, *told))

    async def _observe(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        finally:
            self._log.flush()

    def _next_id(self) -> str:
        """Return an id that is unique among the requests of all workers."""
        return f"{self._process}-{next(self._numbers):x}"


class _Watch:
    """The `send` of one request: records the response, and adds the request's id to a server error."""

    def __init__(self, id_: str, send: Send) -> None:
        self._id = id_
        self._send = send
        self.began = perf_counter()
        self.status = _FAULT  # what the server sends after an exception without a response
        self.bytes = 0
        self._headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, message: Message) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._headers = list(message.get("headers", ()))
            if self.status >= _FAULT:
                message = {**message, "headers": [*self._headers, (b"x-request-id", self._id.encode())]}
        elif message["type"] == "http.response.body":
            self.bytes += len(message.get("body", b""))
        await self._send(message)

    @property
    def release(self) -> str | None:
        """The release that the response comes from, by its header."""
        return next((value.decode("latin-1") for name, value in self._headers if name == b"catalogue-release"), None)


class ManagementPort:
    """Serves probes and metrics on the management port only, and nothing else there."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or respond with 404 on the wrong port."""
        is_wrong = scope["type"] == "http" and (scope["server"][1] == self._port) != (scope["path"] in OPERATIONAL)
        if is_wrong:
            await refusal(scope, _NOT_FOUND).send(send)
        else:
            await self._app(scope, receive, send)


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


def _is_page_in_memory(app: FastAPI, scope: Scope) -> bool:
    """Tell whether a request is plainly for a page that routing answers from the page cache, as JSON.

    False for any request that is not recognized, which may then wait for the database.
    """
    if scope["path"] != LOCALIDADES or scope["method"] != "GET" or len(scope["query_string"]) > _MAX_QUERY:
        return False
    if any(name == b"accept" and b"html" in value for name, value in scope["headers"]):
        return False
    services: Services = app.state.services
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    served, page = services.releases.served, query.pop("page", "1")
    if served is None or query.items() - {("format", "json"), ("release", served.name)} or not page.isdecimal():
        return False
    held = services.pages.held(served)
    return held is not None and 0 < int(page) < len(held.pages) and held.pages[int(page)] is not None


def refusal(scope: Scope, error: LocalidadesError) -> HeldResponse:
    """Return the problem response that routing would make; it is cached, so pass the same `error` every time."""
    query = [part for part in scope["query_string"].split(b"&") if part.startswith((b"format=", b"lang="))]
    headers = [header for header in scope["headers"] if header[0] in _NEGOTIATED]
    allow = allowed(scope["path"]) if is_api(scope) else None
    return _make(error, b"&".join(query), tuple(headers), root_of(scope), allow)


@lru_cache(maxsize=64)
def _make(  # takes all that the response depends on; clients send a handful of variants
    error: LocalidadesError, query: bytes, headers: tuple[tuple[bytes, bytes], ...], root: str, allow: str | None
) -> HeldResponse:
    response = problem_of(error, ResponsePreferences(Headers(raw=list(headers)), QueryParams(query), root))
    complete(response.headers, allow)
    return HeldResponse(response.status_code, on_wire(response.raw_headers), bytes(response.body), "none")
