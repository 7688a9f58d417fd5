"""Which releases there are and which one is served, known to this process without asking for each request."""

import hashlib
import logging
import time
from collections.abc import Mapping

from localidades_api.errors import NoReleaseError, NotFoundError
from localidades_api.repository import CatalogueRepository
from localidades_api.schemas import Release

_log = logging.getLogger("uvicorn.error")


class ReleaseTracker:
    """Keeps what was last read of the releases.

    A request asks once and works on the release that it is given, so no answer mixes two. The newest release is read
    by `refresh`; requests are given it once `serve` has been told to, when its pages are at hand (`page_cache`).
    """

    def __init__(self, repository: CatalogueRepository) -> None:
        self._repository = repository
        self._by_name: Mapping[str, Release] = {}
        self.newest: Release | None = None
        self.served: Release | None = None
        self.checked_at: float | None = None  # seconds of the epoch, of the last look that succeeded
        self._in_step_at = time.time()

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
        names = "/".join(self._by_name)
        return hashlib.blake2b(names.encode(), digest_size=6).hexdigest()

    async def current(self) -> Release:
        """Return the release that is served; raise NoReleaseError before the first publication."""
        if self.served is None:
            await self.refresh()
        if self.served is None:
            raise NoReleaseError
        return self.served

    async def named(self, name: str) -> Release:
        """Return the release of that name; raise NotFoundError where there is none."""
        if name not in self._by_name:
            await self.refresh()  # it may have been published a moment ago
        try:
            return self._by_name[name]
        except KeyError:
            raise NotFoundError("There is no such release.") from None

    async def refresh(self) -> None:
        """Read the releases and the pointer, in one statement."""
        every, self.newest = await self._repository.list_releases()
        self._by_name = {release.name: release for release in every}
        if self.served is None or self.newest is None:
            self.serve(self.newest)
        self.checked_at = time.time()
        if self.served == self.newest:
            self._in_step_at = self.checked_at

    def serve(self, release: Release | None) -> None:
        """Give this release to every request from now on."""
        if release != self.served:
            _log.info("Serving release %s.", release.name if release else "none")
        self.served = release
