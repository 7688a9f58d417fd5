"""The log of this service and uvicorn, on stderr: lines of text, or JSON objects.

Of what clients send it has the method alone: requests are named by operation, not by path.
"""

import asyncio
import json
import logging
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from localidades_api.observability.faults import cause

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_OURS = ("localidades_api", "uvicorn")  # libraries log warnings only
_MAX_WRITE = 4096  # PIPE_BUF: bytes that a pipe takes in one piece, so that lines of several workers never mix
_FLUSH_INTERVAL = 0.2  # seconds that the line of a request may wait for others


class Line(NamedTuple):
    """The log line of a request, with its fields in order."""

    id: str
    method: str
    operation: str
    status: int
    milliseconds: float
    release: str | None
    bytes: int
    cause: str | None = None  # of a failure (`faults`)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a JSON object; an error has its traceback."""
        fields: dict[str, Any] = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if id_ := request_id.get():
            fields["id"] = id_
        if cause := getattr(record, "cause", None):
            fields["cause"] = cause
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


class ConsoleFormatter(logging.Formatter):
    """One line of text a record, followed by the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        id_ = request_id.get()
        cause = getattr(record, "cause", None)
        end = f"{f' cause {cause}' if cause else ''}{f' [{id_}]' if id_ else ''}"
        text = f"{timestamp(record.created)} {record.levelname.lower():<7} {record.getMessage()}{end}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _UnreportedErrors(logging.Filter):
    """Drops uvicorn's record of an error that the telemetry has logged: once, and then only how often it came again."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to keep a record."""
        return not (record.exc_info and record.getMessage().startswith("Exception in ASGI") and cause.get())


class RequestLog:
    """Writes the lines of several requests at a time: that takes 2 µs each, and a record of `logging` 15."""

    def __init__(self, form: Literal["console", "json"]) -> None:
        self._write = _as_json if form == "json" else _as_text
        self._lines: list[str] = []

    def add(self, line: Line) -> None:
        """Queue a line, to be written soon."""
        if not self._lines:
            asyncio.get_running_loop().call_later(_FLUSH_INTERVAL, self.flush)
        self._lines.append(self._write(line))

    def flush(self) -> None:
        """Write the queued lines."""
        lines, self._lines = self._lines, []
        piece: list[str] = []
        length = 0
        for line in lines:
            if length + len(line) > _MAX_WRITE:
                _write(piece)
                piece, length = [], 0
            piece.append(line)
            length += len(line)
        _write(piece)


def _write(lines: list[str]) -> None:
    with suppress(OSError):  # nobody reads stderr any more; requests go on
        sys.stderr.write("".join(lines))
        sys.stderr.flush()


def _as_json(line: Line) -> str:
    """Write a line as JSON by hand, in a fifth of the time; every text is plain ASCII and needs no escape."""
    release = f'"{line.release}"' if line.release else "null"
    cause = f',"cause":{json.dumps(line.cause)}' if line.cause else ""
    return (
        f'{{"time":"{timestamp(time.time())}","level":"{_level(line)}","id":"{line.id}","method":"{line.method}",'
        f'"operation":"{line.operation}","status":{line.status},"milliseconds":{line.milliseconds:.3f},'
        f'"release":{release},"bytes":{line.bytes}{cause}}}\n'
    )


def _as_text(line: Line) -> str:
    cause = f" cause {line.cause}" if line.cause else ""
    return (
        f"{timestamp(time.time())} {_level(line):<7} {line.method} {line.operation} {line.status}"
        f" {line.milliseconds:.3f} ms {line.bytes} B {line.release or '-'}{cause} [{line.id}]\n"
    )


def _level(line: Line) -> str:
    # The startup probe is repeated until it succeeds.
    return "error" if line.status >= 500 and line.operation != "get_startup" else "info"  # noqa: PLR2004  # HTTP's


def timestamp(moment: float) -> str:
    """Format a Unix time by RFC 3339, to the millisecond."""
    second = int(moment)
    return f"{_written(second)}.{int((moment - second) * 1000):03d}Z"


@lru_cache(maxsize=2)
def _written(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def log_config(form: Literal["console", "json"]) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`."""
    formatter = JsonFormatter if form == "json" else ConsoleFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"default": {"()": formatter}},
        "filters": {"unreported": {"()": _UnreportedErrors}},
        "handlers": {"default": {"class": "logging.StreamHandler", "formatter": "default", "filters": ["unreported"]}},
        "root": {"handlers": ["default"], "level": "WARNING"},
        "loggers": {name: {"level": "INFO"} for name in _OURS},
    }
