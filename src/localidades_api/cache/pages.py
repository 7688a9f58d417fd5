"""The JSON pages of the release that is served, as bytes.

A release never changes, so neither do its pages: none is ever stale, and none is pushed out by another. What is not
held is fetched once, however many ask for it. A newly published release is fetched in bulk before requests see it.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import NamedTuple

from localidades_api.cache.positions import PositionCache
from localidades_api.domain.pagination import link_header
from localidades_api.domain.schemas import Release
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.http.caching import freshness_headers
from localidades_api.http.headers import API_HEADERS, RawHeaders, on_wire
from localidades_api.http.html.renderer import JSON, Format
from localidades_api.http.paths import LOCALIDADES
from localidades_api.observability.faults import FAULTS
from localidades_api.observability.metrics import COUNTERS, Series
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.storage.repository import CatalogueRepository

_log = logging.getLogger("uvicorn.error")

_BATCH_PAGES = 48  # pages a statement, some 200 kB: in smaller ones a release is not all there when requests see it
_OVERHEAD = 600  # bytes that a page takes besides its body: the Link header, objects
_REPLICATION_LAG = 0.1  # seconds: standbys that are no further behind have a new release before it is asked of them
_ACTIVATION_TIMEOUT = 1.2  # seconds that requests wait for a new release's pages before they see it without


class StoredPage(NamedTuple):
    """What is a page's own: plain bytes, so that thousands of them are no work for the garbage collector."""

    link: bytes
    length: bytes
    body: bytes


class ReleasePages:
    """The pages of one release, by number; there is no page 0."""

    def __init__(self, release: Release, limit: int) -> None:
        self.release = release
        self.name = release.name.encode()
        self.etag = freshness_headers(release, JSON.format)["ETag"].encode()
        self.freshness = raw_freshness(release)
        self.pages: list[StoredPage | None] = [None] * (max(release.total_pages, 1) + 1)
        self.is_warm = False
        self.warming: asyncio.Task[None] | None = None
        self.bytes = 0
        self.held = 0
        self._limit = limit
        self._wire_start = on_wire(self.freshness) + b"link: "

    def not_modified(self, number: int) -> RawHeaders:
        """Return the headers of a page's 304, which needs no page."""
        return [*self.freshness, (b"link", _links(self.release, JSON.format, number).encode())]

    def not_modified_on_wire(self, number: int) -> bytes:
        """Return all headers of a page's 304 as they go over the wire."""
        if page := self.pages[number]:
            return b"".join((self._wire_start, page.link, _WIRE_END))
        return on_wire(self.not_modified(number) + API_HEADERS)

    def page_headers_on_wire(self, page: StoredPage) -> bytes:
        """Return all headers of a page as they go over the wire."""
        return b"".join((self._wire_start, page.link, _WIRE_MIDDLE, page.length, _WIRE_END))

    def put(self, number: int, page: StoredPage) -> bool:
        """Keep a page if there is room; nothing is thrown out for it, so nobody can push good pages out."""
        if self.pages[number] is None:
            cost = len(page.body) + _OVERHEAD
            if self.bytes + cost > self._limit:
                return False
            self.pages[number] = page
            self.bytes += cost
            self.held += 1
        return True


class PageCache:
    """Holds up to `limit` bytes of pages of the release that is served; with 0, none."""

    def __init__(
        self, repository: CatalogueRepository, releases: ReleaseTracker, selections: PositionCache, limit: int
    ) -> None:
        self._repository = repository
        self._selections = selections
        self._releases = releases
        self._limit = limit
        self._shelves: dict[int, ReleasePages] = {}
        self._is_away = False
        self._loading: dict[tuple[Release, int], asyncio.Task[StoredPage]] = {}

    def shelf(self) -> ReleasePages | None:
        """Return the shelf of the release that is served, if there is one."""
        served = self._releases.served
        return self._shelf_of(served) if served else None

    def _shelf_of(self, release: Release) -> ReleasePages | None:
        shelf = self._shelves.get(release.id)
        if shelf is None or shelf.release is release or shelf.release == release:
            return shelf
        return None  # a database that was made anew counts from 1 again

    def gauges(self) -> dict[Series, float]:
        """Return how much is held."""
        shelves = self._shelves.values()
        return {
            ("page_cache_bytes",): sum(shelf.bytes for shelf in shelves),
            ("page_cache_pages",): sum(shelf.held for shelf in shelves),
        }

    async def page(self, release: Release, number: int) -> StoredPage:
        """Return a page, held or fetched; all who ask for it at one time share one statement."""
        shelf = self._shelf_of(release)
        if shelf and (held := shelf.pages[number]):
            COUNTERS.page_hits += 1
            return held
        COUNTERS.page_misses += 1
        key = (release, number)
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.create_task(self._fetch(release, number))
            loading.add_done_callback(lambda _: self._loading.pop(key))
        return await asyncio.shield(loading)  # one who hangs up does not take the page from the others

    async def _fetch(self, release: Release, number: int) -> StoredPage:
        (text,) = await self._list_pages(release, number, number) if release.total_pages else [""]
        page = _store(release, number, text)
        if shelf := self._shelf_of(release):
            shelf.put(number, page)
        return page

    async def _list_pages(self, release: Release, first: int, last: int) -> list[str]:
        """Return the results of a range of pages, all of them: what is missing must not pass for an empty page."""
        texts = await self._repository.list_pages(release, first, last)
        if len(texts) != last - first + 1:
            raise DatabaseUnavailableError(f"The database has lost pages of release {release.name}.")
        return texts

    async def follow(self, poll: float) -> None:
        """Keep in step with what is published, for ever, by a look every `poll` seconds.

        No notification is listened for: it would take a connection of its own and neither reaches a standby nor comes
        through a pooler, so the look would be needed all the same (decision 0007).
        """
        try:
            while True:
                try:
                    await self._look()
                except Exception as error:  # noqa: BLE001  # whatever it is, the next look may succeed
                    FAULTS.report(error, "The current release can't be read", traceback=True)
                await asyncio.sleep(poll)
        finally:
            self._drop_all_but(None)

    async def _look(self) -> None:
        """Read which release is the newest; the log tells when the database goes away and when it is back."""
        try:
            await self._releases.refresh()
        except DatabaseUnavailableError as error:
            if not self._is_away:
                _log.warning("The database is away; what is held is served: %s (%r)", error, error.__cause__)
            self._is_away = True
            return
        if self._is_away:
            _log.warning("The database answers again.")
        self._is_away = False
        await self._take_up(self._releases.newest)

    async def _take_up(self, release: Release | None) -> None:
        """Fetch a release's pages, and let requests see it once they are at hand or it has taken too long."""
        if release:
            if release != self._releases.served:
                await asyncio.sleep(_REPLICATION_LAG)
            shelf = self._shelf_of(release)
            if shelf is None:
                shelf = self._shelves[release.id] = ReleasePages(release, self._limit)
            if self._limit and not shelf.is_warm and (shelf.warming is None or shelf.warming.done()):
                shelf.warming = asyncio.create_task(self._warm(shelf))
                if release != self._releases.served:
                    await asyncio.wait({shelf.warming}, timeout=_ACTIVATION_TIMEOUT)
        self._releases.serve(release)
        self._drop_all_but(release)

    def _drop_all_but(self, release: Release | None) -> None:
        for id_ in [id_ for id_ in self._shelves if release is None or id_ != release.id]:
            if warming := self._shelves.pop(id_).warming:
                warming.cancel()

    async def _warm(self, shelf: ReleasePages) -> None:
        """Fill a shelf in bulk; what fails is tried again at the next look."""
        total = shelf.release.total_pages
        try:
            for first in range(1, total + 1, _BATCH_PAGES):
                last = min(first + _BATCH_PAGES - 1, total)
                if all(shelf.pages[first : last + 1]):
                    continue
                began = time.monotonic()
                texts = await self._list_pages(shelf.release, first, last)
                pages = [_store(shelf.release, number, text) for number, text in enumerate(texts, first)]
                if not all(shelf.put(number, page) for number, page in enumerate(pages, first)):
                    break  # the shelf is full
                await asyncio.sleep((time.monotonic() - began) / 2)  # a third of the time is for requests alone
            await self._selections.prewarm(shelf.release)
        except Exception as error:  # noqa: BLE001  # as above
            is_foreseen = isinstance(error, DatabaseUnavailableError)
            message = "The pages of release %s can't be fetched: %s"
            FAULTS.report(error, message, shelf.release.name, error, traceback=not is_foreseen)
            return
        shelf.is_warm = True
        amount = f"all {total}" if shelf.held == total else f"{shelf.held} of {total}"
        _log.info("The page cache holds %s pages of release %s.", amount, shelf.release.name)


def page_headers(release: Release, format_: Format, number: int) -> dict[str, str]:
    """Return the headers that a page and its 304 share."""
    return {**freshness_headers(release, format_), "Link": _links(release, format_, number)}


def raw_headers(freshness: RawHeaders, page: StoredPage) -> RawHeaders:
    """Return the headers of a page as JSON, but for what every census answer has."""
    return [*freshness, (b"link", page.link), *_JSON_HEADERS, (b"content-length", page.length)]


def raw_freshness(release: Release) -> RawHeaders:
    """Return the headers that are the same on every page of a release as JSON."""
    return _raw(freshness_headers(release, JSON.format))


def _raw(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _links(release: Release, format_: Format, number: int) -> str:
    return link_header(LOCALIDADES, {"format": format_, "release": release.name}, number, release.total_pages)


def _store(release: Release, number: int, results: str) -> StoredPage:
    """Make the answer of a page from the JSON text of its results."""
    envelope = f'{{"quantity":{release.localities},"total_pages":{release.total_pages},"results":[{results}]}}'
    body = envelope.encode()
    return StoredPage(_links(release, JSON.format, number).encode(), b"%d" % len(body), body)


_JSON_HEADERS = _raw(JSON.headers)
_WIRE_MIDDLE = b"\r\n" + on_wire(_JSON_HEADERS) + b"content-length: "
_WIRE_END = b"\r\n" + on_wire(API_HEADERS)
