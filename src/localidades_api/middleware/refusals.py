"""Responses to requests that a middleware refuses: cheap, as there may be very many of them."""

from functools import lru_cache

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import Scope

from localidades_api.api.problems import ResponsePreferences, problem_of
from localidades_api.errors import LocalidadesError
from localidades_api.html.renderer import root_of
from localidades_api.http.headers import complete
from localidades_api.http.paths import allowed, is_api

_NEGOTIATED = (b"accept", b"accept-language")


def refusal(scope: Scope, error: LocalidadesError) -> Response:
    """Return the problem response that routing would make; it is cached, so pass the same `error` every time."""
    query = [part for part in scope["query_string"].split(b"&") if part.startswith((b"format=", b"lang="))]
    headers = [header for header in scope["headers"] if header[0] in _NEGOTIATED]
    allow = allowed(scope["path"]) if is_api(scope) else None
    return _make(error, b"&".join(query), tuple(headers), root_of(scope), allow)


@lru_cache(maxsize=64)
def _make(  # takes all that the response depends on; clients send a handful of variants
    error: LocalidadesError, query: bytes, headers: tuple[tuple[bytes, bytes], ...], root: str, allow: str | None
) -> Response:
    response = problem_of(error, ResponsePreferences(Headers(raw=list(headers)), QueryParams(query), root))
    complete(response.headers, allow)
    return response
