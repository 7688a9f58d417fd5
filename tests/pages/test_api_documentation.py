"""The API's documentation: in the layout of the site, in a browser that may only reach the service."""

from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from localidades_api.html.languages.translators import Language, translator
from tests.support.browser import SCREENSHOTS, TELEPHONE, axe_faults, visit
from tests.support.pages import Page as Parsed
from tests.support.wire import LOCALIDADES

DESKTOP: ViewportSize = {"width": 1200, "height": 1500}
MAX_BYTES = 100_000  # of a page as sent, compressed


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_documentation_has_the_layout_of_the_site_in_both_languages(client: httpx.AsyncClient, path: str) -> None:
    titles = set()
    for language in ("en", "es"):
        answer = await client.get(path, headers={"Accept-Language": language})
        page = Parsed.of(answer)
        assert page.one("html").attributes["lang"] == language
        assert page.inside("p", of=page.all("noscript")[-1])[0].attributes["class"] == "problem"
        assert page.one("a", **{"class": "home"}).attributes["href"] == "/api/census/"
        other = page.of_class("a", "language").attributes
        assert (await client.get(f"{path}{other['href']}")).status_code == 200
        assert answer.headers["vary"] == "Accept-Language, Accept-Encoding"
        assert 0 < int(answer.headers["content-length"]) < MAX_BYTES
        titles.add(page.one("h1").text)
    assert len(titles) == 2
    for query in ("lang=fr", "format=json", "x=1", "lang=es&lang=en"):
        assert (await client.get(f"{path}?{query}")).status_code == 422, query


async def test_spanish_documentation_uses_the_spanish_document(client: httpx.AsyncClient) -> None:
    for path in ("/docs", "/redoc"):
        page = Parsed.of(await client.get(f"{path}?lang=es"))
        assert {element.attributes["lang"] for element in page.elements if "lang" in element.attributes} == {"es", "en"}
        assert [element.text for element in page.elements if element.attributes.get("lang") == "en"] == ["English"]
        (link,) = [anchor.attributes["href"] for anchor in page.all("a") if "openapi.json" in anchor.attributes["href"]]
        assert (await client.get(link)).json()["paths"][LOCALIDADES]["get"]["summary"] == "Listar localidades"
    assert "/ogc/?lang=es" in {anchor.attributes["href"] for anchor in page.all("a")}


in_two_looks = pytest.mark.parametrize(
    ("scheme", "viewport", "language"),
    [("light", DESKTOP, "en"), ("dark", TELEPHONE, "es")],
    ids=["desktop", "telephone"],
)


@pytest.mark.tail
@in_two_looks
async def test_swagger_ui_passes_axe(
    browser: Browser, live_server: str, scheme: str, viewport: ViewportSize, language: Language
) -> None:
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": viewport}
    async with visit(browser, live_server, **options) as page:
        await page.goto(f"/docs?lang={language}")
        await expect(page.locator(".opblock-tag").first).to_contain_text(translator(language)("Localities"))
        for method, path in (("get", "estados/"), ("get", "localidades/{id}/"), ("post", "localidades/match/")):
            await _try(page, f".opblock-{method}", f"/api/census/{path}")
        assert await axe_faults(page) == {}
        await expect(page.locator("main a:not([href], [role=none])")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        await page.screenshot(path=SCREENSHOTS / f"docs-{scheme}.png", full_page=True)


async def test_swagger_ui_sends_requests_speaks_spanish_and_follows_the_theme(
    browser: Browser, live_server: str
) -> None:
    """`visit` fails on console messages, such as violations of the security policy."""
    async with visit(browser, live_server, color_scheme="dark") as page:
        await page.goto("/docs?lang=es")
        for system in ("dark", "light"):  # which may change while the page is open
            await page.emulate_media(color_scheme=system)
            await expect(page.locator("html.dark-mode")).to_have_count(int(system == "dark"))
        await _try(page, ".opblock-get", "/api/census/estados/")
        labels = await page.locator("#swagger-ui :is(h4, h5, small, button, td)").all_inner_texts()
        words = {label.strip() for label in labels}
        english = {"Parameters", "Execute", "Cancel", "Clear", "Server response", "Media type"}
        assert {translator("es")(word) for word in english} <= words
        assert not english & words
        await page.locator("#theme").click()
        await expect(page.locator("html.dark-mode")).to_have_count(1)


async def _try(page: Page, method: str, path: str) -> None:
    """Open an operation and send it as prefilled."""
    operation = page.locator(f"{method}:has([data-path='{path}'])")
    await operation.locator(".opblock-summary-control").click()
    await operation.locator(".try-out__btn").click()
    await operation.locator(".execute").click()
    await expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")


async def test_redoc_shows_every_operation_and_asks_only_this_service(browser: Browser, live_server: str) -> None:
    """ReDoc asks its maker's server for a logo, which the security policy doesn't allow."""
    wrong: list[str] = []
    async with await browser.new_context(base_url=live_server) as context:
        page = await context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("requestfailed", lambda request: wrong.append(f"{request.url} {request.failure}"))
        await page.goto("/redoc?lang=es")
        document = await (await context.request.get("/openapi.json?lang=es")).json()
        ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
        for id_ in ids:
            await expect(page.locator(f"#redoc [id$='operation/{id_}']").first).to_be_attached()
        await expect(page.get_by_role("heading", name="Listar localidades")).to_be_visible()
        await page.set_viewport_size({"width": 1366, "height": 900})
        descriptions = page.locator("#redoc td:nth-child(2)")
        rights = "cells => cells.map(cell => cell.getBoundingClientRect().right)"
        assert max(await descriptions.evaluate_all(rights)) < 950  # none goes on below the column with the samples
    assert len(ids) > 20
    assert [text for text in wrong if "cdn.redoc.ly/redoc/logo-mini.svg" not in text] == []
