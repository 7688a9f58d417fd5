"""The positions that filters and searches select, from caches of arrays.

A release never changes, so neither does what a filter selects from it. With the positions cached, every page of a
filtered list costs as much as its first, and its totals are known (docs/decisions/pages.md).
"""

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from localidades_api.caches.results import ArrayCache
from localidades_api.catalogue.filters import DEFAULT_SORT, LocalityFilters, Sort
from localidades_api.catalogue.keys import format_key
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.names.index import NameIndex
from localidades_api.names.suggestions.find import INDEXED, searched

_SUGGESTED = 20  # places that come first by relevance


class _Selection(NamedTuple):
    release: Release
    names: str  # digest of the index that answers a search
    bbox: str | None
    chosen: tuple[tuple[str, str], ...]
    sort: Sort


class PositionCache:
    """Selects the localities of filters in Postgres, and those of a search in the index of names.

    `sorting` reads over another pool, since sorting a whole release may outlast a request. `boxes` caches what
    has a `bbox`: a map requests thousands of boxes, which must not evict other filters from `arrays`.
    """

    def __init__(
        self, repository: CatalogueRepository, sorting: CatalogueRepository, arrays: ArrayCache, boxes: ArrayCache
    ) -> None:
        self._repository = repository
        self._sorting = sorting
        self._arrays = arrays
        self._boxes = boxes
        self._turn = asyncio.Lock()  # of the searches, of which one keeps a processor busy

    async def get(
        self, release: Release, filters: LocalityFilters, sort: Sort = DEFAULT_SORT, names: NameIndex | None = None
    ) -> Sequence[int]:
        """Return the positions of the localities that the filters select, in order; a search needs the release's names.

        Raises DatabaseUnavailableError if the order is not ready in time: it is still being found.
        """
        if filters.search is not None:
            if names is None:
                raise ValueError("A search needs the index of names.")
            return await self._search(release, filters, sort, names, searched(filters.search))
        if not filters.chosen and sort == DEFAULT_SORT:
            return range(1, release.localities + 1)
        return await self._select(_selection(release, "", filters.chosen, sort), filters)

    async def close(self) -> None:
        """Cancel the fetches that are running."""
        await self._arrays.close()
        await self._boxes.close()

    async def _search(
        self, release: Release, filters: LocalityFilters, sort: Sort, names: NameIndex, text: str
    ) -> "array[int]":
        in_list_order = _selection(release, names.digest, filters.chosen | {"search": text})
        arrays = self._arrays_of(in_list_order)
        found = arrays.held(in_list_order)
        if found is None:
            found = arrays.hold(in_list_order, await self._search_names(names, release, filters, text))
        if sort == DEFAULT_SORT or not found:
            return found
        folded = filters.model_copy(update={"search": text})
        if sort != "relevance":
            return await self._select(in_list_order._replace(sort=sort), folded, among=found)
        as_typed = _selection(release, names.digest, filters.chosen, sort)  # suggestions depend on the spelling
        return await self._select(as_typed, folded, among=found, first=_suggested(names, filters, text, found))

    async def _search_names(
        self, names: NameIndex, release: Release, filters: LocalityFilters, text: str
    ) -> "array[int]":
        """Return the positions that a search finds, in a thread: a letter finds a third of all places, in 0.1 s."""
        others = {name: value for name, value in filters.chosen.items() if name not in INDEXED}
        selected = await self.get(release, LocalityFilters.model_validate(others)) if others else None

        def find() -> "array[int]":
            found = names.find(text, filters)
            return array("i", found if selected is None else sorted({*selected}.intersection(found)))

        async with self._turn:
            return await asyncio.to_thread(find)

    async def _select(
        self,
        selection: _Selection,
        filters: LocalityFilters,
        among: Sequence[int] | None = None,
        first: Sequence[int] = (),
    ) -> "array[int]":
        release, sort, arrays = selection.release, selection.sort, self._arrays_of(selection)
        if sort == DEFAULT_SORT:
            return await arrays.get(selection, lambda: self._repository.find_positions(release, filters, sort, among))

        async def find() -> "array[int]":
            found = await self._sorting.find_positions(release, filters, sort, among)
            return array("i", dict.fromkeys((*first, *found))) if first else found

        try:
            return await arrays.get_slow(selection, find)
        except TimeoutError:
            raise DatabaseUnavailableError from None

    def _arrays_of(self, selection: _Selection) -> ArrayCache:
        return self._boxes if selection.bbox else self._arrays


def _suggested(names: NameIndex, filters: LocalityFilters, text: str, found: Sequence[int]) -> list[int]:
    """Return the positions of the places that a search suggests, the likeliest first, as far as it finds them."""
    suggested = names.suggest(
        filters.search or "", estado_id=filters.only_state, municipio_id=filters.only_municipality, limit=_SUGGESTED
    )
    keys = [place.id for place in suggested]
    if not keys:
        return []
    among = names.find(text, LocalityFilters(cvegeo=",".join(format_key("localidad", id_) for id_ in keys)))
    positions = {id_: position for position, (id_, _) in zip(among, names.at(among), strict=True)}
    selected = set(found)
    return [positions[id_] for id_ in keys if positions.get(id_) in selected]


def _selection(release: Release, names: str, chosen: Mapping[str, str], sort: Sort = DEFAULT_SORT) -> _Selection:
    return _Selection(release, names, chosen.get("bbox"), tuple(chosen.items()), sort)
