"""The drawing of the country on the front page, and what is around it."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from localidades_api.catalogue.capitals import CAPITALS
from tests.support.application import serving_files
from tests.support.browser import TELEPHONE, axe_faults, visit
from tests.support.catalogue import Place, write_catalogue
from tests.support.pages import INDEX
from tests.support.pages import Page as Parsed
from tests.support.waiting import PATIENCE

# Key, name, longitude, latitude and inhabitants; where they crowd, as they are.
_CITIES = """
010010001 Aguascalientes -102.296 21.881 863893 | 020020001 Mexicali -115.468 32.663 854186
020040001 Tijuana -117.020 32.530 1300983 | 030030001 La_Paz -110.311 24.142 250141
040020001 San_Francisco_de_Campeche -90.536 19.844 220389 | 050300001 Saltillo -101.000 25.433 864431
050350001 Torreón -103.442 25.544 690193 | 060020001 Colima -103.731 19.244 146965
071010001 Tuxtla_Gutiérrez -93.116 16.753 578830 | 080190001 Chihuahua -106.089 28.635 925762
080370001 Juárez -106.487 31.739 1501551 | 090070001 Iztapalapa -99.093 19.358 1815786
090150001 Cuauhtémoc -99.144 19.443 931831 | 100050001 Victoria_de_Durango -104.654 24.023 616068
110150001 Guanajuato -101.257 21.018 72237 | 111200001 León_de_los_Aldama -101.684 21.122 1238962
120290001 Chilpancingo_de_los_Bravo -99.501 17.550 225728 | 130480001 Pachuca_de_Soto -98.759 20.123 256584
140390001 Guadalajara -103.342 20.676 1495182 | 141200001 Zapopan -103.392 20.721 1142483
151060001 Toluca_de_Lerdo -99.657 19.292 489333 | 160530001 Morelia -101.190 19.702 597511
170070001 Cuernavaca -99.235 18.924 338650 | 180170001 Tepic -104.894 21.516 371387
190390001 Monterrey -100.309 25.671 1142952 | 200670001 Oaxaca_de_Juárez -96.720 17.068 258913
211140001 Heróica_Puebla_de_Zaragoza -98.198 19.045 1434062 | 220140001 Santiago_de_Querétaro -100.392 20.593 626495
230040001 Chetumal -88.305 18.500 151243 | 230050001 Cancún -86.851 21.162 628306
240280001 San_Luis_Potosí -100.975 22.150 845941 | 250060001 Culiacán_Rosales -107.398 24.792 808416
260300001 Hermosillo -110.954 29.099 855563 | 270040001 Villahermosa -92.928 17.989 340060
280320001 Reynosa -98.278 26.092 691557 | 280410001 Ciudad_Victoria -99.146 23.736 332100
290330001 Tlaxcala_de_Xicohténcatl -98.239 19.317 14692 | 300870001 Xalapa-Enríquez -96.927 19.540 424755
301930001 Veracruz -96.134 19.200 428323 | 310500001 Mérida -89.617 20.970 777615
320170001 Guadalupe -102.515 22.747 99572 | 320560001 Zacatecas -102.572 22.775 129011
"""
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
# Return the rectangles of the visible names, and of the dots of these, on the screen.
DRAWN = """(svg) => {
    const box = (one) => {
        const { left, top, right, bottom } = one.getBoundingClientRect();
        return [left, top, right, bottom];
    };
    const links = [...svg.querySelectorAll("a")].map((link) => [...link.querySelectorAll("text, circle")]);
    const seen = links.filter(([, text]) => text.checkVisibility({ opacityProperty: true }));
    return seen.map(([dot, text]) => [text.textContent, box(text), box(dot)]);
}"""


def cities() -> list[Place]:
    rows = (row.split() for row in re.split(r"\n|\|", _CITIES.strip()))
    return sorted(
        (
            Place(key, name.replace("_", " "), longitud=west, latitud=north, poblacion=population, ambito="U")
            for key, name, west, north, population in rows
        ),
        key=lambda place: place.cvegeo,
    )


@pytest.fixture(scope="module")
def base(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a service with capitals, two alcaldías, suburbs and other cities."""
    file = write_catalogue(tmp_path_factory.mktemp("front") / "catun_localidad_2020-01.csv", cities())
    with serving_files(server, migrated, [file]) as address:
        yield address


@pytest.fixture(scope="module")
async def page(browser: Browser, base: str) -> AsyncIterator[Page]:
    """Yield the front page, for tests that only look at it."""
    async with visit(browser, base, viewport=DESKTOP) as page:
        await page.goto(f"{INDEX}?format=api")
        yield page


async def drawn(page: Page) -> dict[str, tuple[list[float], list[float]]]:
    found: list[Any] = await page.locator(".country svg").evaluate(DRAWN)
    assert len({name for name, _, _ in found}) == len(found)
    return {name: (text, dot) for name, text, dot in found}


@pytest.mark.parametrize(("width", "capitals"), [(1280, 32), (390, 17)])
async def test_capitals_and_large_cities_are_named_without_overlap(page: Page, width: int, capitals: int) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    names = await drawn(page)
    assert {"Ciudad de México", "Guadalajara"} <= set(names)
    assert len(names.keys() & set(CAPITALS.values())) >= capitals
    assert not {"Cuauhtémoc", "Iztapalapa", "Zapopan", "Guadalupe"} & set(names)
    assert width < 1000 or {"Tijuana", "Cancún", "León"} <= set(names)
    for name, (text, _) in names.items():
        assert 0 <= text[0] < text[2] <= width
        for other, (words, dot) in names.items():
            assert other == name or not overlap(letters(text), letters(words)), (name, other)
            assert other == name or not overlap(letters(text), dot), (name, other)


def letters(box: list[float]) -> list[float]:
    """Return the part of a text's box with letters: a line is higher than these."""
    left, top, right, bottom = box
    rim = (bottom - top) / 5
    return [left + 1, top + rim, right - 1, bottom - rim]


def overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


async def test_cities_are_links_for_keyboards_and_screen_readers(browser: Browser, base: str) -> None:
    """Without scripts, because those of the map would change its address."""
    async with visit(browser, base, java_script_enabled=False, viewport=DESKTOP) as page:
        await page.goto(f"{INDEX}?format=api")
        country = page.get_by_role("group", name="Map of the localities of Mexico")
        await country.get_by_role("link", name="Ciudad de México", exact=True).focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile("/estados/9/"))
        await page.go_back()
        await country.get_by_role("link", name="Querétaro", exact=True).click()
        await expect(page).to_have_url(re.compile("/localidades/220140001/"))
        await page.go_back()
        await page.get_by_role("link", name="Map of the localities of Mexico").click(position={"x": 600, "y": 60})
        await expect(page).to_have_url(re.compile("/map$"))


async def test_head_is_one_line_and_placeholder_is_not_cut(browser: Browser, base: str) -> None:
    """In Spanish, whose words are longer."""
    room = """(input) => {
        const measured = input.ownerDocument.createElement("canvas").getContext("2d");
        const { fontSize, fontFamily } = getComputedStyle(input, "::placeholder");
        measured.font = `${fontSize} ${fontFamily}`;
        const { paddingLeft, paddingRight, fontSize: cross } = getComputedStyle(input);
        const inside = input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - parseFloat(cross);
        return inside - measured.measureText(input.placeholder).width;
    }"""
    async with visit(browser, base, viewport={"width": 1152, "height": 800}, locale="es-MX") as page:
        await page.goto(f"{INDEX}?format=api")
        await expect(page.locator("header nav a").nth(5)).to_have_text("Versión 2020-01 (vigente)")
        box = await page.locator("header").bounding_box()
        assert box
        assert box["height"] < 60
        for width in (320, 390, 1280):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.locator("#search").evaluate(room) >= 0, width


@pytest.mark.parametrize(
    ("filters", "named", "unnamed"),
    [
        ("", {"Ciudad de México", "Pachuca", "Guadalajara"}, {"Iztapalapa", "Cuauhtémoc"}),
        ("&ambito=U", {"Ciudad de México", "Tijuana", "Guadalajara"}, {"Iztapalapa", "Pachuca"}),
        ("&estado_id=9", {"Iztapalapa"}, {"Ciudad de México", "Guadalajara"}),
        ("&municipio_id=9007", {"Iztapalapa"}, {"Ciudad de México", "Cuauhtémoc"}),
    ],
)
async def test_drawing_of_the_map_names_ciudad_de_mexico(
    base: str, filters: str, named: set[str], unnamed: set[str]
) -> None:
    async with httpx.AsyncClient(base_url=base, timeout=PATIENCE) as client:
        page = Parsed.of(await client.get(f"/map?format=api{filters}"))
    drawing = page.inside("svg", of=page.of_class("div", "country"))[0]
    names = [text.text for text in page.inside("text", of=drawing)]
    assert named <= set(names)
    assert not unnamed & set(names)
    assert len(names) == len(set(names))


async def test_front_page_passes_axe_in_both_themes(browser: Browser, base: str) -> None:
    async with visit(browser, base, color_scheme="light", locale="es-MX") as page:
        await page.goto(f"{INDEX}?format=api")
        assert await axe_faults(page) == {}
        await page.emulate_media(color_scheme="dark")
        await page.set_viewport_size(TELEPHONE)  # whose smaller cities have no visible name
        assert await axe_faults(page, runOnly=["color-contrast"]) == {}
