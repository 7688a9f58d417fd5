"""The municipio of a point, and outlines: answers, editions, and INEGI's own outlines."""

import csv
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import expect

from localidades_api.database.pool import Database
from localidades_api.extensions.outlines.importing import remove_outlines
from tests.deploy.guides import DOCS, SERVICE, blocks_of, follow
from tests.extensions.outline_files import OUTLINES, geojson, import_outlines_into, square, write, zipped
from tests.support.application import client_of, import_file, recorded_statements, running_app
from tests.support.browser import WEBGL, launched, visit
from tests.support.catalogue import Place, write_catalogue
from tests.support.pages import BROWSER, INDEX
from tests.support.postgres import new_database
from tests.support.service_address import service_address
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, ROOT, await_names, serving

AT = "/api/census/municipios/at/"
MANY = "latitud,longitud,municipio,estado,cvegeo\n"


@pytest.fixture(scope="module")
async def outlined_app(server: str, seeded: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FastAPI]:
    """Lend an application on the small catalogue and invented outlines."""
    with new_database(server, seeded) as url:
        await import_outlines_into(url, write(tmp_path_factory.mktemp("outlines"), geojson(), "mgem.json"))
        async with running_app(url) as app:
            yield app


@pytest.fixture
async def outlined(outlined_app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(outlined_app) as client:
        yield client


async def at(client: httpx.AsyncClient, lat: float | str, lon: float | str, **parameters: str) -> httpx.Response:
    return await client.get(AT, params={"lat": str(lat), "lon": str(lon), **parameters})


async def located(client: httpx.AsyncClient, lat: float, lon: float) -> list[str]:
    answer = await at(client, lat, lon)
    assert answer.status_code == 200, answer.text
    return [one["cvegeo"] for one in answer.json()["results"]]


async def test_answer_has_the_municipio_its_estado_and_the_edition(outlined: httpx.AsyncClient) -> None:
    estado = {"id": 1, "clave": "01", "nombre": "Aguascalientes", "abreviatura": "Ags."}
    assert (await at(outlined, 21.3, -102.9)).json() == {
        "results": [
            {"id": 1001, "cvegeo": "01001", "nombre": "Municipio 001", "estado": estado, "edition": "2025",
             "in_release": True}
        ]
    }  # fmt: skip
    [newer] = (await at(outlined, 21.5, -102.5)).json()["results"]
    assert (newer["cvegeo"], newer["nombre"], newer["in_release"]) == ("01003", "Enclave", False)


@pytest.mark.parametrize(
    ("lat", "lon", "expected"),
    [
        (21.3, -102.9, ["01001"]), (21.5, -101.5, ["01002"]), (25.2, -107.8, ["02001"]), (25.9, -109.1, ["02001"]),
        (21.5, -102.5, ["01003"]), (21.4, -102.5, ["01003"]), (21.5, -102, ["01001"]), (21, -102, ["01001"]),
        (25.2, -108.5, []), (90, 0, []), (-90, 180, []), (0, 0, []), (18, -104.9, []),
    ],
)  # fmt: skip
async def test_points_inside_on_borders_at_sea_and_at_poles(
    outlined: httpx.AsyncClient, lat: float, lon: float, expected: list[str]
) -> None:
    assert await located(outlined, lat, lon) == expected


@pytest.mark.parametrize(
    ("query", "parameter"),
    [("lat=91&lon=0", "lat"), ("lat=abc&lon=0", "lat"), ("lat=20", "lon"), ("lat=20&lon=-200", "lon"),
     ("lat=2e1&lon=0", "lat"), ("lat=Infinity&lon=0", "lat"), ("lat=20&lon=1e309", "lon"),
     ("lat=20&lon=-100&limit=3", "limit"), ("lat=20&lat=21&lon=-100", "lat")],
)  # fmt: skip
async def test_bad_parameter_is_an_error(outlined: httpx.AsyncClient, query: str, parameter: str) -> None:
    answer = await outlined.get(f"{AT}?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, parameter)


@pytest.mark.parametrize(("lat", "lon"), [("-102.3", "21.88"), ("-87.5", "20.5")])
async def test_exchanged_coordinates_are_an_error_that_says_so(outlined: httpx.AsyncClient, lat: str, lon: str) -> None:
    answer = await at(outlined, lat, lon)
    assert answer.status_code == 422
    assert "`lat` and `lon` are exchanged" in answer.json()["errors"][0]["message"]


async def test_page_shows_the_municipio_in_both_languages(outlined: httpx.AsyncClient) -> None:
    page = await at(outlined, 21.3, -102.9, format="api", lang="es")
    assert "¿En qué municipio está?" in page.text
    assert 'href="../1001/?lang=es"' in page.text
    assert (
        "The point is in no municipio that has an outline here."
        in (await at(outlined, 0, 0, format="api", lang="en")).text
    )


async def test_without_outlines_the_error_names_the_command(client: httpx.AsyncClient) -> None:
    for answer in (
        await at(client, 21.3, -102.9),
        await client.post(AT, json={"rows": [{"latitud": 21.3, "longitud": -102.9}]}),
        await client.get("/api/census/municipios/1001/outline/"),
        await client.get("/api/census/estados/1/outline/"),
    ):
        assert answer.status_code == 404
        assert "localidades-api outlines import" in answer.json()["detail"]
    assert (await client.get("/wscatgeo/geo/mgem/01")).json()["result"] == "404"


# -- Many points


@pytest.mark.parametrize(
    ("row", "agrees"),
    [
        ("21.3,-102.9,Municipio 001,Ags.,", True), ("21.3,-102.9,Municipio 002,Ags.,", False),
        ("21.3,-102.9,1,01,", True), ("21.3,-102.9,,,01001", True), ("21.3,-102.9,,,010010001", True),
        ("21.3,-102.9,,,1002", False), ("0,0,Municipio 001,Ags.,", False), ("21.3,-102.9,,,", None),
        ("21.3,-102.9,,Ags.,", None),
    ],
)  # fmt: skip
async def test_row_is_told_whether_its_own_municipio_is_that_of_its_point(
    outlined: httpx.AsyncClient, row: str, *, agrees: bool | None
) -> None:
    answer = await outlined.post(f"{AT}?format=json", content=MANY + row, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"][0]["agrees"] is agrees


async def test_rows_are_answered_in_order_and_a_bad_one_alone(outlined: httpx.AsyncClient) -> None:
    rows = [{"lat": 21.3, "lon": -102.9}, {"lat": "x", "lon": 1}, {"lat": 0, "lon": 0}, {"lat": 21.5, "lon": -101.5}]
    answer = (await outlined.post(AT, json={"rows": rows})).json()["results"]
    assert [[one["cvegeo"] for one in row["results"]] for row in answer] == [["01001"], [], [], ["01002"]]
    assert [row["problem"] and "latitud" in row["problem"] for row in answer] == [None, True, None, None]


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "at_cvegeo,at_municipio,at_estado,at_agrees,at_problem 01002,Municipio 002,Aguascalientes,FALSE,"),
        ("es", "Clave INEGI (CVEGEO),Municipio,Estado,Coincide,Observación 01002,Municipio 002,Aguascalientes,FALSO,"),
    ],
)
async def test_table_has_columns_in_the_language(outlined: httpx.AsyncClient, lang: str, expected: str) -> None:
    body = "lat,lon,mun\n21.5,-101.5,Municipio 001\n"
    answer = await outlined.post(f"{AT}?lang={lang}", content=body, headers={"Content-Type": "text/csv"})
    header, row = answer.content.decode("utf-8-sig").splitlines()
    assert f"{header.removeprefix('lat,lon,mun,')} {row.removeprefix('21.5,-101.5,Municipio 001,')}" == expected


MATCH = f"{LOCALIDADES}match/"


async def test_match_says_which_row_has_its_point_in_another_municipio(
    outlined: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    rows = [
        {"nombre": "Aguascalientes", "municipio": f"Municipio 00{n}", "estado": "Ags.", "lat": 21.88, "lon": -102.3}
        for n in (1, 2)
    ]
    rows.append(rows[1] | {"lat": 0.5, "lon": 0.5})  # at sea
    as_before = (await client.post(MATCH, json={"rows": rows})).json()["results"]
    answers = (await outlined.post(MATCH, json={"rows": rows})).json()["results"]
    told = "Its coordinates are in Municipio 001, Aguascalientes (01001), not in the municipio that it names."
    assert [row["problem"] for row in answers] == [None, told, as_before[2]["problem"]]
    assert [{**row, "problem": ""} for row in answers] == [{**row, "problem": ""} for row in as_before]
    body = "nombre,municipio,estado,lat,lon\nAguascalientes,Municipio 002,Ags.,21.88,-102.3\n"
    table = await outlined.post(f"{MATCH}?lang=es", content=body, headers={"Content-Type": "text/csv"})
    assert "Sus coordenadas quedan en Municipio 001, Aguascalientes (01001)" in table.text


async def test_point_chooses_among_places_of_one_name(server: str, migrated: str, tmp_path: Path) -> None:
    places = [
        Place(f"010{n:02d}0012", "La Estación", nom_mun=f"Municipio {n}", latitud="21.9", longitud=longitud)
        for n, longitud in ((10, "-102.010000"), (20, "-101.980000"))
    ]
    row = {"nombre": "La Estación", "latitud": 21.9, "longitud": -102.01}

    async def match(client: httpx.AsyncClient, **more: str) -> str | None:
        answer = await client.post(MATCH, json={"rows": [row | more]})
        found: str | None = answer.json()["results"][0]["cvegeo"]
        return found

    outlines = {"01010": ("Municipio 10", [square(-103, 21, 1)]), "01020": ("Municipio 20", [square(-102, 21, 1)])}
    with new_database(server, migrated) as url:
        import_file(url, write_catalogue(tmp_path / "catun_localidad_2026-11.csv", places))
        async with running_app(url) as app, client_of(app) as client:
            assert await match(client) is None
            there = await match(client, municipio="Municipio 20")
            await import_outlines_into(url, write(tmp_path, geojson(outlines), "mgem.json"))
            assert await eventually_async(lambda: match(client)) == "010100012"
            assert await match(client, municipio="Municipio 20") == there  # what a row says is not replaced


# -- Outlines


async def test_outline_is_a_feature_that_clients_keep(outlined: httpx.AsyncClient) -> None:
    answer = await outlined.get("/api/census/municipios/1001/outline/")
    assert answer.headers["content-type"] == "application/geo+json"
    assert answer.headers["cache-control"].startswith("public")
    assert answer.json() == {
        "type": "Feature",
        "id": 1001,
        "geometry": {
            "type": "MultiPolygon",
            "coordinates": [[[list(point) for point in ring] for ring in OUTLINES["01001"][1]]],
        },
        "properties": {"cvegeo": "01001", "nombre": "Aguascalientes", "edition": "2025"},
    }
    kept = {"If-None-Match": answer.headers["etag"]}
    assert (await outlined.get("/api/census/municipios/1001/outline/", headers=kept)).status_code == 304
    for unknown in ("municipios/1009", "municipios/1", "estados/9"):
        assert (await outlined.get(f"/api/census/{unknown}/outline/")).status_code == 404
    assert (await outlined.get("/api/census/municipios/1001/outline/?x=1")).status_code == 422


async def test_outline_of_an_estado_is_that_of_its_municipios_together(outlined: httpx.AsyncClient) -> None:
    answer = (await outlined.get("/api/census/estados/1/outline/")).json()
    [[ring]] = answer["geometry"]["coordinates"]  # neither the enclave nor the border between the two
    assert {tuple(point) for point in ring} == {*square(-103, 21, 1), *square(-102, 21, 1)}
    assert answer["properties"] == {"cvegeo": "01", "nombre": None, "edition": "2025"}


@pytest.mark.parametrize(
    ("path", "names", "keys"),
    [
        ("geo/mgem/01", "cvegeo cve_agee cve_agem nom_agem", ["01001", "01002", "01003"]),
        ("v2/geo/mgem/01/", "cvegeo cve_ent cve_mun nomgeo", ["01001", "01002", "01003"]),
        ("v2/geo/mgem/1/2", "cvegeo cve_ent cve_mun nomgeo", ["01002"]),
        ("geo/mgem/01002", "cvegeo cve_agee cve_agem nom_agem", ["01002"]),
        ("geo/mgee/", "cvegeo cve_agee", ["01", "02"]),
        ("v2/geo/mgee/02", "cvegeo cve_ent", ["02"]),
    ],
)
async def test_outlines_as_wscatgeo_answers_them(
    outlined: httpx.AsyncClient, path: str, names: str, keys: list[str]
) -> None:
    document = (await outlined.get(f"/wscatgeo/{path}")).json()
    assert [feature["properties"]["cvegeo"] for feature in document["features"]] == keys
    for feature in document["features"]:
        assert " ".join(feature["properties"]) == names
        assert feature["geometry"]["crs"]["properties"]["name"] == "EPSG:6365"


@pytest.mark.parametrize("path", ["geo/mgem/09", "v2/geo/mgem/01/009", "geo/localidades/01001"])
async def test_wscatgeo_refuses_what_there_is_not_with_a_sentence(outlined: httpx.AsyncClient, path: str) -> None:
    answer = await outlined.get(f"/wscatgeo/{path}")
    assert (answer.status_code, answer.json()["result"]) == (200, "404")


GUIDE = "guides/outlines.md"
ITEMS = "/ogc/collections/{}/items"


async def test_ogc_shows_outlines_where_there_are_any_else_points(outlined: httpx.AsyncClient) -> None:
    for name, ids in (("estados", {1, 2}), ("municipios", {1001, 1002, 2001})):
        features = (await outlined.get(f"{ITEMS.format(name)}?limit=99")).json()["features"]
        assert {one["id"] for one in features if one["geometry"] and one["geometry"]["type"] == "MultiPolygon"} == ids
        assert len(features) > len(ids)
    single = (await outlined.get(f"{ITEMS.format('municipios')}/1002")).json()
    assert single["geometry"]["coordinates"] == [[[list(point) for point in square(-102, 21, 1)]]]


@pytest.mark.parametrize(
    ("collection", "box", "expected"),
    [
        ("municipios", "-101.9,21.1,-101.8,21.2", {1002}), ("municipios", "-102.1,21.1,-101.9,21.2", {1001, 1002}),
        ("municipios", "-102.55,21.45,-102.5,21.5", {1001}), ("municipios", "-120,10,-118,12", set()),
        ("municipios", "-108.4,25.1,-107.9,25.2", {2001}), ("estados", "-108.4,25.1,-107.9,25.2", {2}),
    ],
)  # fmt: skip
async def test_ogc_box_finds_what_its_outline_touches(
    outlined: httpx.AsyncClient, collection: str, box: str, expected: set[int]
) -> None:
    document = (await outlined.get(f"{ITEMS.format(collection)}?bbox={box}&limit=99")).json()
    assert {feature["id"] for feature in document["features"]} == expected
    assert document["numberMatched"] == len(expected)


# -- Editions and the rest of the service


# Pages, and a part that they have only with outlines.
PAGES = {
    INDEX: 'action="municipios/at/"',
    f"{INDEX}municipios/1001/": 'class="border"',
    f"{INDEX}localidades/10010001/": 'class="border"',
    "/map": 'data-edition="2025"',
}


async def read_pages(client: httpx.AsyncClient) -> list[httpx.Response]:
    return [await client.get(path, headers=BROWSER) for path in PAGES]


async def show_outlines(client: httpx.AsyncClient) -> bool:
    """Whether every page does, although the response cache held it without."""
    return all(sign in page.text for page, sign in zip(await read_pages(client), PAGES.values(), strict=True))


async def test_new_edition_is_served_without_a_restart(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=10**6) as app, client_of(app) as client:
        assert (await at(client, 21.3, -102.9)).status_code == 404
        pages_before = await read_pages(client)
        assert not any(sign in page.text for page, sign in zip(pages_before, PAGES.values(), strict=True))
        await import_outlines_into(seeded_database, write(tmp_path, geojson(), "a.json"))
        before = await at(client, 21.3, -102.9)
        kept = {"If-None-Match": before.headers["etag"]}
        again = await client.get(str(before.request.url), headers=kept)
        assert (before.status_code, again.status_code) == (200, 304)
        assert again.headers["cache-control"] == before.headers["cache-control"] == "no-cache, private"
        await eventually_async(lambda: show_outlines(client))
        layer = await client.get(ITEMS.format("municipios"))
        moved = geojson({"01002": ("Peñón", [square(-103, 21, 1)])})
        await import_outlines_into(seeded_database, write(tmp_path, moved, "b.json"), "2026")
        of_layer = {"If-None-Match": layer.headers["etag"]}

        async def is_new() -> bool:
            return (await client.get(ITEMS.format("municipios"), headers=of_layer)).status_code == 200

        await eventually_async(is_new)
        after = await client.get(str(before.request.url), headers=kept)
        assert [(one["cvegeo"], one["edition"]) for one in after.json()["results"]] == [("01002", "2026")]
        database = Database.for_writing(seeded_database)
        assert await remove_outlines(database) == "2026"
        await database.dispose()
        assert (await at(client, 21.3, -102.9)).status_code == 404

        async def are_as_before() -> bool:
            return all(
                (page.content, page.headers["etag"]) == (before.content, before.headers["etag"])
                for page, before in zip(await read_pages(client), pages_before, strict=True)
            )

        await eventually_async(are_as_before)


async def test_other_requests_ask_nothing_of_the_outlines(outlined: httpx.AsyncClient, outlined_app: FastAPI) -> None:
    queries = "", "10010001/", "nearest/?lat=21&lon=-102", "?search=ninguno"
    with recorded_statements(outlined_app) as statements:
        for target in queries:
            assert (await outlined.get(f"{LOCALIDADES}{target}")).status_code == 200
    assert statements
    assert not [one for one in statements if "outline" in one]


@pytest.mark.tail
def test_guide_prints_what_it_shows(server: str, migrated: str, tmp_path: Path) -> None:
    places = [
        Place(f"01{key}0001", name, nom_mun=name) for key, name in (("001", "Aguascalientes"), ("005", "Jesús María"))
    ]
    file = write_catalogue(tmp_path / "catun_localidad_2026-11.csv", places)
    outlines = {"01001": ("Aguascalientes", [square(-103, 21, 1)])}
    write(tmp_path, zipped({"01.geojson": geojson(outlines)}), "mg_2025_integrado.zip")
    [shops] = re.findall(r"\$ cat shops.csv\n(.*?)\$", (DOCS / GUIDE).read_text("utf-8"), re.DOTALL)
    (tmp_path / "shops.csv").write_text(shops, "utf-8")
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with new_database(server, migrated) as url:
        import_file(url, file)
        with serving(url) as live:
            await_names(live.base)
            for block in blocks_of(GUIDE):
                text = block.text.replace(SERVICE, live.base.removeprefix("http://"))
                follow(block.language, text, tmp_path, PATH=commands, DATABASE_URL=service_address(url))


# -- The map


# What it draws, as GeoJSON.
DRAWN = """async (source) => {
    const { map } = (await import(document.querySelector("script[src*='map.js']").src)).shown;
    const { features } = await map.getSource(source).getData();
    return features.map(({ id, geometry }) => [geometry.type, id ?? null]);
}"""


async def test_map_offers_the_municipio_of_a_click_and_draws_its_border(
    server: str, seeded: str, tmp_path: Path
) -> None:
    with new_database(server, seeded) as url:
        await import_outlines_into(url, write(tmp_path, geojson(), "mgem.json"))
        with serving(url) as live:
            async with (
                launched(*WEBGL) as browser,
                visit(browser, live.base, errors=True, reduced_motion="reduce") as page,
            ):
                await page.goto("/map#map=7/21.5/-102.5")
                told = page.locator("#told")

                async def click(east: int) -> None:
                    box = await page.locator("#ground").bounding_box()
                    assert box
                    await page.mouse.click(box["x"] + box["width"] / 2 + east, box["y"] + box["height"] / 2)

                await expect(page.locator(".legend .outlines")).to_be_visible()  # once the map is drawn
                await click(0)
                await expect(told).to_have_text("Enclave, Aguascalientes · 01003")  # newer than the release
                await click(100)
                await expect(told.get_by_role("link")).to_have_attribute("href", re.compile("municipios/1002/$"))
                assert await page.evaluate(DRAWN, "selected") == [["MultiPolygon", 1002]]
                await click(-400)
                await expect(told).to_have_text("The point is in no municipio that has an outline here.")
                assert await page.evaluate(DRAWN, "selected") == []
                await page.goto("/map#map=11/21.88/-102.29&place=010010001")
                await expect(page.locator("#place")).to_be_visible()
                await eventually_async(lambda: page.evaluate(DRAWN, "outlines"))
                outlines = await page.evaluate(DRAWN, "outlines")
                assert ["MultiPolygon", 1001] in outlines
                assert "LineString" not in str(outlines)  # none that is deduced
                assert await page.evaluate(DRAWN, "selected") == [["MultiPolygon", 1001], ["Point", 10010001]]


# -- INEGI's outlines of three estados, and points with their municipios, which shapely has found


@pytest.fixture(scope="session")
def real_outlines() -> Path:
    folder = ROOT.parent / "shared" / "outlines"
    if not folder.is_dir():
        pytest.skip("INEGI's outlines are not on this machine (../shared/outlines)")
    return folder


@pytest.mark.tail
@pytest.mark.parametrize("file", ["geo_mgem.zip", "marco_muestra_s.zip"])
async def test_points_lie_where_shapely_says(seeded_database: str, real_outlines: Path, file: str) -> None:
    await import_outlines_into(seeded_database, real_outlines / file)
    rows = list(csv.DictReader((real_outlines / "points.tsv").open(), delimiter="\t"))
    expected = [[row["municipio"]] if row["municipio"] else [] for row in rows]
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert [await located(client, float(row["latitud"]), float(row["longitud"])) for row in rows] == expected
        text = (real_outlines / "points.tsv").read_bytes()
        answer = await client.post(f"{AT}?format=ndjson", content=text, headers={"Content-Type": "text/csv"})
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [[one["cvegeo"] for one in line["results"]] for line in lines] == expected
        assert [line["agrees"] for line in lines].count(False) == 0
