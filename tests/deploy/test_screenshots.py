"""The screenshots of the READMEs show what the pages show now: each carries the text that it was made of."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, FloatRect, Locator, Page, expect

from tests.support.application import import_file
from tests.support.browser import SCREENSHOTS, WEBGL, launched, visit
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, await_names, serving

VISITS = (ROOT / "docs" / "examples" / "visits.csv").read_text(encoding="utf-8").splitlines()
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"Description\0"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_text(png: bytes, text: str) -> bytes:
    """Return a PNG that carries a text, in an iTXt chunk behind its header."""
    header = len(_SIGNATURE) + 25  # IHDR: 13 bytes, and 12 of every chunk
    return png[:header] + _chunk(b"iTXt", _KEYWORD + b"\0\0\0\0" + text.encode()) + png[header:]


def text_of(png: bytes) -> str:
    """Return the text that a PNG carries."""
    assert png.startswith(_SIGNATURE)
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        if png[at + 4 : at + 8] == b"iTXt":
            return png[at + 8 : at + 8 + length].removeprefix(_KEYWORD + b"\0\0\0\0").decode()
        at += length + 12
    return ""


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Lend Debian's Chromium."""
    async with launched(*WEBGL) as browser:
        yield browser


async def match_a_list(page: Page) -> bytes:
    """Match a list; return a screenshot of the result, with its text."""
    await page.goto("/match")
    await page.locator("#rows").fill("\n".join(VISITS[:5]))
    await page.locator("#send").click()
    await expect(page.locator("#result-title")).to_be_focused()
    await expect(page.get_by_role("radio")).to_have_count(3)  # San Diego: two places, or none
    await page.locator("#found summary").click()
    await expect(page.locator("#found tbody tr")).to_have_count(3)
    result = page.locator("#result")
    text = await text_within(result)
    box = await result.bounding_box()
    assert box
    clip = FloatRect(x=box["x"] - 16, y=box["y"] - 16, width=box["width"] + 32, height=box["height"] + 32)
    return with_text(await page.screenshot(animations="disabled", clip=clip), text)


async def look_at_the_country(page: Page) -> bytes:
    """Open the map; return a screenshot of it, with the text of its largest places and its legend."""
    await page.goto("/map", wait_until="commit")
    await page.locator("#visible summary").click()  # before there is a tile: the list is filled when there are all
    await expect(page.locator("#visible li")).to_have_count(10, timeout=PATIENCE * 1000)
    await drawn(page)
    text = await text_within(page.locator("main"))
    await page.locator("#visible summary").click()
    return with_text(await drawn(page), text)


async def drawn(page: Page) -> bytes:
    """Return a screenshot that is the same a second later: names fade in."""
    before, now = b"", await page.screenshot()
    async with asyncio.timeout(PATIENCE):
        while now != before:
            await asyncio.sleep(1)
            before, now = now, await page.screenshot()
    return now


async def text_within(element: Locator) -> str:
    return " ".join((await element.inner_text()).split())


in_both_languages = pytest.mark.parametrize(("locale", "folder"), [("en-US", "."), ("es-MX", "es")])


@pytest.mark.tail
@in_both_languages
async def test_picture_of_a_matched_list_shows_what_the_page_shows(
    locale: str, folder: str, browser: Browser, demo_service: str
) -> None:
    await_names(demo_service, within=2 * PATIENCE)
    # So tall that the bar of the page, which sticks to the window's bottom, covers nothing.
    async with visit(browser, demo_service, locale=locale, viewport={"width": 1100, "height": 2000}) as page:
        compare(f"{folder}/match.png", await match_a_list(page))


@pytest.fixture(scope="module")
def service(server: str, migrated: str, real_catalogues: Path) -> Iterator[str]:
    """Lend the address of the service on INEGI's own catalogue."""
    with new_database(server, migrated) as url:
        import_file(url, real_catalogues / "catun_localidad_2018-09.zip")
        with serving(url) as live:
            yield live.base


@in_both_languages
async def test_picture_of_the_country_shows_what_the_map_shows(
    locale: str, folder: str, browser: Browser, service: str
) -> None:
    async with visit(browser, service, locale=locale, viewport={"width": 1100, "height": 720}) as page:
        compare(f"{folder}/map.png", await look_at_the_country(page))


def compare(path: str, now: bytes) -> None:
    """Keep a new picture for whoever changed the page; fail if the one of the README shows something else."""
    made, kept = SCREENSHOTS / path, ROOT / "docs" / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_bytes(now)
    assert text_of(kept.read_bytes()) == text_of(now), f"the page has changed: copy {made} to {kept}"
