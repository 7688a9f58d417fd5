"""Which releases there are and which one is served, known to this process without asking for each request."""

import hashlib
import logging
import time
from collections.abc import Mapping

from localidades_api.domain.schemas import Release
from localidades_api.errors import DatabaseUnavailableError, NoReleaseError, NotFoundError
from localidades_api.observability.metrics import Series
from localidades_api.storage.repository import ChangeCounts, Reading, ReleasesRepository

_log = logging.getLogger("uvicorn.error")

# Seconds for which a server that does not know the newest release is taken for one that is behind. After that no server
# has it any more: a standby was promoted that never received it, or a backup restored.
_BEHIND_TIMEOUT = 30.0


class ReleaseTracker:
    """Keeps what was last read of the releases.

    A request asks once and works on the release that it is given, so no answer mixes two. The newest release is read
    by `refresh`; requests are given it once `serve` has been told to, when its pages are at hand (`cache.pages`).
    """

    def __init__(self, repository: ReleasesRepository) -> None:
        self._repository = repository
        self._by_name: Mapping[str, Release] = {}
        self.changes: Mapping[str, ChangeCounts] = {}  # of each release since the one before it, where counted
        self._publication = 0
        self._behind_since: float | None = None
        self.newest: Release | None = None
        self.served: Release | None = None
        self.checked_at: float | None = None  # seconds of the epoch, of the last look that succeeded
        self._in_step_at = self._started_at = time.time()

    @property
    def lag(self) -> float:
        """Seconds since the served release was last seen to be the current one."""
        return max(0.0, time.time() - self._in_step_at)

    @property
    def every(self) -> list[Release]:
        """The releases there are, oldest first."""
        return list(self._by_name.values())

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that are others when there are other releases: of answers that show several."""
        shown = "/".join(
            f"{one.name} {one.sha256} {one.published_at} {self.changes.get(one.name)}" for one in self.every
        )
        return hashlib.blake2b(shown.encode(), digest_size=6).hexdigest()

    async def current(self) -> Release:
        """Return the release that is served; raise NoReleaseError before the first publication."""
        if self.served is None:
            await self.refresh()
        if self.served is None:
            raise NoReleaseError
        return self.served

    async def named(self, name: str) -> Release:
        """Return the release of that name; raise NotFoundError where there is none.

        Of a name that nobody knows here a server that is behind can't say that there is no such release.
        """
        is_behind = False
        if name not in self._by_name:
            is_behind = await self.refresh()  # it may have been published a moment ago
        if name in self._by_name:
            return self._by_name[name]
        if is_behind:
            raise DatabaseUnavailableError("The database server is behind and may not have the requested release yet.")
        raise NotFoundError("There is no such release.")

    async def refresh(self) -> bool:
        """Read the releases and the pointer, in one statement; tell whether the server is behind.

        What a server shows that is behind what was read before is passed over, lest the pointer move to and fro.
        """
        reading = await self._repository.list_releases()
        if self._is_older(reading):
            self._behind_since = self._behind_since or time.monotonic()
            return True
        self._behind_since = None
        self._publication = reading.publication
        self._by_name = {release.name: release for release in reading.every}
        self.changes = reading.changes
        if reading.current != self.newest:
            self.newest = reading.current
        if self.served is None or self.newest is None:
            self.serve(self.newest)
        self.checked_at = time.time()
        if self.served == self.newest:
            self._in_step_at = self.checked_at
        return reading.is_behind

    def _is_older(self, reading: Reading) -> bool:
        """Tell whether the pointer has been set since, going back to an older release included.

        Clocks don't count, for they may be set back. A release that has another's number is another database's, as
        one that was made anew, which counts from 1 again.
        """
        if self._behind_since and time.monotonic() - self._behind_since > _BEHIND_TIMEOUT:
            return False
        known = {release.id: release for release in self._by_name.values()}
        return reading.publication < self._publication and all(
            known.get(release.id, release) == release for release in reading.every
        )

    def gauges(self) -> dict[Series, float]:
        """Return which release is served, and when the releases were last read."""
        gauges: dict[Series, float] = {
            # One that has just started has not been failing to read since 1970.
            ("release_checked_timestamp_seconds",): self.checked_at or self._started_at,
            ("release_published_timestamp_seconds",): 0,
        }
        if self.served:
            gauges["release_info", self.served.name] = 1
            gauges["release_published_timestamp_seconds",] = self.served.published_at.timestamp()
        return gauges

    def serve(self, release: Release | None) -> None:
        """Give this release to every request from now on."""
        if release != self.served:
            _log.info("Serving release %s.", release.name if release else "none")
            self.served = release
