"""The headers that every answer has, the Link header of a page, and headers as bytes."""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders

from localidades_api.http.cors import CORS

RawHeaders = list[tuple[bytes, bytes]]

# Of an answer to bytes that can't be parsed as a request, and so have no path.
API_HEADERS: RawHeaders = [
    (name.lower().encode(), value.encode()) for name, value in {"Allow": "GET", "Vary": "Accept", **CORS}.items()
]


def complete(headers: MutableHeaders, allow: str | None, *, cors: bool) -> None:
    """Add the headers that every answer has; for one under `/api/census`, `allow` and Accept in its Vary too.

    `cors` lets the scripts of every origin read the answer.
    """
    if allow:
        headers["Allow"] = allow
        headers["Vary"] = ", ".join(["Accept", *headers.getlist("Vary")])
    else:  # those under the prefix have it already, where they have a body
        headers.setdefault("X-Content-Type-Options", "nosniff")
    if cors:
        headers.update(CORS)


def make_private(headers: MutableHeaders) -> None:
    """Keep an answer out of shared caches."""
    control = headers.get("Cache-Control", "").replace("public", "private")
    headers["Cache-Control"] = control if "private" in control else ", ".join(filter(None, [control, "private"]))


def on_wire(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode headers as HTTP/1.1 header lines, each with its CRLF."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def link_header(path: str, parameters: Mapping[str, str], page: int, total_pages: int) -> str:
    """Return the Link header of a page (RFC 8288): first, prev, next and last, as far as they exist.

    `parameters` are the parameters of the links other than `page`.
    """

    def related() -> Iterator[tuple[str, int]]:
        yield "first", 1
        if page > 1:
            yield "prev", page - 1
        if page < total_pages:
            yield "next", page + 1
        yield "last", max(total_pages, 1)

    pinned = urlencode(parameters)
    return ", ".join(f'<{path}?page={number}&{pinned}>; rel="{relation}"' for relation, number in related())
