"""The import of outlines: the forms of INEGI's files, what is refused and why, and editions."""

import json
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines.files import UNITS, read_outlines
from localidades_api.extensions.outlines.geometry import area, crosses_itself, dissolve, nest, write_geometry
from tests.extensions.outline_files import (
    GRS_80,
    HOLE,
    OUTLINES,
    Ring,
    geojson,
    is_simple,
    shapefile,
    square,
    write,
    zipped,
)
from tests.support.commands import assert_error, invoke
from tests.support.postgres import execute

LAMBERT = f"""PROJCS["x",{GRS_80},PROJECTION["Lambert_Conformal_Conic"],PARAMETER["False_Easting",2500000.0],
PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",-102.0],PARAMETER["Standard_Parallel_1",17.5],
PARAMETER["Standard_Parallel_2",29.5],PARAMETER["Latitude_Of_Origin",12.0],UNIT["Meter",1.0]]"""


def units(ring: Any) -> list[tuple[int, int]]:  # noqa: ANN401  # any sequence of pairs
    return [(round(x * UNITS), round(y * UNITS)) for x, y in ring]


EXPECTED = [(int(key), name, [units(ring) for ring in rings]) for key, (name, rings) in OUTLINES.items()]


FORMS = {
    "zip": ("mg.zip", zipped({f"conjunto_de_datos/{name}": content for name, content in shapefile().items()})),
    "zip in zip": ("mg.zip", zipped({"mg.zip": zipped({**shapefile(), "00ent.shp": b"", "leeme.txt": b""})})),
    "the country before an estado": ("mg.zip", zipped({**shapefile(), "01mun.shp": b""})),
    "heights": ("mg.zip", zipped(shapefile(kind=15))),
    "UTF-8": ("mg.zip", zipped(shapefile(encoding="utf-8"))),
    "GeoJSON": ("mgem.geojson", geojson()),
    "the second version": ("mgem.json", geojson(name="nomgeo")),
    "several": ("mgem.zip", zipped({f"{key}.json": geojson({key: one}) for key, one in OUTLINES.items()})),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_file_has_the_same_outlines(tmp_path: Path, form: str) -> None:
    name, content = FORMS[form]
    assert list(read_outlines(write(tmp_path, content, name))) == EXPECTED


def test_shapefile_is_read_with_the_files_beside_it(tmp_path: Path) -> None:
    for name, content in shapefile().items():
        write(tmp_path, content, name.replace("00mun", "Munis [1]"))
    assert list(read_outlines(tmp_path / "Munis [1].shp")) == EXPECTED


def test_degrees_of_lamberts_projection_are_those_of_pyproj(tmp_path: Path) -> None:
    projected = [
        (2469151.394171245, 1095930.5294082544), (1073581.4127444609, 2345550.152823301),
        (4145261.239450219, 377862.6210530456),
    ]  # fmt: skip
    file = shapefile({"01001": ("A", [[*projected, projected[0]]])}, projection=LAMBERT)
    [one] = read_outlines(write(tmp_path, zipped(file)))
    assert one.rings == [units([(-102.3, 21.88), (-117.1, 32.5), (-86.8, 14.6), (-102.3, 21.88)])]


def one(
    key: str = "01001", name: str = "A", rings: Sequence[Ring] = (HOLE,), kind: int = 5, projection: str = GRS_80
) -> bytes:
    return zipped(shapefile({key: (name, rings)}, kind=kind, projection=projection))


def geometry(written: str) -> bytes:
    properties = '{"cvegeo":"01001","nomgeo":"A"}'
    return zipped({"a.json": f'{{"features":[{{"geometry":{written},"properties":{properties}}}]}}'.encode()})


REFUSED = {
    "The file has no outlines": zipped({}),
    "The zip is damaged": b"PK\x03\x04 and no more",
    "unpacks to more than 200 times its size": zipped({"a.geojson": bytes(100 * 1024**2)}),
    "has more than 1000 files": zipped({f"{at}": b"" for at in range(1001)}),
    "has no 00mun.prj, which has its projection": zipped(
        {name: content for name, content in shapefile().items() if not name.endswith("prj")}
    ),
    "does not name ITRF2008 or WGS 84": one(projection="GEOGCS[]"),
    "in the projection mercator": one(projection=LAMBERT.replace("Lambert_Conformal_Conic", "Mercator")),
    "damaged: download": one(projection=LAMBERT.replace("17.5", "90.0")),
    "damaged within the outline of '02001'": zipped({**shapefile(), "00mun.shp": shapefile()["00mun.shp"][:-50]}),
    "damaged within the outline of '01001'": one(rings=[[(float("nan"), 1)] * 4]),
    "table is cut off": zipped({**shapefile(), "00mun.dbf": shapefile()["00mun.dbf"][:-50]}),
    "table lacks CVEGEO or NOMGEO": zipped({**shapefile(), "00mun.dbf": bytes(100)}),
    "outline of 01001 is empty": one(rings=()),
    "outline of 01001 has no name": one(name=" "),
    "shape of 01001 is not a polygon": one(kind=1),
    "'01' is the key of an estado": one("01"),
    "'33001' is the key of no municipio": one("33001"),
    "01001 has a ring that is not closed": one(rings=[HOLE[:-1]]),
    "in EPSG:6372: use degrees": zipped({"a.geojson": geojson(crs="EPSG:6372")}),
    "shape of 01001 is not a polygon:": geometry('{"type":"Point","coordinates":[1,2]}'),
    "outline of 01001 is empty.": geometry("null"),
    "The GeoJSON can't be read": zipped({"a.geojson": b"[1"}),
    "The GeoJSON can't be read:": geometry('{"type":"Polygon","coordinates":[[[1e999,0],[1,1],[2,2],[1,1]]]}'),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_file_that_can_not_be_read_is_refused_with_a_sentence(tmp_path: Path, sentence: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(sentence)):
        list(read_outlines(write(tmp_path, REFUSED[sentence])))


def test_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.truncate(path := write(tmp_path, b"", "mgem.geojson"), 3 * 1024**3)
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


def test_rounding_leaves_a_narrow_slit_open(tmp_path: Path) -> None:
    slit = [(-102.49999998, 22), (-102.5, 21.5), (-102.50000002, 22)]  # four millimetres wide
    ring = [(-103, 21), (-102, 21), (-102, 22), *slit, (-103, 22), (-103, 21)]
    [one] = read_outlines(write(tmp_path, geojson({"01001": ("A", [ring])}), "mgem.json"))
    assert is_simple(json.loads(zlib.decompress(write_geometry(nest(one.rings)))))
    assert not is_simple({"coordinates": [[[(round(x, 6), round(y, 6)) for x, y in ring]]]})
    assert not crosses_itself(one.rings[0])


# -- Editions


def test_import_reports_replaces_and_removes(seeded_database: str, tmp_path: Path) -> None:
    def imported() -> list[tuple[Any, ...]]:
        tables = "SELECT name, (SELECT count(*) FROM outlines), (SELECT count(*) FROM outline_rings)"
        return [tuple(row) for row in execute(seeded_database, f"{tables} FROM outline_edition")[0]]

    def run(*arguments: str) -> CompletedProcess[str]:
        return invoke("outlines", *arguments, url=seeded_database)

    def import_file(content: bytes, edition: str, *options: str) -> CompletedProcess[str]:
        return run("import", str(write(tmp_path, content, "mg.zip")), "--edition", edition, *options)

    first = zipped(shapefile())
    assert import_file(first, "2025", "--dry-run").stdout.startswith("Would import edition 2025 in")
    assert imported() == []
    assert re.sub("in [0-9.]+ s", "in … s", import_file(first, "2025").stdout) == (
        "Imported edition 2025 in … s: 4 municipios.\n"
        "Municipios of the current release without an outline (78): 02002, 02003, 02004, 02005, 02006, 02007, 02008,"
        " 02009, 02010, 02011, …\n"
        "Outlines that are not in the current release (1): 01003\n"
    )
    assert "from this very file: nothing has changed" in import_file(first, "2025").stdout
    bow: Ring = [(-102, 21), (-101, 22), (-101, 21), (-102, 22), (-102, 21)]
    second = zipped(shapefile({**OUTLINES, "01002": ("Peñón", [bow])}))
    for content, edition, words in (
        (second, "2025", "Edition 2025 was imported from another file"),
        (second, "año 2025", "An edition's name has up to 64"),
        (one(rings=[square(21, -103, 0.5)]), "2026", "01001 is not in Mexico"),
        (one(rings=()), "2026", "outline of 01001 is empty"),
    ):
        assert_error(import_file(content, edition), words)
    assert imported() == [("2025", 6, 5)]  # with two estados; an outline has two islands
    assert json.loads(import_file(second, "2026", "--json").stdout)["crossing"] == [1002]
    assert imported() == [("2026", 6, 5)]
    assert "2026: 4 municipios, mg.zip" in run("list").stdout
    assert run("remove").stdout == "Edition 2026 is removed.\n"
    assert "There are no outlines" in run("list").stdout
