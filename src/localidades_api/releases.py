"""Which releases there are and which one is current, known to this process without asking for each request."""

import asyncio
import logging
from collections.abc import Mapping

from localidades_api.errors import DatabaseUnavailableError, NoReleaseError, NotFoundError
from localidades_api.repository import CatalogueRepository
from localidades_api.schemas import Release

_log = logging.getLogger(__name__)


class ReleaseTracker:
    """Keeps in step with the pointer by looking at it every `poll` seconds.

    A request asks once and works on the release that it is given, so no answer mixes two.
    """

    def __init__(self, repository: CatalogueRepository, poll: float) -> None:
        self._repository = repository
        self._poll = poll
        self._by_name: Mapping[str, Release] = {}
        self._current: Release | None = None

    async def current(self) -> Release:
        """Return the current release; raise NoReleaseError before the first publication."""
        if self._current is None:
            await self.refresh()
        if self._current is None:
            raise NoReleaseError
        return self._current

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
        every, current = await self._repository.list_releases()
        if current != self._current:
            _log.info("The current release is %s.", current.name if current else "none")
        self._by_name = {release.name: release for release in every}
        self._current = current

    async def follow(self) -> None:
        """Look at the pointer for ever; meanwhile what was known last holds."""
        while True:
            try:
                await self.refresh()
            except DatabaseUnavailableError as error:
                _log.warning("The current release can't be read: %s (%r)", error, error.__cause__)
            except Exception:  # noqa: BLE001  # whatever it is, the next look may succeed
                _log.exception("The current release can't be read")
            await asyncio.sleep(self._poll)
