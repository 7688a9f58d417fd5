"""Traces: the spans that a collector receives, and no cost without a collector."""

import gzip
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.http_server import Request, Response, http_server
from tests.support.metrics import await_metrics, value
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, ask, environment, run, serving

pytestmark = pytest.mark.tail

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Collector:
    """An OTLP/HTTP collector that records spans."""

    base: str = ""
    spans: list[Span] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    def await_span(self, name: str) -> Span:
        """Wait for a span of that name and return it."""
        return eventually(
            lambda: [span for span in self.spans if span.name == name],
            otherwise=lambda: f"no span {name} in {[span.name for span in self.spans]}",
        )[0]


@pytest.fixture
def collector() -> Iterator[Collector]:
    kept = Collector()

    def respond(request: Request) -> Response:
        body = gzip.decompress(request.body) if request.headers["Content-Encoding"] == "gzip" else request.body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                kept.spans.extend(scope.spans)
        kept.paths.add(request.target)
        return Response()

    with http_server(respond) as kept.base:
        yield kept


def attributes(span: Span) -> dict[str, str]:
    return {one.key: one.value.string_value or str(one.value.int_value) for one in span.attributes}


def test_request_and_statement_are_spans_but_cached_pages_are_not(seeded_database: str, collector: Collector) -> None:
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.base, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with serving(seeded_database, **settings) as live:
        await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 3)
        for _ in range(10):
            assert ask(live.base, LOCALIDADES).status == 200
        answer = ask(live.base, f"{LOCALIDADES}10010001/", ("traceparent", f"00-{TRACE}-{PARENT}-01"))
        assert answer.status == 200
        request = collector.await_span(f"GET {LOCALIDADES}{{id}}/")
        answered = time.time()
        # The pointer is polled twice a second. A span of a poll would have been sent before that of a later request.
        await_metrics(live.base, lambda metrics: value(metrics, "release_checked_timestamp_seconds") > answered + 1)
        assert ask(live.base, "/api/census/estados/1/").status == 200
        collector.await_span("GET /api/census/estados/{id}/")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(request)["http.route"] == f"{LOCALIDADES}{{id}}/"
    assert attributes(request)["http.response.status_code"] == "200"
    statements = [span for span in collector.spans if "db.statement" in attributes(span)]
    assert TRACE in {span.trace_id.hex() for span in statements}
    for span in statements:
        assert span.parent_span_id, "a look that belongs to no request is a trace of its own"
        assert "10010001" not in attributes(span)["db.statement"], "parameters are not sent"
    assert sum(span.name == f"GET {LOCALIDADES}" for span in collector.spans) == 1  # of ten: the others were cached
    assert collector.paths == {"/v1/traces"}


_LOADED = """
import sys
from fastapi.testclient import TestClient
from localidades_api.app import create_app
from localidades_api.settings import read_settings
with TestClient(create_app(read_settings())):
    loaded = "opentelemetry.sdk", "opentelemetry.instrumentation", "opentelemetry.exporter"
    print([name for name in sys.modules if name.startswith(loaded)])
"""


@pytest.mark.parametrize(
    ("variables", "preparation", "said"),
    [
        ({}, "", ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}, "", ""),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
            "import sys; sys.modules['opentelemetry.instrumentation.asyncpg'] = None\n",
            "localidades-api[telemetry]",
        ),
    ],
)
def test_opentelemetry_is_not_loaded_without_a_collector_and_warns_without_its_extra(
    seeded_database: str, variables: dict[str, str], preparation: str, said: str
) -> None:
    command = (sys.executable, "-c", preparation + _LOADED)
    ended = run(env=environment(seeded_database, **variables), command=command)
    assert (ended.returncode, said in ended.stderr) == (0, True), ended.stderr
    assert preparation or ended.stdout.strip() == "[]"
