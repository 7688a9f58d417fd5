"""Compares the list of a running service with INEGI's file, record by record.

It needs no database: it can check any service with the same API whose ids are INEGI's keys, and any export.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from typing import NamedTuple

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from localidades_api.catalogue.messages import describe_fault, describe_place
from localidades_api.errors import ServiceError
from localidades_api.http.paths import LOCALIDADES, MANIFEST
from localidades_api.http.service import Service
from localidades_api.importer.demo.generate import DEMO_LOCALITIES, generate_demo
from localidades_api.importer.extract import open_table, read_table, watch_reading
from localidades_api.importer.source import Source, open_source
from localidades_api.importer.transform import CatalogueRecords, transform
from localidades_api.observability.progress import Counting, ImportStep, Step, StepProgress

MAX_PAGE_BYTES = 1024**2  # a page of 50 records has 4 kB
MAX_PAGES = 100_000  # INEGI's whole catalogue has some 6,100
MAX_RECORDS = 5_000_000
PAGE_TIMEOUT = 10.0  # seconds
_HEADERS = {"Accept": "application/json"}
_MAX_FURTHER_PAGES = 3  # pages that links may add to the total of the first page
_MAX_MUNICIPIOS = 20  # in the text report
_MAX_EXAMPLES = 3  # of a municipio


# -- Differences


class ListedLocality(NamedTuple):
    """A locality with the fields of the list."""

    id: int
    municipio_id: int
    clave: str
    nombre: str


class Kind(StrEnum):
    """A kind of difference."""

    MISSING = "missing"
    DOUBLED = "doubled"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    OUT_OF_ORDER = "out of order"


class Discrepancy(NamedTuple):
    """A wrong record; `record` is the file's if it has the key, else the service's."""

    kind: Kind
    record: ListedLocality
    expected: ListedLocality | None
    found: ListedLocality | None = None
    page: int | None = None

    @property
    def fields(self) -> list[str]:
        """The fields in which a DIFFERENT record differs from the file."""
        if self.kind is not Kind.DIFFERENT or self.found is None:
            return []
        values = zip(ListedLocality._fields, self.record, self.found, strict=True)
        return [field for field, expected, found in values if expected != found]


def compare(expected: Sequence[ListedLocality], listed: Sequence[tuple[int, ListedLocality]]) -> Iterator[Discrepancy]:
    """Yield the differences between a file and a list, whose records come with the numbers of their pages.

    A record is out of order if it sorts before the one listed before it; records listed twice are only doubled.
    """
    by_key = {record.id: record for record in expected}
    seen: set[int] = set()
    for page, found in listed:
        wanted = by_key.get(found.id)
        if wanted != found or found.id in seen:
            kind = Kind.DOUBLED if found.id in seen else Kind.DIFFERENT if wanted else Kind.UNKNOWN
            yield Discrepancy(kind, wanted or found, wanted, found, page)
        seen.add(found.id)
    for key, record in by_key.items():
        if key not in seen:
            yield Discrepancy(Kind.MISSING, record, record)
    times = Counter(found.id for _, found in listed)
    for (_, before), (page, found) in pairwise(entry for entry in listed if times[entry[1].id] == 1):
        if (found.clave, found.id) < (before.clave, before.id):
            wanted = by_key.get(found.id)
            yield Discrepancy(Kind.OUT_OF_ORDER, wanted or found, wanted, found, page)


# -- The pages of the list


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


class _Manifest(BaseModel):
    release: str


class _Page(NamedTuple):
    totals: tuple[int, int, str | None]  # quantity, total_pages and release, which all pages must share
    records: list[ListedLocality]
    following: httpx.URL | None  # on the same origin


@dataclass(slots=True)
class Walk:
    """The records with the numbers of their pages; `quantity`, `total_pages` and `release` are the first page's."""

    quantity: int
    total_pages: int
    release: str | None
    followed: bool  # by Link: rel="next"; else by page number
    pages: int = 0
    records: list[tuple[int, ListedLocality]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def walk_list(service: Service, counting: Counting) -> Walk:
    """Read every page; follow links if the first page has one, else count up the page number."""
    with service.connect(PAGE_TIMEOUT) as client:
        exported = _find_export(client, service)
        address_of = partial(_exported_page if exported else _served_page, service)
        first = _fetch(client, address_of(1), 1)
        if first is None:
            raise ServiceError("Page 1 answers 404, so there is no such list or release: check --url and --release.")
        quantity, total_pages, release = first.totals
        release = exported or release
        if service.release is not None and release not in {None, service.release}:
            raise ServiceError("The service ignores --release and answers with another release.")
        if total_pages > MAX_PAGES:
            raise ServiceError(f"The service reports {total_pages} pages; verify reads at most {MAX_PAGES}.")
        counting.expect(total_pages)
        walk = Walk(quantity, total_pages, release, followed=first.following is not None)
        for page in _pages(client, address_of, first, walk):
            walk.pages += 1
            walk.records += ((walk.pages, record) for record in page.records)
            if len(walk.records) > MAX_RECORDS:
                raise ServiceError(f"The service lists more than {MAX_RECORDS} records, the most that verify reads.")
            counting.advance(1)
    if quantity != len(walk.records):
        walk.faults.append(f"quantity is {quantity}, but the pages have {len(walk.records)} records.")
    # An empty list may have one empty page, or none.
    if total_pages != walk.pages and (walk.records or total_pages not in {0, 1}):
        walk.faults.append(f"total_pages is {total_pages}, but there are {walk.pages} pages.")
    return walk


def _served_page(service: Service, number: int) -> httpx.URL:
    return service.at(LOCALIDADES, page=str(number))


def _exported_page(service: Service, number: int) -> httpx.URL:
    return httpx.URL(f"{service.root}{LOCALIDADES}page/{number}.json")


def _find_export(client: httpx.Client, service: Service) -> str | None:
    """Return the release of an export from its manifest; None for a service, which has none."""
    try:
        with client.stream("GET", f"{service.root}{MANIFEST}", headers=_HEADERS) as response:
            is_found = response.status_code == HTTPStatus.OK
            return _Manifest.model_validate_json(_read_body(response, 1)).release if is_found else None
    except (httpx.HTTPError, ValidationError):
        return None  # page 1 shows what is wrong


def _pages(client: httpx.Client, address_of: Callable[[int], httpx.URL], first: _Page, walk: Walk) -> Iterator[_Page]:
    """Yield the pages of a list; note in `walk.faults` if they end early or their totals change."""
    page, number, visited, has_changed = first, 1, {address_of(1)}, False
    yield page
    while True:
        address = page.following
        if not walk.followed:
            address = address_of(number + 1) if number < walk.total_pages else None
        if address is None:
            return
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
        if page.totals != first.totals and not has_changed:
            has_changed = True
            walk.faults.append(f"Page {number} has a different quantity, total_pages or release than the first page.")
        yield page


def _fetch(client: httpx.Client, address: httpx.URL, number: int) -> _Page | None:
    """Fetch a page; return None for a 404."""
    try:
        with client.stream("GET", address, headers=_HEADERS) as response:
            if response.status_code == HTTPStatus.NOT_FOUND:
                return None
            if response.status_code != HTTPStatus.OK:
                hint = "set --url to where it redirects" if response.is_redirect else "check the service's log"
                raise ServiceError(f"Page {number} answers {response.status_code}: {hint}.")
            envelope = _Envelope.model_validate_json(_read_body(response, number))
            return _Page(
                (envelope.quantity, envelope.total_pages, response.headers.get("catalogue-release")),
                [ListedLocality(row.id, row.municipio_id, row.clave, row.nombre) for row in envelope.results],
                _next_address(response),
            )
    except ValidationError as error:
        fault = error.errors()[0]
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
    deadline = time.monotonic() + PAGE_TIMEOUT
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_PAGE_BYTES:
            raise ServiceError(f"Page {number} is larger than {MAX_PAGE_BYTES // 1024**2} MB.")
        if time.monotonic() > deadline:
            raise ServiceError(f"Page {number} took more than {PAGE_TIMEOUT:.0f} s.")
    return bytes(body)


def _next_address(response: httpx.Response) -> httpx.URL | None:
    """Return the target of Link: rel="next", unless it is on another origin."""
    link = response.links.get("next", {}).get("url")
    if link is None:
        return None
    here, address = response.url, response.url.join(link)
    is_same = (address.scheme, address.host, address.port) == (here.scheme, here.host, here.port)
    return address.copy_with(fragment=None) if is_same else None


# -- Verification


class VerificationStep(Step):
    """The steps that follow those of reading the file."""

    WALK = "reading the service's pages"
    COMPARE = "comparing"

    @property
    def unit(self) -> str:
        """The unit of its amounts."""
        return "pages" if self is VerificationStep.WALK else "rows"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification."""

    service: str
    source: Source
    catalogue: CatalogueRecords
    walk: Walk
    differences: list[Discrepancy]

    @property
    def agrees(self) -> bool:
        """Whether the service agrees with the file."""
        return not self.differences and not self.walk.faults

    @property
    def counts(self) -> Counter[Kind]:
        """The number of differences of each kind."""
        return Counter(difference.kind for difference in self.differences)

    def group_by_municipio(self) -> list[tuple[int, list[Discrepancy]]]:
        """Return the differences by municipio, in the order of its key."""
        grouped: dict[int, list[Discrepancy]] = defaultdict(list)
        for difference in self.differences:
            grouped[difference.record.municipio_id].append(difference)
        return sorted(grouped.items())

    def name_of(self, municipio: int) -> str | None:
        """Return the name that a municipio has in the file."""
        found = self.catalogue.municipalities.get(municipio)
        return found and found.nombre


def verify_service(source: str, url: str, progress: StepProgress, *, release: str | None = None) -> Verification:
    """Compare the list of the service at `url` with a catalogue: `demo`, a path or an http(s) address.

    Raises CatalogueError for an invalid file, and ServiceError for a service that can't be compared.
    """
    service = Service.parse(url, release)
    with open_source(source, progress) as file:
        progress.begin(ImportStep.READ)
        catalogue = _read(file, progress)
    progress.begin(VerificationStep.WALK)
    walk = walk_list(service, progress)
    progress.begin(VerificationStep.COMPARE)
    expected = [ListedLocality(*locality[:4]) for locality in catalogue.localities]
    verification = Verification(service.root, file, catalogue, walk, list(compare(expected, walk.records)))
    if walk.records and verification.counts[Kind.MISSING] == len(expected):
        raise ServiceError(
            "None of the service's ids is a key in the file: verify compares only services whose ids are INEGI's keys."
        )
    return verification


def _read(file: Source, counting: Counting) -> CatalogueRecords:
    if file.file is None:
        table = read_table(file.name, generate_demo(), rows=DEMO_LOCALITIES)
        return transform(table, watch_reading(table, counting))
    with open_table(file.file) as table:
        return transform(table, watch_reading(table, counting))


# -- The report


def describe(verification: Verification) -> Iterator[str]:
    """Yield the lines of a report: what was compared, a count of each kind, and the first examples by municipio.

    Names are written with repr(), which escapes control and invisible characters.
    """
    walk, catalogue, counts = verification.walk, verification.catalogue, verification.counts
    release = f" (release {walk.release!r})" if walk.release else ""
    way = "following links" if walk.followed else "counting pages"
    yield f"{verification.service}{release} against {verification.source.name}"
    yield f"  file     {len(catalogue.localities):,} localities, {len(catalogue.rejected):,} rows rejected"
    yield f"  service  {len(walk.records):,} records on {walk.pages:,} pages, {way}"
    fields = Counter(field for difference in verification.differences for field in difference.fields)
    by_field = f"  ({', '.join(f'{field} {count:,}' for field, count in sorted(fields.items()))})" if fields else ""
    for kind in Kind:
        yield f"{kind:<13}{counts[kind]:>9,}{by_field if kind is Kind.DIFFERENT else ''}"
    totals = [f"quantity {walk.quantity:,} and total_pages {walk.total_pages:,} match the pages"]
    yield from (f"totals       {total}" for total in walk.faults or totals)
    grouped = verification.group_by_municipio()
    for key, differences in grouped[:_MAX_MUNICIPIOS]:
        yield from _describe_municipio(key, verification.name_of(key), differences)
    if len(grouped) > _MAX_MUNICIPIOS:
        yield f"and {len(grouped) - _MAX_MUNICIPIOS:,} more municipios"
    yield "the service agrees with the file" if verification.agrees else "the service differs from the file"


def _describe_municipio(key: int, name: str | None, differences: Sequence[Discrepancy]) -> Iterator[str]:
    counts = Counter(difference.kind for difference in differences)
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in Kind if counts[kind])
    yield f"{key:05d} {'(not in the file)' if name is None else repr(name)}: {kinds}"
    yield from (f"  {_describe_difference(difference)}" for difference in differences[:_MAX_EXAMPLES])
    if len(differences) > _MAX_EXAMPLES:
        yield f"  and {len(differences) - _MAX_EXAMPLES:,} more"


def _describe_difference(difference: Discrepancy) -> str:
    kind, record, expected, found, page = difference
    where = "" if page is None else f", page {page:,}"
    if kind is not Kind.DIFFERENT:
        return f"{kind} {record.id} {record.clave!r} {record.nombre!r}{where}"
    changes = (
        f"{field} {getattr(found, field)!r}, in the file {getattr(expected, field)!r}" for field in difference.fields
    )
    return f"{kind} {record.id}{where}: {'; '.join(changes)}"


def as_object(verification: Verification) -> dict[str, object]:
    """Return the whole report, with every difference, as an object for JSON."""
    walk, catalogue, counts = verification.walk, verification.catalogue, verification.counts
    return {
        "agrees": verification.agrees,
        "service": verification.service,
        "release": walk.release,
        "source": verification.source.name,
        "sha256": verification.source.sha256,
        "file": {"localidades": len(catalogue.localities), "rejected": len(catalogue.rejected)},
        "walk": {"records": len(walk.records), "pages": walk.pages, "by": "links" if walk.followed else "numbers"},
        "totals": {"quantity": walk.quantity, "total_pages": walk.total_pages, "faults": walk.faults},
        "counts": {kind.name.lower(): counts[kind] for kind in Kind},
        "municipios": [
            {
                "id": key,
                "nombre": verification.name_of(key),
                "differences": [_difference_as_object(difference) for difference in differences],
            }
            for key, differences in verification.group_by_municipio()
        ],
    }


def _difference_as_object(difference: Discrepancy) -> dict[str, object]:
    kind, _, expected, found, page = difference
    return {
        "kind": kind.name.lower(),
        "fields": difference.fields,
        "page": page,
        "expected": expected and expected._asdict(),
        "found": found and found._asdict(),
    }
