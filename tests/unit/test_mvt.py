"""The bytes of layers, and their limit; `http/test_tiles` reads the contents of tiles with another library."""

from localidades_api.http.mvt import PointLayer, encode_multipoints

FRAME = 5  # bytes: the layer's field and its length


def test_layer_stays_within_its_limit() -> None:
    for limit in range(60, 200):
        layer, count = PointLayer("localidades", 4096, limit), 0
        while layer.add(count, 1, 1, {"nombre": "Pueblo"}):
            count += 1
        assert len(layer.encode()) <= limit + FRAME
        assert count or limit < 100


def test_layers_are_written_as_in_version_2_of_the_specification() -> None:
    layer = PointLayer("p", 4096, 1000)
    assert layer.add(300, 5, -70, {"nombre": "Año", "n": 200})
    assert layer.add(1, 0, 4096, {"n": 200})
    assert layer.encode() == bytes.fromhex(
        "1a 43 0a 01 70 28 80 20 78 02"  # name, extent and version
        "1a 06 6e 6f 6d 62 72 65 22 06 0a 04 41 c3 b1 6f 1a 01 6e 22 03 28 c8 01"  # keys and values
        "12 11 08 ac 02 12 04 00 00 01 01 18 01 22 04 09 0a 8b 01"
        "12 0e 08 01 12 02 01 01 18 01 22 04 09 00 80 40"
    )
    assert encode_multipoints("c", 256, "n", {1: [(2, 3), (5, 1)], 300: [(0, 4096)]}) == bytes.fromhex(
        "1a 31 0a 01 63 28 80 02 78 02 1a 01 6e"
        "22 02 28 01 12 0d 12 02 00 00 18 01 22 05 11 04 06 06 03"  # a value, and two points by their distance
        "22 03 28 ac 02 12 0c 12 02 00 01 18 01 22 04 09 00 80 40"
    )
