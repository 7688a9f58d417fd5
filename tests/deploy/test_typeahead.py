"""The typeahead of the guide, in a real Chromium on the demo."""

import asyncio
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.support.browser import axe_faults, launched
from tests.support.wire import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "typeahead.html"
FULL_LIST = "Localidades: 8"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Lend Debian's Chromium."""
    async with launched() as browser:
        yield browser


@pytest.fixture
async def page(browser: Browser, demo_service: str) -> AsyncIterator[Page]:
    """Lend the example; in the end nothing may have been said on the console, but that a request was aborted."""
    wrong: list[str] = []
    page = await browser.new_page()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(f"{EXAMPLE.as_uri()}?service={demo_service}")
    yield page
    await page.close()
    assert [text for text in wrong if "net::ERR_FAILED" not in text] == []


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Localidad")


def selected(page: Page) -> Locator:
    return page.get_by_role("option", selected=True)


async def key(page: Page) -> str:
    """Return what the form would send."""
    return str(await page.evaluate("new FormData(document.forms[0]).get('cvegeo')"))


async def is_valid(page: Page) -> bool:
    return bool(await page.evaluate("document.forms[0].checkValidity()"))


async def test_place_is_chosen_by_keyboard(page: Page) -> None:
    await field(page).press_sequentially("tonahuacoya de torres jal")
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    await expect(field(page)).to_have_attribute("aria-expanded", "true")
    await field(page).press("ArrowUp")
    await expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    await field(page).press("ArrowDown")
    await expect(selected(page)).to_have_text("Tonahuacoya de Torres, Tonahuacoya de Torres, Jalisco")
    await expect(field(page)).to_have_attribute("aria-activedescendant", "option-0")
    await expect(field(page)).to_be_focused()
    await field(page).press("Enter")
    await expect(field(page)).to_have_value("Tonahuacoya de Torres, Tonahuacoya de Torres, Jalisco")
    await expect(field(page)).to_have_attribute("aria-expanded", "false")
    assert await key(page) == "140010001"
    assert await is_valid(page)


async def test_place_is_chosen_by_mouse_with_the_name_that_was_recognized(page: Page) -> None:
    await field(page).fill("gdl")
    await page.get_by_role("option", name=re.compile(r", Jalisco \(GDL\)$")).click()
    await expect(field(page)).to_be_focused()
    assert await key(page) == "140390001"


async def test_text_that_is_no_choice_is_not_sent(page: Page) -> None:
    assert not await is_valid(page)
    await field(page).fill("gdl")
    await page.get_by_role("option").first.click()
    await field(page).press("End")
    await field(page).press("Backspace")
    assert (await key(page), await is_valid(page)) == ("", False)


async def test_escape_closes_the_list_and_keeps_the_text(page: Page) -> None:
    await field(page).fill("gdl")
    await expect(page.get_by_role("listbox")).to_be_visible()
    await field(page).press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await expect(field(page)).to_have_value("gdl")


async def test_fast_typing_asks_once(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(parse_qs(urlsplit(request.url).query)["q"][0]))
    await page.clock.install(time=0)
    await page.clock.pause_at(1_000)
    for letter in "zapote":
        await field(page).press(letter)
        await page.clock.run_for(100)  # milliseconds
    assert asked == []
    await page.clock.run_for(50)
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    assert asked == ["zapote"]


async def test_stale_answer_is_dropped(page: Page, demo_service: str) -> None:
    stale, released, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        stale.set()
        await released.wait()
        await route.continue_()

    await page.route(f"{demo_service}/**&q=gdl", hold)
    page.on("requestfailed", lambda _: gone.set())
    await field(page).fill("gdl")
    await asyncio.wait_for(stale.wait(), 10)
    await field(page).fill("zapote")
    await asyncio.wait_for(gone.wait(), 10)
    released.set()
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    assert "GDL" not in await page.get_by_role("listbox").inner_text()


async def test_service_that_cannot_be_reached_is_told(page: Page, demo_service: str) -> None:
    await page.route(f"{demo_service}/**", lambda route: route.abort())
    await field(page).fill("zapote")
    await expect(page.get_by_role("status")).to_have_text("Failed to fetch")


async def test_open_list_has_no_fault_that_axe_finds(page: Page) -> None:
    await field(page).fill("zapote")
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    await field(page).press("ArrowDown")
    assert await axe_faults(page, runOnly=["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]) == {}


def test_example_is_fifty_lines_without_anything_from_elsewhere() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 50
    assert set(re.findall(r"https?://[^\"'\s]*", text)) == {"http://127.0.0.1:8000"}
    assert not re.findall(r"\b(?:src|import)\b", text)
