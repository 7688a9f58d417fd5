"""The municipio of a point, and outlines: answers, editions, and INEGI's own outlines."""

import asyncio
import csv
import json
import os
import re
import sys
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import expect
from starlette.types import Message, Scope

from localidades_api.caches.results import ResultCache
from localidades_api.errors import UnavailableError
from localidades_api.extensions.outlines.queries import get_edition, list_outlines
from localidades_api.extensions.outlines.router import answer_outlines_as_wscatgeo
from tests.deploy.guides import DOCS, SERVICE, blocks_of, follow
from tests.extensions.outline_files import OUTLINES, geojson, import_outlines_into, remove_outlines_from, square, write
from tests.support.application import await_answer, client_of, import_file, recorded_statements, running_app
from tests.support.browser import WEBGL, launched, visit
from tests.support.catalogue import Place, write_catalogue
from tests.support.http_server import Response, at_paths, http_server
from tests.support.pages import BROWSER, INDEX
from tests.support.postgres import new_database, run_sql
from tests.support.service_address import service_address
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, ROOT, await_names, serving
from tests.support.workbooks import zip_of

CENSUS = "/api/census"
AT = f"{CENSUS}/municipios/at/"
ITEMS = "/ogc/collections/{}/items"
GUIDE = "guides/outlines.md"
MODULE = sys.modules[answer_outlines_as_wscatgeo.__module__]


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


async def get(client: httpx.AsyncClient, path: str, **parameters: Any) -> Any:  # noqa: ANN401  # JSON
    answer = await client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def located(client: httpx.AsyncClient, lat: float, lon: float) -> list[str]:
    return [municipio["cvegeo"] for municipio in (await get(client, AT, lat=lat, lon=lon))["results"]]


async def send_table(client: httpx.AsyncClient, path: str, table: str, **parameters: str) -> httpx.Response:
    answer = await client.post(path, params=parameters, content=table, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 200, answer.text
    return answer


async def test_answer_has_the_municipio_its_estado_and_the_edition(outlined: httpx.AsyncClient) -> None:
    estado = {"id": 1, "clave": "01", "nombre": "Aguascalientes", "abreviatura": "Ags."}
    shared = {"estado": estado, "edition": "2025"}
    for lat, lon, municipio in (
        (21.3, -102.9, {"id": 1001, "cvegeo": "01001", "nombre": "Municipio 001", "in_release": True}),
        (21.5, -102.5, {"id": 1003, "cvegeo": "01003", "nombre": "Enclave", "in_release": False}),
    ):
        reach = {"edition": "2025", "municipios": 4, "estados": [1, 2]}
        assert await get(outlined, AT, lat=lat, lon=lon) == {"results": [municipio | shared], "outlines": reach}


async def test_points_inside_on_borders_at_sea_and_at_poles(outlined: httpx.AsyncClient) -> None:
    expected = {
        (21.3, -102.9): ["01001"], (21.5, -101.5): ["01002"], (25.2, -107.8): ["02001"], (25.9, -109.1): ["02001"],
        (21.5, -102.5): ["01003"], (21.4, -102.5): ["01003"], (21.5, -102): ["01001"], (21, -102): ["01001"],
        (25.2, -108.5): [], (90, 0): [], (-90, 180): [], (0, 0): [], (18, -104.9): [],
    }  # fmt: skip
    assert {point: await located(outlined, *point) for point in expected} == expected
    rows = {"rows": [{"lat": lat, "lon": lon} for lat, lon in expected]}
    many = (await outlined.post(AT, json=rows)).json()["results"]
    assert [[municipio["cvegeo"] for municipio in row["results"]] for row in many] == [*expected.values()]
    tags = [(await outlined.get(AT, params={"lat": lat, "lon": lon})).headers["etag"] for lat, lon in expected]
    assert len({*tags}) == len({*map(str, expected.values())})  # one for each municipio, and one for none


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("lat=91&lon=0", "lat"), ("lat=20", "lon"), ("lat=2e1&lon=0", "lat"), ("lat=20&lon=1e309", "lon"),
        ("lat=20&lon=-100&limit=3", "limit"), ("lat=21°62'N&lon=-102", "lat"), ("lat=51.5, -0.1", "lat"),
    ],
)  # fmt: skip
async def test_bad_parameter_is_an_error(outlined: httpx.AsyncClient, query: str, said: str) -> None:
    answer = await outlined.get(f"{AT}?{query}")
    error = answer.json()["errors"][0]
    assert answer.status_code == 422
    assert said in {error["parameter"], error["message"].partition(":")[0]}


@pytest.mark.parametrize(
    ("lat", "lon"), [("21.3", "102.9"), ("-102.9", "21.3"), ("21°18'00\"N", "102°54'00\"W"), ("21.3, -102.9", "")]
)
async def test_point_is_read_as_in_rows(outlined: httpx.AsyncClient, lat: str, lon: str) -> None:
    assert [municipio["id"] for municipio in (await get(outlined, AT, lat=lat, lon=lon))["results"]] == [1001]
    if not lon:
        assert [municipio["id"] for municipio in (await get(outlined, AT, lat=lat))["results"]] == [1001]
    page = (await outlined.get(AT, params={"lat": lat, "lon": lon, "format": "api"})).text
    assert 'value="21.3"' in page
    assert 'value="-102.9"' in page


async def test_page_shows_the_municipio_in_both_languages(outlined: httpx.AsyncClient) -> None:
    page = (await outlined.get(f"{AT}?lat=21.3&lon=-102.9&format=api&lang=es")).text
    assert "¿En qué municipio está?" in page
    assert 'href="../1001/?lang=es"' in page
    nowhere = (await outlined.get(f"{AT}?lat=0&lon=0&format=api&lang=en")).text
    assert (
        "The point is in no municipio that has an outline here. There are outlines of 4 municipios in 2 estados."
        " Aguascalientes, " in nowhere
    )


async def test_without_outlines_the_error_names_the_command(client: httpx.AsyncClient) -> None:
    for answer in (
        await client.get(f"{AT}?lat=21.3&lon=-102.9"),
        await client.post(AT, json={"rows": [{"latitud": 21.3, "longitud": -102.9}]}),
        await client.get(f"{CENSUS}/municipios/1001/outline/"),
        await client.get(f"{CENSUS}/estados/1/outline/"),
    ):
        assert answer.status_code == 404
        assert "localidades-api outlines import" in answer.json()["detail"]
    assert (await get(client, "/wscatgeo/geo/mgem/01"))["result"] == "404"


# -- Many points


LACKING = "The release or the outlines lack its municipio, or that of its point."


async def test_row_is_told_whether_its_own_municipio_is_that_of_its_point(outlined: httpx.AsyncClient) -> None:
    """The release lacks 01003, and the outlines 02002: of these nothing is known, nor of what is no municipio."""
    expected = {
        "21.3,-102.9,Municipio 001,Ags.,": True, "21.3,-102.9,Municipio 002,Ags.,": False,
        "21.3,-102.9,1,01,": True, "21.3,-102.9,,,01001": True, "21.3,-102.9,,,010010001": True,
        "21.3,-102.9,,,1002": False, "25.2,-108.5,,,02001": False, "21.3,-102.9,,,": None, "21.3,-102.9,,Ags.,": None,
        "21.3,102.9,,,01001": True, "21.5,-102.5,,,01003": True,
        "21.3,-102.9,,,02002": LACKING, "25.2,-108.5,,,02002": LACKING, "21.3,-102.9,,,01003": LACKING,
        "21.5,-102.5,,,01001": LACKING, "21.3,-102.9,,,01": LACKING, "21.3,-102.9,,,99999": LACKING,
        "21.3,-102.9,Nowhere,Ags.,": LACKING, "0,0,,,01001": "`latitud` and `longitud` are not in Mexico.",
    }  # fmt: skip
    table = "\n".join(["latitud,longitud,municipio,estado,cvegeo", *expected])
    results = (await send_table(outlined, AT, table, format="json")).json()["results"]
    assert dict(zip(expected, (row["problem"] or row["agrees"] for row in results), strict=True)) == expected
    assert all(row["agrees"] is None for row in results if row["problem"])


async def test_table_has_columns_in_the_language(outlined: httpx.AsyncClient) -> None:
    for lang, expected in (
        ("en", "at_cvegeo,at_municipio,at_estado,at_agrees,at_problem 01002,Municipio 002,Aguascalientes,FALSE,"),
        ("es", "Clave INEGI (CVEGEO),Municipio,Estado,Coincide,Observación 01002,Municipio 002,Aguascalientes,FALSO,"),
    ):
        answer = await send_table(outlined, AT, "lat,lon,mun\n21.5,-101.5,1001\n", lang=lang)
        header, row = answer.content.decode("utf-8-sig").splitlines()
        assert f"{header.removeprefix('lat,lon,mun,')} {row.removeprefix('21.5,-101.5,1001,')}" == expected


async def test_match_uses_the_municipio_of_a_point(server: str, migrated: str, tmp_path: Path) -> None:
    places = [
        Place(f"{key}0012", "La Estación", nom_mun=name, latitud="21.9", longitud=longitud)
        for key, name, longitud in (("01002", "Asientos", "-102.008"), ("01003", "Calvillo", "-101.999"))
    ]
    outlines = {"01002": ("Asientos", [square(-103, 20.901, 1)]), "01003": ("Calvillo", [square(-102, 20.901, 1)])}
    asked = [(municipio, lat) for lat in (21.9, 21.905) for municipio in ("", "Asientos", "Calvillo")]
    rows = [{"nombre": "La Estación", "municipio": name, "lat": lat, "lon": -102.003} for name, lat in asked]
    with new_database(server, migrated) as url:
        import_file(url, write_catalogue(tmp_path / "catun_localidad_2026-11.csv", places))
        async with running_app(url) as app, client_of(app) as client:

            async def match() -> Any:  # noqa: ANN401  # JSON
                return (await client.post(f"{LOCALIDADES}match/", json={"rows": rows})).json()["results"]

            async def chooses() -> bool:
                return (await match())[0]["cvegeo"] is not None

            nothing, first, second = ("ambiguous", None), ("exact", "010020012"), ("exact", "010030012")
            assert [(result["outcome"], result["cvegeo"]) for result in await match()] == [nothing, first, second] * 2
            await import_outlines_into(url, write(tmp_path, geojson(outlines), "mgem.json"))
            await eventually_async(chooses)
            answers = await match()  # the first three points are in the first municipio, the others in none
            decided = [(result["outcome"], result["cvegeo"]) for result in answers]
            assert decided == [first, first, nothing, nothing, first, second]
            fault = {"code": "point", "given": "Asientos, Aguascalientes", "found": "", "penalty": 0}
            assert [result["faults"] for result in answers] == [[], [], [fault], [], [], []]
            [likeliest, *_] = answers[2]["candidates"]
            assert (likeliest["cvegeo"], likeliest["faults"]) == ("010030012", [fault])
            table = "nombre,municipio,lat,lon\nLa Estación,Calvillo,21.9,-102.003\n"
            said = (await send_table(client, f"{LOCALIDADES}match/", table, lang="es")).text
            assert '"municipio de las coordenadas: Asientos, Aguascalientes"' in said
            older, newer = (
                {"01002": outlines["01002"]},
                outlines | {"01099": ("Nuevo", [square(-102.004, 21.899, 0.002)])},
            )
            for edition, known in (("2020", older), ("2026", newer)):  # without its municipio, or that of its point
                await import_outlines_into(url, write(tmp_path, geojson(known), "mgem.json"), edition)
                result = (await match())[2]
                assert (result["outcome"], result["cvegeo"], result["faults"]) == (*second, [])


@pytest.mark.parametrize("path", [AT, f"{LOCALIDADES}match/"])
@pytest.mark.parametrize("edition", ["2026", None])
async def test_answer_breaks_off_when_its_edition_goes(
    seeded_database: str, tmp_path: Path, path: str, edition: str | None
) -> None:
    await import_outlines_into(seeded_database, write(tmp_path, geojson(), "a.json"))
    other = write(tmp_path, geojson({"01002": ("Peñón", [square(-103, 21, 1)])}), "b.json")
    messages: list[Message] = []
    rows = "nombre,municipio,estado,lat,lon\n" + "Lugar,Municipio 001,Ags.,21.3,-102.9\n" * 5000
    asked: list[Message] = [{"type": "http.request", "body": rows.encode()}]

    async def receive() -> Message:
        while not asked:
            await asyncio.Event().wait()
        return asked.pop()

    async def send(message: Message) -> None:
        messages.append(message)
        if len(messages) == 2:  # the head, and the first answers
            await (
                import_outlines_into(seeded_database, other, edition)
                if edition
                else remove_outlines_from(seeded_database)
            )

    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"text/csv")], "client": ("127.0.0.1", 1), "server": ("test", 80),
    }  # fmt: skip
    async with running_app(seeded_database) as app:
        await app(scope, receive, send)
    assert messages[0]["status"] == 200
    assert messages[-1].get("more_body")  # the end is missing
    answers = b"".join(message.get("body", b"") for message in messages)
    assert b"FALSE" not in answers
    assert b"Lugar" in answers


# -- Outlines


async def test_outline_is_a_feature_that_clients_keep(outlined: httpx.AsyncClient) -> None:
    answer = await outlined.get(f"{CENSUS}/municipios/1001/outline/")
    assert answer.headers["content-type"] == "application/geo+json"
    assert answer.headers["cache-control"].startswith("public")
    coordinates = [[[list(point) for point in ring] for ring in OUTLINES["01001"][1]]]
    assert answer.json() == {
        "type": "Feature",
        "id": 1001,
        "geometry": {"type": "MultiPolygon", "coordinates": coordinates},
        "properties": {"cvegeo": "01001", "nombre": "Aguascalientes", "edition": "2025"},
    }
    kept = {"If-None-Match": answer.headers["etag"]}
    assert (await outlined.get(f"{CENSUS}/municipios/1001/outline/", headers=kept)).status_code == 304
    for path, status in (("municipios/1009", 404), ("municipios/1", 404), ("estados/9", 404)):
        assert (await outlined.get(f"{CENSUS}/{path}/outline/")).status_code == status
    assert (await outlined.get(f"{CENSUS}/municipios/1001/outline/?x=1")).status_code == 422


@pytest.mark.parametrize("coding", ["br", "gzip", "identity"])
async def test_outlines_are_read_and_compressed_once_an_edition(
    seeded_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    paths = [f"{CENSUS}/municipios/1001/outline/", f"{CENSUS}/estados/1/outline/"]
    paths += [f"/wscatgeo/{path}" for path in ("geo/mgem/01", "v2/geo/mgem/01", "geo/mgee", "geo/mgem/01001")]
    async with running_app(seeded_database) as app, client_of(app) as client:
        tags: list[str] = []
        for side in (1, 1.5):
            outlines = geojson({**OUTLINES, "01002": (coding, [square(-102, 21, side)])})
            await import_outlines_into(seeded_database, write(tmp_path, outlines, "a.json"), f"{side}")
            with recorded_statements(app) as statements:
                for _ in range(2):
                    headers = {"Accept-Encoding": coding}
                    answers = await asyncio.gather(*(client.get(path, headers=headers) for path in 2 * paths))
                    tags += [answer.headers["etag"] for answer in answers[: len(paths)]]
                    assert {answer.headers.get("content-encoding", "identity") for answer in answers} == {coding}
                    assert [("[-100.5," in answer.text) for answer in answers[2:5]] == [side == 1.5] * 3
                monkeypatch.setattr(MODULE, "_held", ResultCache(10**6, len))  # as in another worker
                for path, tag in zip(paths, tags[-len(paths) :], strict=True):
                    answer = await client.get(path, headers={**headers, "If-None-Match": tag})
                    assert (answer.status_code, answer.headers["etag"], answer.content) == (304, tag, b"")
            assert sum("geometry" in statement for statement in statements) == len(paths)
        assert len({*tags}) == 2 * len(paths)


async def test_outlines_of_an_edition_that_is_gone_are_not_read(seeded_database: str, tmp_path: Path) -> None:
    await import_outlines_into(seeded_database, write(tmp_path, geojson(), "a.json"))
    async with running_app(seeded_database) as app:
        database = app.state.services.database
        edition = await get_edition(database)
        assert edition
        assert [row.id for row in await list_outlines(database, edition)] == [1, 2, 1001, 1002, 1003, 2001]
        await import_outlines_into(seeded_database, write(tmp_path, geojson(name="nomgeo"), "b.json"), "2026")
        with pytest.raises(UnavailableError, match="replaced or removed"):
            await list_outlines(database, edition)


@pytest.mark.tail
async def test_large_outlines_do_not_hold_the_event_loop(
    seeded_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "_held", ResultCache(1000, len))  # these are too large to be held
    await import_outlines_into(seeded_database, write(tmp_path, geojson(), "a.json"))
    random = Random(1)  # noqa: S311  # no secret
    ring = [(-103 - random.random(), 21 + random.random()) for _ in range(50_000)]
    geometry = zlib.compress(json.dumps({"type": "MultiPolygon", "coordinates": [[[*ring, ring[0]]]]}).encode(), 1)
    await run_sql(seeded_database, "UPDATE outlines SET geometry = $1", geometry)
    paths = [f"/wscatgeo/{path}" for path in ("geo/mgem/01", "v2/geo/mgem/01", "geo/mgee")]
    paths += [f"{CENSUS}/municipios/1001/outline/", ITEMS.format("municipios") + "?limit=99"]
    async with running_app(seeded_database) as app, client_of(app) as client:
        for coding in ("br", "gzip"):

            async def ask(path: str, coding: str = coding) -> int:
                async with client.stream("GET", path, headers={"Accept-Encoding": coding}) as answer:
                    assert answer.headers["content-encoding"] == coding
                    return sum([len(piece) async for piece in answer.aiter_raw()])

            asking, held = asyncio.gather(*map(ask, paths)), 0.0
            while not asking.done():
                began = time.thread_time()
                await asyncio.sleep(0.002)
                held = max(held, time.thread_time() - began)
            assert min(await asking) > 500_000
            assert held < 0.2  # seconds of processor time; compressing one of these takes a second


async def test_outline_of_an_estado_is_that_of_its_municipios_together(outlined: httpx.AsyncClient) -> None:
    answer = await get(outlined, f"{CENSUS}/estados/1/outline/")
    [[ring]] = answer["geometry"]["coordinates"]  # neither the enclave nor the border between the two
    assert {tuple(point) for point in ring} == {*square(-103, 21, 1), *square(-102, 21, 1)}
    assert answer["properties"] == {"cvegeo": "01", "nombre": None, "edition": "2025"}


async def test_outlines_as_wscatgeo_answers_them(outlined: httpx.AsyncClient) -> None:
    first, second = "cvegeo cve_agee cve_agem nom_agem", "cvegeo cve_ent cve_mun nomgeo"
    for path, names, keys in (
        ("geo/mgem/01", first, ["01001", "01002", "01003"]), ("v2/geo/mgem/01/", second, ["01001", "01002", "01003"]),
        ("v2/geo/mgem/1/2", second, ["01002"]), ("geo/mgem/01002", first, ["01002"]),
        ("geo/mgee/", "cvegeo cve_agee", ["01", "02"]), ("v2/geo/mgee/02", "cvegeo cve_ent", ["02"]),
    ):  # fmt: skip
        features = (await get(outlined, f"/wscatgeo/{path}"))["features"]
        assert [feature["properties"]["cvegeo"] for feature in features] == keys
        assert {" ".join(feature["properties"]) for feature in features} == {names}
        assert {feature["geometry"]["crs"]["properties"]["name"] for feature in features} == {"EPSG:6365"}
    for path in ("geo/mgem/09", "v2/geo/mgem/01/009", "geo/localidades/01001"):
        assert (await get(outlined, f"/wscatgeo/{path}"))["result"] == "404"


async def test_ogc_shows_outlines_where_there_are_any_else_points(outlined: httpx.AsyncClient) -> None:
    for name, ids in (("estados", {1, 2}), ("municipios", {1001, 1002, 2001})):
        features = (await get(outlined, ITEMS.format(name), limit=99))["features"]
        assert {
            area["id"] for area in features if area["geometry"] and area["geometry"]["type"] == "MultiPolygon"
        } == ids
        assert len(features) > len(ids)
    single = await get(outlined, f"{ITEMS.format('municipios')}/1002")
    assert single["geometry"]["coordinates"] == [[[list(point) for point in square(-102, 21, 1)]]]


async def test_ogc_box_finds_what_its_outline_touches(outlined: httpx.AsyncClient) -> None:
    for collection, box, expected in (
        ("municipios", "-101.9,21.1,-101.8,21.2", {1002}), ("municipios", "-102.1,21.1,-101.9,21.2", {1001, 1002}),
        ("municipios", "-102.55,21.45,-102.5,21.5", set()), ("municipios", "-120,10,-118,12", set()),
        ("municipios", "-102.55,21.3,-102.5,21.5", {1001}), ("municipios", "-102.55,21.3,-102.5,21.35", {1001}),
        ("municipios", "-102,21.5,-102,21.5", {1001, 1002}), ("estados", "-102.55,21.45,-102.5,21.5", {1}),
        ("municipios", "-108.4,25.1,-107.9,25.2", {2001}), ("estados", "-108.4,25.1,-107.9,25.2", {2}),
        ("municipios", "-101.9,21,-109.5,26", {1002, 2001}),  # two boxes
    ):  # fmt: skip
        document = await get(outlined, ITEMS.format(collection), bbox=box, limit=99)
        assert {feature["id"] for feature in document["features"]} == expected
        assert document["numberMatched"] == len(expected)


# -- Editions and the rest of the service

# Pages, and a part that they have only with outlines.
PAGES = {
    INDEX: 'action="municipios/at/"',
    f"{INDEX}municipios/1001/": 'class="border"',
    f"{INDEX}localidades/10010001/": 'class="border"',
    "/map": 'data-borders="',
}


async def test_new_edition_is_served_without_a_restart(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=10**6) as app, client_of(app) as client:

        async def ask(path: str, etag: str = "") -> httpx.Response:
            return await client.get(path, headers={"If-None-Match": etag})

        async def pages() -> list[tuple[str, str]]:
            answers = [await client.get(path, headers=BROWSER) for path in PAGES]
            return [(answer.text, answer.headers["etag"]) for answer in answers]

        async def show_outlines() -> bool:  # although the response cache held them without
            return all(sign in text for sign, (text, _) in zip(PAGES.values(), await pages(), strict=True))

        async def are_as_before() -> bool:
            return await pages() == before

        point = f"{AT}?lat=21.3&lon=-102.9"
        assert (await ask(point)).status_code == 404
        before = await pages()
        assert not any(sign in text for sign, (text, _) in zip(PAGES.values(), before, strict=True))
        await import_outlines_into(seeded_database, write(tmp_path, geojson(), "a.json"))
        etag = (await ask(point)).headers["etag"]
        again = await ask(point, etag)
        assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache, private")
        await eventually_async(show_outlines)
        layer = ITEMS.format("municipios")
        tag = (await ask(layer)).headers["etag"]
        moved = geojson({"01002": ("Peñón", [square(-103, 21, 1)])})
        await import_outlines_into(seeded_database, write(tmp_path, moved, "b.json"), "2026")
        await await_answer(client, layer, lambda answer: answer.headers["etag"] != tag)
        [after] = (await ask(point, etag)).json()["results"]
        assert (after["cvegeo"], after["edition"]) == ("01002", "2026")
        await remove_outlines_from(seeded_database)
        assert (await ask(point)).status_code == 404
        await eventually_async(are_as_before)


async def test_other_requests_ask_nothing_of_the_outlines(outlined: httpx.AsyncClient, outlined_app: FastAPI) -> None:
    with recorded_statements(outlined_app) as statements:
        for target in ("", "10010001/", "nearest/?lat=21&lon=-102", "?search=ninguno"):
            assert (await outlined.get(f"{LOCALIDADES}{target}")).status_code == 200
    assert statements
    assert not [statement for statement in statements if "outline" in statement]


@pytest.mark.tail
def test_guide_prints_what_it_shows(server: str, migrated: str, tmp_path: Path) -> None:
    names = {"001": "Aguascalientes", "005": "Jesús María"}
    places = [Place(f"01{key}0001", name, nom_mun=name) for key, name in names.items()]
    rings = {f"{at:02}": square(-103.5 + at / 2, 26 if at > 1 else 21, 1) for at in range(1, 33)}
    outlines = {f"{key}001": ("Aguascalientes", [ring]) for key, ring in rings.items()}
    outlines["01005"] = ("Jesús María", [square(-102, 21, 1)])
    answers = {key: geojson({id_: outline for id_, outline in outlines.items() if id_[:2] == key}) for key in rings}
    write(tmp_path, zip_of({f"{key}.json": answer for key, answer in answers.items()}), "mg_2025_integrado.zip")
    [shops] = re.findall(r"\$ cat shops.csv\n(.*?)\$", (DOCS / GUIDE).read_text("utf-8"), re.DOTALL)
    write(tmp_path, shops.encode(), "shops.csv")
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with new_database(server, migrated) as url:
        import_file(url, write_catalogue(tmp_path / "catun_localidad_2026-11.csv", places))
        paths = {f"/wscatgeo/v2/geo/mgem/{key}": Response(answer) for key, answer in answers.items()}
        with serving(url) as live, http_server(at_paths(paths)) as inegi:
            await_names(live.base)
            for block in blocks_of(GUIDE):
                text = block.text.replace(SERVICE, live.base.removeprefix("http://"))
                text = text.replace("https://gaia.inegi.org.mx", inegi)
                follow(block.language, text, tmp_path, PATH=commands, DATABASE_URL=service_address(url))


# -- The map

# What it draws, as GeoJSON.
DRAWN = """async (source) => {
    const { map } = (await import(document.querySelector("script[src*='map.js']").src)).shown;
    const { features } = await map.getSource(source).getData();
    return features.map(({ id, geometry }) => [geometry.type, id ?? null]);
}"""


@pytest.mark.tail  # other tests show the map's page, and that it is told of the outlines
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

                async def selects(*features: list[Any]) -> bool:
                    return bool(await page.evaluate(DRAWN, "selected") == [*features])

                await expect(page.locator(".legend .outlines")).to_be_visible()  # once the map is drawn
                await click(0)
                await expect(told).to_have_text("Enclave, Aguascalientes · 01003")  # newer than the release
                await click(100)
                await expect(told.get_by_role("link")).to_have_attribute("href", re.compile("municipios/1002/$"))
                await eventually_async(lambda: selects(["MultiPolygon", 1002]))
                await click(-400)
                await expect(told).to_have_text("The point is in no municipio that has an outline here.")
                await eventually_async(selects)
                asked: list[str] = []
                page.on("request", lambda request: asked.append(request.url))
                await page.goto("/map#map=11/21.88/-102.29&place=010010001")
                await expect(page.locator("#place")).to_be_visible()
                await eventually_async(lambda: page.evaluate(DRAWN, "outlines"))
                outlines = await page.evaluate(DRAWN, "outlines")
                assert ["MultiPolygon", 1001] in outlines
                assert "LineString" not in str(outlines)  # none that is deduced
                await eventually_async(lambda: selects(["MultiPolygon", 1001], ["Point", 10010001]))
                assert not [url for url in asked if "/outline/" in url and "/1001/" not in url]
                assert len([url for url in asked if "/ogc/collections/municipios/items?bbox=" in url]) == 1


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
    text = (real_outlines / "points.tsv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    expected = [[row["municipio"]] if row["municipio"] else [] for row in rows]
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert [await located(client, float(row["latitud"]), float(row["longitud"])) for row in rows] == expected
        lines = (await send_table(client, AT, text, format="ndjson")).text.splitlines()
        answers = [json.loads(line) for line in lines]
        assert [[municipio["cvegeo"] for municipio in answer["results"]] for answer in answers] == expected
        assert [answer["agrees"] for answer in answers].count(False) == 0
