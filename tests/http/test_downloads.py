"""Downloads: every record once in every format, and visible failures."""

import http.client
import io
import itertools
import json
import math
import sqlite3
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import openpyxl
import pytest
from fastapi import FastAPI
from openpyxl.utils.escape import unescape
from pyarrow import parquet as pq

from localidades_api.catalogue.columns import COLUMNS
from tests.support.application import client_of, database_with, recorded_statements, running_app
from tests.support.catalogue import Place, many
from tests.support.downloads import DOWNLOAD, TEXTS, Stalled, read_csv, stalled
from tests.support.machine import forget_peak_memory, memory_of, open_targets
from tests.support.pages import BROWSER
from tests.support.postgres import await_idle_connections, execute, name_of, new_database, run_sql
from tests.support.records import Record, in_order, row_of
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import Live, ask, await_names, serving

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8; header=present",
    "ndjson": "application/x-ndjson",
    "geojson": "application/geo+json",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "gpkg": "application/geopackage+sqlite3",
}
FORMATS = list(MEDIA_TYPES)

# Names that could break readers of CSV or JSON, or look like formulas and are none.
NASTY = ["Ejido 20 de Noviembre", 'Con "comillas", y coma', '"Entre comillas"', "\\N", "\\.", "a\\b:c", ":release_id",
         "%s %(id)s", "'apóstrofo", ";punto", "1e5", "0001", "null", "{}", "😀", "\u2028 línea", "\x01", "{lines}",
         "<script>alert(1)</script>", "a = b", "_x0041_", "\ufffe_x", "&lt;]]>", "La Y = X", "'=1", '"=1"', "(+)",
         "[-]", "1+1", "=1+1", "\t=1+1", "-1", "@A1", "\x0b=1"]  # fmt: skip
YUCATAN = {"nom_ent": '=Yucatán, "el"', "nom_abr": "@Yuc."}
PLACES = [
    *many(132),
    *(
        Place(f"31001{number:04d}", name, **YUCATAN, nom_mun='+Abalá, "a"', carta="-1", poblacion=str(number),
              poblacion_masculina="0", poblacion_femenina="-", viviendas="7", ambito="U")
        for number, name in enumerate(NASTY, 1)
    ),
    Place("310020001", "Sin nada", **YUCATAN, ambito="-", latitud="-", longitud="-", altitud="-", carta="-"),
    Place("310020002", "Sin latitud", **YUCATAN, latitud="-"),
    Place("310020003", "Sin longitud", **YUCATAN, longitud="-"),
    Place("310020004", "Precisa", **YUCATAN, latitud="0.000001", longitud="-99.1234567890123"),
]  # fmt: skip
OLDER = [replace(place, nombre=f"Antes {place.cvegeo}", poblacion="5") for place in PLACES[5:]]
OF_YUCATAN = [place for place in PLACES if place.cvegeo[:2] == "31"]


@pytest.fixture(scope="module")
async def service(server: str, migrated: str) -> AsyncIterator[FastAPI]:
    """Yield an application on two releases."""
    with database_with(server, migrated, {"2019-01": OLDER, "2020-01": PLACES}) as url:
        async with running_app(url) as app:
            yield app


@pytest.fixture
async def files(service: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of that application without an Accept header."""
    async with client_of(service) as client:
        client.headers.clear()
        yield client


# -- Reading the files


def read_ndjson(content: bytes) -> list[Record]:
    assert not content or content.endswith(b"\n")
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def read_geojson(content: bytes) -> list[Record]:
    collection = json.loads(content)
    assert list(collection) == ["type", "numberMatched", "features"]
    assert (collection["type"], collection["numberMatched"]) == ("FeatureCollection", len(collection["features"]))
    rows = []
    for feature in collection["features"]:
        assert (list(feature), feature["type"]) == (["type", "id", "geometry", "properties"], "Feature")
        longitude, latitude = feature["geometry"]["coordinates"] if feature["geometry"] else (None, None)
        point = {"type": "Point", "coordinates": [longitude, latitude]}
        assert feature["geometry"] == (None if longitude is None else point)
        place = feature["properties"]
        assert (place["id"], place["longitud"], place["latitud"]) == (feature["id"], longitude, latitude)
        rows.append(place)
    return rows


def read_parquet(content: bytes) -> list[Record]:
    """Read Parquet, and validate its points against GeoParquet 1.1."""
    table = pq.read_table(io.BytesIO(content))
    types = {field.name: str(field.type) for field in table.schema}
    assert types.pop("geometry") == "binary"
    kinds = {"key": "string", "text": "string", "number": "double", "integer": "int32", "boolean": "bool"}
    assert types == {name: kinds[column.kind] for name, column in COLUMNS.items()}
    rows: list[Record] = table.to_pylist()
    for row in rows:
        point = row.pop("geometry")
        assert (point is None) == (row["longitud"] is None)
        assert point is None or struct.unpack("<BIdd", point) == (1, 1, row["longitud"], row["latitud"])
    described = json.loads(table.schema.metadata[b"geo"])
    column = described["columns"].pop("geometry")
    assert described == {"version": "1.1.0", "primary_column": "geometry", "columns": {}}
    assert column.pop("crs")["id"] == {"authority": "EPSG", "code": 4326}
    assert column == {"encoding": "WKB", "geometry_types": ["Point"]}
    return rows


def box_of(rows: list[Record]) -> list[float] | None:
    """Return the box around all points, west, south, east, north."""
    points = [(row["longitud"], row["latitud"]) for row in rows if row["longitud"] is not None]
    return [pick(values) for pick in (min, max) for values in zip(*points, strict=True)] or None


def read_xlsx(content: bytes) -> list[Record]:
    """Read the first sheet, and compare it with its declared frame."""
    book = openpyxl.load_workbook(io.BytesIO(content))
    sheet, source = book.worksheets
    assert (sheet.title, source.title, sheet.freeze_panes) == ("Localidades", "Fuente", "A2")
    declared = openpyxl.load_workbook(io.BytesIO(content), read_only=True)  # has the range that the sheet says
    assert sheet.auto_filter.ref == sheet.dimensions == declared.worksheets[0].calculate_dimension()
    declared.close()
    header, *lines = sheet.iter_rows()
    assert all(cell.font.b for cell in header)
    assert all(cell.data_type in {"n", "inlineStr", "s", "b"} for line in lines for cell in line)
    names = [str(cell.value) for cell in header]
    # openpyxl doesn't unescape control characters in inline strings.
    values = ([unescape(one.value) if isinstance(one.value, str) else one.value for one in line] for line in lines)
    return [dict(zip(names, line, strict=True)) for line in values]


def read_geopackage(content: bytes) -> list[Record]:
    """Read the table of points with SQLite, and validate its geometries against GeoPackage 1.4."""
    assert (content[:16], content[68:72]) == (b"SQLite format 3\0", b"GPKG")
    with closing(sqlite3.connect(":memory:")) as package:
        package.deserialize(content)
        package.row_factory = sqlite3.Row
        assert package.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert not package.execute("PRAGMA foreign_key_check").fetchall()
        rows: list[Record] = [dict(row) for row in package.execute("SELECT * FROM localidades ORDER BY fid")]
        contents = dict(package.execute("SELECT * FROM gpkg_contents").fetchone())
        assert_indexed(package)
    assert [row.pop("fid") for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        blob = row.pop("geom")
        assert (blob is None) == (row["longitud"] is None)
        point = (b"GP", 0, 1, 4326, 1, 1, row["longitud"], row["latitud"])
        assert blob is None or struct.unpack("<2sBBiBIdd", blob) == point
    corners = [contents[name] for name in ("min_x", "min_y", "max_x", "max_y") if contents[name] is not None]
    assert (corners, contents["data_type"]) == (box_of(rows) or [], "features")
    return rows


def assert_indexed(package: sqlite3.Connection) -> None:
    """Check that the spatial index has exactly the points, each in a box of floats rounded outwards."""
    rows = package.execute("SELECT fid, geom FROM localidades").fetchall()
    points = {fid: point for fid, blob in rows if (point := point_of(blob))}
    boxes = {fid: box for fid, *box in package.execute("SELECT * FROM rtree_localidades_geom")}
    assert boxes.keys() == points.keys()
    for fid, (west, east, south, north) in boxes.items():
        x, y = points[fid]
        assert west <= x <= east < west + 1e-4
        assert south <= y <= north < south + 1e-4
    assert package.execute("SELECT rtreecheck('rtree_localidades_geom')").fetchone()[0] == "ok"


def point_of(blob: bytes | None) -> tuple[float, float] | None:
    """Return a point of a GeoPackage as editors encode it, or None if it is empty."""
    if blob is None:
        return None
    x, y = struct.unpack("<2sBBiBIdd", blob)[-2:]
    return None if math.isnan(x) else (x, y)


READERS: Mapping[str, Callable[[bytes], list[Record]]] = {
    "csv": read_csv, "ndjson": read_ndjson, "geojson": read_geojson, "parquet": read_parquet,
    "xlsx": read_xlsx, "gpkg": read_geopackage}  # fmt: skip


def assert_file(answer: httpx.Response, format_: str, places: list[Place], release: str = "2020-01") -> None:
    """Check a complete response."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPES[format_]
    assert answer.headers["catalogue-release"] == release
    assert answer.headers["catalogue-records"] == str(len(places))
    assert "Catalogue-Records" in answer.headers["access-control-expose-headers"]
    rows, expected = READERS[format_](answer.content), [row_of(place) for place in in_order(places)]
    assert [row["id"] for row in rows] == [row["id"] for row in expected]
    assert rows == expected
    if rows and format_ != "geojson":
        assert list(rows[0]) == list(expected[0])
        assert all(type(row[name]) in {str, type(None)} for row in rows for name in TEXTS)


# -- Contents


@pytest.mark.parametrize("format_", FORMATS)
async def test_download_has_every_record_and_column_in_order(files: httpx.AsyncClient, format_: str) -> None:
    answer = await files.get(f"{DOWNLOAD}?format={format_}")
    assert_file(answer, format_, PLACES)
    assert answer.headers["content-disposition"] == f'attachment; filename="localidades-2020-01.{format_}"'
    empty = await files.get(f"{DOWNLOAD}?format={format_}&estado_id=30")
    assert_file(empty, format_, [])
    if format_ == "csv":
        assert empty.text.splitlines() == [",".join(row_of(PLACES[0]))]


@pytest.mark.parametrize(
    ("query", "format_", "chosen"),
    [
        ("ambito=R&estado_id=01", "parquet", lambda place: place.ambito == "R" and place.cvegeo[:2] == "01"),
        ("cvegeo=310010003,010010001,010010001,999999999", "xlsx",
         lambda place: place.cvegeo in {"310010003", "010010001"}),
        ("search=LUGAR&estado_id=2", "geojson", lambda p: p.nombre.startswith("Lugar") and p.cvegeo[:2] == "02"),
    ],
)  # fmt: skip
async def test_download_can_be_filtered_like_the_list(
    files: httpx.AsyncClient, query: str, format_: str, chosen: Callable[[Place], bool]
) -> None:
    answer = await files.get(f"{DOWNLOAD}?format={format_}&{query}")
    part = list(filter(chosen, PLACES))
    assert 0 < len(part) < len(PLACES)
    assert_file(answer, format_, part)
    assert answer.headers["content-disposition"] == f'attachment; filename="localidades-2020-01-filtered.{format_}"'
    listed = await files.get(f"/api/census/localidades/?page_size=1000&{query}")
    assert [record["id"] for record in listed.json()["results"]] == [int(place.cvegeo) for place in in_order(part)]


async def test_older_release_can_be_downloaded(files: httpx.AsyncClient) -> None:
    answer = await files.get(f"{DOWNLOAD}?format=csv&release=2019-01")
    assert_file(answer, "csv", OLDER, "2019-01")
    assert "localidades-2019-01." in answer.headers["content-disposition"]
    part = await files.get(f"{DOWNLOAD}?format=parquet&release=2019-01&estado_id=31")
    assert_file(part, "parquet", [place for place in OLDER if place.cvegeo[:2] == "31"], "2019-01")


async def test_workbook_describes_its_source_and_columns(files: httpx.AsyncClient) -> None:
    content = (await files.get(f"{DOWNLOAD}?format=xlsx&estado_id=31")).content
    source = openpyxl.load_workbook(io.BytesIO(content)).worksheets[1]
    said = {row[0].value: row[1].value for row in source.iter_rows()}
    assert str(said["Fuente"]).startswith("Fuente: INEGI, Catálogo Único de Claves")
    assert "(2020-01)" in str(said["Fuente"])
    assert said["Localidades"] == f"{len(OF_YUCATAN)} de {len(PLACES)}"
    assert all(said[name] for name in row_of(PLACES[0]))


async def test_geopackage_spatial_index_follows_edits(files: httpx.AsyncClient) -> None:
    content = (await files.get(f"{DOWNLOAD}?format=gpkg")).content
    places = ((-99.1, 19.4), (-86.8, 21.2), (math.nan, math.nan))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as package:
        package.deserialize(content)
        package.create_function("ST_IsEmpty", 1, lambda blob: point_of(blob) is None)
        for name, axis in (("ST_MinX", 0), ("ST_MaxX", 0), ("ST_MinY", 1), ("ST_MaxY", 1)):
            package.create_function(name, 1, lambda blob, axis=axis: (point_of(blob) or (None, None))[axis])
        geometries = [*(struct.pack("<2sBBiBIdd", b"GP", 0, 1, 4326, 1, 1, *place) for place in places), None]
        for number, (before, after) in enumerate(itertools.product(geometries, repeat=2), 1000):
            for statement, values in (
                ("INSERT INTO localidades (fid, geom, nombre) VALUES (?, ?, 'Nuevo')", (number, before)),
                ("UPDATE localidades SET nombre = 'Otro' WHERE fid = ?", (number,)),
                ("UPDATE localidades SET geom = ? WHERE fid = ?", (after, number)),
                ("UPDATE localidades SET fid = fid + 1000 WHERE fid = ?", (number,)),
                ("UPDATE localidades SET fid = fid + 1000, geom = ? WHERE fid = ?", (before, number + 1000)),
            ):
                package.execute(statement, values)
                assert_indexed(package)
        package.execute("DELETE FROM localidades WHERE fid % 2 = 0")
        assert_indexed(package)
        (extension,) = package.execute("SELECT * FROM gpkg_extensions")
        assert extension[:3] == ("localidades", "geom", "gpkg_rtree_index")


# -- Requests


async def test_address_that_ends_in_its_format_has_the_same_answer(files: httpx.AsyncClient) -> None:
    asked: list[tuple[str, dict[str, str]]] = [
        ("estado_id=31", {"Accept": "text/html"}), ("release=2019-01", {}),
        ("search=sin", {"Accept-Encoding": "gzip"}), ("", {"If-None-Match": "*"}),
    ]  # fmt: skip
    for (query, headers), format_ in itertools.product(asked, ("csv", "gpkg")):
        addresses = (f"{DOWNLOAD}?format={format_}&{query}", f"{DOWNLOAD}localidades.{format_}?{query}")
        one, other = [await files.get(address, headers=headers) for address in addresses]
        assert (one.status_code, one.headers, one.content) == (other.status_code, other.headers, other.content), query
    for target, status, location in (
        ("localidades.gpkg?format=gpkg", 422, None),  # the address says it
        ("localidades.gpkg?colour=red", 422, None),
        ("localidades.gpkg/", 308, "../localidades.gpkg"),
        ("localidades.pdf", 404, None),
        ("localidades", 404, None),
        ("other.gpkg", 404, None),
    ):
        answer = await files.get(f"{DOWNLOAD}{target}")
        assert (answer.status_code, answer.headers.get("location")) == (status, location), target


async def test_accept_chooses_the_format_or_is_406_listing_them(files: httpx.AsyncClient) -> None:
    asked = [({}, "csv"), (BROWSER, "csv"), ({"Accept": "text/csv;q=0, */*;q=0.1"}, "ndjson")]
    asked += [({"Accept": media_type}, format_) for format_, media_type in MEDIA_TYPES.items()]
    for headers, format_ in asked:
        assert_file(await files.get(f"{DOWNLOAD}?estado_id=31", headers=headers), format_, OF_YUCATAN)
    for accept in ("application/json", "*/*;q=0"):
        answer = await files.get(DOWNLOAD, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (406, "application/problem+json")
        assert answer.json()["available"] == [media_type.partition(";")[0] for media_type in MEDIA_TYPES.values()]
        by_format = await files.get(f"{DOWNLOAD}?format=ndjson&estado_id=31", headers={"Accept": accept})
        assert by_format.headers["content-type"] == MEDIA_TYPES["ndjson"]


# -- Headers


async def test_304_for_a_download_runs_no_sql(service: FastAPI, files: httpx.AsyncClient) -> None:
    queries = ["format=csv", "format=xlsx", "search=comillas", "format=csv&release=2019-01"]
    tags = [(await files.get(f"{DOWNLOAD}?{query}")).headers["etag"].removeprefix("W/") for query in queries]
    assert len(set(tags)) == len(queries)
    with recorded_statements(service) as statements:
        for query, tag in zip(queries, tags, strict=True):
            for held, coding in ((tag, "identity"), (f"W/{tag}", "identity"), (tag, "gzip")):
                asked = {"If-None-Match": held, "Accept-Encoding": coding}
                again = await files.get(f"{DOWNLOAD}?{query}", headers=asked)
                assert (again.status_code, again.content) == (304, b"")
    assert statements == []


async def test_304_for_any_tag_ends_its_transfer(seeded_database: str) -> None:
    async with running_app(seeded_database, max_transfers=1, in_background=False) as app, client_of(app) as client:
        for held, status in (("*", 304), ("*", 304), ('"x"', 200)):
            answer = await client.get(f"{DOWNLOAD}?format=csv", headers={"If-None-Match": held})
            assert answer.status_code == status


@pytest.mark.parametrize(
    ("format_", "accepted", "coding"),
    [
        ("csv", "zstd", "zstd"), ("ndjson", "br", "br"), ("geojson", "gzip", "gzip"), ("gpkg", "gzip", "gzip"),
        ("csv", "identity", None), ("csv", "deflate", None), ("csv", "gzip;q=0", None),
        ("parquet", "gzip, br, zstd", None), ("xlsx", "gzip, br, zstd", None),
    ],
)  # fmt: skip
async def test_download_is_compressed_if_accepted_and_of_use(
    files: httpx.AsyncClient, format_: str, accepted: str, coding: str | None
) -> None:
    plain = await files.get(f"{DOWNLOAD}?format={format_}")
    packed = await files.get(f"{DOWNLOAD}?format={format_}", headers={"Accept-Encoding": accepted})
    assert (plain.headers.get("content-encoding"), packed.headers.get("content-encoding")) == (None, coding)
    assert_file(packed, format_, PLACES)
    if coding is not None:
        assert packed.num_bytes_downloaded < len(plain.content) / 3
        assert packed.headers["etag"] == plain.headers["etag"]


async def test_download_that_cannot_start_is_503(
    seeded_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
            answers = [await client.get(f"{DOWNLOAD}?format=gpkg")]
        await client.get(DOWNLOAD)
        for damage in ("DELETE FROM localities WHERE position = 7", "ALTER TABLE municipalities RENAME TO elsewhere"):
            await run_sql(seeded_database, damage)
            answers += [await client.get(f"{DOWNLOAD}?format={name}") for name in ("csv", "parquet", "xlsx", "gpkg")]
        for answer in answers:
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert answer.headers["content-type"] == "application/problem+json"
            assert "content-disposition" not in answer.headers
        assert answers[0].json()["type"] == "/problems#unavailable"


# -- Failures, on the wire


@pytest.fixture(scope="module")
def busy(server: str, large: str) -> Iterator[tuple[Live, str]]:
    """Yield a server with one connection to the large catalogue, and the URL of the database."""
    with new_database(server, large) as url, serving(
        url, LOCALIDADES_POOL_SIZE="1", LOCALIDADES_RELEASE_POLL="60", LOCALIDADES_PAGE_CACHE_BYTES="0"
    ) as live:  # fmt: skip
        yield live, url


TERMINATE = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = '{}' AND application_name = 'localidades-api'"
)


def assert_answers(live: Live) -> None:
    """Check that requests that need the database are answered."""
    assert ask(live.base, "/api/census/localidades/10010001/").status == 200
    assert ask(live.base, "/api/census/localidades/?page=3").status == 200


@pytest.mark.tail
@pytest.mark.parametrize("format_", FORMATS)
def test_large_download_is_complete(busy: tuple[Live, str], large_rows: list[Place], format_: str) -> None:
    part, rows = "", large_rows
    if format_ == "xlsx":  # reading it takes ten times as long as any other
        part, rows = "&estado_id=2", [place for place in large_rows if place.cvegeo[:2] == "02"]
    answer = httpx.get(f"{busy[0].base}{DOWNLOAD}?format={format_}{part}", timeout=PATIENCE)
    assert_file(answer, format_, rows)


@contextmanager
def all_stalled(base: str, asked: Sequence[tuple[str, str]]) -> Iterator[list[Stalled]]:
    """Begin downloads at once, each of a query in a coding, and stop reading them."""
    with ExitStack() as stack, ThreadPoolExecutor(len(asked)) as pool:
        yield list(pool.map(lambda one: stack.enter_context(stalled(base, *one)), asked))


STALLED = [("format=geojson&ambito=R", "identity"), ("format=parquet", "identity"), ("format=gpkg", "identity"),
           ("format=csv", "gzip")]  # fmt: skip


def test_stalled_downloads_hold_no_database_connection(busy: tuple[Live, str]) -> None:
    live, url = busy
    with all_stalled(live.base, STALLED):
        eventually(lambda: await_idle_connections(url) == 1)  # the index of names opens another for a while
        assert_answers(live)
        packages = [target for target in open_targets(live) if ".gpkg" in target]
        assert packages
        assert all(target.endswith(" (deleted)") for target in packages)  # so they go with their client


def test_stalled_download_survives_killed_database_connections(busy: tuple[Live, str], large_rows: list[Place]) -> None:
    live, url = busy
    with stalled(live.base, "format=ndjson") as download:
        assert len(execute(url, TERMINATE.format(name_of(url)))[0]) == 1
        content = download.read_on()
    assert read_ndjson(content) == [row_of(place) for place in in_order(large_rows)]
    assert_answers(live)


# A GeoPackage is sent once its last record is read.
BREAKABLE = [("format=csv", "gzip"), ("format=csv", "identity"), ("format=ndjson", "br"), ("format=geojson", "zstd"),
             ("format=parquet", "identity"), ("format=xlsx", "identity")]  # fmt: skip


@pytest.mark.direct("PgBouncer lets nobody in for a moment after a login that failed")
def test_download_is_aborted_if_the_database_goes_away(busy: tuple[Live, str], server: str) -> None:
    live, url = busy
    name = name_of(url)
    with all_stalled(live.base, BREAKABLE) as downloads:
        try:
            execute(server, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false", TERMINATE.format(name))
            for download in downloads:
                with pytest.raises(http.client.IncompleteRead):  # the last, empty chunk is missing
                    download.read_on()
            assert ask(live.base, "/api/census/localidades/?page_size=60").status == 503
        finally:
            execute(server, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert_answers(live)


@pytest.mark.tail
@pytest.mark.parametrize(
    # Measured: 8, 18 to 21, 29 to 33, 39, 4 to 6 and 12 MB. The windows of zstd and Brotli take 10 and 21 of these.
    # Parquet and GeoPackage hold a chunk of records as Python objects, and Parquet also columns.
    ("format_", "coding", "megabytes"),
    [
        ("csv", "identity", 10), ("ndjson", "zstd", 25), ("geojson", "br", 34), ("parquet", "identity", 43),
        ("xlsx", "identity", 8), ("gpkg", "gzip", 14),
    ],
)  # fmt: skip
def test_slow_downloads_do_not_grow_memory(server: str, large: str, format_: str, coding: str, megabytes: int) -> None:
    with new_database(server, large) as url, serving(url, LOCALIDADES_PAGE_CACHE_BYTES="0") as live:
        query = f"{DOWNLOAD}?format={format_}"
        assert ask(live.base, f"{query}&estado_id=1&municipio_id=1001", ("Accept-Encoding", coding)).status == 200
        await_names(live.base)  # its index takes memory while it is built
        before = memory_of(live, "VmRSS")
        forget_peak_memory(live)
        size = 0
        with httpx.stream("GET", live.base + query, headers={"Accept-Encoding": coding}, timeout=PATIENCE) as answer:
            for number, chunk in enumerate(answer.iter_bytes()):
                size += len(chunk)
                if number % 64 == 0:
                    time.sleep(0.01)
        assert answer.headers.get("content-encoding", "identity") == coding
        growth = memory_of(live, "VmHWM") - before
        assert size > 5e6
        assert growth < megabytes * 1e6
