"""The map of the country, in Chromium with WebGL drawn by the processor."""

import csv
import io
import math
import re
from collections.abc import AsyncIterator, Iterator
from random import Random
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from tests.pages.test_match_page import match, question
from tests.support.application import serving_files
from tests.support.browser import TELEPHONE, TOUCH, Held, axe_faults, hold, visit, watched
from tests.support.catalogue import Place, write_catalogue
from tests.support.pages import BROWSER
from tests.support.pages import Page as Parsed
from tests.support.waiting import PATIENCE, eventually_async

PAGE = "/map?format=api"
MAX_SCRIPTS = 400_000  # bytes as sent
CLIPBOARD = ["clipboard-read", "clipboard-write"]
STILL: dict[str, Any] = {"reduced_motion": "reduce"}
AT_THE_COAST = "map=9/15.8/-96.5"
AT_A_BOUNDARY = "map=11/22.05/-102.15"
# Scripts for `in_map`. The boundaries of municipios and their names, once it has the names:
OUTLINES = """for (;;) {
    const { features } = await map.getSource("outlines").getData();
    const named = features.flatMap(({ properties }) => properties.nombre ?? []);
    const lines = features.flatMap(({ geometry: { type, coordinates } }) => type === "Point" ? [] : coordinates);
    if (named.length) return { named, lines };
    await new Promise(requestAnimationFrame);
}"""
NO_OUTLINES = """if (!map.loaded()) await map.once("idle");
    while ((await map.getSource("outlines").getData()).features.length) await new Promise(requestAnimationFrame);"""
# The names that a layer shows, once the map is drawn:
NAMES = """await new Promise((drawn) => { map.once("idle", drawn); map.triggerRepaint(); });
    return map.queryRenderedFeatures({ layers: [given] }).map(({ properties }) => properties.nombre);"""
MARKED = """if (!map.loaded()) await map.once("idle");
    return map.queryRenderedFeatures({ layers: ["selected"] }).map(({ id }) => id);"""
# The positions on the screen of two opposite corners of all places:
CORNERS = """const { top } = document.getElementById("ground").getBoundingClientRect();
    return whole.map((corner) => map.project(corner)).map(({ x, y }) => [x, y + top]);"""

OAXACA = {"nom_ent": "Oaxaca", "nom_abr": "Oax."}
COAST = OAXACA | {"nom_mun": "San Pedro Pochutla"}
SCATTER = Random(39)  # noqa: S311  # places of a test
PLACES = [
    Place("010010001", "Aguascalientes", ambito="U", poblacion="863893"),
    Place("010010002", "Cañada Honda", latitud="22.003333", longitud="-102.199167", poblacion="1209"),
    Place("010010003", "Sin Coordenadas", latitud="-", longitud="-", poblacion="7"),
    Place("010010004", "Sin Dato", latitud="28.0", longitud="-106.0", poblacion="-"),
    Place("090150001", "Cuauhtémoc", nom_ent="Ciudad de México", ambito="U", latitud="19.443056",
          longitud="-99.144444", poblacion="531831"),
    Place("200670001", "Oaxaca de Juárez", **OAXACA, ambito="U", latitud="17.060633", longitud="-96.725361",
          poblacion="255029"),
    Place("203240001", "San Pedro Pochutla", **COAST, ambito="U", latitud="15.746389", longitud="-96.465278",
          poblacion="13685"),
    Place("203240025", "Puerto Ángel", **COAST, ambito="U", latitud="15.666667", longitud="-96.491944",
          poblacion="2645"),
    Place("203240084", "Playa Zipolite", **COAST, latitud="15.662500", longitud="-96.511667", poblacion="1059"),
    *(Place(f"20324{n:04d}", f"Rancho {n}", **COAST, latitud=f"{15.7 + n / 1000:.6f}",
            longitud=f"{-96.7 + n / 500:.6f}", poblacion=str(n)) for n in range(100, 200)),
    *(Place(f"01{municipio}{n:04d}", f"Ejido {n}", nom_mun=name, latitud=f"{SCATTER.uniform(21.95, 22.15):.6f}",
            longitud=f"{SCATTER.uniform(west, west + 0.1):.6f}", poblacion=str(n))
      for municipio, name, west in (("001", "", -102.25), ("002", "Asientos", -102.15))
      for n in range(10, 40)),
]  # fmt: skip


@pytest.fixture(scope="module")
def base(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a service with places of a coast, and some far away."""
    file = write_catalogue(tmp_path_factory.mktemp("map") / "catun_localidad_2020-01.csv", PLACES)
    with serving_files(server, migrated, [file]) as address:
        yield address


@pytest.fixture(scope="module")
async def context(with_webgl: Browser, base: str) -> AsyncIterator[BrowserContext]:
    options = {"color_scheme": "light", "permissions": CLIPBOARD, **STILL}
    async with watched(with_webgl, base, errors=True, **options) as context:
        yield context


@pytest.fixture(scope="module")
async def loaded(context: BrowserContext) -> Page:
    """Return the map, loaded once on a desktop without animations."""
    page = await context.new_page()
    await page.goto(PAGE)
    await drawn(page, "Oaxaca de Juárez")
    return page


@pytest.fixture
async def page(loaded: Page) -> AsyncIterator[Page]:
    """Yield the map on a coast, with nothing selected."""
    await go(loaded, AT_THE_COAST)
    await expect(panel(loaded)).to_be_hidden()
    await drawn(loaded, "Puerto Ángel")
    yield loaded
    await loaded.unroute_all()


async def in_map(page: Page, script: str, given: object = None) -> Any:  # noqa: ANN401  # of JavaScript
    """Run a script that has MapLibre's map and what it was given."""
    shown = """const { map, whole } = (await import(document.querySelector("script[src*='map.js']").src)).shown;"""
    return await page.evaluate(f"async (given) => {{ {shown} {script} }}", given)


async def go(page: Page, fragment: str) -> None:
    """Go to another part of the map by its URL."""
    await page.evaluate("(fragment) => { location.hash = fragment }", fragment)


async def parsed(address: str) -> Parsed:
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        return Parsed.of(await client.get(address, headers=BROWSER))


def panel(page: Page) -> Locator:
    return page.locator("#place")


async def drawn(page: Page, name: str) -> Locator:
    """Wait until the map has drawn a point of this name; return its entry in the list."""
    entry = page.locator("#visible").get_by_role("button", name=name, exact=True)
    if await page.locator("#visible:not([open])").count():
        await page.locator("#visible summary").click()
    await expect(entry).to_be_visible()
    return entry


def view_of(page: Page) -> tuple[float, float, float]:
    """Return zoom, latitude and longitude from the URL."""
    view = re.search(r"[#&]map=([0-9.]+)/([0-9.-]+)/([0-9.-]+)", page.url)
    assert view is not None, page.url
    zoom, latitude, longitude = map(float, view.groups())
    return zoom, latitude, longitude


# -- On a desktop


async def test_map_scripts_are_light_and_loaded_on_the_map_only(client: httpx.AsyncClient) -> None:
    page = Parsed.of(await client.get("/api/census/localidades/", headers=BROWSER))
    assert [script.attributes["src"].partition("?")[0] for script in page.all("script")] == [
        "/static/theme.js",
        "/static/page.js",
    ]
    files = [f"maplibre/{name}.mjs" for name in ("maplibre-gl", "maplibre-gl-worker")]
    files += [
        "delaunator/delaunator.min.js",
        *(f"{name}.js" for name in ("map", "map_style", "outlines", "page", "theme")),
    ]
    sent = [await client.get(f"/static/{file}", headers={"Accept-Encoding": "br"}) for file in files]
    assert sum(int(answer.headers["content-length"]) for answer in sent) <= MAX_SCRIPTS


async def test_place_is_found_in_under_five_interactions(page: Page, base: str) -> None:
    search = page.get_by_role("combobox", name="Find a place")
    await search.click()  # 1
    await search.press_sequentially("zipol")  # 2
    await expect(page.get_by_role("option", name="Playa Zipolite, San Pedro Pochutla, Oaxaca")).to_be_visible()
    await search.press("Enter")  # 3
    await expect(panel(page).get_by_role("heading")).to_have_text("Playa Zipolite")
    await expect(panel(page)).to_contain_text(re.compile(r"1,059.*rural.*203240084", re.DOTALL))
    await expect(page).to_have_url(re.compile(r"#map=11/15\.6\d+/-96\.5\d+&place=203240084$"))
    record = await panel(page).get_by_role("link", name="All about this place").get_attribute("href") or ""
    assert re.search(r"/localidades/203240084/$", record)
    of_the_record = await parsed(f"{base}{record}")
    (back,) = [anchor for anchor in of_the_record.all("a") if anchor.text == "Show on the map"]
    assert back.attributes["href"].endswith("#map=12/15.6625/-96.511667&place=203240084")


async def test_clicking_a_point_opens_its_place(page: Page) -> None:
    await go(page, "map=12/15.666667/-96.491944")
    await expect(page.locator("#visible").get_by_role("button")).not_to_have_count(10)
    canvas = page.locator("canvas")
    box = await canvas.bounding_box()
    assert box is not None
    await canvas.click(position={"x": box["width"] / 2 + 2, "y": box["height"] / 2 - 2})
    await expect(panel(page).get_by_role("heading")).to_be_focused()
    await expect(panel(page).get_by_role("heading")).to_have_text("Puerto Ángel")
    await expect(panel(page)).to_contain_text("San Pedro Pochutla, Oaxaca")
    assert await in_map(page, MARKED) == [203240025]
    await page.get_by_role("button", name="Copy").click()
    assert await page.evaluate("() => navigator.clipboard.readText()") == "203240025"
    await page.get_by_role("button", name="Close").click()
    await expect(panel(page)).to_be_hidden()
    await expect(canvas).to_be_focused()
    assert "place=" not in page.url


async def test_map_and_its_list_of_ten_places_can_be_used_by_keyboard(page: Page) -> None:
    entry = await drawn(page, "Puerto Ángel")
    entries = page.locator("#visible").get_by_role("button")
    await expect(entries).to_have_count(10)
    before = await entries.all_inner_texts()
    await entry.focus()
    await go(page, "map=13/15.666667/-96.491944")
    await expect(entries).to_have_text(["Puerto Ángel", "Playa Zipolite"])
    await expect(entry).to_be_focused()
    await go(page, AT_THE_COAST)
    await expect(entries).to_have_text(before)
    await expect(entry).to_be_focused()
    await entry.press("Enter")
    await expect(panel(page).get_by_role("heading")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(panel(page)).to_be_hidden()
    canvas = page.get_by_role("region", name="Map of the localities of Mexico")
    await expect(canvas).to_be_focused()
    await canvas.press("+")
    await expect(page).to_have_url(re.compile(r"#map=10/"))
    await canvas.press("ArrowLeft")
    await expect(page).to_have_url(re.compile(r"#map=10/15\.8/-96\.5[1-9]"))


async def test_what_is_not_known_is_explained(page: Page) -> None:
    await go(page, "place=010010003")
    await expect(panel(page).get_by_role("heading")).to_have_text("Sin Coordenadas")
    await expect(page.locator("#told")).to_have_text("This place has no coordinates.")
    await expect(page.locator("#told")).to_be_in_viewport()
    await go(page, "place=329999999")
    await expect(page.locator("#told")).to_have_text("The place could not be loaded.")
    await go(page, "place=<b>&color=<b>&map=<b>")
    await expect(panel(page)).to_be_hidden()
    await expect(page.get_by_label("Colours")).to_have_value("poblacion")
    await go(page, "map=12/28/-106")
    entry = await drawn(page, "Sin Dato")
    await expect(entry.locator("..")).to_have_text("Sin Datono data")
    legend = page.locator(".legend ul[data-color=poblacion] li")
    await expect(legend).to_have_text([*(re.compile("^from ") for _ in range(4)), "fewer", "no data"])
    swatches = await legend.evaluate_all("(all) => all.map((item) => item.style.getPropertyValue('--swatch'))")
    assert len(set(swatches)) == len(swatches) == 6


@pytest.mark.tail  # three views take five seconds
async def test_estados_and_the_capital_are_named(page: Page) -> None:
    await go(page, "map=5/19/-98")
    assert "Ciudad de México" in await in_map(page, NAMES, "capital")
    assert "Cuauhtémoc" not in await in_map(page, NAMES, "names")
    assert "Ciudad de México" not in await in_map(page, NAMES, "estados")
    await go(page, "map=6.5/17/-95")
    assert "Oaxaca" in await in_map(page, NAMES, "estados")
    await go(page, "map=11/19.44/-99.14")
    assert await in_map(page, NAMES, "capital") == []
    assert "Cuauhtémoc" in await in_map(page, NAMES, "names")


async def test_late_response_is_dropped(page: Page) -> None:
    entries = page.locator("#visible")
    search = await hold(page, "**/suggest/?q=aguas*&limit=1&*")
    place = await hold(page, "**/localidades/203240001/?*")
    await page.get_by_role("combobox", name="Find a place").fill("aguascalientes")
    await page.keyboard.press("Enter")
    await search.asked()
    await entries.get_by_role("button", name="San Pedro Pochutla").click()
    await place.asked()
    await entries.get_by_role("button", name="Puerto Ángel").click()
    await expect(panel(page).get_by_role("heading")).to_have_text("Puerto Ángel")
    await entries.get_by_role("button", name="San Pedro Pochutla").click()
    await place.asked()
    await page.get_by_label("Colours").focus()
    search.release()
    place.release()
    await expect(panel(page).get_by_role("heading")).to_have_text("San Pedro Pochutla")
    await expect(page.get_by_label("Colours")).to_be_focused()
    assert "place=203240001" in page.url


async def test_colours_follow_the_theme(page: Page) -> None:
    async def colours() -> set[str]:
        swatch = "getComputedStyle(document.querySelector('.legend li')).getPropertyValue('--swatch')"
        ground = "return map.getPaintProperty('ground', 'background-color')"
        return {await page.evaluate(swatch), await in_map(page, ground)}

    light = await colours()
    button = page.get_by_role("button", name="Dark")
    await button.click()
    await drawn(page, "Puerto Ángel")
    dark = await colours()
    await button.click()
    assert len(light | dark) == 4
    await page.get_by_label("Colours").select_option("Estado")
    await expect(page.get_by_role("list", name="Estados").get_by_role("listitem")).to_have_count(3)


async def test_boundaries_are_equidistant_from_the_nearest_places_and_may_be_hidden(page: Page, base: str) -> None:
    checkbox = page.get_by_role("checkbox", name="Approximate boundaries of municipios, deduced from their localities")
    await expect(checkbox).to_be_hidden()
    await in_map(page, NO_OUTLINES)
    await go(page, AT_A_BOUNDARY)
    await expect(checkbox).to_be_checked()
    outlines = await in_map(page, OUTLINES)
    assert await axe_faults(page, runOnly=["color-contrast"]) == {}
    assert {"Municipio 001", "Asientos"} <= set(outlines["named"])
    assert len(outlines["lines"]) > 10
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        answer = await client.get(f"{base}/api/census/localidades/download/?format=csv&estado_id=1")
    rows = [row for row in csv.DictReader(io.StringIO(answer.text)) if row["latitud"]]
    for longitude, latitude in (vertex for line in outlines["lines"] for vertex in line):
        nearest: dict[str, float] = {}
        for row in rows:
            north, east = float(row["latitud"]) - latitude, float(row["longitud"]) - longitude
            metres = 111_195 * math.hypot(north, east * math.cos(math.radians(latitude)))
            nearest[row["municipio_id"]] = min(metres, nearest.get(row["municipio_id"], math.inf))
        nearer, farther = nearest.values()
        assert nearer == pytest.approx(farther, abs=40)  # a tile rounds a place to 9 m either way
        assert nearer < 8100
    await checkbox.uncheck()
    await in_map(page, NO_OUTLINES)
    await expect(page).to_have_url(re.compile("outlines=none"))
    await checkbox.check()
    await in_map(page, OUTLINES)
    assert "outlines" not in page.url
    await go(page, f"{AT_A_BOUNDARY}&outlines=none")
    await expect(checkbox).not_to_be_checked()
    await in_map(page, NO_OUTLINES)


# -- On other devices


@pytest.mark.tail  # a second map on a telephone takes nine seconds
async def test_shared_url_of_a_list_shows_the_same_on_a_dark_spanish_phone(
    with_webgl: Browser, base: str, page: Page
) -> None:
    await page.get_by_label("Colours").select_option("Urban or rural")
    await (await drawn(page, "Puerto Ángel")).click()
    await page.get_by_role("button", name="Zoom in").click()
    await expect(page).to_have_url(re.compile(r"#map=10/.*place="))
    async with visit(with_webgl, base, color_scheme="dark", locale="es-MX", **STILL, **TOUCH) as other:
        await other.goto(page.url.replace(PAGE, "/map?estado_id=20&ambito=U"))
        await expect(panel(other).get_by_role("heading")).to_have_text("Puerto Ángel")
        await expect(panel(other).locator(".open")).to_have_text("Ficha completa")
        await expect(other.get_by_label("Colorear por")).to_have_value("ambito")
        await expect(other.locator(".chosen strong")).to_have_text("Oaxaca · urbano")
        # The phone's panel covers a part of the map, which moves to show the place.
        assert re.search(r"#map=10/.*&color=ambito&place=203240025$", other.url)
        assert await axe_faults(other) == {}
        assert await other.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        # MapLibre writes its view to the URL up to 0.3 s after a move, so a new view is read at once.
        await other.evaluate(
            "() => { location.hash = 'map=7/17/-96.7&color=estado'; dispatchEvent(new HashChangeEvent('hashchange')) }"
        )
        await expect(panel(other)).to_be_hidden()
        await expect(other.get_by_label("Colorear por")).to_have_value("estado")
        assert view_of(other) == (7, 17, -96.7)
        await expect(other.locator(".maplibregl-ctrl-scale")).to_be_in_viewport(ratio=1)
        await drawn(other, "Oaxaca de Juárez")
        places = ["Oaxaca de Juárez", "San Pedro Pochutla", "Puerto Ángel"]  # and no other of the estado
        await expect(other.locator("#visible").get_by_role("button")).to_have_text(places)
        await other.get_by_role("button", name="Ver todo").click()
        await expect(other).not_to_have_url(re.compile("#map=7/17/"))
        zoom, latitude, longitude = view_of(other)
        assert zoom > 7
        assert (latitude, longitude) == pytest.approx((16.4, -96.6), abs=0.3)
        await expect(other.get_by_role("link", name="Lista", exact=True)).to_have_attribute(
            "href", re.compile(r"/localidades/\?(lang=es&)?estado_id=20&ambito=U$")
        )


async def test_list_shows_what_it_found_on_the_map(base: str) -> None:
    shown, close = "#map=12/15.666667/-96.491944&place=203240025", "lat=15.667&lon=-96.492"
    for path, expected in (
        ("?ambito=R&municipio_id=20324", "?municipio_id=20324&ambito=R"),
        ("?search=puerto+angel", shown),
        ("?search=angel&release=2020-01", f"?release=2020-01{shown}"),
        ("?ambito=R&clave=9999", None),
        ("suggest/?q=puerto+angel", shown),
        ("suggest/?q=oaxaca&kinds=estado", None),
        (f"nearest/?{close}", shown),
        (f"nearest/?{close}&radius=1", None),
    ):
        page = await parsed(f"{base}/api/census/localidades/{path}&format=api")
        links = [anchor.attributes["href"] for anchor in page.all("a") if anchor.text == "Show on the map"]
        assert links == ([f"/map{expected}"] if expected else []), path
    assert all(link.attributes.get("href") for link in (await parsed(base + PAGE)).all("a"))


async def test_nothing_covers_or_cuts_the_whole(page: Page) -> None:
    await page.locator("#visible summary").click()
    for width, height in ((320, 480), (1280, 720)):
        await page.set_viewport_size({"width": width, "height": height})
        await expect(page.locator("canvas")).to_have_css("width", f"{width}px")  # once the map is resized
        await page.get_by_role("button", name="Show all").click()
        (west, south), (east, north) = await in_map(page, CORNERS)
        cards = page.locator("#visible, .legend")
        visible, legend = [box for card in await cards.all() if (box := await card.bounding_box())]
        assert west > 25
        assert visible["y"] + visible["height"] < north
        assert east < width - 60
        assert south < legend["y"] or east < legend["x"]


async def test_missing_tiles_are_reported(page: Page) -> None:
    await page.route("**/tiles/**", lambda route: route.abort())
    await go(page, "map=8/25/-110")
    await expect(page.get_by_text("Part of the map could not be loaded.")).to_be_in_viewport()


# What the map of a match shows, once it is drawn.
MATCHED = """async () => {
    const { src } = document.querySelector("script[src*='match_form.js']");
    const { shown } = await import(new URL("match_result.js", src));
    const source = (await shown.loading).getSource("matched");
    while (!(await source.getData()).features.length) await new Promise(requestAnimationFrame);
    return (await source.getData()).features.map(({ properties }) => `${properties.cvegeo} ${properties.nombre}`);
}"""

# The names that it is told to draw, once it has the answer about a place.
TOLD = """async (key) => {
    const { src } = document.querySelector("script[src*='match_form.js']");
    const { shown } = await import(new URL("match_result.js", src));
    return shown.known.has(key) && shown.features.map(({ properties }) => properties.nombre);
}"""


async def test_places_and_options_of_a_match_are_on_a_map(context: BrowserContext) -> None:
    page = await context.new_page()
    await page.set_viewport_size(TELEPHONE)
    await page.goto("/match?format=api")
    await match(page, "nombre\tentidad\nAguascalientes\tAgs.\nEjido 10\tAgs.\nSin Coordenadas\tAgs.\n")
    asked, placed = question(page, "Row 3"), page.locator("#placed")
    await page.route("**/maplibre-gl.mjs", lambda route: route.abort(), times=1)
    await placed.locator("summary").click()
    await expect(placed.locator(".help")).to_contain_text("can’t be reached")
    await asked.get_by_role("button", name="Options on the map").click()
    await expect(asked.locator("canvas")).to_be_visible()
    assert await page.evaluate(MATCHED) == ["010010010 1. Ejido 10", "010020010 2. Ejido 10"]
    await page.route("**/localidades/?cvegeo=*", held := Held(), times=1)
    await placed.locator("summary").click()
    await held.asked()
    await asked.get_by_role("button", name="Options on the map").click()
    held.release()

    async def shows_the_options() -> bool:
        return bool(await page.evaluate(TOLD, "010010001") == ["1. Ejido 10", "2. Ejido 10"])

    await eventually_async(shows_the_options)
    await placed.locator("summary").click()
    await expect(placed.locator("canvas")).to_be_visible()
    await expect(placed.locator(".help")).to_have_text("1 place. Press it to see its row.")
    assert await page.evaluate(MATCHED) == ["010010001 Aguascalientes"]
    await asked.get_by_role("radio").first.check()
    await expect(placed.locator(".help")).to_have_text("2 places. Press one to see its row.")
    assert sorted(await page.evaluate(MATCHED)) == ["010010001 Aguascalientes", "010010010 Ejido 10"]
    await match(page, "nombre\tentidad\tlat\tlon\nEjido 10\tAgs.\t21.9\t102.3\n")
    await question(page, "Row 2").get_by_role("button", name="Options on the map").click()
    assert (await page.evaluate(MATCHED))[-1] == " Point of the row"
    await page.close()


# -- Without a map


async def test_drawing_is_shown_if_the_library_cannot_be_loaded(with_webgl: Browser, base: str) -> None:
    async with visit(with_webgl, base, errors=True) as page:
        await page.route("**/maplibre-gl.mjs", lambda route: route.abort())
        await page.goto(PAGE)
        await expect(page.get_by_role("group", name="Map of the localities of Mexico")).to_be_visible()
        await expect(page.locator("#map")).to_be_hidden()
        await expect(page.locator("main")).to_have_css("display", "block")


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False}], ids=["no WebGL", "no scripts"])
async def test_drawing_is_shown_without_webgl_or_scripts(browser: Browser, base: str, options: dict[str, Any]) -> None:
    async with visit(browser, base, **options) as page:
        await page.goto(f"{PAGE}&lang=es")
        await expect(page.get_by_text("necesita JavaScript y WebGL")).to_be_visible()
        await expect(page.locator("#map")).to_be_hidden()
        drawing = page.get_by_role("group", name="Mapa de las localidades de México")
        await expect(drawing.get_by_role("link", name="Aguascalientes", exact=True)).to_be_visible()
        await expect(page.locator("#drawing ol").get_by_role("link", name="Oaxaca de Juárez")).to_be_visible()
        if not options:
            assert await axe_faults(page) == {}
        await page.locator("#drawing ul").get_by_role("link", name="Oaxaca", exact=True).click()
        await expect(page).to_have_url(re.compile(r"estado_id=20$"))
        drawing = page.get_by_role("group", name="Mapa de México con las localidades más pobladas de esta página")
        await expect(drawing).to_be_visible()
        of_oaxaca = (place for place in PLACES if place.nom_ent == "Oaxaca")
        largest = sorted(of_oaxaca, key=lambda place: -int(place.poblacion))[:20]
        await expect(page.locator("#drawing ol li")).to_contain_text([place.nombre for place in largest])
