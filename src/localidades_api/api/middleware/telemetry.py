"""Counts and logs requests, and logs errors that nothing handles."""

import os
from itertools import count
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.paths import REQUEST_ID, ROOT, operation_of
from localidades_api.observability.faults import FAULTS, cause, is_refused
from localidades_api.observability.logging import Line, log_request, request_id
from localidades_api.observability.metrics import COUNTERS
from localidades_api.settings import Settings

_FAULT = 500  # from this status on, a call always logs the request and adds its id to the response


class Telemetry:
    """Counts and logs requests, and logs errors that nothing handles."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._log_format = settings.log_format
        self._logs_all = settings.access_log
        self._process = os.urandom(4).hex()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, then count and log the response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        id_ = scope[REQUEST_ID] = self._next_id()
        scope[ROOT] = scope.get("root_path", "")
        for name in ("endpoint", "route"):  # of an application that this one is mounted in
            scope.pop(name, None)
        request_id.set(id_)
        cause.set(None)  # with pipelining, the task of one request starts the next
        is_refused.set(False)
        watch = _Watch(id_, send)
        COUNTERS.in_flight += 1
        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            cause.set(FAULTS.report(error, "%s: An unexpected error", _FAULT, traceback=True))
            raise
        finally:
            COUNTERS.in_flight -= 1
            seconds = perf_counter() - watch.began
            operation = operation_of(scope)
            COUNTERS.count(operation, watch.status, seconds)
            if self._logs_all or (watch.status >= _FAULT and not is_refused.get()):
                fields = (watch.status, seconds * 1000, watch.release, watch.bytes, cause.get())
                log_request(Line(id_, scope["method"], operation, *fields), self._log_format)

    def _next_id(self) -> str:
        """Return an id that is unique among the requests of all workers."""
        return f"{self._process}-{next(self._numbers):x}"


class _Watch:
    """The `send` of one request: records the response, and adds the request's id to a server error."""

    def __init__(self, id_: str, send: Send) -> None:
        self._id = id_
        self._send = send
        self.began = perf_counter()
        self.status = _FAULT  # of an exception without a response
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
