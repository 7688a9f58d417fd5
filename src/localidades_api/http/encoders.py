"""Responses before routing as bytes: a page of a list, another resource, and their 304s.

`router.responses` makes the same responses from the same parts; a test compares the two.
"""

from collections.abc import Iterable, Mapping

from pydantic_core import to_json

from localidades_api.domain.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.domain.pagination import link_header
from localidades_api.domain.schemas import Release
from localidades_api.http.caching import freshness_headers
from localidades_api.http.headers import API_HEADERS, on_wire
from localidades_api.http.html.renderer import JSON
from localidades_api.http.paths import LOCALIDADES
from localidades_api.http.raw_response import RawResponse


def encode_envelope(quantity: int, total_pages: int, results: str) -> bytes:
    """Return the JSON of one page of a list; `results` is a JSON array without its brackets."""
    return f'{{"quantity":{quantity},"total_pages":{total_pages},"results":[{results}]}}'.encode()


def encode_localities(places: Iterable[tuple[int, str]]) -> str:
    """Return the localities with these keys and names as Postgres writes them (`storage.repository.catalogue`)."""
    return ",".join(
        f'{{"id":{id_},"municipio_id":{id_ // KEYS_OF_A_MUNICIPIO},"clave":"{id_ % KEYS_OF_A_MUNICIPIO:04d}"'
        f',"nombre":{to_json(nombre).decode()}}}'
        for id_, nombre in places
    )


class PageEncoder:
    """Encodes the pages of a release's list of localities as JSON, and their 304s.

    The headers that all pages have in common are in memory once.
    """

    def __init__(self, release: Release) -> None:
        headers = freshness_headers(release, JSON.format)
        self.etag = headers["ETag"].encode()
        self._release = release
        self._pinned = {"format": JSON.format, "release": release.name}
        self._head = _on_wire(headers) + b"link: "
        self._pinned_head = _on_wire(freshness_headers(release, JSON.format, pinned=True)) + b"link: "

    def encode(self, number: int, results: str) -> RawResponse:
        """Return the 200 response with a page; `results` is a JSON array without its brackets."""
        body = encode_envelope(self._release.localities, self._release.total_pages, results)
        return RawResponse(200, (self._head, self._link(number), _MIDDLE, b"%d" % len(body), _END), body)

    def not_modified(self, number: int, page: RawResponse | None) -> RawResponse:
        """Return the 304 response for a page; `page` is None if it is not in the cache."""
        link = page.headers[1] if page else self._link(number)  # the second piece, as `encode` has it
        return RawResponse(304, (self._head, link, _END), b"")

    def pin(self, response: RawResponse) -> RawResponse:
        """Return a response of this encoder for a request that names the release."""
        return RawResponse(response.status, (self._pinned_head, *response.headers[1:]), response.body)

    def _link(self, number: int) -> bytes:
        return link_header(LOCALIDADES, self._pinned, number, self._release.total_pages).encode()


class ResourceEncoder:
    """Encodes what a release has under one representation, as JSON without links, and its 304."""

    def __init__(self, release: Release, representation: str) -> None:
        headers = freshness_headers(release, representation)
        self.etag = headers["ETag"]
        self.not_modified = RawResponse(304, (_on_wire(headers), on_wire(API_HEADERS)), b"")
        self._head = _on_wire({**headers, **JSON.headers}) + b"content-length: "

    def encode(self, body: bytes) -> RawResponse:
        """Return the 200 response with a body."""
        return RawResponse(200, (self._head, b"%d" % len(body), _END), body)


def _on_wire(headers: Mapping[str, str]) -> bytes:
    return on_wire([(name.lower().encode(), value.encode()) for name, value in headers.items()])


_MIDDLE = b"\r\n" + _on_wire(JSON.headers) + b"content-length: "
_END = b"\r\n" + on_wire(API_HEADERS)
