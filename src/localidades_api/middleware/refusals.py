"""Responses to requests that a middleware refuses: cheap, as there may be very many of them."""

from functools import lru_cache

from starlette.datastructures import Headers, QueryParams
from starlette.types import Scope

from localidades_api.errors import LocalidadesError
from localidades_api.http.headers import complete
from localidades_api.http.html.renderer import root_of
from localidades_api.http.paths import allowed, is_api
from localidades_api.http.problems import Wanted, problem_of
from localidades_api.http.raw_response import RawResponse
from localidades_api.observability.metrics import COUNTERS

_NEGOTIATED = (b"accept", b"accept-language")


def refuse(scope: Scope, error: LocalidadesError) -> RawResponse:
    """Count a refusal, and return its problem response."""
    COUNTERS.refused[error.slug] += 1
    return raw_problem(scope, error)


def raw_problem(scope: Scope, error: LocalidadesError) -> RawResponse:
    """Return the problem response that routing would make; it is cached, so pass the same `error` every time."""
    query = [part for part in scope["query_string"].split(b"&") if part.startswith((b"format=", b"lang="))]
    headers = [header for header in scope["headers"] if header[0] in _NEGOTIATED]
    allow = allowed(scope["path"]) if is_api(scope) else None
    made = _make(error, b"&".join(query), tuple(headers), root_of(scope), allow)
    return made if scope["method"] != "HEAD" else made._replace(body=b"")


@lru_cache(maxsize=64)
def _make(  # takes all that the response depends on; clients send a handful of variants
    error: LocalidadesError,
    query: bytes,
    headers: tuple[tuple[bytes, bytes], ...],
    root: str,
    allow: str | None,
) -> RawResponse:
    response = problem_of(error, Wanted(Headers(raw=list(headers)), QueryParams(query), root))
    complete(response.headers, allow)
    return RawResponse.of(response)
