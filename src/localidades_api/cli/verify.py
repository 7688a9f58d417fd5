"""Compares the list of a running service with a file of INEGI, record by record.

No database is needed: any service with the same contract can be checked, and any release that `export` wrote.
"""

import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from localidades_api.catalogue.messages import describe_fault, describe_place
from localidades_api.cli.service import Service
from localidades_api.errors import ServiceError
from localidades_api.http.paths import MANIFEST
from localidades_api.importer.demo.generate import DEMO_LOCALITIES, generate_demo
from localidades_api.importer.extract import open_table, read_table, watch_reading
from localidades_api.importer.source import Source, open_source
from localidades_api.importer.transform import Catalogue, transform
from localidades_api.observability.progress import Counting, ImportStep, Step, StepProgress

PATH = "/api/census/localidades/"
MAX_ANSWER_BYTES = 1024**2  # a page of 50 has 4 kB
MAX_PAGES = 100_000  # INEGI's whole catalogue has some 6,100
MAX_RECORDS = 5_000_000
ANSWER_TIMEOUT = 10.0  # seconds
_ASKED = {"Accept": "application/json"}
_MAX_FURTHER_PAGES = 3  # pages that links may add to the total of the first page
_MIN_LOOSE = 10  # ties out of order from which the service orders none
_LOOSE_SHARE = 0.1  # of all ties
_MAX_MUNICIPIOS = 20  # in a report as text
_MAX_EXAMPLES = 3  # of a municipio

_Key = TypeVar("_Key", str, tuple[str, int])
_AddressOf = Callable[[int], httpx.URL]  # of the page with a number


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


class Difference(NamedTuple):
    """One record that is wrong.

    `municipio_id` comes from the file if it has the record, else from the service; it is None if several municipios
    are possible. `position` is the index of `found` in the walk, from 0.
    """

    kind: Kind
    municipio_id: int | None
    expected: ListedLocality | None
    found: ListedLocality | None = None
    position: int | None = None

    @property
    def fields(self) -> list[str]:
        """The fields in which the service differs from the file."""
        if self.expected is None or self.found is None:
            return []
        values = zip(ListedLocality._fields, self.expected, self.found, strict=True)
        return [field for field, expected, found in values if expected != found]


@dataclass(frozen=True, slots=True)
class ListComparison:
    """All differences.

    `official` is whether the ids are keys of the file (one match is enough). Under another numbering, clave and name
    identify a record, and a renamed one counts as missing and unknown. `ties_by_id` is false if records with the same
    clave are in no fixed order; then they are not reported one by one.
    """

    differences: list[Difference]
    official: bool
    ties_by_id: bool

    def counts(self) -> Counter[Kind]:
        """Count the differences of each kind."""
        return Counter(difference.kind for difference in self.differences)


def compare(expected: Sequence[ListedLocality], found: Sequence[ListedLocality]) -> ListComparison:
    """Find the differences; a record that is listed twice is doubled, and never out of order as well."""
    keys = {record.id: record for record in expected}
    official = not found or any(record.id in keys for record in found)
    differences = list(_compare_by_key(keys, found) if official else _compare_by_name(expected, found))
    doubled = {difference.found for difference in differences if difference.kind is Kind.DOUBLED}
    doubled_ids = {record.id for record in doubled if record is not None}
    positions = [position for position, record in enumerate(found) if record.id not in doubled_ids]
    astray, ties_by_id = judge_order([(found[at].clave, found[at].id) for at in positions], official=official)
    homes = _Homes(expected)
    for at in (positions[index] for index in astray):
        wanted = keys.get(found[at].id)
        home = (wanted or found[at]).municipio_id if official else homes.of(found[at])
        differences.append(Difference(Kind.OUT_OF_ORDER, home, wanted, found[at], at))
    return ListComparison(differences, official, ties_by_id)


def _compare_by_key(keys: dict[int, ListedLocality], found: Sequence[ListedLocality]) -> Iterator[Difference]:
    seen: set[int] = set()
    for position, record in enumerate(found):
        wanted = keys.get(record.id)
        home = (wanted or record).municipio_id
        if record.id in seen:
            yield Difference(Kind.DOUBLED, home, wanted, record, position)
        elif wanted is None:
            yield Difference(Kind.UNKNOWN, home, None, record, position)
        elif wanted != record:
            yield Difference(Kind.DIFFERENT, home, wanted, record, position)
        seen.add(record.id)
    for key, record in keys.items():
        if key not in seen:
            yield Difference(Kind.MISSING, record.municipio_id, record)


def _compare_by_name(expected: Sequence[ListedLocality], found: Sequence[ListedLocality]) -> Iterator[Difference]:
    """Compare as multisets of clave and name: of several homonyms, no one can tell which is missing."""
    homes = _Homes(expected)
    left = {names: len(records) for names, records in homes.items()}
    seen: set[int] = set()
    for position, record in enumerate(found):
        names = record[2:]
        if record.id in seen:
            yield Difference(Kind.DOUBLED, homes.of(record), None, record, position)
        elif left.get(names, 0):
            left[names] -= 1
        else:
            yield Difference(Kind.UNKNOWN, None, None, record, position)
        seen.add(record.id)
    for names, count in left.items():
        for record in homes[names][:count]:
            told = count == len(homes[names])
            yield Difference(Kind.MISSING, record.municipio_id if told else None, record)


class _Homes(defaultdict[tuple[str, str], list[ListedLocality]]):
    """The records of the file by clave and name."""

    def __init__(self, expected: Sequence[ListedLocality]) -> None:
        super().__init__(list)
        for record in expected:
            self[record[2:]].append(record)

    def of(self, record: ListedLocality) -> int | None:
        """Return the municipio of the record with that clave and name, if there is only one."""
        namesakes = self.get(record[2:], [])
        return namesakes[0].municipio_id if len(namesakes) == 1 else None


def judge_order(keys: Sequence[tuple[str, int]], *, official: bool) -> tuple[list[int], bool]:
    """Return the positions that are out of order, and whether ties on clave go by id.

    If a tenth of the tied records are out of order, the service does not order ties, and the positions are those that
    are out of order by clave alone. The same holds for ids that are not `official`, which imply no order.
    """
    by_clave = positions_astray([clave for clave, _ in keys])
    astray = positions_astray(keys)
    loose = len(astray) - len(by_clave)
    if not official:
        return by_clave, loose == 0
    tied = sum(count for count in Counter(clave for clave, _ in keys).values() if count > 1)
    if loose >= max(_MIN_LOOSE, _LOOSE_SHARE * tied):
        return by_clave, False
    return astray, True


def positions_astray(keys: Sequence[_Key]) -> list[int]:
    """Return the fewest positions without which the keys ascend (a longest ascending subsequence, by patience)."""
    tops: list[_Key] = []
    held: list[int] = []  # positions of the keys in `tops`
    before: list[int] = []  # for each position, the one before it in its subsequence
    for position, key in enumerate(keys):
        pile = bisect_right(tops, key)
        before.append(held[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [key]
        held[pile : pile + 1] = [position]
    kept: set[int] = set()
    at = held[-1] if held else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return [position for position in range(len(keys)) if position not in kept]


# -- The pages of the list


class _Row(BaseModel):
    model_config = ConfigDict(strict=True)

    id: int
    municipio_id: int
    clave: str
    nombre: str


class _Manifest(BaseModel):
    """What is read of the manifest of an export."""

    release: str


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
        exported = _find_export(client, service)
        address = partial(_exported_page if exported else _page, service)
        first = _fetch(client, address(1), 1)
        if first is None:
            raise ServiceError("Page 1 answers 404, so there is no such list or release: check --url and --release.")
        release = exported or first.release
        if service.release is not None and release not in {None, service.release}:
            raise ServiceError("The service ignores --release and answers with another release.")
        if first.total_pages > MAX_PAGES:
            raise ServiceError(f"The service reports {first.total_pages} pages; verify reads at most {MAX_PAGES}.")
        counting.expect(first.total_pages)
        walk = Walk(first.quantity, first.total_pages, release, followed=first.following is not None)
        for page in _pages(client, address, first, walk):
            walk.starts.append(len(walk.records))
            walk.records += page.records
            if len(walk.records) > MAX_RECORDS:
                raise ServiceError(f"The service lists more than {MAX_RECORDS} records, the most that verify reads.")
            counting.advance(1)
    walk.faults += _check_totals(walk)
    return walk


def _page(service: Service, number: int) -> httpx.URL:
    return service.at(PATH, page=str(number))


def _exported_page(service: Service, number: int) -> httpx.URL:
    return httpx.URL(f"{service.root}{PATH}page/{number}.json")


def _find_export(client: httpx.Client, service: Service) -> str | None:
    """Return the release of an export by its manifest; None for a service, which has none."""
    try:
        with client.stream("GET", f"{service.root}{MANIFEST}", headers=_ASKED) as response:
            is_found = response.status_code == HTTPStatus.OK
            return _Manifest.model_validate_json(_read_body(response, 1)).release if is_found else None
    except (httpx.HTTPError, ValidationError):
        return None  # whatever is wrong, page 1 shows it


def _pages(client: httpx.Client, address_of: _AddressOf, first: _ListPage, walk: Walk) -> Iterator[_ListPage]:
    """Yield the pages of a list; if they end early or change on the way, add that to the faults of the walk."""
    page, number, steady, visited = first, 1, True, {address_of(1)}
    yield page
    while address := _following(address_of, page, number, walk):
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


def _following(address_of: _AddressOf, page: _ListPage, number: int, walk: Walk) -> httpx.URL | None:
    if walk.followed:
        return page.following
    return address_of(number + 1) if number < walk.total_pages else None


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


# -- The whole


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
    """The result of a verification; `municipalities` has the names in the file, by key."""

    service: str
    source: str
    sha256: str
    localities: int
    rejected: int
    municipalities: dict[int, str]
    walk: Walk
    comparison: ListComparison

    @property
    def agrees(self) -> bool:
        """Whether the service agrees with the file.

        A service may number records in its own way, and then order ties as it likes: the contract leaves both open.
        """
        ordered = self.comparison.ties_by_id or not self.comparison.official
        return ordered and not self.comparison.differences and not self.walk.faults


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
    return Verification(
        service=service.root,
        source=file.name,
        sha256=file.sha256,
        localities=len(catalogue.localities),
        rejected=len(catalogue.rejected),
        municipalities={key: municipality.nombre for key, municipality in catalogue.municipalities.items()},
        walk=walk,
        comparison=compare([ListedLocality(*locality[:4]) for locality in catalogue.localities], walk.records),
    )


def _read(file: Source, counting: Counting) -> Catalogue:
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
    walk, comparison = verification.walk, verification.comparison
    counts = comparison.counts()
    release = f" (release {walk.release!r})" if walk.release else ""
    way = "following links" if walk.followed else "counting pages"
    yield f"{verification.service}{release} against {verification.source}"
    yield f"  file     {verification.localities:,} localities, {verification.rejected:,} rows rejected"
    yield f"  service  {len(walk.records):,} records on {walk.pages:,} pages, {way}"
    for kind in Kind:
        yield f"{kind:<13}{counts[kind]:>9,}{_by_field(comparison.differences) if kind is Kind.DIFFERENT else ''}"
    yield from _remarks(verification)
    yield from _examples(verification)
    yield "the service agrees with the file" if verification.agrees else "the service differs from the file"


def _by_field(differences: list[Difference]) -> str:
    fields = Counter(
        field for difference in differences if difference.kind is Kind.DIFFERENT for field in difference.fields
    )
    return f"  ({', '.join(f'{field} {count:,}' for field, count in sorted(fields.items()))})" if fields else ""


def _remarks(verification: Verification) -> Iterator[str]:
    walk, comparison = verification.walk, verification.comparison
    if walk.faults:
        yield from (f"totals       {fault}" for fault in walk.faults)
    else:
        yield f"totals       quantity {walk.quantity:,} and total_pages {walk.total_pages:,} match the pages"
    if not comparison.official:
        yield (
            "numbering    none of the service's ids is a key in the file, so records are compared by clave and nombre,"
            " and municipio_id is not compared"
        )
    if not comparison.ties_by_id:
        yield "ties         records with the same clave are not sorted by id"


def _examples(verification: Verification) -> Iterator[str]:
    grouped = _by_municipio(verification.comparison.differences)
    for key, differences in list(grouped.items())[:_MAX_MUNICIPIOS]:
        counts = Counter(difference.kind for difference in differences)
        yield f"{_name(verification, key)}: {', '.join(f'{counts[kind]:,} {kind}' for kind in Kind if counts[kind])}"
        yield from (f"  {_example(verification, difference)}" for difference in differences[:_MAX_EXAMPLES])
        if len(differences) > _MAX_EXAMPLES:
            yield f"  and {len(differences) - _MAX_EXAMPLES:,} more"
    if len(grouped) > _MAX_MUNICIPIOS:
        yield f"and {len(grouped) - _MAX_MUNICIPIOS:,} more municipios"


def _by_municipio(differences: list[Difference]) -> dict[int | None, list[Difference]]:
    """Group differences by municipio in the order of its key; an unknown municipio comes last."""
    grouped: dict[int | None, list[Difference]] = defaultdict(list)
    for difference in differences:
        grouped[difference.municipio_id].append(difference)
    return dict(sorted(grouped.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def _name(verification: Verification, key: int | None) -> str:
    if key is None:
        return "in an unknown municipio"
    name = verification.municipalities.get(key)
    return f"{key:05d} {name!r}" if name is not None else f"{key:05d} (not in the file)"


def _example(verification: Verification, difference: Difference) -> str:
    where = "" if difference.position is None else f", page {verification.walk.page_of(difference.position):,}"
    shown = difference.found or difference.expected
    if difference.kind is Kind.DIFFERENT and difference.found and difference.expected:
        found, expected = difference.found._asdict(), difference.expected._asdict()
        changes = (f"{field} {found[field]!r}, in the file {expected[field]!r}" for field in difference.fields)
        return f"{difference.kind} {difference.found.id}{where}: {'; '.join(changes)}"
    return f"{difference.kind} {shown.id} {shown.clave!r} {shown.nombre!r}{where}" if shown else str(difference.kind)


def as_object(verification: Verification) -> dict[str, object]:
    """Return the whole report, with every difference, as an object for JSON."""
    walk, comparison = verification.walk, verification.comparison
    counts = comparison.counts()
    return {
        "agrees": verification.agrees,
        "service": verification.service,
        "release": walk.release,
        "source": verification.source,
        "sha256": verification.sha256,
        "file": {"localidades": verification.localities, "rejected": verification.rejected},
        "walk": {"records": len(walk.records), "pages": walk.pages, "by": "links" if walk.followed else "numbers"},
        "totals": {"quantity": walk.quantity, "total_pages": walk.total_pages, "faults": walk.faults},
        "official_ids": comparison.official,
        "ties_by_id": comparison.ties_by_id,
        "counts": {_identifier(kind): counts[kind] for kind in Kind},
        "municipios": [
            {
                "id": key,
                "nombre": None if key is None else verification.municipalities.get(key),
                "differences": [_difference_as_json(verification, difference) for difference in differences],
            }
            for key, differences in _by_municipio(comparison.differences).items()
        ],
    }


def _difference_as_json(verification: Verification, difference: Difference) -> dict[str, object]:
    position = difference.position
    return {
        "kind": _identifier(difference.kind),
        "fields": difference.fields if difference.kind is Kind.DIFFERENT else [],
        "page": None if position is None else verification.walk.page_of(position),
        "expected": _record_as_json(difference.expected),
        "found": _record_as_json(difference.found),
    }


def _record_as_json(record: ListedLocality | None) -> dict[str, object] | None:
    return None if record is None else record._asdict()


def _identifier(kind: Kind) -> str:
    return kind.value.replace(" ", "_")
