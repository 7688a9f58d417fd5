"""Maps: their projection, with tiles, frames and runs of cells."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.mercator import (
    MEXICO,
    MEXICO_BOX,
    WORLD,
    Box,
    Frame,
    Run,
    Tile,
    project,
    runs,
    unproject,
)
from localidades_api.http.mvt import PointLayer

longitudes, latitudes = st.floats(-180, 180), st.floats(-85, 85)


@given(longitudes, latitudes)
def test_position_of_a_point_leads_back_to_it(longitude: float, latitude: float) -> None:
    x, y = project(longitude, latitude)
    assert x == pytest.approx((longitude + 180) / 360)
    assert y == pytest.approx((1 - math.log(math.tan(math.pi / 4 + math.radians(latitude) / 2)) / math.pi) / 2)
    assert unproject(x, y) == pytest.approx((longitude, latitude), abs=1e-9)


def test_corners_of_the_square_are_those_of_the_world() -> None:
    assert Tile(0, 0, 0).box == pytest.approx(WORLD, abs=1e-6)
    assert project(WORLD.west, WORLD.north) == pytest.approx((0, 0), abs=1e-8)
    assert project(0, 90) == project(0, 89.9999)  # a pole is at infinity
    assert project(0, -90)[1] == 1 - project(0, 90)[1] == pytest.approx(1.288091, abs=1e-6)


@given(st.integers(0, 12), longitudes, latitudes)
def test_tile_of_a_point_has_it_in_its_box(zoom: int, longitude: float, latitude: float) -> None:
    tile = Tile.at(zoom, longitude, latitude)
    assert tile.exists
    assert tile.box.west - 1e-9 <= longitude <= tile.box.east + 1e-9
    assert tile.box.south - 1e-9 <= latitude <= tile.box.north + 1e-9
    east, south = (Tile(zoom, tile.column + at, tile.row + 1 - at).box for at in (1, 0))
    assert (east.west, south.north) == (tile.box.east, tile.box.south)


def test_tile_exists_within_its_zoom() -> None:
    assert all(Tile(*tile).exists for tile in ((0, 0, 0), (12, 4095, 4095)))
    outside = ((13, 0, 0), (-1, 0, 0), (1, 2, 0), (1, 0, 2), (1, -1, 0), (1, 0, -1))
    assert not any(Tile(*tile).exists for tile in outside)


def test_frame_has_the_cells_of_its_box() -> None:
    frame = Frame.around(Box(-90, -10, 90, 10), 180)
    assert (frame.left, frame.columns, frame.rows, frame.scale) == (0.25, 180, 21, 360)
    assert frame.locate(-90, 10) == pytest.approx((0, 0))
    assert frame.locate(0, 0) == pytest.approx((90, (project(0, 0)[1] - frame.top) * 360))
    assert frame.locate(89.999, -10.4) is not None  # the last row is begun
    for outside in ((-90.001, 0), (90, 0), (0, 10.001), (0, -11)):
        assert frame.locate(*outside) is None
    assert (MEXICO.columns, MEXICO.rows) == (400, 257)
    assert MEXICO.locate(MEXICO_BOX.west, MEXICO_BOX.north) == (0, 0)


@given(st.sets(st.integers(0, 49)), st.integers(1, 10))
def test_runs_are_the_longest_of_their_rows(cells: set[int], columns: int) -> None:
    found = list(runs(sorted(cells), columns))
    assert [run.row * columns + run.column + at for run in found for at in range(run.length)] == sorted(cells)
    assert all(run.column + run.length <= columns for run in found)
    begun = {Run(run.column + run.length, run.row, 0)[:2] for run in found}
    assert not begun & {run[:2] for run in found}


# -- Tiles


def test_layer_stays_within_its_limit() -> None:
    frame = 5  # bytes: the layer's field and its length
    for limit in range(60, 200):
        layer, count = PointLayer("localidades", 4096, limit), 0
        while layer.add(count, 1, 2, {"id": count, "nombre": "Pueblo"}):
            count += 1
        assert len(layer.encode()) <= limit + frame
        assert count or limit < 100
