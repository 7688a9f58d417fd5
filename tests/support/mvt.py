"""Vector tiles read with Google's protocol buffers and the schema of the specification (Mapbox Vector Tile 2.1)."""

from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

Field = descriptor_pb2.FieldDescriptorProto
_ONE, _MANY = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED
_POINT, _POLYGON = 1, 3
_MOVE_TO, _LINE_TO, _CLOSE_PATH = 1, 2, 7

Point = tuple[int, int]


@dataclass
class Feature:
    """Points, or the rings of polygons, in units of the layer from the north-west corner."""

    id: int
    points: list[Point]
    rings: list[list[Point]]
    properties: dict[str, Any]


@dataclass
class Layer:
    """A layer of a tile."""

    extent: int
    features: list[Feature]


def _message(name: str, *fields: tuple[str, int, int, int, str]) -> descriptor_pb2.DescriptorProto:
    return descriptor_pb2.DescriptorProto(
        name=name,
        field=[
            Field(
                name=field,
                number=number,
                label=label,
                type=type_,
                type_name=of or None,
                options=descriptor_pb2.FieldOptions(packed=True) if field in {"tags", "geometry"} else None,
            )
            for field, number, label, type_, of in fields
        ],
    )


def _schema() -> Any:  # noqa: ANN401  # a class made when it runs
    value = _message(
        "Value", ("string_value", 1, _ONE, Field.TYPE_STRING, ""), ("uint_value", 5, _ONE, Field.TYPE_UINT64, "")
    )
    feature = _message(
        "Feature",
        ("id", 1, _ONE, Field.TYPE_UINT64, ""),
        ("tags", 2, _MANY, Field.TYPE_UINT32, ""),
        ("type", 3, _ONE, Field.TYPE_UINT32, ""),  # an enumeration; the number is the same on the wire
        ("geometry", 4, _MANY, Field.TYPE_UINT32, ""),
    )
    layer = _message(
        "Layer",
        ("version", 15, _ONE, Field.TYPE_UINT32, ""),
        ("name", 1, _ONE, Field.TYPE_STRING, ""),
        ("features", 2, _MANY, Field.TYPE_MESSAGE, ".vector_tile.Feature"),
        ("keys", 3, _MANY, Field.TYPE_STRING, ""),
        ("values", 4, _MANY, Field.TYPE_MESSAGE, ".vector_tile.Value"),
        ("extent", 5, _ONE, Field.TYPE_UINT32, ""),
    )
    tile = _message("Tile", ("layers", 3, _MANY, Field.TYPE_MESSAGE, ".vector_tile.Layer"))
    file = descriptor_pb2.FileDescriptorProto(
        name="vector_tile.proto", package="vector_tile", syntax="proto2", message_type=[value, feature, layer, tile]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("vector_tile.Tile"))


_Tile = _schema()


def read_tile(body: bytes) -> dict[str, Layer]:
    """Return the layers of a tile by name; nothing in it may be unknown to the schema."""
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
        points, rings = _read_geometry(feature.geometry)
        assert feature.type == (_POLYGON if rings else _POINT)
        assert not (points and rings)
        features.append(Feature(feature.id, points, rings, properties))
    return Layer(layer.extent, features)


def _read_geometry(geometry: Any) -> tuple[list[Point], list[list[Point]]]:  # noqa: ANN401  # as above
    """Return the points that no line follows, and the rings."""
    numbers, x, y = iter(geometry), 0, 0
    points: list[Point] = []
    rings: list[list[Point]] = []
    for command in numbers:
        if command & 7 == _CLOSE_PATH:
            assert command >> 3 == 1
            continue
        path = []
        for _ in range(command >> 3):
            x, y = x + _signed(next(numbers)), y + _signed(next(numbers))
            path.append((x, y))
        if command & 7 == _LINE_TO:
            rings.append([points.pop(), *path])
        else:
            assert command & 7 == _MOVE_TO
            points += path
    return points, rings


def _signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)
