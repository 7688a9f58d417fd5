"""Encodes a tile within a budget of bytes: as many places as fit, and a backdrop for those that don't."""

import gzip
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key, state_of
from localidades_api.database.queries.tiles import CELLS, EXTENT, TileContent, TilePlace
from localidades_api.http.mvt import PointLayer, Value, encode_multipoints

MAX_TILE_BYTES = 60_000  # of a tile as it is sent, compressed
_MAX_PLACES_BYTES = 40_000  # beside a backdrop, before compression
_DENSITIES = (1, 4, 12, 36)  # places from which a cell of the backdrop is denser
_GZIP_LEVEL = 6


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
    """Return a layer of at most `limit` bytes, and True if all places are in it."""
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
