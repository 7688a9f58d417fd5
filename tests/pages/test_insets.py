"""The inset map of the places of a page."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import httpx
import pytest
from playwright.async_api import Browser, ViewportSize, expect

from localidades_api.catalogue.mercator import MEXICO
from tests.support.application import client_of, import_file, running_app
from tests.support.browser import TELEPHONE, visit
from tests.support.catalogue import TRAPS, Place, write_catalogue
from tests.support.pages import INDEX, Element, Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES, await_names, serving

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
_CITIES = [
    ("020040001", "Tijuana", "Baja California", -117.02, 32.53),
    ("190390001", "Monterrey", "Nuevo León", -100.32, 25.68),
    ("200670001", "Oaxaca de Juárez", "Oaxaca", -96.73, 17.06),
    ("310500001", "Mérida", "Yucatán", -89.62, 20.97),
]

SMALLER_SEAT = Place("310590001", "Progreso", nom_ent="Yucatán", longitud="-88.9", latitud="21.3", poblacion="37000")
GONE = Place("190390900", "Retirado", nom_ent="Nuevo León", longitud="-99.9", latitud="25.1")


def cities() -> list[Place]:
    """Return cities with places around them, which outline the country, and the traps, one without coordinates."""
    found = [*(trap for trap in TRAPS if trap.cvegeo[:2] == "01"), SMALLER_SEAT]
    for key, name, state, west, north in _CITIES:
        found.append(Place(key, name, nom_ent=state, longitud=str(west), latitud=str(north), poblacion="900000"))
        found += [
            Place(f"{key[:5]}{number + 2:04d}", f"Lugar {number}", nom_ent=state,
                  longitud=f"{west + number % 20 / 8:.6f}", latitud=f"{north - number // 20 / 8:.6f}")
            for number in range(400)
        ]  # fmt: skip
    return found


@pytest.fixture(scope="module")
def country(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a database with the cities, and an earlier release with a place that was withdrawn since.

    There Mérida is the largest of all, at another place.
    """
    folder = tmp_path_factory.mktemp("country")
    elsewhere = {"Mérida": {"longitud": "-88.2", "poblacion": "1900000"}}
    earlier = [*(replace(one, **elsewhere.get(one.nombre, {})) for one in cities()), GONE]
    earlier.sort(key=lambda place: place.cvegeo)
    with new_database(server, migrated) as url:
        for name, places in (("2019-01", earlier), ("2020-01", cities())):
            import_file(url, write_catalogue(folder / f"catun_localidad_{name}.csv", places))
        yield url


@pytest.fixture(scope="module")
async def client(country: str) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(country) as app, client_of(app) as client:
        yield client


@pytest.fixture(scope="module")
def base(country: str) -> Iterator[str]:
    with serving(country) as live:
        await_names(live.base)
        yield live.base


def inset_on(page: Page) -> Element | None:
    figures = [one for one in page.all("figure") if one.attributes["class"] == "inset"]
    assert len(figures) <= 1
    return page.inside("svg", of=figures[0])[0] if figures else None


def dots_of(page: Page, inset: Element) -> list[tuple[float, float]]:
    (path,) = page.inside("path", of=inset)
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", path.attributes["d"])]


def located(*keys: str) -> set[tuple[float, float]]:
    """Return the positions of the dots of these places."""
    points = [MEXICO.locate(float(one.longitud), float(one.latitud)) for one in [*cities(), GONE] if one.cvegeo in keys]
    return {(float(f"{point[0]:.1f}"), float(f"{point[1]:.1f}")) for point in points if point}


@pytest.mark.parametrize(
    ("target", "expected", "label"),
    [
        ("municipios/?estado_id=19", {"190390001"}, "Map of Mexico with the cabeceras of this page, in Nuevo León"),
        (
            "municipios/?page_size=2&page=3",
            {"200670001", "310500001"},
            "Map of Mexico with the cabeceras of this page, in Oaxaca, Yucatán",
        ),
        ("localidades/suggest/?q=merida", {"310500001"}, "Map of Mexico with the places of this page"),
        (
            "localidades/nearest/?lat=17.06&lon=-96.73&limit=2",
            {"200670001", "200670002"},
            "Map of Mexico with the places of this page",
        ),
        ("localidades/190390900/", {GONE.cvegeo}, "Map of Mexico with the place, in Nuevo León"),
    ],
)
async def test_lists_and_withdrawn_places_have_an_inset_map(
    client: httpx.AsyncClient, target: str, expected: set[str], label: str
) -> None:
    answer = await client.get(INDEX + target, params={**httpx.QueryParams(target.partition("?")[2]), "format": "api"})
    page = Page.of(answer)
    inset = inset_on(page)
    assert inset is not None
    assert inset.attributes["aria-label"] == label
    dots = dots_of(page, inset)
    assert (set(dots), len(dots)) == (located(*expected), len(located(*expected)))


async def test_detail_has_an_inset_map(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{LOCALIDADES}200670001/?format=api", headers={"Accept-Language": "es"}))
    inset = inset_on(page)
    assert inset is not None
    assert inset.attributes["aria-label"] == "Mapa de México con el lugar, en Oaxaca"
    ((x, y),) = dots_of(page, inset)
    assert (0.6 < x / MEXICO.columns < 0.75, 0.75 < y / MEXICO.rows < 0.9) == (True, True)
    (image,) = page.all("img", loading="lazy")
    backdrop = await client.get(image.attributes["src"])
    assert backdrop.headers["content-type"] == "image/svg+xml"
    assert backdrop.headers["cache-control"].startswith("public, max-age=86400,")


async def test_no_map_is_drawn_without_coordinates(client: httpx.AsyncClient) -> None:
    for path in ("10020001/?format=api", "?format=api&cvegeo=10020001", "?format=api&search=zzzz"):
        answer = await client.get(LOCALIDADES + path)
        assert answer.status_code == 200
        assert inset_on(Page.of(answer)) is None, path


async def test_inset_map_and_its_caption_fit_the_screen(browser: Browser, base: str) -> None:
    """On a telephone lists have none: it would push their rows below the fold."""
    async with visit(browser, base, viewport=DESKTOP) as page:
        for path, telephones in (("?format=api&lang=es&clave=0001", []), ("310500001/?format=api", [TELEPHONE])):
            await page.set_viewport_size(DESKTOP)
            async with page.expect_response(re.compile("backdrop.svg")) as responded:
                await page.goto(LOCALIDADES + path)
            assert (await responded.value).status == 200
            inset = page.get_by_role("img", name=re.compile("^Map of Mexico|^Mapa de México"))
            for size in (DESKTOP, *telephones):
                await page.set_viewport_size(size)
                await expect(inset).to_be_visible()
                box = await inset.bounding_box()
                assert box is not None
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= size["width"]
            await page.set_viewport_size(TELEPHONE)
            await expect(inset).to_be_visible(visible=bool(telephones))


@pytest.mark.parametrize("path", ["310500001/", "190390900/"], ids=["current", "withdrawn"])
async def test_place_has_its_map_beside_the_data_and_the_country_in_it(browser: Browser, base: str, path: str) -> None:
    """A wide page has two columns; on a telephone the map comes after the data."""
    async with visit(browser, base, errors=True, viewport=DESKTOP) as page:
        await page.goto(f"{LOCALIDADES}{path}?format=api&lang=en")
        country = page.get_by_role("img", name=re.compile("^Map of Mexico"))
        await expect(page.locator("figure.map").filter(has=country)).to_be_visible()
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
        assert tops == sorted(tops)
        assert len(tops) == 4
