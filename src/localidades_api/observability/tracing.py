"""OpenTelemetry traces, if its standard variables name an endpoint; otherwise nothing of it is imported.

FastAPI makes and exports a span for each routed request; statements are spans within it.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import trace

_log = logging.getLogger(__name__)


@contextmanager
def traced_statements() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Make a span of each statement; lend a context manager that suppresses those outside requests."""
    if not _is_wanted():
        yield nullcontext
        return
    try:
        from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor  # noqa: PLC0415  # an extra
        from opentelemetry.instrumentation.utils import suppress_instrumentation  # noqa: PLC0415  # an extra
    except ImportError:
        _log.warning("Traces are configured, but their exporter is not installed: install localidades-api[telemetry].")
        yield nullcontext
        return
    instrumentor = AsyncPGInstrumentor()  # type: ignore[no-untyped-call]  # the library's
    instrumentor.instrument()
    try:
        yield suppress_instrumentation
    finally:
        instrumentor.uninstrument()


def name_span(method: str, path: str | None) -> None:
    """Name the span of a request by its route; `path` has parameters in braces."""
    span = trace.get_current_span()
    if path is not None and span.is_recording():
        span.update_name(f"{method} {path}")
        span.set_attribute("http.route", path)


def _is_wanted() -> bool:
    value = os.environ.get
    return (
        bool(value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or value("OTEL_EXPORTER_OTLP_ENDPOINT"))
        and value("OTEL_TRACES_EXPORTER") != "none"
        and value("OTEL_SDK_DISABLED", "").lower() != "true"
    )
