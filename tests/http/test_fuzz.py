"""Generated requests: those of the OpenAPI document conform to it, and others are never a 500."""

import http
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
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

_ODD = ["%", "%0", "%00", "%ff", "%u0041", "+", "&", "=", ";", "..", "%2e%2e", "//", "%2F", "'", "\\", "|"]
_RAW = st.text(st.characters(codec="utf-8"), max_size=20) | st.binary(max_size=12)
_ESCAPED = _RAW.map(lambda raw: quote(raw, safe="")) | st.sampled_from(_ODD)
_NAMES = st.sampled_from(["page", "format", "release", "Page", "page[]", ""]) | _ESCAPED
_KNOWN = ["1", "0", "-1", "99999999999999999999", "json", "api", "xml", "2020-01", "2020-01%00", ""]
_VALUES = st.sampled_from(_KNOWN) | st.integers().map(str) | _ESCAPED
_QUERIES = st.lists(st.tuples(_NAMES, st.sampled_from(["=", "", "=="]), _VALUES).map("".join), max_size=4).map("&".join)
_SEGMENTS = st.lists(_ESCAPED, max_size=3).map(lambda parts: "/" + "/".join(parts))
_PATHS = st.sampled_from(["", "/", "/localidades", "/localidades/"]) | _SEGMENTS
_FIELDS = [
    "Accept", "If-None-Match", "If-Modified-Since", "Range", "Origin", "Accept-Encoding", "Accept-Language",
    "Content-Type", "Cookie", "Authorization", "X-Forwarded-Host", "X-HTTP-Method-Override", "Prefer",
]  # fmt: skip
_LATIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=40)
_SENT = st.sampled_from(["*/*", "text/html", "*", '"x"', "bytes=0-", "null", "identity;q=0"]) | _LATIN
_HEADERS = st.lists(st.tuples(st.sampled_from(_FIELDS), _SENT), max_size=4)
_METHODS = st.sampled_from(["GET"] * 6 + ["HEAD", "OPTIONS", "POST", "DELETE", "PATCH", "TRACE", "FROB"])
_STATUSES = {200, 204, 206, 303, 304, 307, 308, 404, 405, 406, 422}


@pytest.fixture
async def anything(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that sends targets unchanged and passes on the application's exceptions."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client


def assert_answered(answer: httpx.Response) -> None:
    assert answer.status_code in _STATUSES
    assert answer.headers.get_list("allow") == ["GET"]
    assert re.split(r",\s*", answer.headers["vary"])[0] == "Accept"
    if answer.status_code >= 400:
        assert answer.headers["content-type"] in {"application/problem+json", "text/html; charset=utf-8"}
        assert "Traceback" not in answer.text


@given(method=_METHODS, path=_PATHS, query=_QUERIES, headers=_HEADERS)
@settings(suppress_health_check=list(HealthCheck))
@example(method="GET", path="/localidades/", query="format=%ed%a0%80", headers=[])
@example(method="GET", path="/localidades", query="%0d%0aSet-Cookie:a=b", headers=[])
@example(method="GET", path="/localidades/", query="", headers=[("Accept", '"'), ("If-None-Match", '"')])
async def test_any_request_below_the_prefix_is_answered(
    anything: httpx.AsyncClient, method: str, path: str, query: str, headers: list[tuple[str, str]]
) -> None:
    target = f"/api/census{path}" + (f"?{query}" if query else "")
    url = httpx.URL("http://test", raw_path=target.encode("ascii"))
    assume(f"{url.path}/".startswith("/api/census/"))  # the client resolves `..` itself
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    assert_answered(await anything.request(method, url, headers=raw))


# -- Requests of the document

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
    "|The upper bound is below the lower one|Only a workbook|Only CSV|Only an NDJSON answer"
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
