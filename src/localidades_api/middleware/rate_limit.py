"""A limit on each client's requests per time window, with headers (draft-ietf-httpapi-ratelimit-headers-11).

The library `limits` was tried. Its memory is unbounded, and one of its threads scans all of it every hundredth of a
second. With 100,000 addresses, this stops the event loop for tens of milliseconds.
"""

import time

from cachetools import LRUCache
from starlette.types import Message, Receive, Scope, Send

from localidades_api.errors import TooManyRequestsError
from localidades_api.http.clients import MAX_CLIENTS, client_of
from localidades_api.http.headers import on_wire
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.interface import Middleware, is_operational
from localidades_api.middleware.refusals import refuse

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_NANOSECONDS = 1_000_000_000  # in a second
_TAKEN = "localidades.rate_limit"  # in the scope once the request has been counted: a `_Taken`
_EXCEEDED = TooManyRequestsError()

_Taken = tuple[int, int]  # requests left, negative if over the limit; seconds until the window ends


class _Window:
    """A client's requests in one time window, which ends at `ends` (monotonic nanoseconds)."""

    __slots__ = ("ends", "used")

    def __init__(self, ends: int) -> None:
        self.ends = ends
        self.used = 0


class RateLimit:
    """Counts each client's requests in windows that begin with its first, and refuses those beyond `limit`.

    A limit is written as `600/minute`. Each process counts separately. Probes and scrapes of metrics are not counted.
    """

    def __init__(self, inner: Middleware, limit: str) -> None:
        quota, _, unit = limit.partition("/")
        self._inner = inner
        self._quota, self._seconds = int(quota), _SECONDS[unit]
        self._windows: LRUCache[bytes | str, _Window] = LRUCache(MAX_CLIENTS)  # some 20 MB
        self._policy = (b"ratelimit-policy", b'"default";q=%d;w=%d' % (self._quota, self._seconds))

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Count the request, then refuse it or ask the inner middleware; add the headers to the response."""
        if is_operational(scope):
            return self._inner.try_respond(scope)
        taken = scope[_TAKEN] = self._take(scope)
        if taken[0] < 0:
            return self._refuse(scope, taken)
        answer = self._inner.try_respond(scope)
        return answer and answer._replace(headers=(*answer.headers, on_wire(self._headers(taken))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add the headers to the response."""
        taken: _Taken | None = scope.get(_TAKEN)
        if taken is None:
            await self._inner(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers(taken)]}
            await send(message)

        await self._inner(scope, receive, send_with_headers)

    def _take(self, scope: Scope) -> _Taken:
        client = client_of(scope)
        now = time.monotonic_ns()
        window = self._windows.get(client)
        if window is None or window.ends <= now:
            window = self._windows[client] = _Window(now + self._seconds * _NANOSECONDS)
        window.used += window.used <= self._quota
        return self._quota - window.used, -((now - window.ends) // _NANOSECONDS)  # rounded up

    def _headers(self, taken: _Taken) -> list[tuple[bytes, bytes]]:
        return [self._policy, (b"ratelimit", b'"default";r=%d;t=%d' % (max(taken[0], 0), taken[1])), _EXPOSED]

    def _refuse(self, scope: Scope, taken: _Taken) -> RawResponse:
        answer = refuse(scope, _EXCEEDED)
        headers = [*self._headers(taken), (b"retry-after", b"%d" % taken[1])]
        return answer._replace(headers=(*answer.headers, on_wire(headers)))


# Lets scripts of other origins read the headers; sent in addition to the API's own.
_EXPOSED = (b"access-control-expose-headers", b"RateLimit, RateLimit-Policy")
