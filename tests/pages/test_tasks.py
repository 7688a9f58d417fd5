"""A list is matched in Chromium with the keyboard alone, and with fingers on a telephone."""

import asyncio
import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.pages.country import places
from tests.support.browser import TOUCH, visit

_MAX_TABS = 60  # to reach any part of a page
NAMES = [place for place in places() if place.nombre.startswith("El Peñón")][:30]


async def reach(page: Page, wanted: Locator) -> None:
    """Go to a field with the tabulator."""
    await expect(wanted).to_be_visible()
    for _ in range(_MAX_TABS):
        if await wanted.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"the tabulator does not reach {wanted}")


@pytest.mark.parametrize("device", [{}, TOUCH], ids=["keyboard", "telephone"])
async def test_thirty_names_are_matched_and_saved(browser: Browser, two_releases: str, device: dict[str, Any]) -> None:
    async with visit(browser, two_releases, locale="es-MX", accept_downloads=True, **device) as page:

        async def press(button: str | re.Pattern[str]) -> None:
            wanted = page.get_by_role("button", name=button)
            await (wanted.tap() if device else reach(page, wanted))
            if not device:
                await page.keyboard.press("Enter")

        await page.goto("/match")
        field = page.get_by_role("textbox").first
        await (field.tap() if device else reach(page, field))
        rows = "\n".join(f"{place.nombre}, {place.nom_mun}, {place.nom_ent}" for place in NAMES)
        await page.keyboard.insert_text(rows)
        await press("Asignar claves")
        await expect(page.get_by_role("heading", name="Resultado")).to_be_visible()
        async with page.expect_download() as downloading:
            await press(re.compile("Descargar.* CSV"))
        content = await asyncio.to_thread(Path(await (await downloading.value).path()).read_bytes)
    answers = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    assert [answer["Clave INEGI (CVEGEO)"] for answer in answers] == [place.cvegeo for place in NAMES]
