"""The JSON pages of a release, as the bytes of their bodies.

A release never changes, so a cached page is never stale, and no page is evicted to make room for another. Concurrent
requests for a page that is not cached share one fetch.
"""

import asyncio
import time

from localidades_api.catalogue.locality import encode_envelope
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.observability.metrics import COUNTERS, Series
from localidades_api.releases.single_flight import SingleFlight

_BATCH_PAGES = 48  # pages per statement, some 200 kB; with fewer, the whole release takes too long to cache
_OVERHEAD = 100  # bytes per page in addition to its body


class ReleasePages:
    """The cached pages of one release, by number from 1."""

    def __init__(self, release: Release, limit: int) -> None:
        self.release = release
        self.pages: list[bytes | None] = [None] * (max(release.total_pages, 1) + 1)
        self.is_warm = False
        self.bytes = 0
        self.held = 0
        self._limit = limit

    def put(self, number: int, page: bytes) -> bool:
        """Cache a page if there is room; return True if it is cached."""
        if self.pages[number] is None:
            cost = len(page) + _OVERHEAD
            if self.bytes + cost > self._limit:
                return False
            self.pages[number] = page
            self.bytes += cost
            self.held += 1
        return True


class PageCache:
    """Caches up to `limit` bytes of pages of each release that it holds; 0 turns it off."""

    def __init__(self, repository: CatalogueRepository, limit: int) -> None:
        self.limit = limit
        self._repository = repository
        self._held: dict[int, ReleasePages] = {}
        self._fetching: SingleFlight[tuple[Release, int], bytes] = SingleFlight()

    def held(self, release: Release) -> ReleasePages | None:
        """Return the cached pages of a release, or None if the release is not held."""
        held = self._held.get(release.id)
        if held is None or held.release is release or held.release == release:
            return held
        return None  # a recreated database numbers its releases from 1 again

    def hold(self, release: Release) -> ReleasePages:
        """Hold a release, and return its cached pages."""
        held = self.held(release)
        if held is None:
            held = self._held[release.id] = ReleasePages(release, self.limit)
        return held

    def keep_only(self, release: Release | None) -> None:
        """Drop the pages of every other release."""
        self._held = {id_: held for id_, held in self._held.items() if release and id_ == release.id}

    def gauges(self) -> dict[Series, float]:
        """Return the size of the cache, in bytes and in pages."""
        return {
            ("page_cache_bytes",): sum(held.bytes for held in self._held.values()),
            ("page_cache_pages",): sum(held.held for held in self._held.values()),
        }

    async def get(self, release: Release, number: int) -> bytes:
        """Return a page from the cache, or fetch it."""
        held = self.held(release)
        if held and (page := held.pages[number]):
            COUNTERS.page_hits += 1
            return page
        COUNTERS.page_misses += 1
        return await self._fetching.run((release, number), lambda: self._fetch(release, number))

    async def close(self) -> None:
        """Cancel the fetches that are running: their clients may have gone."""
        await self._fetching.close()

    async def _fetch(self, release: Release, number: int) -> bytes:
        (results,) = await self._list_pages(release, number, number) if release.total_pages else [""]
        page = _encode(release, results)
        if held := self.held(release):
            held.put(number, page)
        return page

    async def _list_pages(self, release: Release, first: int, last: int) -> list[str]:
        """Return the results of a range of pages; raise DatabaseUnavailableError if one is missing."""
        texts = await self._repository.list_pages(release, first, last)
        if len(texts) != last - first + 1:
            raise DatabaseUnavailableError(f"The database no longer has every page of release {release.name}.")
        return texts

    async def fill(self, held: ReleasePages) -> None:
        """Fetch a release's missing pages in bulk, as far as there is room."""
        total = held.release.total_pages
        for first in range(1, total + 1, _BATCH_PAGES):
            last = min(first + _BATCH_PAGES - 1, total)
            if all(held.pages[first : last + 1]):
                continue
            began = time.monotonic()
            texts = await self._list_pages(held.release, first, last)
            pages = [_encode(held.release, text) for text in texts]
            if not all(held.put(number, page) for number, page in enumerate(pages, first)):
                return
            await asyncio.sleep((time.monotonic() - began) / 2)  # leave a third of the time to requests


def _encode(release: Release, results: str) -> bytes:
    return encode_envelope(release.localities, release.total_pages, results)
