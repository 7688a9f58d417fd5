"""The tiles of the map, with as many places as fit and a backdrop for the others (docs/decisions/site.md).

The most recently used are cached, encoded and compressed, of any release.
"""

import asyncio
import gzip
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from localidades_api.caches.results import ResultCache
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key, state_of
from localidades_api.catalogue.mercator import MEXICO, Box, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.tiles import (
    CELLS,
    EXTENT,
    StateCell,
    TileContent,
    TilePlace,
    get_backdrop,
    get_bounds,
    get_tile,
    list_state_cells,
)
from localidades_api.html.svg import STATES, draw_backdrop
from localidades_api.http.mvt import PointLayer, Value, encode_multipoints

_MAX_PLACES = 1000  # read for a tile, which has no room for more
_MAX_CACHE = 16 * 1024**2  # bytes, some thousand tiles
_OVERHEAD = 400  # bytes per tile in addition to its body: key, objects
MAX_TILE_BYTES = 60_000  # of a tile as it is sent, compressed
_MAX_PLACES_BYTES = 40_000  # beside a backdrop, before compression
_DENSITIES = (1, 4, 12, 36)  # places from which a cell of the backdrop is denser
_GZIP_LEVEL = 6

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


def _size(body: bytes) -> int:
    return len(body) + _OVERHEAD


def compress(body: bytes) -> bytes:
    """Compress a tile; equal ones have equal bytes."""
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)


def encode_tile(content: TileContent) -> bytes:
    """Return the layer `places`, the most prominent first, and the layer `backdrop` if some are not in it."""
    if not (places := content.places()):
        return b""
    if not content.cells:
        layer, is_whole = _encode_places(places, MAX_TILE_BYTES)
        if is_whole:
            return layer
    backdrop = _encode_backdrop(places, content.cells)
    layer, _ = _encode_places(places, min(_MAX_PLACES_BYTES, MAX_TILE_BYTES - len(compress(backdrop))))
    return layer + backdrop


def _encode_places(places: Sequence[TilePlace], limit: int) -> tuple[bytes, bool]:
    layer = PointLayer("places", EXTENT, limit)
    is_whole = all(layer.add(place.id, place.x, place.y, _properties(place)) for place in places)
    return layer.encode(), is_whole


def _properties(place: TilePlace) -> dict[str, Value]:
    municipio_id = place.id // KEYS_OF_A_MUNICIPIO
    properties: dict[str, Value | None] = {
        "nombre": place.nombre,
        "cvegeo": format_key("localidad", place.id),
        "municipio_id": municipio_id,
        "estado_id": state_of(municipio_id),
        "ambito": place.ambito,
        "poblacion": place.poblacion,
    }
    return {name: value for name, value in properties.items() if value is not None}


def _encode_backdrop(places: Sequence[TilePlace], cells: "array[int]") -> bytes:
    """Return a layer with a point in the middle of each cell, grouped by density, 1 to 4."""
    if not cells:  # all places are listed, but not all of them fit
        size = EXTENT // CELLS
        counts = Counter(place.y // size * CELLS + place.x // size for place in places)
        cells = array("i", chain.from_iterable(sorted(counts.items())))
    multipoints: dict[int, list[tuple[int, int]]] = {}
    for cell, count in zip(cells[::2], cells[1::2], strict=True):
        y, x = divmod(cell, CELLS)
        multipoints.setdefault(bisect_right(_DENSITIES, count), []).append((2 * x + 1, 2 * y + 1))
    return encode_multipoints("backdrop", 2 * CELLS, "density", multipoints)
