"""The tasks of readers, in Chromium: with the keyboard alone, and with fingers on a telephone."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.pages.country import places
from tests.support.browser import TOUCH, visit

Hand = Literal["keyboard", "telephone"]
_MAX_TABS = 60  # to reach any part of a page
NAMES = [place for place in places() if place.nombre.startswith("El Peñón")][:30]


@pytest.fixture(params=["keyboard", "telephone"])
def hand(request: pytest.FixtureRequest) -> Hand:
    """Say what the reader has."""
    chosen: Hand = request.param
    return chosen


@pytest.fixture
async def page(browser: Browser, two_releases: str, hand: Hand) -> AsyncIterator[Page]:
    """Yield a page for readers of Spanish."""
    device = TOUCH if hand == "telephone" else {}
    async with visit(browser, two_releases, locale="es-MX", accept_downloads=True, **device) as page:
        yield page


async def reach(page: Page, wanted: Locator, hand: Hand) -> None:
    """Go to a field with the tabulator, or tap it."""
    await expect(wanted).to_be_visible()
    if hand == "telephone":
        await wanted.tap()
        return
    for _ in range(_MAX_TABS):
        if await wanted.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"the tabulator does not reach {wanted}")


async def press(page: Page, wanted: Locator, hand: Hand) -> None:
    """Press a button or follow a link."""
    await reach(page, wanted, hand)
    if hand == "keyboard":
        await page.keyboard.press("Enter")


async def test_thirty_names_are_matched_and_saved(page: Page, hand: Hand) -> None:
    await page.goto("/match")
    await reach(page, page.get_by_role("textbox").first, hand)
    await page.keyboard.insert_text("\n".join(f"{place.nombre}, {place.nom_mun}, {place.nom_ent}" for place in NAMES))
    await press(page, page.get_by_role("button", name="Asignar claves"), hand)
    await expect(page.get_by_role("heading", name="Resultado")).to_be_visible()
    async with page.expect_download() as downloading:
        await press(page, page.get_by_role("button", name=re.compile("Descargar.* CSV")), hand)
    content = await asyncio.to_thread(Path(await (await downloading.value).path()).read_bytes)
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert [row["Clave INEGI (CVEGEO)"] for row in rows] == [place.cvegeo for place in NAMES]


@pytest.mark.parametrize("hand", ["keyboard"], indirect=True)
async def test_place_is_printed_on_one_page(page: Page) -> None:
    await page.goto("/api/census/localidades/140010071/")
    printed = await page.pdf(format="Letter")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
