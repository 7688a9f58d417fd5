"""The tiles of the map, encoded and compressed: the most recently used, of any release (docs/decisions/site.md)."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress

from localidades_api.caches.results import ResultCache
from localidades_api.caches.tile_budget import compress, encode_tile
from localidades_api.catalogue.mercator import MEXICO, MEXICO_BOX, Box, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.tiles import StateCell, get_backdrop, get_bounds, get_tile, list_state_cells
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.html.svg import STATES, draw_backdrop

_MAX_PLACES = 1000  # read for a tile, which has no room for more
_MAX_CACHE = 16 * 1024**2  # bytes, some thousand tiles
_OVERHEAD = 400  # bytes per tile in addition to its body: key, objects
_PAUSE_FACTOR = 4  # a pause after a tile, as a multiple of the time to draw it
PREWARMED_ZOOM = 6  # deeper tiles are drawn in less than 30 ms each

_Key = tuple[Release, Tile | None]  # None is the backdrop of the whole country


class TileCache:
    """Caches tiles, up to `limit` bytes, and what they are drawn from; concurrent requests share a query."""

    def __init__(self, database: Database, limit: int = _MAX_CACHE) -> None:
        self._database = database
        self._drawn: ResultCache[_Key, bytes] = ResultCache(limit, _size)
        self._bounds: ResultCache[Release, Box | None] = ResultCache(8)
        self._state_cells: ResultCache[Release, list[StateCell]] = ResultCache(2)  # some 5,000 cells each

    def held(self, release: Release, tile: Tile) -> bytes | None:
        """Return a tile, compressed with gzip, if it is cached."""
        return self._drawn.held((release, tile))

    async def get(self, release: Release, tile: Tile) -> bytes:
        """Return a tile, compressed with gzip."""
        return await self._drawn.get((release, tile), lambda: self._draw(release, tile))

    async def backdrop(self, release: Release) -> bytes:
        """Return an SVG of all places in the frame of Mexico, compressed with gzip."""
        return await self._drawn.get((release, None), lambda: self._draw_backdrop(release))

    async def state_cells(self, release: Release) -> list[StateCell]:
        """Return what each estado has in each cell of the frame of drawings of estados, and outside."""
        return await self._state_cells.get(release, lambda: list_state_cells(self._database, release, STATES))

    async def bounds(self, release: Release) -> Box | None:
        """Return the smallest box around all places of a release, or None if none has coordinates."""
        return await self._bounds.get(release, lambda: get_bounds(self._database, release))

    async def prewarm(self, release: Release) -> None:
        """Cache the tiles with the most places, so that no request waits for them; without a database, none.

        It pauses after each, since a publication under load keeps the database busy.
        """
        with suppress(DatabaseUnavailableError):
            await self.backdrop(release)
            for tile in _tiles_within(MEXICO_BOX):  # not the bounds: a place may be wrong by half a world
                began = time.monotonic()
                await self.get(release, tile)
                await asyncio.sleep((time.monotonic() - began) * _PAUSE_FACTOR)

    async def close(self) -> None:
        """Cancel the queries that are running."""
        for cache in (self._drawn, self._bounds, self._state_cells):
            await cache.close()

    async def _draw(self, release: Release, tile: Tile) -> bytes:
        content = await get_tile(self._database, release, tile, _MAX_PLACES)
        # Some milliseconds of work, in a thread to keep the event loop free.
        return await asyncio.to_thread(lambda: compress(encode_tile(content)))

    async def _draw_backdrop(self, release: Release) -> bytes:
        cells = await get_backdrop(self._database, release, MEXICO)
        return await asyncio.to_thread(lambda: compress(draw_backdrop(cells, MEXICO)))


def _tiles_within(box: Box) -> Iterator[Tile]:
    for zoom in range(PREWARMED_ZOOM + 1):
        first, last = Tile.at(zoom, box.west, box.north), Tile.at(zoom, box.east, box.south)
        for row in range(first.row, last.row + 1):
            for column in range(first.column, last.column + 1):
                yield Tile(zoom, column, row)


def _size(body: bytes) -> int:
    return len(body) + _OVERHEAD
