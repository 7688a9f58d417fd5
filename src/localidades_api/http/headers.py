"""The headers of every answer under /api/census, and headers as bytes."""

from starlette.datastructures import MutableHeaders

RawHeaders = list[tuple[bytes, bytes]]

_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Allow, Catalogue-Records, Catalogue-Release, Content-Disposition, ETag,"
    " Last-Modified, Link, Retry-After",
}
# Of an answer that varies by nothing but Accept.
API_HEADERS: RawHeaders = [
    (name.lower().encode(), value.encode()) for name, value in {"Allow": "GET", "Vary": "Accept", **_CORS}.items()
]


def complete(headers: MutableHeaders) -> None:
    """Add to an answer's headers what holds for all of the census."""
    headers["Allow"] = "GET"
    headers["Vary"] = ", ".join(["Accept", *headers.getlist("Vary")])
    headers.update(_CORS)


def on_wire(headers: RawHeaders) -> bytes:
    """Return headers as they go over the wire."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)
