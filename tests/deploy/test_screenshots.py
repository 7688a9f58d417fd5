"""The screenshots of the READMEs show what the page shows now: each carries the text that it was made of."""

import http
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, FloatRect, Page, expect

from tests.support.browser import SCREENSHOTS, launched, visit
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, ROOT, ask

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
    async with launched() as browser:
        yield browser


async def shown(page: Page) -> bytes:
    """Match a list; return a screenshot of the result, with its text."""
    await page.locator("#rows").fill("\n".join(VISITS[:5]))
    await page.locator("#send").click()
    await expect(page.locator("#result-title")).to_be_focused(timeout=20_000)
    await expect(page.get_by_role("radio")).to_have_count(3)  # San Diego: two places, or none
    await page.locator("#found summary").click()
    await expect(page.locator("#found tbody tr")).to_have_count(3)
    result = page.locator("#result")
    text = " ".join((await result.inner_text()).split())
    box = await result.bounding_box()
    assert box
    clip = FloatRect(x=box["x"] - 16, y=box["y"] - 16, width=box["width"] + 32, height=box["height"] + 32)
    return with_text(await page.screenshot(animations="disabled", clip=clip), text)


@pytest.mark.tail
@pytest.mark.parametrize(("locale", "path"), [("en-US", "docs/match.png"), ("es-MX", "docs/es/match.png")])
async def test_screenshot_shows_what_the_page_shows(
    locale: str, path: str, browser: Browser, demo_service: str
) -> None:
    eventually(lambda: ask(demo_service, f"{LOCALIDADES}suggest/?q=a").status == http.HTTPStatus.OK, within=60)
    # So tall that the bar of the page, which sticks to the window's bottom, covers nothing.
    async with visit(browser, demo_service, locale=locale, viewport={"width": 1100, "height": 2000}) as page:
        await page.goto("/match")
        now = await shown(page)
    made = SCREENSHOTS / Path(path).relative_to("docs")
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_bytes(now)
    assert text_of((ROOT / path).read_bytes()) == text_of(now), f"the page has changed: copy {made} to {path}"
