"""Mapbox Vector Tiles 2.1: points as layers of protocol buffers.

A tile is a list of layers, and a layer a list of features. The properties of a feature are numbers of keys and of
values, each of which its layer lists once. Tests read the tiles with another library
(docs/decisions/site.md).
"""

from collections.abc import Mapping, Sequence

MEDIA_TYPE = "application/vnd.mapbox-vector-tile"

Value = str | int  # an integer is not negative

# Fields of messages as they begin on the wire: the number, and 0 before a varint or 2 before a length and its bytes.
_TILE_LAYER = 3 << 3 | 2
_NAME, _FEATURE, _KEY, _VALUE, _EXTENT, _VERSION = 1 << 3 | 2, 2 << 3 | 2, 3 << 3 | 2, 4 << 3 | 2, 5 << 3, 15 << 3
_ID, _TAGS, _TYPE, _GEOMETRY = 1 << 3, 2 << 3 | 2, 3 << 3, 4 << 3 | 2
_STRING, _UINT = 1 << 3 | 2, 5 << 3
_POINT = 1
_ONE_POINT = bytes([1 << 3 | 1])  # a command: how many points in the upper bits, and 1


class PointLayer:
    """A layer of points, each with an id and properties, of at most `limit` bytes."""

    def __init__(self, name: str, extent: int, limit: int) -> None:
        self._fields = [_head(name, extent)]
        self._keys: dict[str, int] = {}
        self._values: dict[Value, int] = {}
        self._room = limit - len(self._fields[0])

    def add(self, id_: int, x: int, y: int, properties: Mapping[str, Value]) -> bool:
        """Add a point at `x` and `y` in units of the extent; return False if the layer is full."""
        fields, tags = [], bytearray()
        for key, value in properties.items():
            if key not in self._keys:
                self._keys[key] = len(self._keys)
                fields.append(_bytes(_KEY, key.encode()))
            if value not in self._values:
                self._values[value] = len(self._values)
                fields.append(_bytes(_VALUE, _encode_value(value)))
            tags += _varint(self._keys[key]) + _varint(self._values[value])
        feature = _number(_ID, id_) + _bytes(_TAGS, tags) + _number(_TYPE, _POINT)
        fields.append(_bytes(_FEATURE, feature + _bytes(_GEOMETRY, _encode_point(x, y))))
        self._room -= sum(map(len, fields))
        if self._room >= 0:
            self._fields += fields
        return self._room >= 0

    def encode(self) -> bytes:
        """Return the layer as bytes of a tile."""
        return _bytes(_TILE_LAYER, b"".join(self._fields))


def encode_multipoints(name: str, extent: int, key: str, multipoints: Mapping[int, Sequence[tuple[int, int]]]) -> bytes:
    """Return the bytes of a layer with a feature of many points for each value of a property."""
    layer = _head(name, extent) + _bytes(_KEY, key.encode())
    for index, (value, points) in enumerate(multipoints.items()):
        feature = _bytes(_TAGS, _varint(0) + _varint(index)) + _number(_TYPE, _POINT)
        layer += _bytes(_VALUE, _encode_value(value)) + _bytes(
            _FEATURE, feature + _bytes(_GEOMETRY, _encode_multipoint(points))
        )
    return _bytes(_TILE_LAYER, layer)


def _head(name: str, extent: int) -> bytes:
    return (
        _bytes(_NAME, name.encode()) + _number(_EXTENT, extent) + _number(_VERSION, 2)
    )  # of the specification, whatever its minor number


def _encode_value(value: Value) -> bytes:
    return _bytes(_STRING, value.encode()) if isinstance(value, str) else _number(_UINT, value)


def _encode_point(x: int, y: int) -> bytes:
    return _ONE_POINT + _signed(x) + _signed(y)


def _encode_multipoint(points: Sequence[tuple[int, int]]) -> bytes:
    """Return points, each as its distance from the one before."""
    geometry = bytearray(_varint(len(points) << 3 | 1))
    x = y = 0
    for column, row in points:
        geometry += _signed(column - x) + _signed(row - y)
        x, y = column, row
    return bytes(geometry)


def _signed(value: int) -> bytes:
    """Return a number with its sign in the lowest bit."""
    return _varint(value << 1 if value >= 0 else -value * 2 - 1)


def _number(field: int, value: int) -> bytes:
    return bytes([field]) + _varint(value)


def _bytes(field: int, value: bytes | bytearray) -> bytes:
    return bytes([field]) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Return seven bits in each byte, the lowest first; the eighth says that more follow."""
    if value < len(_SHORT):
        return _SHORT[value]
    return bytes([value & 127 | 128]) + _varint(value >> 7)


_SHORT = [bytes([value]) for value in range(128)] + [
    bytes([value & 127 | 128, value >> 7]) for value in range(128, 2048)
]
