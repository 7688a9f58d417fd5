"""The headers of every response, and headers as bytes."""

from collections.abc import Iterable

from starlette.datastructures import MutableHeaders

RawHeaders = list[tuple[bytes, bytes]]

_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Allow, Catalogue-Records, Catalogue-Release, Content-Disposition, ETag,"
    " Last-Modified, Link, Retry-After",
}
# For responses that vary only by Accept.
API_HEADERS: RawHeaders = [
    (name.lower().encode(), value.encode()) for name, value in {"Allow": "GET", "Vary": "Accept", **_CORS}.items()
]


def complete(headers: MutableHeaders, allow: str | None) -> None:
    """Add the headers that every response has; for one of the API, `allow` and Accept in its Vary too."""
    if allow:
        headers["Allow"] = allow
        headers["Vary"] = ", ".join(["Accept", *headers.getlist("Vary")])
    else:  # the API's own have it already, where they have a body
        headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.update(_CORS)


def on_wire(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode headers as HTTP/1.1 header lines, each with its CRLF."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)
