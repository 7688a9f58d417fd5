"""The changes between two releases, from the cache of arrays."""

from array import array

from localidades_api.caches.results import ArrayCache
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.changes import find_changes, get_stored_changes
from localidades_api.errors import ComparisonRunningError
from localidades_api.releases.single_flight import SingleFlight


class ChangeCache:
    """Reads the changes that an import has stored, and compares other releases.

    Comparing two whole releases may outlast a request, so it takes a slot and a connection of the pool `comparing`.
    Reading what is stored takes milliseconds, and waits for neither.
    """

    def __init__(self, database: Database, comparing: Database, arrays: ArrayCache) -> None:
        self._database = database
        self._comparing = comparing
        self._arrays = arrays
        self._reading: SingleFlight[tuple[Release, Release], array[int] | None] = SingleFlight()

    async def get(self, old: Release, new: Release) -> "array[int]":
        """Return what changed between two releases, as a kind's number and a key in turn, by kind, then key.

        Raises ComparisonRunningError if the result is not ready in time: it is still running, or all slots are taken.
        """
        pair = (new, old)
        changes = self._arrays.held(pair)
        if changes is None:
            changes = await self._reading.run(pair, lambda: self._read(old, new))
        if changes is not None:
            return changes
        try:
            return await self._arrays.get_slow(pair, lambda: find_changes(self._comparing, old, new))
        except TimeoutError:
            raise ComparisonRunningError from None

    async def close(self) -> None:
        """Cancel the fetches that are running."""
        await self._reading.close()
        await self._arrays.close()

    async def _read(self, old: Release, new: Release) -> "array[int] | None":
        stored = await get_stored_changes(self._database, old, new)
        return None if stored is None else self._arrays.hold((new, old), stored)
