"""What the scripts of other origins may do: read every answer, and use every method of a resource (Fetch §3.3)."""

from http import HTTPStatus

from starlette.responses import Response

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Allow, Answer-Columns, Catalogue-Records, Catalogue-Release,"
    " Content-Disposition, ETag, Header-Row, Last-Modified, Link, Retry-After, Sheet-Name,"
    " X-Request-Id",
}
_PREFLIGHT = {"Access-Control-Allow-Headers": "*", "Access-Control-Max-Age": "86400"}


def answer_preflight(allow: str) -> Response:
    """Let scripts of any origin use the methods of a resource, which `allow` lists, with any headers."""
    methods = allow.removesuffix(", OPTIONS").replace("GET", "GET, HEAD")
    headers = {"Access-Control-Allow-Methods": methods, **_PREFLIGHT, "Allow": allow}
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
