"""Polls the current release, and makes a new one ready before requests see it.

A release is ready when its pages are cached and its index of names is open, so that lists and searches change to it
together. It is served after some seconds even if that fails: its publisher may want the one before gone.
"""

import asyncio
import logging
import time

from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.caches.pages import PageCache, ReleasePages
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import DatabaseUnavailableError, UnavailableError
from localidades_api.observability.faults import FAULTS
from localidades_api.releases.tracker import ReleaseTracker

_log = logging.getLogger("uvicorn.error")

_REPLICATION_LAG = 0.1  # seconds; standbys that lag less have a new release before requests need it
ACTIVATION_TIMEOUT = 1.2  # seconds until a new release is served even if not all of its pages are cached
RETURN_TIMEOUT = 0.5  # the same for one that was served before: its publisher wants the present one gone
NAMES_TIMEOUT = 6.0  # seconds until it is served even if it can't be searched; less than the grace of a retirement


class ReleasePoller:
    """Keeps a process up to date with the current release."""

    def __init__(self, releases: ReleaseTracker, pages: PageCache, names: NameIndexes) -> None:
        self._releases = releases
        self._pages = pages
        self._names = names
        self._fetching: tuple[Release, asyncio.Task[None]] | None = None
        self._awaited: tuple[Release | None, float] = (None, 0.0)  # what is to be served, at that time in any case
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
            if self._fetching:
                self._fetching[1].cancel()

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
        self._names.close_surplus()
        if newest := self._releases.newest:
            await self._activate(newest)
        if self._releases.served == newest:
            self._pages.keep_only(newest)

    async def _activate(self, release: Release) -> None:
        """Make a release ready, and serve it once it is, or after a timeout."""
        before = self._releases.served
        if release != before:
            await asyncio.sleep(_REPLICATION_LAG)
        warming, fetching = self._warm_up(self._pages.hold(release)), self._fetch_names(release)
        if release != before:
            timeout = RETURN_TIMEOUT if release.id <= self._highest_served_id else ACTIVATION_TIMEOUT
            for task, longest in ((warming, timeout), (fetching, ACTIVATION_TIMEOUT)):
                if task:
                    await asyncio.wait([task], timeout=longest)
            if self._awaited[0] != release:
                self._awaited = (release, time.monotonic() + NAMES_TIMEOUT)
            if self._names.is_awaited(release) and time.monotonic() < self._awaited[1]:
                return  # the next poll tries again
            self._releases.serve(release)
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

    def _fetch_names(self, release: Release) -> "asyncio.Task[None] | None":
        """Start to fetch a release's index unless it is open or being fetched; retry after a failure."""
        if self._names.held(release):
            return None
        if self._fetching is None or self._fetching[0] != release or self._fetching[1].done():
            self._fetching = (release, asyncio.create_task(self._prepare_names(release)))
        return self._fetching[1]

    async def _prepare_names(self, release: Release) -> None:
        try:
            await self._names.prepare(release)
        except UnavailableError:
            pass  # its cause has been logged
        except Exception as error:  # noqa: BLE001  # the next poll tries again
            FAULTS.report(error, "Can't fetch the names of release %s: %s", release.name, error, traceback=True)

    def _cancel_warming(self) -> None:
        if self._warming:
            self._warming[1].cancel()

    async def _fill(self, pages: ReleasePages) -> None:
        name, total = pages.release.name, pages.release.total_pages
        try:
            await self._pages.fill(pages)
        except Exception as error:  # noqa: BLE001  # the next poll tries again
            is_foreseen = isinstance(error, DatabaseUnavailableError)
            message = "Can't load the pages of release %s: %s"
            FAULTS.report(error, message, name, error, traceback=not is_foreseen)
            return
        pages.is_warm = True
        amount = f"all {total}" if pages.held == total else f"{pages.held} of {total}"
        _log.info("The page cache holds %s pages of release %s.", amount, name)
