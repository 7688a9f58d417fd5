"""Timeouts of a connection: how long a client may take.

A client has a time limit for each step: to send a request, to finish one that it began, to read its response. One timer
per connection checks every few seconds which limit applies, and since when. A request costs only a timestamp.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from localidades_api.errors import RequestTimeoutError
from localidades_api.http.clients import bytes_unread
from localidades_api.server.protocol import HttpProtocol

if TYPE_CHECKING:
    import asyncio

_LINGERING_TIMEOUT = 5.0  # seconds for a client that is still sending to read why it was refused (RFC 9112 §9.6)


class TimeoutProtocol(HttpProtocol):
    """Closes the connections of slow clients.

    uvicorn waits for ever for the rest of a request, and for a client that does not read.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401  # passed on
        header_timeout: float,
        keep_alive_timeout: float,
        send_timeout: float,
        **options: Any,  # noqa: ANN401  # as above
    ) -> None:
        super().__init__(*arguments, **options)
        self._header_timeout = header_timeout
        self._keep_alive_timeout = keep_alive_timeout
        self._send_timeout = send_timeout
        # A limit that begins to apply after a check can't be exceeded before the next one.
        self._check_interval = min(header_timeout, send_timeout, keep_alive_timeout, _LINGERING_TIMEOUT)
        self._unsent, self._unsent_since = 0, 0.0

    def connection_made(self, transport: "asyncio.Transport") -> None:  # type: ignore[override]  # as in uvicorn
        """Start the timer."""
        super().connection_made(transport)
        self._next_check = self.loop.call_later(self._check_interval, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._next_check.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Close the connection if a time limit has passed."""
        now = self.loop.time()
        due, end = self._deadline(now)
        if due <= now:
            end()
            due = math.inf
        self._next_check = self.loop.call_at(min(due, now + self._check_interval), self._check)

    def _deadline(self, now: float) -> tuple[float, Callable[[], None]]:
        """Return when the client's time limit passes, by the event loop's clock, and what to call then."""
        if unsent := bytes_unread(self.transport):
            if unsent != self._unsent:
                self._unsent, self._unsent_since = unsent, now
            return self._unsent_since + self._send_timeout, self.transport.abort
        self._unsent = 0
        if self._is_answering():
            return math.inf, self.transport.abort
        if self._leaving:
            return self._since + _LINGERING_TIMEOUT, self.transport.abort
        if self.scope is not self._whole:
            return self._since + self._header_timeout, self._time_out
        timeout = self._keep_alive_timeout if self._has_asked() else self._header_timeout
        return self._since + timeout, self.transport.close

    def _has_asked(self) -> bool:
        """Tell whether the head of a request has come: until then uvicorn has no cycle, despite its annotation."""
        return bool(self.cycle)

    def _time_out(self) -> None:
        """Refuse and close at once: a client that has sent so little can read the refusal even without lingering."""
        self._refuse(RequestTimeoutError())
        self.transport.close()
