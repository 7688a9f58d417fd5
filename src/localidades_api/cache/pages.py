"""The JSON pages of a release, as bytes.

A release never changes, so neither do its pages: none is ever stale, and none is pushed out by another. A page that is
not held is fetched once, however many ask for it.
"""

import asyncio
import time

from localidades_api.cache.single_flight import SingleFlight
from localidades_api.domain.schemas import Release
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.http.pages import EncodedPage, PageEncoder
from localidades_api.observability.metrics import COUNTERS, Series
from localidades_api.storage.repository import CatalogueRepository

_BATCH_PAGES = 48  # pages a statement, some 200 kB: in smaller ones a release is not all there when requests see it
_OVERHEAD = 600  # bytes that a page takes besides its body: the Link header, objects


class ReleasePages:
    """The pages of one release that are held, by number; there is no page 0."""

    def __init__(self, release: Release, limit: int) -> None:
        self.release = release
        self.name = release.name.encode()
        self.encoder = PageEncoder(release)
        self.pages: list[EncodedPage | None] = [None] * (max(release.total_pages, 1) + 1)
        self.is_warm = False
        self.bytes = 0
        self.held = 0
        self._limit = limit

    def put(self, number: int, page: EncodedPage) -> bool:
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
    """Holds up to `limit` bytes of pages of each release that it is told to hold; with 0, none."""

    def __init__(self, repository: CatalogueRepository, limit: int) -> None:
        self.limit = limit
        self._repository = repository
        self._held: dict[int, ReleasePages] = {}
        self._fetching: SingleFlight[tuple[Release, int], EncodedPage] = SingleFlight()

    def of(self, release: Release) -> ReleasePages | None:
        """Return the pages of a release, if they are held."""
        held = self._held.get(release.id)
        if held is None or held.release is release or held.release == release:
            return held
        return None  # a database that was made anew counts from 1 again

    def hold(self, release: Release) -> ReleasePages:
        """Make room for the pages of a release, and return what is there already."""
        held = self.of(release)
        if held is None:
            held = self._held[release.id] = ReleasePages(release, self.limit)
        return held

    def drop_all_but(self, release: Release | None) -> None:
        """Let go of every other release's pages."""
        self._held = {id_: held for id_, held in self._held.items() if release and id_ == release.id}

    def gauges(self) -> dict[Series, float]:
        """Return how much is held."""
        return {
            ("page_cache_bytes",): sum(held.bytes for held in self._held.values()),
            ("page_cache_pages",): sum(held.held for held in self._held.values()),
        }

    async def page(self, release: Release, number: int) -> EncodedPage:
        """Return a page, held or fetched."""
        held = self.of(release)
        if held and (page := held.pages[number]):
            COUNTERS.page_hits += 1
            return page
        COUNTERS.page_misses += 1
        return await self._fetching.run((release, number), lambda: self._fetch(release, number))

    async def _fetch(self, release: Release, number: int) -> EncodedPage:
        (results,) = await self._list_pages(release, number, number) if release.total_pages else [""]
        held = self.of(release)
        page = (held.encoder if held else PageEncoder(release)).encode(number, results)
        if held:
            held.put(number, page)
        return page

    async def _list_pages(self, release: Release, first: int, last: int) -> list[str]:
        """Return the results of a range of pages, all of them: what is missing must not pass for an empty page."""
        texts = await self._repository.list_pages(release, first, last)
        if len(texts) != last - first + 1:
            raise DatabaseUnavailableError(f"The database no longer has every page of release {release.name}.")
        return texts

    async def fill(self, held: ReleasePages) -> None:
        """Fetch in bulk what is missing of a release's pages, as far as there is room."""
        total = held.release.total_pages
        for first in range(1, total + 1, _BATCH_PAGES):
            last = min(first + _BATCH_PAGES - 1, total)
            if all(held.pages[first : last + 1]):
                continue
            began = time.monotonic()
            texts = await self._list_pages(held.release, first, last)
            pages = [held.encoder.encode(number, text) for number, text in enumerate(texts, first)]
            if not all(held.put(number, page) for number, page in enumerate(pages, first)):
                return
            await asyncio.sleep((time.monotonic() - began) / 2)  # a third of the time is for requests alone
