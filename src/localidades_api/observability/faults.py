"""Logs the causes of failed requests: each cause once, and then only how often it came again.

A fault can last and fail every request. A line for each, or even a traceback, would be most of the work and fill the
disk. The log line of a request (`logging.log_request`) has the name of the cause, which leads to the rest.
"""

import logging
import time
from contextvars import ContextVar
from pathlib import Path
from zlib import crc32

_log = logging.getLogger(__name__)

_LOG_INTERVAL = 60.0  # seconds between two lines about the same cause
_REFUSED = "42"  # class of SQLSTATE for refused statements, whose text names only tables and columns

cause: ContextVar[str | None] = ContextVar("cause", default=None)  # of the failure of this request
is_refused: ContextVar[bool] = ContextVar("is_refused", default=False)  # this request, as others that were logged


class _Seen:
    """A cause that was logged, and how often it came again since its last line."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.again = 0
        self.since = time.monotonic()


class Faults:
    """Logs causes; only for the thread of the event loop.

    The number of causes is bounded by the places that raise errors, because no name has anything that clients send.
    """

    def __init__(self, interval: float = _LOG_INTERVAL) -> None:
        self._interval = interval
        self._seen: dict[str, _Seen] = {}

    def report(self, error: BaseException, message: str, *values: object, traceback: bool) -> str:
        """Log an error, unless its cause was logged before; return the name of the cause."""
        name = name_cause(error)
        seen = self._seen.get(name)
        if seen is None:
            self._seen[name] = _Seen(message % values)
            _log.error(message, *values, exc_info=error if traceback else None, extra={"cause": name})
        else:
            seen.again += 1
        return name

    def sweep(self, *, everything: bool = False) -> None:
        """Log how often each cause came again within the interval, and forget those that did not."""
        now = time.monotonic()
        for name, seen in list(self._seen.items()):
            seconds = now - seen.since
            if seconds < self._interval and not everything:
                continue
            if seen.again:
                _log.error("Again %d times in %.0f s: %s", seen.again, seconds, seen.message, extra={"cause": name})
                seen.again, seen.since = 0, now
            else:
                del self._seen[name]


FAULTS = Faults()


def name_cause(error: BaseException) -> str:
    """Return a name for the cause of an error, such as `ConnectionRefusedError@tasks.py:123`."""
    while error.__cause__ and not isinstance(error, TimeoutError):  # raised from a CancelledError, which says nothing
        error = error.__cause__
    name = type(error).__name__
    if sqlstate := getattr(error, "sqlstate", None):  # raised by a server, so the line that read it says nothing
        return f"{name}-{crc32(str(error).encode()):08x}" if sqlstate.startswith(_REFUSED) else name
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{name}@{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else name
