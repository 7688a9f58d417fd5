"""Workbooks such as offices send, given their keys to the end on the page /match, by keyboard and by touch."""

import io
import re
from collections.abc import Iterator
from typing import Any

import openpyxl
import pytest
from playwright.async_api import Browser, Page, expect

from tests.pages.test_match_page import PAGE, choose, downloaded, file_of, press, work_left
from tests.support.application import serving_files
from tests.support.browser import SCREENSHOTS, visit
from tests.support.offices import CATALOGUE, Office, offices

DESK: dict[str, Any] = {"viewport": {"width": 1366, "height": 768}}
TELEPHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
ACCEPTED = 3000  # rows from which options are accepted unseen


@pytest.fixture(scope="module")
def base(server: str, migrated: str) -> Iterator[str]:
    with serving_files(server, migrated, [CATALOGUE]) as address:
        yield address


async def decide(page: Page, office: Office, header: int, *, is_touch: bool) -> None:
    """Choose the right option of each doubt, or none; reload the page in the middle."""
    questions = page.locator("#decide .question")
    count = await questions.count()
    for at in range(count):
        if at and at == count // 2:
            await expect(page.locator("#decided")).to_contain_text(f"Resueltas: {at} ")
            await work_left(page)  # or the browser asks whether to leave
            await page.reload()
            await page.get_by_role("button", name="Continuar").click()
            await expect(page.locator("#kept")).to_contain_text("Se conservó")
            for _ in range(at - 1 if is_touch else 0):
                await page.get_by_role("button", name="Siguiente duda").tap()
        if at and is_touch:
            await page.get_by_role("button", name="Siguiente duda").tap()
        asked = questions.nth(at)
        found = re.search(r"Fila ([\d,]+)", await asked.locator("legend").inner_text())
        assert found
        key = office.keys[int(found[1].replace(",", "")) - header - 1]
        values = await asked.get_by_role("radio").evaluate_all("(all) => all.map(({ value }) => value)")
        chosen = values.index(key) if key in values else len(values) - 1
        if is_touch:
            await asked.locator(".choice label").nth(chosen).tap()
        else:
            await asked.focus()
            await page.keyboard.press(str(chosen + 1) if key in values else "0")


@pytest.mark.tail
@pytest.mark.parametrize("screen", [DESK, TELEPHONE], ids=["keyboard", "touch"])
async def test_lists_of_offices_get_their_keys(browser: Browser, base: str, screen: dict[str, Any]) -> None:
    for office in offices():
        async with visit(browser, base, accept_downloads=True, **screen) as page:
            await page.goto(f"{PAGE}&lang=es")
            await choose(page, file_of(office.name, office.content), "Elegir archivo")
            await press(page, "Asignar claves")
            await expect(page.locator("#totals li").first).to_be_visible()
            header = int(await page.locator("#header-row").input_value())
            if len(office.keys) < ACCEPTED:
                await decide(page, office, header, is_touch="has_touch" in screen)
            else:
                await page.get_by_role("button", name="Aceptar sin revisar").click()
            await page.screenshot(path=SCREENSHOTS / f"{office.name}-{screen['viewport']['width']}.png")
            content = (await downloaded(page, "Descargar Excel"))[1]
        names, *rows = (
            openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(min_row=header, values_only=True)
        )
        key, outcome = names.index("Clave INEGI (CVEGEO)"), names.index("Resultado")
        answered = [(row[key], right, row[outcome]) for row, right in zip(rows, office.keys, strict=False)]
        wrong = [said for given, right, said in answered if given not in {None, right}]
        assert len(wrong) < 0.01 * len(answered), wrong
        assert len(wrong) == 0 or len(office.keys) == ACCEPTED
