"""The inset map of the places of a page."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from playwright.async_api import Browser, ViewportSize, expect

from localidades_api.catalogue.mercator import MEXICO
from tests.pages.country import places
from tests.support.browser import TELEPHONE, visit
from tests.support.pages import BROWSER, INDEX, Page
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES

DESKTOP: ViewportSize = {"width": 1280, "height": 800}


@pytest.fixture
async def client(two_releases: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=two_releases, headers=BROWSER, timeout=PATIENCE) as client:
        yield client


@pytest.mark.parametrize(
    ("target", "keys", "label"),
    [
        ("municipios/?estado_id=14", "140010001 140020001 140030001", "the cabeceras of this page, in Jalisco"),
        ("localidades/suggest/?q=penon+70+jalisco&limit=1", "140010071", "the places of this page"),
        ("localidades/nearest/?lat=20.9&lon=-89.6&limit=1", "310010001", "the places of this page"),
        ("localidades/140010071/", "140010071", "the place, in Jalisco"),
        ("localidades/310030005/", "310030005", "the place, in Yucatán"),  # which was withdrawn
    ],
)
async def test_lists_and_places_have_an_inset_map(
    client: httpx.AsyncClient, target: str, keys: str, label: str
) -> None:
    page = Page.of(await client.get(INDEX + target))
    [figure] = [one for one in page.all("figure") if one.attributes["class"] == "inset"]
    [inset] = page.inside("svg", of=figure)
    assert inset.attributes["aria-label"] == f"Map of Mexico with {label}"
    (path,) = page.inside("path", of=inset)
    dots = re.findall(r"M([\d.]+) ([\d.]+)h0", path.attributes["d"])
    points = [MEXICO.locate(float(one.longitud), float(one.latitud)) for one in places() if one.cvegeo in keys.split()]
    assert sorted((float(x), float(y)) for x, y in dots) == sorted(
        (round(p[0], 1), round(p[1], 1)) for p in points if p
    )
    backdrop = await client.get(page.inside("img", of=figure)[0].attributes["src"])
    assert backdrop.headers["content-type"] == "image/svg+xml"
    assert backdrop.headers["cache-control"].startswith("public, max-age=86400,")


async def test_no_map_is_drawn_without_coordinates(client: httpx.AsyncClient) -> None:
    for path in ("10020001/", "?cvegeo=10020001", "?search=zzzz"):
        page = Page.of(await client.get(LOCALIDADES + path))
        assert [one for one in page.all("figure") if one.attributes["class"] == "inset"] == [], path


async def test_place_has_its_map_beside_the_data_and_the_country_in_it(browser: Browser, two_releases: str) -> None:
    """A wide page has two columns; on a telephone the map comes after the data, and lists have none."""
    async with visit(browser, two_releases, viewport=DESKTOP) as page:
        inset = page.get_by_role("img", name=re.compile("^Map of Mexico"))
        for path, sizes in (("?clave=0001", [DESKTOP]), ("140010071/", [TELEPHONE, DESKTOP])):
            await page.goto(LOCALIDADES + path)
            for size in (TELEPHONE, DESKTOP):
                await page.set_viewport_size(size)
                await expect(inset).to_be_visible(visible=size in sizes)
                if size in sizes:
                    box = await inset.bounding_box()
                    assert box
                    assert 0 <= box["x"] <= size["width"] - box["width"]
        await expect(page.locator("figure.map").filter(has=inset)).to_be_visible()
        parts = page.locator("main dl, figure.map, .place h2")

        async def corners() -> list[tuple[float, float]]:
            boxes = [await part.bounding_box() for part in await parts.all()]
            return [(box["x"], box["y"]) for box in boxes if box]

        facts, surroundings, nearby, history = await corners()
        assert facts[0] == nearby[0] < surroundings[0] == history[0]
        assert surroundings[1] <= facts[1] < nearby[1]
        assert surroundings[1] < history[1]
        await page.set_viewport_size(TELEPHONE)
        tops = [top for _, top in await corners()]
        assert (len(tops), tops) == (4, sorted(tops))
