"""Pages are valid HTML, by the checker of the W3C, and stay in place while their scripts load."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.pages.country import KINDS
from tests.support.browser import errors_in, hold, visit
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.tail

MAX_SHIFT = 0.05  # cumulative layout shift; 0.1 is good by https://web.dev/articles/cls
VIEWPORTS: list[ViewportSize] = [{"width": 390, "height": 844}, {"width": 1280, "height": 800}]
PAGES = {kind: target for kind, target in KINDS.items() if not kind.startswith("preview")} | {  # these have no scripts
    "map": "/map?format=api",
    "map-filtered": "/map?format=api&estado_id=14",
    "docs": "/docs",
}
# All scripts but the one that runs before anything is drawn.
SCRIPTS = re.compile(r"/(?!theme\.js)[\w-]+\.m?js(\?.*)?$")
# Wait until the whole page was drawn, for which it doesn't need these scripts.
DRAWN = """async () => {
    while (document.readyState === "loading") await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}"""
# Return the layout shifts, each with what moved.
SHIFTS = """async () => {
    const found = [];
    const note = (list) => {
        for (const { value, sources } of list) {
            found.push([value, sources.map(({ node }) => node?.outerHTML?.slice(0, 80) ?? String(node))]);
        }
    };
    const observer = new PerformanceObserver((list) => note(list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: true });
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
    await new Promise((resolve) => setTimeout(resolve));
    note(observer.takeRecords());
    return found;
}"""
MAP_DRAWN = """async () => {
    const { shown } = await import(document.querySelector("script[src*='map.js']").src);
    if (!shown.map.loaded()) await shown.map.once("idle");
}"""


@pytest.fixture(scope="module")
async def page(with_webgl: Browser, two_releases: str) -> AsyncIterator[Page]:
    """Yield a page of a Chromium with WebGL."""
    async with visit(with_webgl, two_releases, errors=True) as page:
        yield page


async def shifts_of(page: Page, target: str) -> list[Any]:
    """Return the layout shifts of a page whose scripts come after it was painted."""
    scripts = await hold(page, SCRIPTS)
    going = asyncio.create_task(page.goto(target))
    await scripts.asked()
    await page.evaluate(DRAWN)
    scripts.release()
    await going
    await expect(page.locator("#theme[aria-pressed]")).to_be_visible()
    if "/map?" in target:
        await page.evaluate(MAP_DRAWN)
    elif "/docs?" in target:
        await expect(page.locator(".opblock").first).to_be_visible()
    found: list[Any] = await page.evaluate(SHIFTS)
    await page.unroute_all()
    return found


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("kind", PAGES)
async def test_page_stays_in_place_while_its_scripts_load(page: Page, kind: str, language: str) -> None:
    target = PAGES[kind] + ("&" if "?" in PAGES[kind] else "?") + f"lang={language}"
    for viewport in VIEWPORTS:
        await page.set_viewport_size(viewport)
        shifts = await shifts_of(page, target)
        assert sum(value for value, _ in shifts) < MAX_SHIFT, (viewport, shifts)


# -- HTML

OTHERS = ("/map?format=api", "/docs", "/redoc")  # which test_browser doesn't open
# The checker finds these roles redundant. Tables that are cards on a telephone would not be tables to Safari without.
ROLES = r"The “role” attribute must not be used on a “(tr|th|td)” element which has a “table” ancestor"


@pytest.mark.parametrize("language", ["en", "es"])
def test_pages_are_valid(two_releases: str, tmp_path: Path, language: str) -> None:
    targets = KINDS | {target.strip("/").partition("?")[0]: target for target in OTHERS}
    options: dict[str, Any] = {"headers": {"Accept": "text/html"}, "follow_redirects": True, "timeout": PATIENCE}
    with httpx.Client(base_url=two_releases, **options) as client:
        for kind, target in targets.items():
            page = client.get(target, params=httpx.QueryParams(httpx.URL(target).query).set("lang", language))
            (tmp_path / f"{kind}.html").write_bytes(page.content)
    assert errors_in(tmp_path, ROLES) == []
