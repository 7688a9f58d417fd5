"""The log of this service and uvicorn, on stderr: lines of text, or JSON objects.

Of what clients send it has the method alone: requests are named by operation, not by path.
"""

import json
import logging
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

from localidades_api.observability.faults import cause

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_OURS = ("localidades_api", "uvicorn")  # libraries log warnings only


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


def log_request(line: Line, form: Literal["console", "json"]) -> None:
    """Write the line of a request, in one piece: lines of several workers never mix."""
    # The startup probe is repeated until it succeeds.
    level = "error" if line.status >= 500 and line.operation != "get_startup" else "info"  # noqa: PLR2004  # HTTP's
    if form == "json":
        fields = line._replace(milliseconds=round(line.milliseconds, 3))._asdict()
        if line.cause is None:
            del fields["cause"]
        text = json.dumps({"time": timestamp(time.time()), "level": level, **fields}, separators=(",", ":"))
    else:
        cause = f" cause {line.cause}" if line.cause else ""
        text = (
            f"{timestamp(time.time())} {level:<7} {line.method} {line.operation} {line.status}"
            f" {line.milliseconds:.3f} ms {line.bytes} B {line.release or '-'}{cause} [{line.id}]"
        )
    with suppress(OSError):  # nobody reads stderr any more; requests go on
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def timestamp(moment: float) -> str:
    """Format a Unix time by RFC 3339, to the millisecond."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(moment))}.{int(moment % 1 * 1000):03d}Z"


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
