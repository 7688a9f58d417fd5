"""Reads vector tiles with Google's protocol buffers and the schema of Mapbox Vector Tile 2.1."""

from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format  # type: ignore[import-untyped]

_POINT = _MOVE_TO = 1

Point = tuple[int, int]


@dataclass
class Feature:
    """Points in units of the layer from the north-west corner."""

    id: int
    points: list[Point]
    properties: dict[str, Any]


@dataclass
class Layer:
    """A layer of a tile."""

    extent: int
    features: list[Feature]


_SCHEMA = """
name: "vector_tile.proto" package: "vector_tile" syntax: "proto2"
message_type { name: "Tile"
  field { name: "layers" number: 3 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".vector_tile.Layer" } }
message_type { name: "Layer"
  field { name: "version" number: 15 label: LABEL_REQUIRED type: TYPE_UINT32 }
  field { name: "name" number: 1 label: LABEL_REQUIRED type: TYPE_STRING }
  field { name: "features" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".vector_tile.Feature" }
  field { name: "keys" number: 3 label: LABEL_REPEATED type: TYPE_STRING }
  field { name: "values" number: 4 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".vector_tile.Value" }
  field { name: "extent" number: 5 label: LABEL_OPTIONAL type: TYPE_UINT32 } }
message_type { name: "Feature"
  field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT64 }
  field { name: "tags" number: 2 label: LABEL_REPEATED type: TYPE_UINT32 options { packed: true } }
  field { name: "type" number: 3 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "geometry" number: 4 label: LABEL_REPEATED type: TYPE_UINT32 options { packed: true } } }
message_type { name: "Value"
  field { name: "string_value" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "uint_value" number: 5 label: LABEL_OPTIONAL type: TYPE_UINT64 } }
"""  # `type` is an enumeration in the specification; a number is the same on the wire
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto()))
_Tile = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("vector_tile.Tile"))


def read_tile(body: bytes) -> dict[str, Layer]:
    """Return the layers of a tile by name; fail on anything outside the schema."""
    tile = _Tile.FromString(body)
    known = _Tile.FromString(body)
    known.DiscardUnknownFields()
    assert known.ByteSize() == tile.ByteSize() == len(body)
    names = [layer.name for layer in tile.layers]
    assert len(set(names)) == len(names)
    return {layer.name: _read_layer(layer) for layer in tile.layers}


def _read_layer(layer: Any) -> Layer:  # noqa: ANN401  # a class made when it runs
    assert layer.version == 2
    assert len(set(layer.keys)) == len(layer.keys)
    values = [value.string_value if value.HasField("string_value") else value.uint_value for value in layer.values]
    features = []
    for feature in layer.features:
        assert len(feature.tags) % 2 == 0
        tags = zip(feature.tags[::2], feature.tags[1::2], strict=True)
        properties = {layer.keys[key]: values[value] for key, value in tags}
        assert feature.type == _POINT
        features.append(Feature(feature.id, _read_points(feature.geometry), properties))
    return Layer(layer.extent, features)


def _read_points(geometry: Any) -> list[Point]:  # noqa: ANN401  # as above
    numbers, x, y = iter(geometry), 0, 0
    points: list[Point] = []
    for command in numbers:
        assert command & 7 == _MOVE_TO
        for _ in range(command >> 3):
            x, y = x + _signed(next(numbers)), y + _signed(next(numbers))
            points.append((x, y))
    return points


def _signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)
