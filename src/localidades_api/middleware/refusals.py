"""What a layer answers to a request that it does not let through: cheap, for there may be very many of them."""

from functools import lru_cache

from starlette.requests import Request
from starlette.types import Scope, Send

from localidades_api.errors import LocalidadesError
from localidades_api.http.headers import complete, on_wire
from localidades_api.http.paths import is_api
from localidades_api.http.problems import problem_of
from localidades_api.middleware.cached_pages import RawResponse
from localidades_api.observability.metrics import COUNTERS

_CHOOSE = (b"accept", b"accept-language")


def refuse(scope: Scope, error: LocalidadesError) -> RawResponse:
    """Return an error as the problem that routing would make of it; `error` is one that is raised again and again."""
    COUNTERS.refused[error.slug] += 1
    wishes = [part for part in scope["query_string"].split(b"&") if part.startswith((b"format=", b"lang="))]
    headers = [header for header in scope["headers"] if header[0] in _CHOOSE]
    root, has_body = scope.get("root_path", ""), scope["method"] != "HEAD"
    return _made(error, b"&".join(wishes), tuple(headers), root, is_api(scope), has_body)


@lru_cache(maxsize=64)
def _made(  # all that an answer depends on
    error: LocalidadesError,
    query: bytes,
    headers: tuple[tuple[bytes, bytes], ...],
    root: str,
    of_census: bool,  # noqa: FBT001  # a key of the cache
    has_body: bool,  # noqa: FBT001  # as above
) -> RawResponse:
    """Make the answer; clients ask in a handful of different ways."""
    request = Request({"type": "http", "query_string": query, "headers": list(headers), "root_path": root})
    response = problem_of(request, error)
    if of_census:
        complete(response.headers)
    return RawResponse(response.status_code, on_wire(response.raw_headers), bytes(response.body) if has_body else b"")


async def send_ready(answer: RawResponse, send: Send) -> None:
    """Send an answer that is ready where there is a task for the request already."""
    headers = [tuple(line.split(b": ", 1)) for line in answer.headers.split(b"\r\n")[:-1]]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
