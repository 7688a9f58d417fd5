"""The changes between two releases, from the cache of arrays."""

from array import array

from localidades_api.caches.arrays import ArrayCache
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.changes import find_changes
from localidades_api.errors import ComparisonRunningError


class ChangeCache:
    """Compares releases over the pool `comparing`, since comparing two whole ones may outlast a request."""

    def __init__(self, comparing: Database, arrays: ArrayCache) -> None:
        self._comparing = comparing
        self._arrays = arrays

    async def get(self, old: Release, new: Release) -> "array[int]":
        """Return what changed between two releases, as a kind's number and a key in turn, by kind, then key.

        Raises ComparisonRunningError if the result is not ready in time: it is still running, or all slots are taken.
        """
        try:
            return await self._arrays.get_slow((new, old), lambda: find_changes(self._comparing, old, new))
        except TimeoutError:
            raise ComparisonRunningError from None

    async def close(self) -> None:
        """Cancel the fetches that are running."""
        await self._arrays.close()
