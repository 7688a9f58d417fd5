"""What is decided on the page /match: undone, shared between tabs and people, and used again, in Chromium."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.pages.test_match_page import PAGE, choose, downloaded, file_of, match, press, question, saved, work_left
from tests.support.browser import SCREENSHOTS, axe_faults, forget, kept, visit

DOUBTS = "Localidad\tEstado\n" + "".join(f"{name}\tAgs.\n" for name in ("Ninguno", "Asintos", "Asientos", "Xyzzy"))
NARROW: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
pytestmark = pytest.mark.usefixtures("opened_match")


def decided(page: Page) -> Locator:
    return page.locator("#decided")


def option(page: Page, row: int, number: int = 0) -> Locator:
    return question(page, f"Row {row}:").first.locator("input[type=radio]").nth(number)


async def decide(page: Page, row: int, number: int = 0) -> None:
    await option(page, row, number).check()
    await work_left(page)


async def test_two_tabs_with_one_list_have_the_decisions_of_both(page: Page) -> None:
    other = await page.context.new_page()
    await other.goto(PAGE)
    for tab in (page, other):
        await match(tab, DOUBTS)
    await decide(page, 2, 1)
    await expect(option(other, 2, 1)).to_be_checked()
    await decide(other, 3)
    for tab in (page, other):
        await expect(decided(tab)).to_have_text("Decided: 2 of 3")
    await page.get_by_role("button", name="Undo").click()  # its own step, not that of the other tab
    await expect(option(other, 2, 1)).not_to_be_checked()
    await expect(option(page, 3)).to_be_checked()
    await work_left(page)
    await other.close()
    await page.reload()
    await press(page, "Continue")
    await expect(option(page, 3)).to_be_checked()
    await expect(decided(page)).to_have_text("Decided: 1 of 3")


async def test_tab_that_was_asleep_erases_nothing_of_another(page: Page) -> None:
    other = await page.context.new_page()
    await other.add_init_script("BroadcastChannel.prototype.postMessage = () => {}")
    await other.goto(PAGE)
    for tab in (page, other):
        await match(tab, DOUBTS)
    await decide(other, 2, 1)  # which `page` is not told
    await expect(option(page, 2, 1)).not_to_be_checked()
    await decide(page, 3)
    await expect(option(page, 2, 1)).to_be_checked()  # with what the browser has kept
    await other.close()
    await page.reload()
    await press(page, "Continue")
    await expect(decided(page)).to_have_text("Decided: 2 of 3")


async def test_file_of_decisions_is_merged_by_row_and_shows_what_is_in_conflict(page: Page, base: str) -> None:
    await match(page, DOUBTS)
    await decide(page, 2, 1)
    await decide(page, 3)
    name, content = await downloaded(page, "Save decisions")
    assert name == "localidades-decisions.json"
    assert len(content) < 1000
    await kept(page)
    await forget(page, base)
    await page.goto(PAGE)
    await match(page, DOUBTS.replace("Xyzzy", "Xyzzy 2"))  # another file of the same rows
    await decide(page, 2)
    opening = page.locator("#decisions")
    await opening.set_input_files(file_of("a.json", b'{"decisions": [["a", {"place": {"cvegeo": "<b>"}}]]}'))
    await opening.set_input_files(file_of("b.json", b"Localidad\n"))
    await expect(page.get_by_role("alert")).to_contain_text("The file has no decisions")
    await opening.set_input_files(file_of(name, content))
    said = "1 row was decided as in the file. In row 2 the file decides otherwise; choose there which holds."
    await expect(page.locator("#kept")).to_have_text(said)
    await expect(option(page, 3)).to_be_checked()
    await expect(option(page, 2)).to_be_checked()
    asked = question(page, "Row 2:")
    await expect(asked.locator(".notice")).to_contain_text("In the file that was opened: Ninguno (0003)")
    assert await axe_faults(page) == {}
    await press(page, "Take it")
    await expect(option(page, 2, 1)).to_be_checked()
    await expect(asked.locator(".notice")).to_be_hidden()
    await press(page, "Undo")
    await press(page, "Undo")
    await expect(decided(page)).to_have_text("Decided: 1 of 3")


async def test_slip_is_undone_and_a_row_is_undecided_again(page: Page) -> None:
    await match(page, DOUBTS)
    undo = page.get_by_role("button", name="Undo", exact=True)
    await expect(undo).to_be_disabled()
    await option(page, 2).check()
    await option(page, 2, 1).check()
    await page.keyboard.press("Control+z")
    await expect(option(page, 2)).to_be_checked()
    await undo.click()
    await expect(decided(page)).to_have_text("Decided: 0 of 3")
    await expect(undo).to_be_disabled()
    await expect(question(page, "Row 2:")).to_be_focused()
    await option(page, 3).check()
    await question(page, "Row 3:").get_by_role("button", name="Back to undecided").click()
    await expect(option(page, 3)).not_to_be_checked()
    await expect(decided(page)).to_have_text("Decided: 0 of 3")
    assert (await saved(page, "outcome"))[:2] == [("ambiguous",), ("ambiguous",)]
    await undo.click()
    await expect(option(page, 3)).to_be_checked()


async def test_decisions_of_last_month_are_offered_for_rows_that_say_the_same(page: Page) -> None:
    october = DOUBTS.replace("\t", ",")
    await choose(page, file_of("octubre.csv", october.encode()))
    await press(page)
    await decide(page, 2, 1)
    await decide(page, 3)
    header, *rows = october.splitlines()
    november = "\n".join(f"{number},{line}" for number, line in enumerate([header, "Tepetates,Ags.", *rows]))
    await choose(page, file_of("noviembre.csv", november.encode()))
    await press(page)
    reuse = page.locator("#reuse")
    await expect(reuse).to_contain_text("What you decided in another list fits 2 rows of this one (octubre.csv)")
    await expect(decided(page)).to_have_text("Decided: 0 of 4")
    await reuse.get_by_role("button").click()
    await expect(reuse).to_be_hidden()
    await expect(decided(page)).to_have_text("Decided: 2 of 4")
    assert [key for _, key in (await saved(page))[1:3]] == ["010010003", "010020001"]
    await choose(page, file_of("zac.csv", november.replace("Ags.", "Zac.").encode()))
    await press(page)
    await expect(page.locator("#progress")).to_have_text("Rows done: 5")
    await expect(reuse).to_be_hidden()  # rows of another estado say something else


async def test_doubt_takes_one_tap_on_a_telephone(browser: Browser, base: str) -> None:
    rows = DOUBTS.replace("Asintos", "Asintos [Ranchxo]")
    async with visit(browser, base, errors=True, **NARROW) as page:
        await page.goto(PAGE)
        await page.get_by_label("Or paste a list").fill(rows)
        await press(page)
        first, second = question(page, "Row 2:"), question(page, "Row 3:")
        await expect(page.locator("#steps span")).to_have_text("1 / 2")
        await first.get_by_role("radio").first.tap()
        await expect(second).to_be_focused()
        await expect(first).to_be_hidden()
        await expect(page.get_by_role("button", name="Next to decide")).to_be_disabled()
        await page.get_by_role("button", name="Back").tap()
        await expect(first.get_by_role("radio").first).to_be_checked()
        await page.get_by_role("button", name="Next to decide").tap()
        assert await page.evaluate("() => innerWidth") == NARROW["viewport"]["width"]
        faults = second.locator(".faults").first
        folded = await faults.bounding_box()
        await faults.tap()
        whole = await faults.bounding_box()
        assert folded
        assert whole
        assert folded["height"] < 30 < whole["height"]
        await expect(second.get_by_role("radio").first).not_to_be_checked()
        await page.screenshot(path=SCREENSHOTS / "match-doubt-telephone.png")
        assert await axe_faults(page) == {}
        await page.get_by_role("button", name="Undo").tap()
        await expect(first).to_be_focused()
        await first.get_by_role("radio", name="None of these").tap()
        await expect(first.get_by_role("combobox")).to_be_visible()  # it may be searched for


async def test_search_says_what_a_place_is_and_that_it_needs_the_service(page: Page) -> None:
    await match(page, DOUBTS)
    search = page.locator("#unfound").get_by_role("combobox")
    await search.press_sequentially("bellaco")
    bellaco = page.locator("#unfound").get_by_role("option", name="El Bellaco").first
    await expect(bellaco).to_have_text(
        re.compile(r"El Bellaco.* · 320580044 · (.* inhabitants?|population without data)$")
    )
    await search.fill("")
    await page.route("**/suggest/**", lambda route: route.abort())
    await search.press_sequentially("b")
    await expect(page.locator("#unfound").get_by_role("status")).to_have_text(
        "The search needs the service, which can’t be reached."
    )


async def test_rows_that_give_no_place_are_no_doubts(page: Page) -> None:
    await match(page, DOUBTS + "S/D\tAgs.\nTotal\t\n")
    await expect(decided(page)).to_have_text("Decided: 0 of 3")
    await expect(page.locator("#unfound tbody tr")).to_have_count(1)


async def test_wrong_keys_are_not_accepted_unseen(page: Page) -> None:
    await match(page, "Clave INEGI\tLocalidad\tEstado\n010010099\tAsintos\tAgs.\n\tAsintos\tAgs.\n")
    await page.get_by_label("Likeliest option of at least").fill("50")
    await expect(question(page, "Row 2:").locator(".fault", has_text="key")).not_to_have_count(0)
    await expect(page.get_by_role("button", name="Accept unseen")).to_have_text("Accept unseen (1 row)")


async def test_options_say_how_far_they_are_from_the_point_of_the_row(page: Page) -> None:
    await match(page, "Localidad\tEstado\tLatitud\tLongitud\nNinguno\tAgs.\t21.9\t102,3\nNinguno\tAgs.\t\t\n")
    shares = question(page, "Row 2:").locator(".share")
    await expect(shares.first).to_have_text(re.compile(r"^[\d.]+ k?m · \d+ %$"))
    await expect(question(page, "Row 3:").locator(".share").first).to_have_text(re.compile(r"^\d+ %$"))
    await match(page, "Localidad\tEstado\tPunto\nNinguno\tAgs.\t21.9000 -102.3000 1800 5\n")
    await expect(shares.first).to_have_text(re.compile(r"^[\d.]+ k?m · \d+ %$"))
