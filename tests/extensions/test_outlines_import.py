"""The import of outlines: the forms of INEGI's files, what is refused and why, and editions."""

import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines import files
from localidades_api.extensions.outlines.files import UNITS, read_outlines
from localidades_api.extensions.outlines.geometry import area, dissolve, nest, write_geometry
from tests.extensions.outline_files import GRS_80, HOLE, OUTLINES, Outlines, Ring, geojson, shapefile, square, write
from tests.support.application import database_with
from tests.support.catalogue import Place
from tests.support.commands import assert_error, invoke
from tests.support.http_server import Response, at_paths, http_server
from tests.support.postgres import execute
from tests.support.refusals import MEGABYTE, refusal
from tests.support.wire import serving
from tests.support.workbooks import zip_of

LAMBERT = f"""PROJCS["x",{GRS_80},PROJECTION["Lambert_Conformal_Conic"],PARAMETER["False_Easting",2500000.0],
PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",-102.0],PARAMETER["Standard_Parallel_1",17.5],
PARAMETER["Standard_Parallel_2",29.5],PARAMETER["Latitude_Of_Origin",12.0],UNIT["Meter",1.0]]"""


def units(ring: Any) -> list[tuple[int, int]]:  # noqa: ANN401  # any sequence of pairs
    return [(round(x * UNITS), round(y * UNITS)) for x, y in ring]


EXPECTED = [(int(key), name, [units(ring) for ring in rings]) for key, (name, rings) in OUTLINES.items()]


FORMS = {
    "zip": ("mg.zip", zip_of({f"conjunto_de_datos/{name}": content for name, content in shapefile().items()})),
    "zip in zip": ("mg.zip", zip_of({"mg.zip": zip_of({**shapefile(), "00ent.shp": b"", "leeme.txt": b""})})),
    "the country before an estado": ("mg.zip", zip_of({**shapefile(), "01mun.shp": b""})),
    "heights": ("mg.zip", zip_of(shapefile(kind=15))),
    "UTF-8": ("mg.zip", zip_of(shapefile(encoding="utf-8"))),
    "GeoJSON": ("mgem.geojson", geojson()),
    "the second version": ("mgem.json", geojson(name="nomgeo")),
    "several": ("mgem.zip", zip_of({f"{key}.json": geojson({key: outline}) for key, outline in OUTLINES.items()})),
    "several of the same name": ("mg.zip", zip_of({
        f"{key}.zip": zip_of({f"datos/{name}": part for name, part in shapefile({key: outline}).items()})
        for key, outline in OUTLINES.items()
    })),
    "from a Mac": ("mg.zip", zip_of({**shapefile(), **{f"__MACOSX/._{name}": b"Mac OS X" for name in shapefile()}})),
    "copied by a Mac": ("mg.zip", zip_of({**shapefile(), "conjunto_de_datos/._00mun.shp": b"Mac OS X"})),
    "other case, backslashes": ("mg.ZIP", zip_of({f"A\\{name.upper()}": part for name, part in shapefile().items()})),
    "DOS": ("mg.zip", zip_of(shapefile(encoding="cp850"))),
    "byte order mark": ("a.json", b"\xef\xbb\xbf" + geojson()),
    "capitals": ("a.json", geojson().replace(b"cvegeo", b"CVEGEO").replace(b"nom_agem", b"NOMGEO")),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_file_has_the_same_outlines(tmp_path: Path, form: str) -> None:
    name, content = FORMS[form]
    assert list(read_outlines(write(tmp_path, content, name))) == EXPECTED


def test_shapefile_is_read_with_the_files_beside_it(tmp_path: Path) -> None:
    for name, content in shapefile().items():
        write(tmp_path, content, name.replace("00mun.dbf", "MUNIS [1].DBF").replace("00mun", "Munis [1]"))
    assert list(read_outlines(tmp_path / "Munis [1].shp")) == EXPECTED


def test_coordinates_of_lamberts_projection_are_those_of_pyproj(tmp_path: Path) -> None:
    projected = [
        (2469151.394171245, 1095930.5294082544), (1073581.4127444609, 2345550.152823301),
        (4145261.239450219, 377862.6210530456),
    ]  # fmt: skip
    file = shapefile({"01001": ("A", [[*projected, projected[0]]])}, projection=LAMBERT)
    [outline] = read_outlines(write(tmp_path, zip_of(file)))
    assert outline.rings == [units([(-102.3, 21.88), (-117.1, 32.5), (-86.8, 14.6), (-102.3, 21.88)])]


def single(
    key: str = "01001", name: str = "A", rings: Sequence[Ring] = (HOLE,), kind: int = 5, projection: str = GRS_80
) -> bytes:
    return zip_of(shapefile({key: (name, rings)}, kind=kind, projection=projection))


def geometry(written: str) -> bytes:
    properties = '{"cvegeo":"01001","nomgeo":"A"}'
    return zip_of({"a.json": f'{{"features":[{{"geometry":{written},"properties":{properties}}}]}}'.encode()})


SHORTER = shapefile({"01001": OUTLINES["01001"]})
REFUSED = {
    "The file has no outlines": zip_of({}),
    "The zip is damaged": b"PK\x03\x04 and no more",
    "unpacks to more than 200 times its size": zip_of({"a.geojson": bytes(100 * 1024**2)}),
    "has more than 10,000 files": zip_of({f"{at}": b"" for at in range(10_001)}),
    "has no 00mun.prj, which has its projection": zip_of(
        {name: content for name, content in shapefile().items() if not name.endswith("prj")}
    ),
    "does not name ITRF2008 or WGS 84": single(projection="GEOGCS[]"),
    "in the projection mercator": single(projection=LAMBERT.replace("Lambert_Conformal_Conic", "Mercator")),
    "damaged: download": single(projection=LAMBERT.replace("17.5", "90.0")),
    "damaged within the outline of '02001'": zip_of({**shapefile(), "00mun.shp": shapefile()["00mun.shp"][:-50]}),
    "damaged within the outline of '01001'": single(rings=[[(float("nan"), 1)] * 4]),
    "01001 is not in Mexico: are": single(rings=[square(21, -103, 0.5)]),
    "table is cut off": zip_of({**shapefile(), "00mun.dbf": shapefile()["00mun.dbf"][:-50]}),
    "table lacks CVEGEO or NOMGEO": zip_of({**shapefile(), "00mun.dbf": bytes(100)}),
    "outline of 01001 is empty": single(rings=()),
    "outline of 01001 has no name": single(name=" "),
    "shape of 01001 is not a polygon": single(kind=1),
    "'01' is the key of an estado": single("01"),
    "'33001' is the key of no municipio": single("33001"),
    "01001 has a ring that is not closed": single(rings=[HOLE[:-1]]),
    "in EPSG:6372: use degrees": zip_of({"a.geojson": geojson(crs="EPSG:6372")}),
    "shape of 01001 is not a polygon:": geometry('{"type":"Point","coordinates":[1,2]}'),
    "outline of 01001 is empty.": geometry("null"),
    "'01000' is the key of no municipio": single("01000"),
    "name of 01001 has broken letters": single(name="Pe?ón"),
    "name of 01002 has broken letters": zip_of({"a.json": geojson({"01002": ("PeÃ±ón", [HOLE])})}),
    "outline of 01001 has the same ring twice": single(rings=[HOLE, HOLE]),
    "has more shapes than its table has rows": zip_of({**shapefile(), "00mun.dbf": SHORTER["00mun.dbf"]}),
    "damaged within the outline of '01002'": zip_of({**shapefile(), "00mun.shp": SHORTER["00mun.shp"]}),
    "marks a row as deleted ('01001')": zip_of(
        {**shapefile(), "00mun.dbf": shapefile()["00mun.dbf"].replace(b" 01001", b"*01001")}
    ),
    "two files that are named 00mun.dbf": zip_of({**shapefile(), "00MUN.dbf": b""}),
    "b.json: The file has two outlines of 01001": zip_of(
        {"a.json": geojson(), "b.json": geojson({"01001": OUTLINES["01001"]})}
    ),
    "b.json: The GeoJSON can't be read": zip_of({"a.json": geojson(), "b.json": b'{"result":"404","mensaje":""}'}),
    "The GeoJSON can't be read": zip_of({"a.geojson": b"[1"}),
    "The GeoJSON can't be read:": geometry(f'{{"type":"Polygon","coordinates":[[["{"1" * 10**6}",1]]]}}'),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_file_that_can_not_be_read_is_refused_with_a_sentence(tmp_path: Path, sentence: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(sentence)):
        list(read_outlines(write(tmp_path, REFUSED[sentence])))


def test_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.truncate(path := write(tmp_path, b"", "mgem.geojson"), 3 * 1024**3)
    with pytest.raises(CatalogueError, match="more than 512 MB of shapes"):
        list(read_outlines(path))


@given(
    part=st.sampled_from(sorted(shapefile())),
    begin=st.floats(0, 1),
    length=st.integers(1, 400),
    times=st.integers(0, 2),
)
def test_part_of_a_shapefile_that_lacks_or_repeats_bytes_costs_no_outline(
    part: str, begin: float, length: int, times: int
) -> None:
    parts = shapefile()
    at = int(begin * len(parts[part]))
    parts[part] = parts[part][:at] + parts[part][at : at + length] * times + parts[part][at + length :]
    with TemporaryFile() as file, suppress(*[CatalogueError] * (times != 1)):
        file.write(zip_of(parts))
        file.flush()
        assert len(list(read_outlines(file))) == len(OUTLINES)


@pytest.mark.parametrize("what", files._MOST)
def test_every_amount_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setitem(files._MOST, what, 0)
    with pytest.raises(CatalogueError, match=f"The file has more than 0 {what}"):
        list(read_outlines(write(tmp_path, FORMS["zip in zip"][1])))


# -- Files that are made to harm: none takes long, or 300 MB of memory


def with_part(ending: str, content: bytes) -> bytes:
    return zip_of({**shapefile(), f"00mun.{ending}": content})


def patched(ending: str, at: int, layout: str, value: int) -> bytes:
    content = bytearray(shapefile()[f"00mun.{ending}"])
    struct.pack_into(layout, content, at, value)
    return with_part(ending, bytes(content))


def dense(start: str, repeated: str) -> bytes:
    text = start + repeated * (60 * MEGABYTE // len(repeated))
    return zip_of({"a.json": text.encode()})


SHAPES = shapefile()["00mun.shp"][100:]
MANY = [square(-100 + at / 1e3, 20, 1e-4) for at in range(10_001)]
FULL = zip_of({f"{at}.shp": b"" for at in range(1000)})
HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "vertices inflated": ("more than 8,000,000 vertices", lambda: patched("shp", 148, "<i", 2**31 - 1)),
    "vertices below zero": ("damaged", lambda: patched("shp", 148, "<i", -1)),
    "parts inflated": ("damaged", lambda: patched("shp", 144, "<i", 2**31 - 1)),
    "parts below zero": ("damaged", lambda: patched("shp", 144, "<i", -1)),
    "shape that leads back": ("damaged", lambda: patched("shp", 104, ">i", -54)),
    "shapes repeated": ("more shapes than its table", lambda: with_part("shp", bytes(100) + SHAPES * 100_000)),
    "many rings": ("more than 10,000 rings", lambda: single(rings=MANY)),
    "rows inflated": ("more than 31,968 rows", lambda: patched("dbf", 4, "<I", 2**32 - 1)),
    "rows without a size": ("damaged", lambda: patched("dbf", 10, "<H", 0)),
    "projection inflated": ("does not name ITRF2008", lambda: with_part("prj", b" " * 4096 + GRS_80.encode())),
    "zips nested": ("The file has no outlines", lambda: zip_of({"a.zip": zip_of({"b.zip": zip_of(shapefile())})})),
    "zips repeated": ("more than 10,000 files", lambda: zip_of(dict.fromkeys(map("{}.zip".format, range(11)), FULL))),
    "empty objects": ("more than 8,000,000 vertices", lambda: dense('{"features":[', "{},")),
    "empty lists": ("more than 8,000,000 vertices", lambda: dense('{"features":[', "[],")),
    "lists within lists": ("can't be read", lambda: dense('{"features":', "[" + " " * 9)),
    "blanks": ("can't be read", lambda: dense("[", " ")),
}  # fmt: skip


def read_all(path: Path) -> None:
    list(read_outlines(path))


@pytest.mark.tail
@pytest.mark.parametrize("kind", HOSTILE)
def test_file_that_could_do_harm_is_refused(tmp_path: Path, kind: str) -> None:
    sentence, make = HOSTILE[kind]
    assert sentence in refusal(read_all, write(tmp_path, make()), 300 * MEGABYTE)


# -- Rings


def test_holes_are_found_in_any_order_and_direction() -> None:
    outer, hole, island = units(square(0, 0, 9)), units(square(1, 1, 5)), units(square(2, 2, 1))
    for rings in ([outer, hole, island], [island[::-1], outer[::-1], hole], [hole[::-1], island, outer]):
        assert sorted(map(len, polygons := nest(rings))) == [1, 2]
        assert all(area(ring) > 0 for ring, *_ in polygons)
        assert all(area(ring) < 0 for _, *holes in polygons for ring in holes)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_outline_of_neighbours_has_their_area_and_none_of_their_borders(cells: set[tuple[int, int]]) -> None:
    polygons = [[units(square(x, y, 1))] for x, y in cells]
    dissolved = dissolve(polygons)
    assert sum(area(ring) for polygon in dissolved for ring in polygon) == len(cells) * UNITS**2
    edges = sum(len(ring) - 1 for polygon in dissolved for ring in polygon)
    sides = [(x + dx, y + dy) in cells for x, y in cells for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))]
    assert edges == sides.count(False)


def test_rounding_leaves_a_narrow_slit_open(tmp_path: Path) -> None:
    slit = [(-102.49999998, 22), (-102.5, 21.5), (-102.50000002, 22)]  # four millimetres wide
    ring = [(-103, 21), (-102, 21), (-102, 22), *slit, (-103, 22), (-103, 21)]
    [outline] = read_outlines(write(tmp_path, geojson({"01001": ("A", [ring])}), "mgem.json"))
    [[written]] = json.loads(zlib.decompress(write_geometry(nest(outline.rings))))["coordinates"]
    assert written == [[*point] for point in ring]


# -- Editions


def imported(url: str) -> list[tuple[Any, ...]]:
    tables = "SELECT name, (SELECT count(*) FROM outlines), (SELECT count(*) FROM outline_rings)"
    return [tuple(row) for row in execute(url, f"{tables} FROM outline_edition")[0]]


def importing(url: str, source: str | Path, edition: str, *options: str) -> CompletedProcess[str]:
    return invoke("outlines", "import", str(source), "--edition", edition, *options, url=url)


def test_import_reports_replaces_and_removes(seeded_database: str, tmp_path: Path) -> None:
    def import_file(content: bytes, edition: str, *options: str) -> CompletedProcess[str]:
        name = "mg.zip" if content.startswith(b"PK") else "mg.json"
        return importing(seeded_database, write(tmp_path, content, name), edition, *options)

    first = zip_of(
        {**shapefile(), "Aguascalientes.zip": zip_of({"01mun.shp": b"", "datos.zip": b""}), "00ent.shp": b""}
    )
    assert import_file(first, "2025", "--dry-run").stdout.startswith("Would import edition 2025 in")
    assert imported(seeded_database) == []
    assert re.sub("in [0-9.]+ s", "in … s", import_file(first, "2025").stdout) == (
        "Imported edition 2025 in … s: 4 municipios.\n"
        "Municipios most of whose localities lie outside their outline (1): 02001\n"
        "Municipios of the current release without an outline (78): 02002, 02003, 02004, 02005, 02006, 02007, 02008,"
        " 02009, 02010, 02011, …\n"
        "Outlines that are not in the current release (1): 01003\n"
        "Files that were not read (3): aguascalientes.zip/01mun.shp, aguascalientes.zip/datos.zip, 00ent.shp\n"
    )
    same = import_file(geojson(), "2025")
    assert "has these very outlines already: nothing has changed" in same.stdout
    bow: Ring = [(-102, 21), (-101, 22), (-101, 21), (-102, 22), (-102, 21)]
    sliver: Ring = [(-102, 21), (-101, 21), (-101, 21.0000006), (-101.5, 21.0000004), (-102, 21.0000006), (-102, 21)]
    second = zip_of(shapefile({**OUTLINES, "01002": ("Peñón", [bow]), "01003": ("Enclave", [sliver])}))
    most = {key: outline for key, outline in OUTLINES.items() if key != "01003"}
    for content, edition, words in (
        (second, "2025", "Edition 2025 has other outlines already"),
        (second, "año 2025", "An edition's name has up to 64"),
        (single(rings=()), "2026", "outline of 01001 is empty"),
        (single(rings=[[(-102, 21)] * 5]), "2026", "01001 has a ring without an area"),
        (single(rings=[HOLE, [(-102, 21), (-101, 22), (-101.3, 21.7), (-102, 21)]]), "2026", "ring without an area"),
        (zip_of(shapefile(most)), "2026", "The file lacks 1 of the 4 municipios of edition 2025. If"),
        (
            single(),
            "2026",
            "lacks 3 of the 4 municipios of edition 2025, and has none of estado 02. If that is right, pass --allow",
        ),
    ):
        assert_error(import_file(content, edition), words)
    assert imported(seeded_database) == [("2025", 6, 5)]  # with two estados; an outline has two islands
    assert json.loads(import_file(second, "2026", "--json").stdout)["municipios"] == 4
    assert imported(seeded_database) == [("2026", 6, 5)]
    assert import_file(single(), "2027", "--allow-shrink").returncode == 0
    assert imported(seeded_database) == [("2027", 2, 1)]
    assert invoke("outlines", "remove", url=seeded_database).stdout == "Edition 2027 is removed.\n"
    assert invoke("outlines", "remove", url=seeded_database).stdout == "There are no outlines.\n"


def test_municipios_whose_shapes_are_exchanged_are_named(server: str, migrated: str, tmp_path: Path) -> None:
    corners = {"01001": (21.1, -102.9), "01002": (21.1, -101.9), "01003": (21.5, -102.5), "02001": (25.1, -109.9)}
    places = [
        Place(
            f"{key}{at:04}",
            f"Lugar {at}",
            f"Estado {key[:2]}",
            nom_mun=OUTLINES[key][0],
            latitud=f"{lat}",
            longitud=f"{lon}",
        )
        for key, (lat, lon) in corners.items()
        for at in range(1, 4)
    ]
    stray = Place("010010009", "Fuera", "Estado 01", nom_mun="Aguascalientes", latitud="21.1", longitud="-101.9")
    with database_with(server, migrated, {"2026-11": [*places, stray]}) as url:
        right = importing(url, write(tmp_path, geojson(), "a.json"), "2025", "--json")
        assert json.loads(right.stdout)["misplaced"] == []
        names = {
            **OUTLINES,
            "01001": ("Aguascalientes", OUTLINES["01002"][1]),
            "01002": ("Peñón", OUTLINES["01001"][1]),
        }
        wrong = importing(url, write(tmp_path, geojson(names), "b.json"), "2026")
        assert "Municipios most of whose localities lie outside their outline (2): 01001, 01002\n" in wrong.stdout


# -- Addresses

COUNTRY: Outlines = {f"{at:02}001": (f"Capital {at}", [square(-119 + at, 20, 0.5)]) for at in range(1, 33)}


def test_outlines_are_fetched_from_a_service_like_inegis(server: str, migrated: str, tmp_path: Path) -> None:
    places = [Place(f"{key}0001", name, f"Estado {key[:2]}", nom_mun=name) for key, (name, _) in COUNTRY.items()]
    with database_with(server, migrated, {"2026-11": places}) as url:
        assert importing(url, write(tmp_path, zip_of(shapefile(COUNTRY))), "2025").returncode == 0
        with serving(url) as live:
            address = f"{live.base}/wscatgeo/v2/geo/mgem/{{estado}}"
            assert "has these very outlines already" in importing(url, address, "2025").stdout
            fetched = importing(url, address, "2026")
        most = {key: outline for key, outline in COUNTRY.items() if key != "32001"}
        lacks = "lacks 1 of the 32 municipios of edition 2026, and has none of estado 32"
        assert_error(importing(url, write(tmp_path, geojson(most), "most.json"), "2027"), lacks)
        assert fetched.stderr.startswith("fetching outlines\n")
        assert "Imported edition 2026" in fetched.stdout
        [[[source]]] = execute(url, "SELECT source FROM outline_edition")
        assert source == "127.0.0.1/wscatgeo/v2/geo/mgem/{estado}"


def answer_of(estado: str, **changed: Response) -> Response:
    return changed.get(f"of_{estado}", Response(geojson({f"{estado}001": COUNTRY[f"{estado}001"]})))


FAILED = {
    "Estado 14: The address answers 500": Response(status=500),
    "Estado 14: The address can't be fetched": Response(b"{", headers={"Content-Length": "9", "Connection": "close"}),
    "Estado 14: The GeoJSON can't be read": Response(b'{"result":"404","mensaje":"La clave no existe."}'),
    "Estado 14: The file has no outlines": Response(geojson({})),
    "Estado 14: The address answers with another estado": Response(geojson({"13001": COUNTRY["13001"]})),
    "Estado 14: The file at this address is larger": Response(bytes(1024**2 + 1)),
}


@pytest.mark.parametrize("sentence", FAILED)
def test_fetch_that_fails_for_an_estado_names_it_and_changes_nothing(
    seeded_database: str, monkeypatch: pytest.MonkeyPatch, sentence: str
) -> None:
    monkeypatch.setattr("localidades_api.importer.source.MAX_FILE_BYTES", 1024**2)
    with http_server(lambda request: answer_of(request.target[1:], of_14=FAILED[sentence])) as address:
        assert_error(importing(seeded_database, f"{address}/{{estado}}", "2025"), sentence)
    assert imported(seeded_database) == []


def test_one_file_is_fetched_too(seeded_database: str) -> None:
    with http_server(at_paths({"/mg.zip": Response(zip_of(shapefile()))})) as address:
        assert "Imported edition 2025" in importing(seeded_database, f"{address}/mg.zip", "2025").stdout
        assert_error(importing(seeded_database, f"{address}/no.zip", "2026"), "The address answers 404")
    for path in ("/no.zip", "/no.shp", "/no.json"):
        assert_error(importing(seeded_database, path, "2026"), "The file can't be read (No such file or directory).")
