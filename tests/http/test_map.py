"""The source of the map's page; tests/pages tests it in a browser."""

import httpx

from tests.support.application import client_of, database_with, running_app
from tests.support.catalogue import Place
from tests.support.pages import Page

HTML = {"Accept": "text/html"}


async def test_map_describes_its_tiles(client: httpx.AsyncClient) -> None:
    answer = await client.get("/map")
    assert answer.headers["vary"] == "Accept"
    assert answer.json() == {
        "tiles": "/api/census/localidades/tiles/{z}/{x}/{y}.mvt?release=2020-01",
        "maxzoom": 12,
        "bounds": [-102.296111, 21.880833, -102.296111, 21.880833],
    }
    tile = await client.get(answer.json()["tiles"].format(z=0, x=0, y=0))
    assert tile.headers["content-type"] == "application/vnd.mapbox-vector-tile"
    page = await client.get("/map", headers=HTML)
    assert page.headers["vary"] == "Accept, Accept-Language"
    assert page.headers["etag"] != answer.headers["etag"]


async def test_places_without_coordinates_have_no_bounds(client: httpx.AsyncClient) -> None:
    assert (await client.get("/map?municipio_id=1002")).json()["bounds"] is None
    page = Page.of(await client.get("/map?municipio_id=1002", headers=HTML))
    assert page.one("div", id="map").attributes["data-bounds"] == "[]"
    assert page.of_class("p", "chosen").text.split("\n")[0] == "Municipio 002, Aguascalientes"


async def test_places_with_unknown_population_come_last(server: str, migrated: str) -> None:
    populations = {"Desconocida": "-", "Grande": "900", "Vacía": "0", "Chica": "7"}
    places = [
        Place(f"01001000{number}", name, poblacion=count) for number, (name, count) in enumerate(populations.items(), 1)
    ]
    with database_with(server, migrated, {"2020-01": places}) as url:
        async with running_app(url) as app, client_of(app) as client:
            page = Page.of(await client.get("/map", headers=HTML))
    (largest,) = page.all("ol", **{"class": "columns"})  # the drawing above it has links too
    names = [one.text for one in page.inside("a", of=largest)]
    assert names == ["Grande", "Chica", "Vacía", "Desconocida"]


async def test_map_refuses_bad_parameters(client: httpx.AsyncClient) -> None:
    for query, status in (("search=a", 422), ("release=none", 404), ("format=geojson", 422)):
        assert (await client.get(f"/map?{query}")).status_code == status
