"""Generated requests: each operation conforms to the OpenAPI document."""

import http
import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
)

from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.wire import LOCALIDADES

LONGER_THAN_ANY_OPERATION = 414  # a response of the connection, which the document doesn't have

# Other representations, which are sent on request only; the document has just JSON where that is the default.
_OTHERS = {"text/html": "api", "application/x-ndjson": "ndjson", "text/csv": "csv"}

_ANSWERS_EACH_ROW = {f"{LOCALIDADES}{name}/" for name in ("match", "match/preview", "nearest")}  # also reports bad rows
_COLUMNS = re.compile(r"[?&]fields=")  # the document has responses without it (docs/decisions/negotiation.md)
_EXPONENT = re.compile(r"[?&](?:lat|lon)=-?[0-9.]+e")  # refused; OpenAPI can't express a number without one
# Nor can it express a NUL, JSON within a parameter, or relations of two parameters, of numbers in one,
# or of a parameter and a body.
_UNSAID = re.compile(
    "contains a NUL|Give a JSON object|Send either|West and south come first|An HTML page has columns of its own"
    "|Only a workbook|Only CSV|Only an NDJSON answer"
)

# A fixture makes the examples when the test runs. At collection, every process of a run would take 14 s for them.
schema = schemathesis.pytest.from_fixture("document")


@pytest.fixture
def document() -> schemathesis.BaseSchema:
    """Return the application's OpenAPI document."""
    return schemathesis.openapi.from_dict(create_app(Settings()).openapi())


def _has_rows(body: object) -> bool:
    """Return whether a body is a list of rows and nothing else."""
    return isinstance(body, dict) and body.keys() == {"rows"} and isinstance(body["rows"], list)


@pytest.mark.tail
@pytest.mark.timeout(600)  # seconds for all operations
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@schema.parametrize()
def test_every_operation_conforms_to_the_document(case: "schemathesis.Case[Any]", live_server: str) -> None:
    answer = case.call(base_url=live_server)
    if answer.status_code == LONGER_THAN_ANY_OPERATION:
        assert len(answer.request.path_url) > 8 * 1024
        return
    excluded: list[CheckFunction] = []
    if _EXPONENT.search(answer.request.path_url) or (
        answer.status_code == http.HTTPStatus.UNPROCESSABLE_ENTITY and _UNSAID.search(answer.text)
    ):
        excluded += [positive_data_acceptance]
    if case.path in _ANSWERS_EACH_ROW and _has_rows(case.body):
        excluded += [negative_data_rejection]
    if _COLUMNS.search(answer.request.path_url):
        excluded += [response_schema_conformance]
    media_type = answer.headers.get("content-type", [""])[0].partition(";")[0]
    if media_type in _OTHERS and (case.query or {}).get("format") == _OTHERS[media_type]:
        excluded += [content_type_conformance, response_schema_conformance]
    case.validate_response(answer, excluded_checks=excluded)
