"""Polls the current release, and makes a new one ready before requests see it.

A release is ready when its pages are cached and its names are indexed. Requests don't wait long for either: the release
may be served before all of its pages are cached, and searches by name get the previous release until its names are
indexed. A release that is published again is searched with its earlier index or, on a machine that has none, not at all
until it is built.
"""

import asyncio
import logging

from localidades_api.caches.name_indexes.builder import OutdatedIndexError
from localidades_api.caches.name_indexes.open_indexes import NameIndexes
from localidades_api.caches.pages import PageCache, ReleasePages
from localidades_api.caches.positions import PositionCache
from localidades_api.caches.tiles import PREWARMED_ZOOM, TileCache
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import DatabaseUnavailableError, UnavailableError
from localidades_api.observability.faults import FAULTS
from localidades_api.releases.tracker import ReleaseTracker

_log = logging.getLogger("uvicorn.error")

_REPLICATION_LAG = 0.1  # seconds; standbys that lag less have a new release before requests need it
ACTIVATION_TIMEOUT = 1.2  # seconds until a new release is served even if it is not ready
RETURN_TIMEOUT = 0.5  # the same for one that was served before: its publisher wants the present one gone


class ReleasePoller:
    """Keeps a process up to date with the current release."""

    def __init__(
        self,
        releases: ReleaseTracker,
        pages: PageCache,
        positions: PositionCache,
        names: NameIndexes,
        tiles: TileCache,
    ) -> None:
        self._releases = releases
        self._pages = pages
        self._positions = positions
        self._names = names
        self._tiles = tiles
        self._indexing: asyncio.Task[None] | None = None
        self._drawing: asyncio.Task[None] | None = None
        self._is_database_away = False
        self._highest_served_id = 0
        self._warming: tuple[ReleasePages, asyncio.Task[None]] | None = None

    async def run(self, interval: float) -> None:
        """Poll every `interval` seconds until cancelled.

        Listening for notifications would take another connection, and they reach neither a standby nor a client behind
        a pooler, so polling would still be necessary (docs/decisions/pages.md).
        """
        try:
            while True:
                try:
                    await self._poll()
                except Exception as error:  # noqa: BLE001  # the next poll may succeed
                    FAULTS.report(error, "Can't read the current release", traceback=True)
                await asyncio.sleep(interval)
        finally:
            self._cancel_warming()
            if self._indexing:
                self._indexing.cancel()

    async def _poll(self) -> None:
        """Read the newest release, and log when the database becomes unavailable and available again."""
        try:
            await self._releases.refresh()
        except DatabaseUnavailableError as error:
            if not self._is_database_away:
                _log.warning(
                    "The database is unavailable; cached pages are still served: %s (%r)", error, error.__cause__
                )
            self._is_database_away = True
            return
        if self._is_database_away:
            _log.warning("The database answers again.")
        self._is_database_away = False
        await self._names.tidy()
        if newest := self._releases.newest:
            await self._activate(newest)
        self._pages.keep_only(newest)

    async def _activate(self, release: Release) -> None:
        """Make a release ready, and serve it once it is, or after a timeout."""
        before = self._releases.served
        if release != before:
            await asyncio.sleep(_REPLICATION_LAG)
        warming, indexing = self._warm_up(self._pages.hold(release)), self._index_names(release)
        if release != before:
            is_next = before is not None and before.id < release.id
            awaited = [task for task in (warming, indexing if is_next else None) if task]
            if awaited:
                timeout = RETURN_TIMEOUT if release.id <= self._highest_served_id else ACTIVATION_TIMEOUT
                await asyncio.wait(awaited, timeout=timeout)
            self._releases.serve(release)
            if is_next and indexing and not indexing.done():
                _log.info("Release %s is searched once its names are indexed.", release.name)
            else:  # it is ready, or an earlier one, which somebody published for a reason
                self._releases.search_served()
        self._highest_served_id = max(self._highest_served_id, release.id)

    def _warm_up(self, pages: ReleasePages) -> "asyncio.Task[None] | None":
        """Start to fetch a release's pages unless they are cached or being fetched; retry after a failure."""
        if not self._pages.limit or pages.is_warm:
            return None
        if self._warming and self._warming[0] is pages and not self._warming[1].done():
            return self._warming[1]
        self._cancel_warming()
        task = asyncio.create_task(self._fill(pages))
        self._warming = (pages, task)
        return task

    def _index_names(self, release: Release) -> "asyncio.Task[None] | None":
        """Start to index a release's names unless they are indexed or being indexed; retry after a failure."""
        if self._names.is_ready(release):
            return None
        if self._indexing is None or self._indexing.done():
            self._indexing = asyncio.create_task(self._prepare_names(release))
        return self._indexing

    async def _prepare_names(self, release: Release) -> None:
        try:
            await self._names.prepare(release)
        except OutdatedIndexError:
            return  # the next poll tries again; until then the previous release is searched
        except UnavailableError:
            pass  # its cause has been logged
        except Exception as error:  # noqa: BLE001  # as above
            FAULTS.report(error, "Can't index the names of release %s: %s", release.name, error, traceback=True)
        if release == self._releases.served:
            self._releases.search_served()

    def _cancel_warming(self) -> None:
        if self._warming:
            self._warming[1].cancel()
        if self._drawing:
            self._drawing.cancel()

    async def _fill(self, pages: ReleasePages) -> None:
        name, total = pages.release.name, pages.release.total_pages
        try:
            await self._pages.fill(pages)
            await self._positions.prewarm(pages.release)
        except Exception as error:  # noqa: BLE001  # as above
            is_foreseen = isinstance(error, DatabaseUnavailableError)
            message = "Can't load the pages of release %s: %s"
            FAULTS.report(error, message, name, error, traceback=not is_foreseen)
            return
        pages.is_warm = True
        amount = f"all {total}" if pages.held == total else f"{pages.held} of {total}"
        _log.info("The page cache holds %s pages of release %s.", amount, name)
        self._drawing = asyncio.create_task(self._draw_tiles(pages.release))  # a release is ready without them

    async def _draw_tiles(self, release: Release) -> None:
        """Cache tiles once the names are indexed; both at once would leave requests too little of the processors."""
        try:
            if self._indexing:
                await asyncio.wait({self._indexing})
            await self._tiles.prewarm(release)
        except Exception as error:  # noqa: BLE001  # as above
            FAULTS.report(error, "Can't draw the tiles of release %s: %s", release.name, error, traceback=True)
            return
        _log.info("The tile cache holds the map of release %s down to zoom %d.", release.name, PREWARMED_ZOOM)
