"""The tiles of the map, encoded and compressed: the most recently used, of any release (docs/decisions/map.md)."""

import asyncio
import gzip
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress

from cachetools import LRUCache

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key, state_of
from localidades_api.catalogue.mercator import MEXICO, MEXICO_BOX, Box, Tile, runs
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries import TilesRepository
from localidades_api.database.queries.tiles import CELLS, EXTENT, TileContent, TilePlace
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.html.svg import draw_backdrop
from localidades_api.http.mvt import PointLayer, Value, encode_rows
from localidades_api.single_flight import SingleFlight

MAX_TILE_BYTES = 60_000  # of a tile as it is sent, compressed
# Half of all cells at random, the backdrop that compresses worst, take less than the difference.
_MAX_BYTES_BESIDE_BACKDROP = 40_000  # of places, before compression
_MAX_PLACES = 1000  # to read: more have no room
_GZIP_LEVEL = 6
_MAX_CACHE = 16 * 1024**2  # bytes, some thousand tiles
_OVERHEAD = 400  # bytes per tile besides its body: key, objects
_PAUSE_FACTOR = 4  # times as long as it took to draw a tile
PREWARMED_ZOOM = 6  # deeper tiles are drawn in less than 30 ms each

_Key = tuple[Release, Tile | None]  # None is the backdrop of the whole country


class TileCache:
    """Caches tiles, up to `limit` bytes; concurrent requests for one share its query."""

    def __init__(self, repository: TilesRepository, limit: int = _MAX_CACHE) -> None:
        self._repository = repository
        self._kept: LRUCache[_Key, bytes] = LRUCache(limit, getsizeof=_size)
        self._drawing: SingleFlight[_Key, bytes] = SingleFlight()
        self._bounds: LRUCache[Release, Box | None] = LRUCache(8)

    def held(self, release: Release, tile: Tile) -> bytes | None:
        """Return a tile, compressed with gzip, if it is cached."""
        held: bytes | None = self._kept.get((release, tile))
        return held

    async def get(self, release: Release, tile: Tile) -> bytes:
        """Return a tile, compressed with gzip."""
        key = (release, tile)
        held = self.held(release, tile)
        return await self._drawing.run(key, lambda: self._draw(release, tile)) if held is None else held

    async def backdrop(self, release: Release) -> bytes:
        """Return an SVG of all places in the frame of Mexico, compressed with gzip."""
        held: bytes | None = self._kept.get((release, None))
        return held or await self._drawing.run((release, None), lambda: self._draw_backdrop(release))

    async def bounds(self, release: Release) -> Box | None:
        """Return the smallest box with all places of a release; None if none has coordinates."""
        if release not in self._bounds:
            self._bounds[release] = await self._repository.read_bounds(release)
        bounds: Box | None = self._bounds[release]
        return bounds

    async def prewarm(self, release: Release) -> None:
        """Cache the tiles that hold most places, so that no request waits for them; without a database, none.

        It rests after each: a publication under load has other work, in the database too.
        """
        with suppress(DatabaseUnavailableError):
            await self.backdrop(release)
            for tile in _tiles_within(MEXICO_BOX):  # not the bounds: a place may be wrong by half a world
                began = time.monotonic()
                await self.get(release, tile)
                await asyncio.sleep((time.monotonic() - began) * _PAUSE_FACTOR)

    async def close(self) -> None:
        """Cancel the queries that are running."""
        await self._drawing.close()

    async def _draw(self, release: Release, tile: Tile) -> bytes:
        content = await self._repository.read_tile(release, tile, _MAX_PLACES)
        # Some milliseconds of work, for which the event loop does not wait.
        body = self._kept[release, tile] = await asyncio.to_thread(lambda: _compress(encode_tile(content)))
        return body

    async def _draw_backdrop(self, release: Release) -> bytes:
        cells = _unpack(await self._repository.read_backdrop(release, MEXICO))
        body = self._kept[release, None] = _compress(draw_backdrop(cells, MEXICO))
        return body


def _tiles_within(box: Box) -> Iterator[Tile]:
    for zoom in range(PREWARMED_ZOOM + 1):
        first, last = Tile.at(zoom, box.west, box.north), Tile.at(zoom, box.east, box.south)
        for row in range(first.row, last.row + 1):
            for column in range(first.column, last.column + 1):
                yield Tile(zoom, column, row)


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)


def _unpack(cells: bytes) -> "array[int]":
    numbers = array("i", cells)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def encode_tile(content: TileContent) -> bytes:
    """Return the layer `places`, the most prominent first, and if they are not all of them the layer `backdrop`."""
    if not (places := content.places()):
        return b""
    if not content.cells:
        layer, is_whole = _encode_places(places, MAX_TILE_BYTES)
        if is_whole:
            return layer
    layer, _ = _encode_places(places, _MAX_BYTES_BESIDE_BACKDROP)
    return layer + _encode_backdrop(places, content.cells)


def _encode_places(places: Sequence[TilePlace], limit: int) -> tuple[bytes, bool]:
    """Return a layer of at most `limit` bytes, and whether all places are in it."""
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


def _encode_backdrop(places: Sequence[TilePlace], holding: bytes) -> bytes:
    """Return a layer of rectangles, which cover the cells that hold a place."""
    cells = _unpack(holding)
    if not cells:  # all places are listed, but there is no room for them
        size = EXTENT // CELLS
        cells.extend(sorted({place.y // size * CELLS + place.x // size for place in places}))
    return encode_rows("backdrop", CELLS, runs(cells, CELLS))


def _size(body: bytes) -> int:
    return len(body) + _OVERHEAD
