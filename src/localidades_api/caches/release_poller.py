"""Polls the current release, and makes a new one ready before requests see it.

A release is ready when its pages are cached and its index of names is open, so that lists and searches change to it
together. It is served after some seconds even if that fails: its publisher may want the one before gone.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

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
        self._running: dict[str, tuple[object, asyncio.Task[None]]] = {}  # by kind, what it works on
        self._awaited: tuple[Release | None, float] = (None, 0.0)  # what is to be served, at that time in any case
        self._is_database_away = False
        self._highest_served_id = 0

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
            for _, task in self._running.values():
                task.cancel()

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
        if not self._pages.limit or pages.is_warm:
            return None
        return self._start("pages", pages, self._fill(pages))

    def _fetch_names(self, release: Release) -> "asyncio.Task[None] | None":
        return None if self._names.held(release) else self._start("names", release, self._prepare_names(release))

    def _start(self, kind: str, subject: object, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task for a subject: one that runs for it already goes on, and one for another is cancelled."""
        running = self._running.get(kind)
        if running and running[0] == subject and not running[1].done():
            work.close()
            return running[1]
        if running:
            running[1].cancel()
        task = asyncio.create_task(work)
        self._running[kind] = (subject, task)
        return task

    async def _prepare_names(self, release: Release) -> None:
        try:
            await self._names.prepare(release)
        except UnavailableError:
            pass  # its cause has been logged
        except Exception as error:  # noqa: BLE001  # the next poll tries again
            FAULTS.report(error, "Can't fetch the names of release %s: %s", release.name, error, traceback=True)

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
