"""Reads the whole list of a service, page by page over one connection, within bounds whatever the service does.

An answer that can't be compared raises ServiceError. Lesser faults go to `faults` of the walk.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from localidades_api.catalogue.messages import describe_fault, describe_place
from localidades_api.cli.service import Service
from localidades_api.cli.verification.compare import ListedLocality
from localidades_api.errors import ServiceError
from localidades_api.observability.progress import Counting

PATH = "/api/census/localidades/"
MAX_ANSWER_BYTES = 1024**2  # a page of 50 has 4 kB
MAX_PAGES = 100_000  # INEGI's whole catalogue has some 6,100
MAX_RECORDS = 5_000_000
ANSWER_TIMEOUT = 10.0  # seconds
_ASKED = {"Accept": "application/json"}
_MAX_FURTHER_PAGES = 3  # pages that links may add to the total of the first page


class _Row(BaseModel):
    model_config = ConfigDict(strict=True)

    id: int
    municipio_id: int
    clave: str
    nombre: str


class _Envelope(BaseModel):
    """The fields of a page that are compared; a clave of another shape is a difference, not an error."""

    model_config = ConfigDict(strict=True)

    quantity: int
    total_pages: int
    results: list[_Row]


@dataclass(slots=True)
class Walk:
    """The records in their order; `quantity`, `total_pages` and `release` are those of the first page."""

    quantity: int
    total_pages: int
    release: str | None
    followed: bool  # by Link: rel="next"; else by page number
    records: list[ListedLocality] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # position of the first record of each page
    faults: list[str] = field(default_factory=list)

    @property
    def pages(self) -> int:
        """Number of pages read."""
        return len(self.starts)

    def page_of(self, position: int) -> int:
        """Return the number of the page that has a position, from 1."""
        return bisect_right(self.starts, position)


@dataclass(frozen=True, slots=True)
class _ListPage:
    quantity: int
    total_pages: int
    release: str | None
    records: list[ListedLocality]
    following: httpx.URL | None  # on the same origin

    @property
    def totals(self) -> tuple[int, int, str | None]:
        """The values that all pages of a list must share."""
        return self.quantity, self.total_pages, self.release


def walk_list(service: Service, counting: Counting) -> Walk:
    """Read every page; follow links if the first page has one, else count up the page number."""
    with service.connect(ANSWER_TIMEOUT) as client:
        first = _fetch(client, _page(service, 1), 1)
        if first is None:
            raise ServiceError("Page 1 answers 404, so there is no such list or release: check --url and --release.")
        if service.release is not None and first.release not in {None, service.release}:
            raise ServiceError("The service ignores --release and answers with another release.")
        if first.total_pages > MAX_PAGES:
            raise ServiceError(f"The service reports {first.total_pages} pages; verify reads at most {MAX_PAGES}.")
        counting.expect(first.total_pages)
        walk = Walk(first.quantity, first.total_pages, first.release, followed=first.following is not None)
        for page in _pages(client, service, first, walk):
            walk.starts.append(len(walk.records))
            walk.records += page.records
            if len(walk.records) > MAX_RECORDS:
                raise ServiceError(f"The service lists more than {MAX_RECORDS} records, the most that verify reads.")
            counting.advance(1)
    walk.faults += _check_totals(walk)
    return walk


def _page(service: Service, number: int) -> httpx.URL:
    return service.at(PATH, page=str(number))


def _pages(client: httpx.Client, service: Service, first: _ListPage, walk: Walk) -> Iterator[_ListPage]:
    """Yield the pages of a list; if they end early or change on the way, add that to the faults of the walk."""
    page, number, steady, visited = first, 1, True, {_page(service, 1)}
    yield page
    while address := _following(service, page, number, walk):
        if address in visited or number >= walk.total_pages + _MAX_FURTHER_PAGES:
            walk.faults.append(f"The links to the next page never end: verify stopped after page {number}.")
            return
        visited.add(address)
        number += 1
        found = _fetch(client, address, number)
        if found is None:
            walk.faults.append(f"Page {number} answers 404, but the first page reports {walk.total_pages} pages.")
            return
        page = found
        if steady and page.totals != first.totals:
            steady = False
            walk.faults.append(f"Page {number} has a different quantity, total_pages or release than the first page.")
        yield page


def _following(service: Service, page: _ListPage, number: int, walk: Walk) -> httpx.URL | None:
    if walk.followed:
        return page.following
    return _page(service, number + 1) if number < walk.total_pages else None


def _check_totals(walk: Walk) -> Iterator[str]:
    if walk.quantity != len(walk.records):
        yield f"quantity is {walk.quantity}, but the pages have {len(walk.records)} records."
    # An empty list may have one empty page, or none.
    if walk.total_pages != walk.pages and (walk.records or walk.total_pages not in {0, 1}):
        yield f"total_pages is {walk.total_pages}, but there are {walk.pages} pages."


def _fetch(client: httpx.Client, address: httpx.URL, number: int) -> _ListPage | None:
    """Fetch a page; return None for a 404."""
    with _refusing_faults(number), client.stream("GET", address, headers=_ASKED) as response:
        if response.status_code == HTTPStatus.NOT_FOUND:
            return None
        if response.status_code != HTTPStatus.OK:
            hint = "set --url to where it redirects" if response.is_redirect else "check the service's log"
            raise ServiceError(f"Page {number} answers {response.status_code}: {hint}.")
        envelope = _Envelope.model_validate_json(_read_body(response, number))
        return _ListPage(
            envelope.quantity,
            envelope.total_pages,
            response.headers.get("catalogue-release"),
            [ListedLocality(row.id, row.municipio_id, row.clave, row.nombre) for row in envelope.results],
            _next_address(response),
        )


@contextmanager
def _refusing_faults(number: int) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        if fault["type"] == "json_invalid":
            raise ServiceError(f"Page {number} is not JSON: set --url to the root address of a service.") from error
        where = f"{describe_place(fault['loc'])}: " if fault["loc"] else ""
        raise ServiceError(f"Page {number} does not match the API's schema: {where}{describe_fault(fault)}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServiceError(
            f"Page {number} can't be read ({str(error) or type(error).__name__}): check that the service"
            " at --url is running."
        ) from error


def _read_body(response: httpx.Response, number: int) -> bytes:
    """Read a body within bounds of size and time; no compression was requested."""
    deadline = time.monotonic() + ANSWER_TIMEOUT
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise ServiceError(f"Page {number} is larger than {MAX_ANSWER_BYTES // 1024**2} MB.")
        if time.monotonic() > deadline:
            raise ServiceError(f"Page {number} took more than {ANSWER_TIMEOUT:.0f} s.")
    return bytes(body)


def _next_address(response: httpx.Response) -> httpx.URL | None:
    """Return the target of Link: rel="next", unless it is on another origin."""
    link = response.links.get("next", {}).get("url")
    if link is None:
        return None
    address = response.url.join(link)
    here = response.url
    same = (address.scheme, address.host, address.port) == (here.scheme, here.host, here.port)
    return address.copy_with(fragment=None) if same else None
