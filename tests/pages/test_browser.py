"""Use of the pages in Chromium, with scripts and without, by mouse and keyboard."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.pages.country import KINDS, LIST
from tests.support.browser import SCREENSHOTS, TELEPHONE, axe_faults, hold, visit, watched
from tests.support.pages import INDEX
from tests.support.wire import LOCALIDADES

MAX_HTML_BYTES = 100_000  # bytes of a page


@pytest.fixture(scope="module")
def base(two_releases: str) -> str:
    """Return the address of a service that holds two releases."""
    return two_releases


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
async def anyone(browser: Browser, base: str, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """Yield a page, with JavaScript and without."""
    async with visit(browser, base, java_script_enabled=request.param, accept_downloads=True) as page:
        yield page


@pytest.fixture(scope="module")
async def context(browser: Browser, base: str) -> AsyncIterator[BrowserContext]:
    """Yield a context with JavaScript."""
    async with watched(browser, base) as context:
        yield context


# -- Finding a place


@pytest.mark.parametrize(
    ("path", "field", "typed", "name", "address"),
    [
        ("", "Find a place", "aguascalientes", "Aguascalientes · estado", "/estados/1/"),
        ("", "Find a place", "municipio 001", "Municipio 001, Aguascalientes · municipio", "/municipios/1001/"),
        ("municipios/", "Name", "asientos", "Municipio 002, Aguascalientes", "/municipios/1002/"),
        ("estados/", "Name", "zacatecas", "Zacatecas", "/estados/32/"),
    ],
)
async def test_areas_are_suggested_on_the_front_page_and_on_their_lists(
    page: Page, path: str, field: str, typed: str, name: str, address: str
) -> None:
    await page.goto(f"{INDEX}{path}?format=api")
    await page.get_by_role("combobox", name=field).fill(typed)
    option = page.get_by_role("listbox").get_by_role("option", name=name, exact=True)
    await expect(option).to_be_visible()
    if typed == "aguascalientes":  # before the city
        await expect(page.get_by_role("listbox").get_by_role("option").first).to_have_text(name)
    await option.click()
    await expect(page).to_have_url(re.compile(rf"{address}$"))


async def test_closed_suggestions_leave_enter_to_the_form(page: Page) -> None:
    await page.goto(INDEX)
    search = page.get_by_role("combobox", name="Find a place")
    options = page.locator(".suggestions").get_by_role("option")
    await search.press_sequentially("penon")
    await expect(options).to_have_count(8)
    # A response during the click must not cover its target.
    assert await search.evaluate("(field) => { field.blur(); return field.nextElementSibling.hidden; }")
    await expect(search).to_have_attribute("aria-expanded", "false")
    await search.fill("peno")
    await expect(options).to_have_count(8)
    await search.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await expect(search).to_have_attribute("aria-expanded", "false")
    await search.press("Enter")
    await expect(page).to_have_url(re.compile(r"/localidades/\?search=peno&sort=relevance$"))
    await expect(page.locator("p.amount")).to_contain_text("page 1 of ")


async def test_missing_suggestions_are_reported_and_others_are_of_the_chosen_estado(page: Page) -> None:
    await page.goto(in_spanish(LIST))
    search, told = page.locator("#search"), page.locator(".typing [role=status]")
    await search.fill("zzzzzzzz")
    await expect(told).to_have_text("Sin resultados.")
    await expect(told).to_be_visible()
    await search.press("Escape")
    await expect(told).to_have_text("")
    await expect(search).to_have_value("zzzzzzzz")
    # The label of a chosen place may be longer than what can be typed.
    await search.evaluate("(field) => { field.value = `penon nandu ${'.'.repeat(100)}`; }")
    await search.press("Backspace")
    options = page.locator(".suggestions").get_by_role("option")
    await expect(options).to_have_count(1)
    await expect(told).to_have_text("")
    await page.get_by_label("Estado", exact=True).select_option("Jalisco")
    await search.fill("guadalajara")
    await expect(options).to_have_text(["Guadalajara, Tepatitlán 1, Jalisco"])


async def test_script_of_suggestions_that_was_lost_is_asked_for_again(browser: Browser, base: str) -> None:
    async with visit(browser, base, errors=True) as page:
        await page.goto(INDEX)
        search = page.get_by_role("combobox", name="Find a place")
        await page.route("**/localidad-field.js", lambda route: route.abort(), times=1)
        async with page.expect_event("requestfailed"):
            await search.focus()
        await search.blur()
        await search.press_sequentially("penon nandu")
        await expect(page.locator(".suggestions").get_by_role("option")).to_have_count(1)


async def test_letters_that_are_faster_than_the_script_get_suggestions(page: Page) -> None:
    script = await hold(page, "**/localidad-field.js")
    await page.goto(INDEX)
    search = page.get_by_role("combobox", name="Find a place")
    await search.press_sequentially("penon nandu")
    await script.asked()
    script.release()
    await expect(page.locator(".suggestions").get_by_role("option")).to_have_count(1)


# -- Forms, with JavaScript and without; tests/pages/test_browsable.py follows links.


# The rectangles of a map's labels and dots, in the map's units; those of the path have a radius.
DRAWN = """(svg, radius) => {
    const boxes = (selector) => [...svg.querySelectorAll(selector)].map((element) => {
        const { x, y, width, height } = element.getBBox();
        return [x, y, x + width, y + height];
    });
    const points = [...(svg.querySelector("path")?.getAttribute("d") ?? "").matchAll(/M(\\d+) (\\d+)/g)];
    const small = points.map(([, x, y]) => [x - radius, y - radius, Number(x) + radius, Number(y) + radius]);
    return { names: boxes("text"), dots: [...boxes("circle"), ...small], width: svg.viewBox.baseVal.width };
}"""


async def test_labels_on_a_map_do_not_overlap(page: Page) -> None:
    for key in (140020017, 20010030, 310020017):
        await page.goto(f"{LOCALIDADES}{key}/?format=api")
        drawn = await page.locator(".map > svg").evaluate(DRAWN, 2.5)
        assert len(drawn["dots"]) > 60
        assert len(drawn["names"]) > 5
        # Boxes are as high as a line, which is higher than the letters.
        names = [
            (left, top + (bottom - top) / 6, right, bottom - (bottom - top) / 6)
            for left, top, right, bottom in drawn["names"]
        ]
        for index, (left, top, right, bottom) in enumerate(names):
            assert left >= 0
            assert right <= drawn["width"]
            for start, upper, end, lower in [*names[:index], *drawn["dots"]]:
                assert not (left < end and start < right and top < lower and upper < bottom), names[index]


async def test_filtered_list_has_a_shareable_url(anyone: Page, base: str) -> None:
    await anyone.goto(f"{LIST}&page=3")
    municipio = anyone.get_by_label("Municipio", exact=True)
    await expect(municipio.locator("option")).to_have_text(["pick an estado"])
    await anyone.get_by_label("Estado", exact=True).select_option("Jalisco")
    await anyone.get_by_label("Kind").select_option("urban")
    await anyone.get_by_role("button", name="Filter").click()
    await expect(anyone).to_have_url(f"{base}{INDEX}localidades/?estado_id=14&ambito=U")
    await expect(anyone.locator("p.amount")).to_have_text("33 records")
    assert {text.rpartition(", ")[2] for text in await anyone.locator("tbody td:nth-child(2)").all_inner_texts()} == {
        "Jalisco"
    }
    await expect(municipio.locator("option")).to_have_count(4)  # with or without scripts, these belong to the estado
    await municipio.select_option("14002")
    await anyone.get_by_role("button", name="Filter").click()
    await expect(anyone.locator("p.amount")).to_have_text("11 records")
    await anyone.get_by_role("link", name="Clear").click()
    await expect(anyone).to_have_url(f"{base}{INDEX}localidades/")


async def test_suggestion_and_nearest_forms_can_be_resubmitted(page: Page) -> None:
    await page.goto(f"{INDEX}localidades/suggest/?q=penon+5&limit=3&lang=es&format=api")
    await expect(page.locator("h1")).to_have_text("Lugares sugeridos")
    await expect(page.get_by_label("Buscar un lugar")).to_have_value("penon 5")
    await page.get_by_label("Buscar un lugar").fill("penon 70 yucatan")
    await page.get_by_role("button", name="Buscar", exact=True).click()
    await expect(page.get_by_label("Buscar un lugar")).to_have_value("penon 70 yucatan")
    await expect(page.locator("tbody tr").first).to_contain_text("El Peñón 70, Tepatitlán 1, Yucatán")
    await expect(page).to_have_url(re.compile(r"lang=es&limit=3&q=penon"))
    await page.goto(f"{INDEX}localidades/nearest/?lat=20.7&lon=-103.3&limit=2&release=2020-01&format=api")
    await expect(page.locator("h1")).to_have_text("Nearest places")
    await expect(page.get_by_label("Latitude")).to_have_value("20.7")
    await page.get_by_label("Latitude").fill("20.9")
    await page.get_by_label("Longitude").fill("-89.6")
    await page.get_by_role("button", name="Search", exact=True).click()
    await expect(page.locator("tbody tr").first).to_contain_text("Yucatán")
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page).to_have_url(re.compile(r"release=2020-01.*&lat=20\.9&lon=-89\.6"))


# -- With JavaScript


async def test_theme_is_remembered_and_shared_between_tabs(browser: Browser, base: str) -> None:
    light, dark = "rgb(255, 255, 255)", "rgb(21, 24, 27)"
    async with visit(browser, base, color_scheme="dark") as page:
        await page.goto(INDEX)
        tab = await page.context.new_page()
        await tab.goto(LIST)
        await expect(page.locator("body")).to_have_css("background-color", dark)
        button = page.get_by_role("button", name="Dark")
        await expect(button).to_have_attribute("aria-pressed", "true")
        await button.click()
        await expect(tab.locator("body")).to_have_css("background-color", light)
        await expect(tab.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "false")
        await page.goto(f"{INDEX}releases/?format=api&lang=es")
        await expect(page.locator("body")).to_have_css("background-color", light)
        await expect(page.locator("#theme")).to_have_attribute("aria-pressed", "false")
        await page.locator("#theme").click()
        await expect(tab.locator("body")).to_have_css("background-color", dark)


async def test_copy_buttons_copy_command_key_and_url(browser: Browser, base: str) -> None:
    async with visit(browser, base, permissions=["clipboard-read", "clipboard-write"]) as page:
        await page.goto(f"{LIST}&municipio_id=14001&page=2")
        await page.get_by_text("API request and JSON response").click()
        await page.get_by_role("button", name="Copy", exact=True).click()
        await expect(page.locator("[aria-live=polite]")).to_have_text("Copied")
        curl = f"curl '{base}{INDEX}localidades/?municipio_id=14001&page=2&format=json'"
        assert await page.evaluate("() => navigator.clipboard.readText()") == curl
        await page.get_by_role("button", name="Copy 140010052").click()
        await page.wait_for_function("async () => await navigator.clipboard.readText() === '140010052'")
        await page.goto(f"{INDEX}estados/14/?format=api&release=2020-01")
        await page.get_by_role("button", name=re.compile("^Copy http")).click()
        address = f"{base}{INDEX}estados/14/?release=2020-01&format=json"
        await expect(page.locator("[aria-live=polite]")).to_have_text("Copied")
        assert await page.evaluate("() => navigator.clipboard.readText()") == address


async def test_page_can_be_used_by_keyboard(page: Page) -> None:
    await page.goto(LIST)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.locator("#search")).to_be_focused()


async def test_place_is_printed_on_one_page(page: Page) -> None:
    await page.goto(f"{LOCALIDADES}140010071/")
    assert len(re.findall(rb"/Type\s*/Page\b", await page.pdf(format="Letter"))) == 1


# -- Representations and the cache of the browser


async def test_browser_cache_keeps_pages_and_json_of_an_address_apart(page: Page) -> None:
    target = f"{LOCALIDADES}10010004/?lang=es&release=2020-01"
    ask = """address => fetch(address, {headers: {Accept: "application/json"}})
        .then(async answer => [answer.headers.get("content-type"), typeof await answer.json()])"""
    for _ in range(2):  # first the page, then the JSON is in the cache
        await page.goto(target)
        await expect(page.locator("#site")).to_be_visible()
        assert await page.evaluate(ask, target) == ["application/json", "object"]
        await page.goto("/problems")
        assert await page.evaluate(ask, target) == ["application/json", "object"]
        await page.go_back()
        await expect(page.locator("#site")).to_be_visible()


# -- On a phone


async def test_links_and_filters_are_folded_on_a_phone_only(anyone: Page) -> None:
    await anyone.goto(f"{LIST}&estado_id=14")
    nav, menu = anyone.get_by_role("navigation", name="Site"), anyone.get_by_role("button", name="Menu")
    search, fold = anyone.locator("#search"), anyone.get_by_text("Filters (1)")
    for shown, hidden in ((nav, menu), (search, fold)):
        await expect(shown).to_be_visible()
        await expect(hidden).to_be_hidden()
    await expect(nav.locator("[aria-current]")).to_have_text("Localities")
    await anyone.set_viewport_size(TELEPHONE)
    await expect(search).to_be_hidden()
    await fold.click()
    await expect(search).to_be_visible()
    if await anyone.locator("#theme").is_hidden():  # without scripts the links are visible
        await expect(nav).to_be_visible()
        return
    await expect(nav).to_be_hidden()
    await menu.click()
    await nav.get_by_role("link", name=re.compile("^Release ")).click()
    await expect(anyone.get_by_role("heading", level=1)).to_have_text("Releases")


# -- Every kind of page

WITH_TABLES = {"list", "municipios", "estados", "localidad", "municipio", "estado", "suggest", "nearest", "changes",
               "ogc", "error-410"}  # fmt: skip
# These have all the components: tables with forms, details, a time line, changes, problems, guides. The other kinds
# are opened by `make tail`.
IN_SHORT = {"filtered", "localidad-long", "estado", "changes", "guide-add-keys", "error-410", "error-422"}


@pytest.fixture(scope="module")
async def examined(browser: Browser, base: str) -> AsyncIterator[Page]:
    """Yield a page, shared by all kinds."""
    async with visit(browser, base, errors=True) as page:
        yield page


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in IN_SHORT else pytest.mark.tail) for kind in KINDS]
)
async def test_every_page_is_light_fits_a_phone_and_passes_axe(examined: Page, kind: str) -> None:
    """In Spanish, which has longer words, and with tables shown as cards but still accessible as tables.

    All rules of axe are checked there in the light theme, and those of colours on a desktop in the dark one.
    """
    await examined.set_viewport_size(TELEPHONE)
    await examined.emulate_media(color_scheme="light")
    answer = await examined.goto(in_spanish(KINDS[kind]))
    assert answer
    assert answer.status == int("".join(re.findall("[0-9]{3}", kind)) or 200)
    assert len(await answer.body()) < MAX_HTML_BYTES
    assert await examined.evaluate("() => document.documentElement.scrollWidth") <= TELEPHONE["width"]
    tables = examined.get_by_role("table").and_(examined.locator(".cards"))
    assert await tables.count() == await examined.locator(".cards:visible").count() >= (kind in WITH_TABLES)
    for table in await tables.all():
        columns = await table.get_by_role("columnheader").count()
        row = table.get_by_role("row").last
        await expect(row).to_have_css("display", "flex")
        empty = await row.locator("td:empty").count()  # cards omit it
        assert await row.get_by_role("cell").count() + empty == columns > 1
        assert await table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
    await examined.locator("details").evaluate_all("all => all.forEach(details => details.open = true)")
    await examined.screenshot(path=SCREENSHOTS / f"{kind}-telephone.png", full_page=True)
    assert await axe_faults(examined) == {}
    await examined.set_viewport_size({"width": 1280, "height": 800})
    await examined.emulate_media(color_scheme="dark")
    assert await axe_faults(examined, runOnly=["color-contrast"]) == {}


def in_spanish(target: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}lang=es"


async def test_page_in_use_passes_axe(browser: Browser, base: str) -> None:
    async with visit(browser, base, color_scheme="light") as page:
        await page.goto(f"{LIST}&estado_id=14&page_size=5")
        search = page.locator("#search")
        await search.fill("penon")
        await expect(page.locator(".suggestions").get_by_role("option")).to_have_count(8)
        await search.press("ArrowDown")
        assert await axe_faults(page) == {}
        await page.emulate_media(color_scheme="dark")
        assert await axe_faults(page, runOnly=["color-contrast"]) == {}
