"""Responses that need no waiting, written where uvicorn would start a task for the application."""

from typing import TYPE_CHECKING, Any, cast

from localidades_api.http.headers import on_wire
from localidades_api.http.raw_response import RawResponse
from localidades_api.http.uvicorn_internals import STATUS_LINE, ASGI3Application, RequestResponseCycle
from localidades_api.middleware import Middleware
from localidades_api.server.timeouts import TimeoutProtocol

if TYPE_CHECKING:
    from starlette.types import Scope


# On a connection, whose client then opens another: the worker that has least to do is first to take it (decision 0014).
_MAX_REQUESTS = 1000
_DRAIN_TIMEOUT = 1.0  # seconds that a connection stays open for another request once shutdown begins
_MAX_COPIED_BODY = 16 * 1024  # bytes; copying a larger body behind its head takes longer than sending two buffers


class _DefaultHeaders:
    """The headers that uvicorn replaces once a second, such as Date, encoded."""

    def __init__(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._lines = b""

    def lines(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Return the lines of a list of headers; only a list other than the last one is encoded."""
        if headers is not self._headers:
            self._headers, self._lines = headers, on_wire(headers)
        return self._lines


_DEFAULT_HEADERS = _DefaultHeaders()


class CachedResponseProtocol(TimeoutProtocol):
    """Writes the responses that middleware has ready straight to the transport.

    uvicorn checks and copies each header of a response, and starts a task for each request. For a cached page, that
    was more than half of all work (decision 0007).
    """

    def __init__(self, *arguments: Any, middleware: Middleware, **options: Any) -> None:  # noqa: ANN401  # passed on
        super().__init__(*arguments, **options)
        self._middleware = middleware
        self._requests = 0

    def shutdown(self) -> None:
        """Close after the next response, which says so, or after a second without a request.

        A connection that looks idle may have a request on its way. Closing it at once would lose that request.
        """
        self._limit.is_draining = True
        self.loop.call_later(_DRAIN_TIMEOUT, super().shutdown)

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: "ASGI3Application") -> None:
        """Write the middleware's response, or have the application respond."""
        self._requests += 1
        if self._limit.is_draining or self._requests == _MAX_REQUESTS:
            cycle.keep_alive = False
        response = self._middleware.try_respond(cast("Scope", cycle.scope))
        if response is None:
            super()._start_asgi_task(cycle, app)
        elif self.pipeline or self.flow.write_paused or self.transport.is_closing() or self._last:
            # Written here, pipelined responses would start one another, each a few frames deeper in the stack.
            super()._start_asgi_task(cycle, cast("ASGI3Application", response))
        else:
            self._write(cycle, response)

    def _write(self, cycle: "RequestResponseCycle", response: RawResponse) -> None:
        defaults = _DEFAULT_HEADERS.lines(self.server_state.default_headers)
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        head = b"".join((STATUS_LINE[response.status], defaults, *response.headers, end))
        if len(response.body) <= _MAX_COPIED_BODY:
            self.transport.write(head + response.body)
        else:
            self.transport.writelines((head, response.body))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
