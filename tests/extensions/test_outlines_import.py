"""The import of outlines: the forms of INEGI's files, what is refused and why, and editions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines.files import UNITS, read_outlines
from localidades_api.extensions.outlines.geometry import area, crosses_itself, dissolve, nest
from tests.extensions.outline_files import GRS_80, HOLE, OUTLINES, Ring, geojson, shapefile, square, write, zipped
from tests.support.commands import assert_error, invoke
from tests.support.postgres import execute

LAMBERT = f"""PROJCS["x",{GRS_80},PROJECTION["Lambert_Conformal_Conic"],PARAMETER["False_Easting",2500000.0],
PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",-102.0],PARAMETER["Standard_Parallel_1",17.5],
PARAMETER["Standard_Parallel_2",29.5],PARAMETER["Latitude_Of_Origin",12.0],UNIT["Meter",1.0]]"""
WITHOUT_PRJ = {name: content for name, content in shapefile().items() if not name.endswith("prj")}
ONE = {"01001": OUTLINES["01001"]}
BOMB = zipped({"a.geojson": bytes(100 * 1024**2)})


def units(ring: Any) -> list[tuple[int, int]]:  # noqa: ANN401  # any sequence of pairs
    return [(round(x * UNITS), round(y * UNITS)) for x, y in ring]


EXPECTED = [(int(key), name, [units(ring) for ring in rings]) for key, (name, rings) in OUTLINES.items()]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (zipped({f"conjunto_de_datos/{name}": content for name, content in shapefile().items()}), "mg.zip"),
        (zipped({"mg_2025.zip": zipped({**shapefile(), "00ent.shp": b"", "catalogos/leeme.txt": b""})}), "mg.zip"),
        (zipped({**shapefile(), "01mun.shp": b""}), "mg.zip"),
        (zipped(shapefile(kind=15)), "z.zip"),
        (zipped(shapefile(encoding="utf-8")), "utf.zip"),
        (geojson(), "mgem.geojson"),
        (geojson(name="nomgeo"), "mgem.json"),
        (zipped({"01.geojson": geojson({key: OUTLINES[key] for key in ("01001", "01002")}),
                 "02.geojson": geojson({key: OUTLINES[key] for key in ("01003", "02001")})}), "mgem.zip"),
    ],
    ids=["zip", "zip-in-zip", "country-first", "z", "utf-8", "geojson", "v2", "geojsons"],
)  # fmt: skip
def test_every_form_of_the_file_has_the_same_outlines(tmp_path: Path, content: bytes, name: str) -> None:
    assert sorted(read_outlines(write(tmp_path, content, name))) == EXPECTED


def test_shapefile_is_read_with_the_files_beside_it(tmp_path: Path) -> None:
    for name, content in shapefile().items():
        write(tmp_path, content, name.replace("00mun", "Munis"))
    assert list(read_outlines(tmp_path / "Munis.shp")) == EXPECTED


def test_degrees_of_lamberts_projection_are_those_of_pyproj(tmp_path: Path) -> None:
    projected = [
        (2469151.394171245, 1095930.5294082544), (1073581.4127444609, 2345550.152823301),
        (4145261.239450219, 377862.6210530456),
    ]  # fmt: skip
    file = shapefile({"01001": ("A", [[*projected, projected[0]]])}, projection=LAMBERT)
    [one] = read_outlines(write(tmp_path, zipped(file)))
    assert one.rings == [units([(-102.3, 21.88), (-117.1, 32.5), (-86.8, 14.6), (-102.3, 21.88)])]


REFUSED = [
    (zipped({}), "has no outlines"),
    (b"PK\x03\x04 and no more", "zip is damaged"),
    (zipped(WITHOUT_PRJ), r"has no 00mun\.prj, which has its projection"),
    (zipped(shapefile(projection="GEOGCS[]")), "does not name ITRF2008 or WGS 84"),
    (zipped(shapefile(projection=LAMBERT.replace("Lambert_Conformal_Conic", "Mercator"))), "projection Mercator"),
    (zipped({**shapefile(), "00mun.shp": shapefile()["00mun.shp"][:-50]}), "ends within the outline of 02001"),
    (zipped({**shapefile(), "00mun.dbf": shapefile()["00mun.dbf"][:-50]}), "table is cut off"),
    (zipped(shapefile({"01001": ("A", [])})), "outline of 01001 is empty"),
    (zipped(shapefile(ONE, kind=1)), "shape of 01001 is not a polygon"),
    (zipped(shapefile({"01": ("A", [HOLE])})), "01 is the key of an estado"),
    (zipped(shapefile({"33001": ("A", [HOLE])})), "33001 is the key of no municipio"),
    (zipped(shapefile({"01001": ("A", [HOLE[:-1]])})), "01001 has a ring that is not closed"),
    (zipped(shapefile({"01001": ("A", [[(float("nan"), 1)] * 4])})), "damaged"),
    (zipped({"a.geojson": geojson(crs="EPSG:6372")}), "in EPSG:6372: use degrees"),
    (zipped({"a.geojson": b'{"features":[{"geometry":{"type":"Point","coordinates":[1,2]},"properties":'
                          b'{"cvegeo":"01001","nomgeo":"A"}}]}'}), "shape of 01001 is not a polygon"),
    (zipped({"a.geojson": b'{"features":[{"geometry":null,"properties":{"cvegeo":"01001","nomgeo":"A"}}]}'}),
     "outline of 01001 is empty"),
    (zipped({"a.geojson": b"[1"}), "GeoJSON can't be read"),
    (BOMB, "unpacks to more than 200 times its size"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_file_that_can_not_be_read_is_refused_with_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(CatalogueError, match=sentence):
        list(read_outlines(write(tmp_path, content)))


def test_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"", "mgem.geojson")
    with path.open("r+b") as file:
        file.truncate(3 * 1024**3)
    with pytest.raises(CatalogueError, match=r"mgem\.geojson is larger than 512 MB"):
        list(read_outlines(path))


# -- Rings


def test_holes_are_found_in_any_order_and_direction() -> None:
    outer, hole, island = units(square(0, 0, 9)), units(square(1, 1, 5)), units(square(2, 2, 1))
    for rings in ([outer, hole, island], [island[::-1], outer[::-1], hole], [hole[::-1], island, outer]):
        assert sorted(map(len, found := nest(rings))) == [1, 2]
        assert all(area(ring) > 0 for ring, *_ in found)
        assert all(area(ring) < 0 for _, *holes in found for ring in holes)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_outline_of_neighbours_has_their_area_and_none_of_their_borders(cells: set[tuple[int, int]]) -> None:
    polygons = [[units(square(x, y, 1))] for x, y in cells]
    found = dissolve(polygons)
    assert sum(area(ring) for polygon in found for ring in polygon) == len(cells) * UNITS**2
    edges = sum(len(ring) - 1 for polygon in found for ring in polygon)
    sides = [(x + dx, y + dy) in cells for x, y in cells for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))]
    assert edges == sides.count(False)


@pytest.mark.parametrize(
    ("ring", "crosses"),
    [(square(0, 0, 9), False), ([(0, 0), (9, 9), (9, 0), (0, 9), (0, 0)], True),
     ([(0, 0), (9, 0), (5, 5), (9, 9), (0, 9), (5, 5), (0, 0)], False)],
)  # fmt: skip
def test_ring_that_crosses_itself_is_found(ring: list[tuple[float, float]], *, crosses: bool) -> None:
    assert crosses_itself(units(ring)) == crosses


# -- Editions


def imported(url: str) -> list[tuple[Any, ...]]:
    tables = "SELECT name, (SELECT count(*) FROM outlines), (SELECT count(*) FROM outline_rings) FROM outline_edition"
    return [tuple(row) for row in execute(url, tables)[0]]


def test_import_reports_replaces_and_removes(seeded_database: str, tmp_path: Path) -> None:
    first = write(tmp_path, zipped(shapefile()))
    bow: Ring = [(-102, 21), (-101, 22), (-101, 21), (-102, 22), (-102, 21)]
    crossed = OUTLINES | {"01002": ("Peñón", [bow])}
    second = write(tmp_path, geojson(crossed), "second.json")
    arguments = "outlines", "import", str(first), "--edition", "2025"
    dry = invoke(*arguments, "--dry-run", url=seeded_database)
    assert dry.stdout.startswith("Would import edition 2025 in")
    assert imported(seeded_database) == []
    report = invoke(*arguments, url=seeded_database).stdout
    assert re.sub("in [0-9.]+ s", "in … s", report) == (
        "Imported edition 2025 in … s: 4 municipios.\n"
        "Municipios of the current release without an outline (78): 02002, 02003, 02004, 02005, 02006, 02007, 02008,"
        " 02009, 02010, 02011, …\n"
        "Outlines that are not in the current release (1): 01003\n"
    )
    assert imported(seeded_database) == [("2025", 6, 5)]  # with two estados; an outline has two islands
    assert "from this very file: nothing has changed" in invoke(*arguments, url=seeded_database).stdout
    same_name = invoke("outlines", "import", str(second), "--edition", "2025", url=seeded_database)
    assert_error(same_name, "Edition 2025 was imported from another file")
    after = invoke("outlines", "import", str(second), "--edition", "2026", "--json", url=seeded_database)
    assert json.loads(after.stdout)["crossing"] == [1002]
    assert imported(seeded_database) == [("2026", 6, 5)]
    assert "2026: 4 municipios, second.json" in invoke("outlines", "list", url=seeded_database).stdout
    assert invoke("outlines", "remove", url=seeded_database).stdout == "Edition 2026 is removed.\n"
    assert "There are no outlines" in invoke("outlines", "list", url=seeded_database).stdout


@pytest.mark.parametrize(
    ("outlines", "edition", "words"),
    [
        ({"01001": ("A", [square(21, -103, 0.5)])}, "2025", "01001 is not in Mexico"),
        (ONE, "año 2025", "An edition's name has up to 64"),
        ({"01001": ("A", [])}, "2025", "outline of 01001 is empty"),
    ],
)
def test_import_that_is_refused_changes_nothing(
    seeded_database: str, tmp_path: Path, outlines: dict[str, Any], edition: str, words: str
) -> None:
    invoke("outlines", "import", str(write(tmp_path, geojson(), "a.json")), "--edition", "2024", url=seeded_database)
    path = write(tmp_path, zipped(shapefile(outlines)))
    assert_error(invoke("outlines", "import", str(path), "--edition", edition, url=seeded_database), words)
    assert imported(seeded_database) == [("2024", 6, 5)]
    assert_error(
        invoke("outlines", "import", "absent.zip", "--edition", "2025", url=seeded_database), "There is no file"
    )
