"""What goes wrong while requests are answered: each cause is written down once, and then counted.

A fault can last, and each request can meet it: a line for each, or even a traceback, would be most of the work and fill
the disk. The line of a request (`logs.RequestLog`) has the name of its cause, by which the log has the rest.
"""

import logging
import time
from contextvars import ContextVar
from pathlib import Path
from zlib import crc32

_log = logging.getLogger(__name__)

_LOG_INTERVAL = 60.0  # seconds between two lines about one cause
_REFUSED = "42"  # SQLSTATE's class of statements that a server won't run: its text names tables and columns only

cause: ContextVar[str | None] = ContextVar("cause", default=None)  # of the fault that the request met


class _Seen:
    """A cause that was written down, and how often it came again since its last line."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.again = 0
        self.since = time.monotonic()


class Faults:
    """Writes down causes; only the event loop's thread may touch it.

    There are as many of them as there are places that raise errors: what clients send is in no name.
    """

    def __init__(self, interval: float = _LOG_INTERVAL) -> None:
        self._interval = interval
        self._seen: dict[str, _Seen] = {}

    def report(self, error: BaseException, message: str, *values: object, traceback: bool) -> str:
        """Log what went wrong with its cause, unless this cause was logged before; return the name of the cause."""
        name = name_cause(error)
        seen = self._seen.get(name)
        if seen is None:
            self._seen[name] = _Seen(message % values)
            _log.error(message, *values, exc_info=error if traceback else None, extra={"cause": name})
        else:
            seen.again += 1
        return name

    def sweep(self, *, everything: bool = False) -> None:
        """Log how often causes came again within the interval, and forget those that did not."""
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
    """Return a name for what an error comes from: `ConnectionRefusedError@tasks.py:123`."""
    while error.__cause__ and not isinstance(error, TimeoutError):  # whose cause is only how it was told
        error = error.__cause__
    name = type(error).__name__
    if sqlstate := getattr(error, "sqlstate", None):  # of a server: where it was read says nothing
        return f"{name}-{crc32(str(error).encode()):08x}" if sqlstate.startswith(_REFUSED) else name
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{name}@{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else name
