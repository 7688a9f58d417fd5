"""The size limit of a layer; `http/test_tiles` reads the contents of tiles with another library."""

from localidades_api.http.mvt import PointLayer

FRAME = 5  # bytes: the layer's field and its length


def test_layer_stays_within_its_limit() -> None:
    for limit in range(60, 200):
        layer, count = PointLayer("localidades", 4096, limit), 0
        while layer.add(count, 1, 1, {"nombre": "Pueblo"}):
            count += 1
        assert len(layer.encode()) <= limit + FRAME
        assert count or limit < 100
