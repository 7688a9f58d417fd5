"""The built documentation: menus, tabs and search in the language of the page, and valid HTML."""

import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page

from localidades_api.html.guides import GUIDES, SERVICE, Site, read_guide
from localidades_api.html.languages.translators import LANGUAGES, Language
from tests.support.browser import errors_in
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

pytestmark = pytest.mark.tail  # the site takes long to build

PAGES = ("index.html", "guides/first-request.html", "reference/parameters.html")
# Of zensical's own templates.
THEME = (
    r"Attribute “autocomplete” is only allowed when the input type is",
    r"Bad value “” for attribute “tabindex” on element “label”",
    r"The “aria-hidden” attribute must not be used on any “label” element",
)


@pytest.fixture(scope="module")
def site() -> Path:
    """Build the documentation, and return its folder."""
    make = ["make", "docs", f"VENV={ROOT / '.venv'}"]
    subprocess.run(make, cwd=ROOT, env=os.environ, capture_output=True, timeout=PATIENCE, check=True)
    return ROOT / "build" / "site"


async def links_of(page: Page, selector: str) -> list[Path]:
    """Return the files to which the links of an element lead."""
    script = "links => links.map(link => link.href)"
    return [Path(urlsplit(address).path) for address in await page.eval_on_selector_all(f"{selector} a", script)]


@pytest.fixture(scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """Yield a page of a telephone."""
    page = await browser.new_page(viewport={"width": 390, "height": 800})
    yield page
    await page.close()


# Say whether nothing covers an element.
IS_ON_TOP = """element => {
    const box = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}"""


@pytest.mark.parametrize("name", PAGES)
async def test_page_can_be_read_on_a_telephone_and_has_menus_in_its_language(site: Path, page: Page, name: str) -> None:
    for folder, other in (("", "es"), ("es", "")):
        await page.goto((site / folder / name).as_uri())
        for menu in (".md-tabs", ".md-nav--primary"):
            found = await links_of(page, menu)
            assert len(found) > 2
            assert {file.is_relative_to(site / "es") for file in found} == {bool(folder)}
        assert await links_of(page, ".md-header__option") == [site / other / name]
        assert await page.locator("html").get_attribute("lang") == (folder or "en")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for selector in ("article h1", "article p >> nth=0", "article p >> nth=1"):
        await page.locator(selector).scroll_into_view_if_needed()
        assert await page.locator(selector).evaluate(IS_ON_TOP), selector


async def test_code_can_be_scrolled_by_keyboard_on_a_telephone(site: Path, browser: Browser) -> None:
    page = await browser.new_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    await page.goto((site / "guides" / "keeping-a-copy.html").as_uri())
    wide = "[...document.querySelectorAll('pre > code')].filter((code) => code.scrollWidth > code.clientWidth)"
    assert await page.evaluate(f"{wide}.length") > 1
    await page.wait_for_function(f"{wide}.every((code) => code.tabIndex === 0)")
    await page.close()


def test_pages_of_both_languages_have_a_sitemap(site: Path) -> None:
    sitemaps = [(site / folder / "sitemap.xml").read_bytes() for folder in ("", "es")]
    assert sitemaps[0] == sitemaps[1] != b""


@pytest.mark.parametrize("folder", ["", "es/"])
def test_search_finds_pages_of_one_language(site: Path, folder: str) -> None:
    index = json.loads((site / folder / "search.json").read_text(encoding="utf-8"))
    locations = {item["location"].partition("#")[0] for item in index["items"]}
    assert set(PAGES) <= locations
    assert not any(one.startswith("es/") for one in locations)
    assert all((site / folder / one).is_file() for one in locations)
    assert "Español" not in {step for item in index["items"] for step in item["path"]}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", GUIDES)
def test_service_gives_sections_the_same_anchors(site: Path, name: str, language: Language) -> None:
    guide = read_guide(name, language, Site("", "", SERVICE))
    html = (site / ("" if language == "en" else language) / "guides" / f"{name}.html").read_text(encoding="utf-8")
    anchors = re.findall(r'<h2 id="([^"]+)"', guide.body)
    assert len(anchors) > 3
    assert re.findall(r'<h2 id="([^"]+)"', html) == anchors


def test_documentation_is_valid(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > 55
    assert errors_in(site, *THEME) == []
