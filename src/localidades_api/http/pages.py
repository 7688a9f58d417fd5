"""A page of a list as bytes: its envelope, its headers and its 304.

`router.responses` makes the same responses from the same parts; a test compares the two.
"""

from collections.abc import Mapping
from typing import NamedTuple

from localidades_api.domain.pagination import link_header
from localidades_api.domain.schemas import Release
from localidades_api.http.caching import freshness_headers
from localidades_api.http.headers import API_HEADERS, on_wire
from localidades_api.http.html.renderer import JSON
from localidades_api.http.paths import LOCALIDADES
from localidades_api.http.raw_response import RawResponse


class EncodedPage(NamedTuple):
    """What differs from page to page, as plain bytes: thousands of pages are no work for the garbage collector."""

    link: bytes
    length: bytes
    body: bytes


def encode_envelope(quantity: int, total_pages: int, results: str) -> bytes:
    """Return the JSON of one page of a list; `results` is a JSON array without its brackets."""
    return f'{{"quantity":{quantity},"total_pages":{total_pages},"results":[{results}]}}'.encode()


class PageEncoder:
    """Encodes the pages of a release's list of localities as JSON, and their 304s."""

    def __init__(self, release: Release) -> None:
        headers = freshness_headers(release, JSON.format)
        self.etag = headers["ETag"].encode()
        self._release = release
        self._pinned = {"format": JSON.format, "release": release.name}
        self._head = _on_wire(headers) + b"link: "

    def encode(self, number: int, results: str) -> EncodedPage:
        """Encode a page; `results` is a JSON array without its brackets."""
        body = encode_envelope(self._release.localities, self._release.total_pages, results)
        return EncodedPage(self._link(number), b"%d" % len(body), body)

    def response(self, page: EncodedPage) -> RawResponse:
        """Return the 200 response with a page."""
        return RawResponse(200, b"".join((self._head, page.link, _MIDDLE, page.length, _END)), page.body)

    def not_modified(self, number: int, page: EncodedPage | None) -> RawResponse:
        """Return the 304 response for a page; `page` is None if it is not in the cache."""
        link = page.link if page else self._link(number)
        return RawResponse(304, b"".join((self._head, link, _END)), b"")

    def _link(self, number: int) -> bytes:
        return link_header(LOCALIDADES, self._pinned, number, self._release.total_pages).encode()


def _on_wire(headers: Mapping[str, str]) -> bytes:
    return on_wire([(name.lower().encode(), value.encode()) for name, value in headers.items()])


_MIDDLE = b"\r\n" + _on_wire(JSON.headers) + b"content-length: "
_END = b"\r\n" + on_wire(API_HEADERS)
