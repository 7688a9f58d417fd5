"""OGC API - Features: the requirements of the standard, and every feature once by following `next`."""

import asyncio
import json
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest
import schemathesis
from playwright.async_api import Browser

from localidades_api.extensions.ogc.router import FeaturesQuery
from tests.support.application import await_release, client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.http_server import Response, at_paths, http_server
from tests.support.machine import needed
from tests.support.pages import BROWSER, Page
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ask

OGC = "/ogc"
COLLECTIONS = ("estados", "municipios", "localidades")


async def get(client: httpx.AsyncClient, target: str) -> dict[str, Any]:
    answer = await client.get(target)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def links(document: dict[str, Any]) -> dict[str, str]:
    return {link["rel"]: link["href"] for link in document["links"]}


async def read_all(client: httpx.AsyncClient, target: str) -> list[dict[str, Any]]:
    """Follow `next` to the end."""
    features: list[dict[str, Any]] = []
    following: str | None = target
    while following:
        page = await get(client, following)
        assert page["numberReturned"] == len(page["features"])
        features += page["features"]
        following = links(page).get("next")
    assert page["numberMatched"] == len(features)
    return features


async def test_browser_gets_a_page_whose_links_lead_to_the_layers(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{OGC}/?release=2020-01", headers=BROWSER)
    assert "Accept" in answer.headers["vary"].split(", ")
    page = Page.of(answer)
    targets = [urljoin(f"{OGC}/", one.attributes["href"]) for one in page.inside("a", of=page.one("table"))]
    assert [urlsplit(target).path.removeprefix(f"{OGC}/collections/") for target in targets] == [
        name + part for name in COLLECTIONS for part in ("", "/items")
    ]
    for target in targets:
        assert parse_qs(urlsplit(target).query)["release"] == ["2020-01"]
        assert (await client.get(target)).status_code == 200
    assert f"http://127.0.0.1:8000{OGC}/?release=2020-01" in [code.text for code in page.all("code")]
    (language,) = [link.attributes["href"] for link in page.all("a") if link.attributes.get("hreflang")]
    assert parse_qs(language.removeprefix("?")) == {"release": ["2020-01"], "lang": ["es"]}
    assert (await client.get(f"{OGC}/?release=1999-01", headers=BROWSER)).status_code == 404
    for accept in ("*/*", "application/geo+json", "image/png", "application/json, text/html"):
        answer = await client.get(f"{OGC}/", headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"


async def test_landing_page_links_to_everything(client: httpx.AsyncClient) -> None:
    landing = await get(client, f"{OGC}/")
    found = links(landing)
    assert found.keys() == {"self", "conformance", "data", "service-desc", "service-doc", "alternate"}
    for link in landing["links"]:
        assert link["href"].startswith("http://test/")  # QGIS follows no relative ones
        answer = await client.get(link["href"])
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == link["type"].partition(";")[0]
    classes = (await get(client, found["conformance"]))["conformsTo"]
    assert {one.rpartition("/")[2] for one in classes} == {"core", "oas30", "geojson"}
    described = (await get(client, found["data"]))["collections"]
    assert [one["id"] for one in described] == list(COLLECTIONS)
    for one in described:
        assert await get(client, links(one)["self"]) == one
        assert (await get(client, links(one)["items"]))["type"] == "FeatureCollection"
        assert (await client.get(links(one)["alternate"])).headers["content-type"].startswith("text/html")


async def test_api_definition_is_valid_and_lists_limit_and_filters(client: httpx.AsyncClient) -> None:
    document = await get(client, f"{OGC}/api")
    schemathesis.openapi.from_dict(document).validate()
    assert document["openapi"].startswith("3.0")
    limit = {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 10}
    assert document["components"]["parameters"]["limit"]["schema"] == limit
    parameters = document["paths"]["/collections/localidades/items"]["get"]["parameters"]
    wanted = {"bbox", "limit", "datetime", "startindex", "offset", "estado_id", "ambito", "clave"}
    assert {one["name"] for one in parameters} >= wanted
    assert document["paths"].keys() == {
        "/", "/conformance", "/collections", "/collections/{collectionId}",
        *(f"/collections/{name}/items" for name in COLLECTIONS), "/collections/{collectionId}/items/{featureId}",
    }  # fmt: skip
    for path in document["paths"]:
        await get(client, f"{OGC}{path.format(collectionId='localidades', featureId='10010001')}")


@pytest.mark.parametrize("limit", [7, 1_000_000])
async def test_following_next_returns_each_locality_once(client: httpx.AsyncClient, limit: int) -> None:
    features = await read_all(client, f"{OGC}/collections/localidades/items?limit={limit}")
    download = (await client.get(f"{LOCALIDADES}download/?format=geojson")).json()["features"]
    assert features == download


@pytest.mark.parametrize(
    ("collection", "query", "name"),
    [
        ("estados", "", "offset"),
        ("municipios", "&bbox=-103,21,-102,23", "startindex"),
        ("localidades", "&bbox=-103,21,-110,22", "startindex"),  # two boxes
    ],
)
async def test_indexes_count_the_features_that_match(
    client: httpx.AsyncClient, collection: str, query: str, name: str
) -> None:
    target = f"{OGC}/collections/{collection}/items?limit=7{query}"
    every = await read_all(client, target)
    for index in {0, 3, max(len(every) - 7, 0), len(every), len(every) + 8, 2**53 - 1}:
        page = await get(client, f"{target}&{name}={index}")
        assert page["features"] == every[index : index + 7]
        assert (page["numberMatched"], page["numberReturned"]) == (len(every), len(page["features"]))
        assert ("next" in links(page)) is (index + 7 < len(every))


@pytest.mark.parametrize("begin", ["after", "startindex", "offset"])
def test_page_has_at_most_10000_keys_and_ends_before_what_follows(begin: str) -> None:
    for count, limit, value in product(
        (0, 1, 9, 10_000, 10_001), (1, 2, 10_000, 2**53 - 1), (0, 1, 2, 9, 18, 2**53 - 1)
    ):
        keys = range(2, 2 * count + 1, 2)
        rest = [key for at, key in enumerate(keys) if (key > value if begin == "after" else at >= value)]
        expected = rest[: min(limit, 10_000)]
        page, last = FeaturesQuery.model_validate({"limit": limit, begin: value}).page_of(keys)
        assert list(page) == expected
        assert last == (expected[-1] if len(rest) > len(expected) else None)


async def test_walk_stays_in_the_release_of_its_first_page(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        await await_release(client, "2020-01")
        target = f"{OGC}/collections/localidades/items?limit=50"
        every = await read_all(client, target)
        page = await get(client, f"{target}&startindex=30")
        await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
        await await_release(client, "2021-01")
        assert (await get(client, target))["numberMatched"] == 140
        following = links(page)["next"]
        assert ("startindex" in links(page)["self"], "startindex" in following) == (True, False)
        rest = []
        while following:
            page = await get(client, following)
            rest += page["features"]
            following = links(page).get("next", "")
    assert rest == every[80:]


@pytest.mark.parametrize("collection", COLLECTIONS)
async def test_bbox_selects_the_points_within(client: httpx.AsyncClient, collection: str) -> None:
    target = f"{OGC}/collections/{collection}/items?limit=200"
    located = [feature for feature in await read_all(client, target) if feature["geometry"]]
    for bbox, has_any in (
        ("-103,21,-102,22", True),
        ("-103,21,0,-102,22,100", True),
        ("-103.,21.0000000000001,-102,22.5", True),
        ("-103,21,-110,22", True),
        ("100,21,-102,22", True),  # around the other side of the Earth, in either box
        ("177,65,-177,70", False),
        ("-1e-05,0,1,1", False),
    ):
        numbers = [float(one) for one in bbox.split(",")]
        west, south, east, north = numbers if len(numbers) == 4 else (*numbers[:2], *numbers[3:5])
        expected = [
            feature
            for feature in located
            for x, y in [feature["geometry"]["coordinates"]]
            if south <= y <= north and (west <= x <= east if west <= east else x >= west or x <= east)
        ]
        assert await read_all(client, f"{target}&bbox={bbox}") == expected
        assert bool(expected) is has_any


async def test_box_of_any_sides_is_answered_or_refused_alike_in_every_collection(client: httpx.AsyncClient) -> None:
    for west, east in product((-999, -180.5, -180, 5, 180, 190.25, 300), repeat=2):
        for south, north in ((10, 20), (-95, 95), (91, 95)):
            answers = [
                await client.get(f"{OGC}/collections/{collection}/items?limit=1&bbox={west},{south},{east},{north}")
                for collection in COLLECTIONS
            ]
            touches_earth = west <= 180 and east >= -180 and south <= 90
            assert [one.status_code for one in answers] == [200 if touches_earth else 400] * len(COLLECTIONS)
            assert all("bbox" in one.text for one in answers)


async def test_areas_are_located_at_their_cabeceras(client: httpx.AsyncClient) -> None:
    for collection in ("estados", "municipios"):
        features = {one["id"]: one for one in await read_all(client, f"{OGC}/collections/{collection}/items?limit=30")}
        listed = (await get(client, f"/api/census/{collection}/?page_size=200"))["results"]
        assert {one["id"]: one["nombre"] for one in listed} == {
            id_: one["properties"]["nombre"] for id_, one in features.items()
        }
        for id_, feature in [*features.items()][:3]:
            alone = await get(client, f"{OGC}/collections/{collection}/items/{id_}")
            assert alone == feature | {"links": alone["links"]}
    seat = await get(client, f"{OGC}/collections/localidades/items/10010001")
    assert features[1001]["geometry"] == seat["geometry"]
    properties = features[1001]["properties"]
    assert (properties["cvegeo_mun"], properties["cve_mun"]) == ("01001", "001")
    assert features[1002]["geometry"] is None  # its cabecera has no coordinates
    of_one = await read_all(client, f"{OGC}/collections/municipios/items?estado_id=1")
    assert {one["properties"]["cve_ent"] for one in of_one} == {"01"}


@pytest.mark.parametrize(
    ("target", "status", "named"),
    [
        *((f"/collections/localidades/items?{query}", 400, name) for query, name in (
            ("limit=0", "limit"), ("limit=x", "limit"), ("limit=1&limit=2", "limit"), ("bbox=1,2,3", "bbox"),
            ("bbox=1,2,3,x", "bbox"), ("bbox=0,20,1,10", "bbox"), ("datetime=yesterday", "datetime"),
            ("nombre=x", "nombre"), ("estado_id=99", "estado_id"), ("startindex=-1", "startindex"),
            ("offset=1.5", "offset"), (f"startindex={2**53}", "startindex"), ("startindex=", "startindex"),
            ("startindex=1&offset=1", "offset"), ("after=0&startindex=0", "startindex"), ("startIndex=3", "startIndex"),
        )),
        ("/collections/estados/items?ambito=U", 400, "ambito"),
        ("/collections?x=1", 400, "x"),
        *((target, 404, None) for target in (
            "/collections/calles", "/collections/calles/items", "/collections/localidades/items/x",
            "/collections/localidades/items/999999999", "/collections/municipios/items/31999",
            "/collections/estados/items/32999", "/collections?release=nothing",
        )),
    ],
)  # fmt: skip
async def test_bad_requests_have_the_status_of_the_standard(
    client: httpx.AsyncClient, target: str, status: int, named: str | None
) -> None:
    answer = await client.get(f"{OGC}{target}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert [fault["parameter"] for fault in answer.json().get("errors", [])] == ([named] if named else [])


async def test_datetime_matches_every_feature(client: httpx.AsyncClient) -> None:
    for when in ("2018-09-01T00:00:00Z", "2018-01-01T00:00:00.5-06:00/..", "../2018-01-01T00:00:00Z"):
        assert (await get(client, f"{OGC}/collections/localidades/items?datetime={when}"))["numberMatched"] == 132


async def test_page_of_more_than_fifty_features_is_compressed(client: httpx.AsyncClient) -> None:
    for coding in ("identity", "gzip"):
        for limit, expected in ((50, "identity"), (51, coding)):
            target, headers = f"{OGC}/collections/localidades/items?limit={limit}", {"Accept-Encoding": coding}
            answer = await client.get(target, headers=headers)
            assert answer.headers.get("content-encoding", "identity") == expected
            again = await client.get(target, headers={**headers, "If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.headers["etag"]) == (304, answer.headers["etag"])


async def test_links_keep_the_named_release(client: httpx.AsyncClient) -> None:
    landing = await get(client, f"{OGC}/?release=2020-01")
    items = links((await get(client, links(landing)["data"]))["collections"][2])["items"]
    assert urlsplit(items).query == "release=2020-01"
    assert "release=2020-01" in links(await get(client, items))["next"]


@pytest.mark.tail
def test_gdal_reads_every_feature(live_server: str) -> None:
    ogrinfo = needed(shutil.which("ogrinfo"), "GDAL's command-line tools (gdal-bin) are not installed")
    found = subprocess.run(
        [ogrinfo, "-ro", "-al", "-geom=SUMMARY", f"OAPIF:{live_server}{OGC}/"],
        capture_output=True, check=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    assert [line for line in found.splitlines() if line.startswith("Layer name")] == [
        f"Layer name: {name}" for name in COLLECTIONS
    ]
    assert found.count("OGRFeature(localidades)") == 132
    assert "cvegeo (String) = 010010001" in found


# -- ArcGIS

FOLDER = Path(__file__).parents[1] / "clients" / "arcgis"
NUM = 50  # features of a request
RELEASE = {"release": "2020-01"}


def bundle(folder: Path) -> bytes:
    """Return the program with the SDK, as one script; it and its styles are written into a folder."""
    esbuild = needed(
        FOLDER.parent / "node_modules" / ".bin" / "esbuild", "ArcGIS is not installed: `make test-tools` does it"
    )
    options = ("--bundle", "--format=esm", "--log-level=warning", f"--outdir={folder}")
    subprocess.run([esbuild, "layer.js", *options], cwd=FOLDER, timeout=PATIENCE, check=True)
    return (folder / "layer.js").read_bytes()


@pytest.mark.tail
async def test_arcgis_reads_every_feature_by_index(live_server: str, browser: Browser, tmp_path: Path) -> None:
    page_of = {
        "/": Response(b"<!doctype html><meta charset=utf-8><script type=module src=layer.js></script>"),
        "/layer.js": Response(await asyncio.to_thread(bundle, tmp_path), headers={"Content-Type": "text/javascript"}),
    }
    asked: list[str] = []
    with http_server(at_paths(page_of)) as origin:
        page = await browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(origin)
        await page.wait_for_function("() => 'readAll' in window")
        for collection in ("estados", "municipios", "localidades"):
            names = await page.evaluate("given => readAll(...given)", [f"{live_server}/ogc/", collection, NUM, RELEASE])
            listed = json.loads(ask(live_server, f"/ogc/collections/{collection}/items?limit=1000").body)
            assert names == [one["properties"]["nombre"] for one in listed["features"]]
        await page.close()
    read = [url for url in asked if url.startswith(live_server)]
    assert all("release=2020-01" in url for url in read)
    indexes = [parse_qs(urlsplit(url).query).get("startindex") for url in read if "localidades/items" in url]
    assert indexes == [None, None, ["50"], ["100"]]  # the first is a sample of the columns
