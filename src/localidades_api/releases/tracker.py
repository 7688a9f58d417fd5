"""Keeps the list of releases and the served one in memory, so that requests need no query for them."""

import hashlib
import logging
import time
from collections.abc import Mapping

from sqlalchemy import TextClause

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.releases import NO_BORDERS, ChangeCounts, ReleaseSnapshot, get_release_snapshot
from localidades_api.errors import DatabaseUnavailableError, NoReleaseError, NotFoundError
from localidades_api.observability.metrics import Series
from localidades_api.releases.single_flight import SingleFlight

_log = logging.getLogger("uvicorn.error")

# Seconds for which a server without the newest release counts as behind. After that the release counts as lost: a
# standby was promoted that had not received it, or a backup was restored.
BEHIND_TIMEOUT = 30.0
_CHECK_INTERVAL = 1.0  # seconds for which the next probes get the outcome of a read
_RECHECK_INTERVAL = 0.25  # seconds between reads of the list because a request names a release that it lacks


class ReleaseTracker:
    """Keeps the list of releases as it was last read.

    A request gets its release once, so no answer mixes two releases. `refresh` reads the newest release; `serve` makes
    it the release of requests, once its pages are cached and its names can be searched (`caches.release_poller`).
    """

    def __init__(self, database: Database, borders: TextClause = NO_BORDERS) -> None:
        """Take the SQL expression of an extension for the edition of its borders, which pages show."""
        self._database = database
        self._find_borders = borders
        self.borders = ""  # their edition, empty without any
        self._by_name: Mapping[str, Release] = {}
        self.changes: Mapping[str, ChangeCounts] = {}  # since the release before, by name, where counted
        # Twelve hexadecimal digits that identify the list of releases and the borders, for the ETag of pages and of
        # other answers that show several releases.
        self._publication = 0
        self.fingerprint = self._digest()
        self._behind_since: float | None = None
        self._rechecking: SingleFlight[None, bool] = SingleFlight()
        self._checking: SingleFlight[None, bool] = SingleFlight(keep=_CHECK_INTERVAL)
        self._was_behind = False  # at the last recheck
        self._recheck_at = 0.0
        self.newest: Release | None = None
        self.served: Release | None = None
        self.checked_at: float | None = None  # Unix time of the last successful read
        self._started_at = time.time()

    @property
    def every(self) -> list[Release]:
        """All releases, oldest first."""
        return list(self._by_name.values())

    @property
    def state(self) -> tuple[Release | None, str]:
        """The state that answers depend on: the served release, and the list of all."""
        return self.served, self.fingerprint

    def _digest(self) -> str:
        shown = "/".join(
            f"{release.name} {release.sha256} {release.published_at} {self.changes.get(release.name)}"
            for release in self.every
        )
        return hashlib.blake2b(f"{self._publication} {shown}{self.borders}".encode(), digest_size=6).hexdigest()

    async def get(self, name: str | None) -> Release:
        """Return the release of that name, or the current one if it is None; raise as `named` and `current` do."""
        return await (self.current() if name is None else self.named(name))

    async def current(self) -> Release:
        """Return the served release; raise NoReleaseError before the first publication."""
        if self.served is None:
            await self._rechecking.run(None, self.refresh)
        if self.served is None:
            raise NoReleaseError
        return self.served

    async def named(self, name: str) -> Release:
        """Return the release of that name; raise NotFoundError if there is none.

        Raises DatabaseUnavailableError if the server is behind and may lack the release.
        """
        if name not in self._by_name and time.monotonic() >= self._recheck_at:
            # It may have been published a moment ago.
            self._was_behind = await self._rechecking.run(None, self.refresh)
            self._recheck_at = time.monotonic() + _RECHECK_INTERVAL
        if name in self._by_name:
            return self._by_name[name]
        if self._was_behind:
            raise DatabaseUnavailableError("The database server is behind and may not have the requested release yet.")
        raise NotFoundError("There is no such release.")

    async def check(self) -> None:
        """Refresh for a probe, which anybody may send: all share one read, and its outcome for a second."""
        await self._checking.run(None, self.refresh)

    async def refresh(self) -> bool:
        """Read the releases and the pointer, in one statement; return True if the server is behind.

        A state older than the known one is ignored; otherwise the pointer would jump between servers.
        """
        reading = await get_release_snapshot(self._database, self._find_borders)
        if self._is_older(reading):
            self._behind_since = self._behind_since or time.monotonic()
            return True
        self._behind_since = None
        self._publication = reading.publication
        self._by_name = {release.name: release for release in reading.every}
        self.changes = reading.changes
        self.borders = reading.borders
        self.fingerprint = self._digest()
        if reading.current != self.newest:
            self.newest = reading.current
        if self.served is None or self.newest is None:
            self.serve(self.newest)
        self.checked_at = time.time()
        return reading.is_behind

    def _is_older(self, reading: ReleaseSnapshot) -> bool:
        """Return True if a reading is older than the last one, by the number of publications.

        Times are not compared, because a clock may be set back. If an id belongs to another release than before, the
        database has been recreated, and its numbers start at 1 again.
        """
        if self._behind_since and time.monotonic() - self._behind_since > BEHIND_TIMEOUT:
            return False
        known = {release.id: release for release in self._by_name.values()}
        return reading.publication < self._publication and all(
            known.get(release.id, release) == release for release in reading.every
        )

    def gauges(self) -> dict[Series, float]:
        """Return the served release, and when the releases were last read."""
        gauges: dict[Series, float] = {
            # The start until the first read; an alert on the age would fire at every start otherwise.
            ("release_checked_timestamp_seconds",): self.checked_at or self._started_at,
            ("release_published_timestamp_seconds",): 0,
        }
        if self.served:
            gauges["release_info", self.served.name] = 1
            gauges["release_published_timestamp_seconds",] = self.served.published_at.timestamp()
        return gauges

    def serve(self, release: Release | None) -> None:
        """Serve this release to every later request."""
        if release != self.served:
            _log.info("Serving release %s.", release.name if release else "none")
            self.served = release
