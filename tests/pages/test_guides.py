"""The guides below /help: they lead only to pages that the service has, and say what it says."""

import re
from urllib.parse import unquote, urldefrag

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, expect

from localidades_api.bulk.answer_columns import in_language, match_columns
from localidades_api.html.guides import _MARKDOWN, GUIDES
from localidades_api.html.languages.match_words import OUTCOMES, name_outcome
from localidades_api.html.languages.translators import LANGUAGES, Language
from localidades_api.http.caching import CACHE_CONTROL
from tests.support.application import behind_proxy, client_of, running_app
from tests.support.browser import visit
from tests.support.pages import BROWSER
from tests.support.pages import Page as Parsed
from tests.support.wire import ROOT

PATHS = [f"/help/{name}" for name in GUIDES]
ELSEWHERE = {"https://openrefine.org"}


async def fetch(client: httpx.AsyncClient, path: str) -> Parsed:
    answer = await client.get(path, headers=BROWSER)
    assert answer.status_code == 200, path
    return Parsed.of(answer)


def links_in(page: Parsed) -> list[str]:
    return [link.attributes["href"] for link in page.inside("a", of=page.one("main"))]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", GUIDES)
async def test_guide_is_the_page_of_the_documentation_without_code(
    client: httpx.AsyncClient, name: str, language: Language
) -> None:
    file = ROOT / "docs" / ("" if language == "en" else language) / "guides" / f"{name}.md"
    lines = file.read_text(encoding="utf-8").splitlines()
    page = await fetch(client, f"/help/{name}?lang={language}")
    assert page.one("html").attributes["lang"] == language
    assert [page.one("h1").text] == [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    assert page.one("title").text.startswith(f"{page.one('h1').text} · ")
    headings = [heading.text for heading in page.all("h2")]
    assert headings == [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    lead = page.of_class("p", "lead").text.replace("\n", " ")
    assert page.one("meta", name="description").attributes["content"] == lead
    text = (await client.get(f"/help/{name}?lang={language}")).text
    article = text.partition("<article")[2].partition("</article")[0]
    assert article
    assert re.findall(r"<pre|style=|&lt;|\]\(|--8<--|\bcurl\b|\bpandas\b", article) == []  # no code, no markup


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", ["/help", *PATHS])
async def test_links_lead_to_pages_and_sections_in_the_same_language(
    client: httpx.AsyncClient, path: str, language: Language
) -> None:
    page = await fetch(client, f"{path}?lang={language}")
    links = [link for link in links_in(page) if link not in ELSEWHERE]
    assert len(links) > 1  # the first leads to /help
    for link in links:
        assert link.startswith("/"), link
        target, section = urldefrag(link)
        reached = await fetch(client, target)
        assert reached.one("html").attributes["lang"] == language, link
        if section:
            assert unquote(section) in {one.attributes.get("id") for one in reached.elements}, link


def test_html_in_a_guide_is_escaped() -> None:
    assert _MARKDOWN.render("<b>x</b>") == "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_help_lists_the_guides(client: httpx.AsyncClient, language: Language) -> None:
    page = await fetch(client, f"/help?lang={language}")
    listed = [item.text for item in page.inside("li", of=page.of_class("ul", "doors"))]
    assert len(listed) == len(GUIDES)
    for name, item in zip(GUIDES, listed, strict=True):
        guide = await fetch(client, f"/help/{name}?lang={language}")
        assert item.split() == [*guide.one("h1").text.split(), *guide.of_class("p", "lead").text.split()]


@pytest.mark.parametrize(
    ("path", "guide"), [("/match", "add-keys"), ("/api/census/localidades/", "data"), ("/help", "openrefine")]
)
async def test_page_leads_to_its_guide(client: httpx.AsyncClient, path: str, guide: str) -> None:
    assert f"/help/{guide}?lang=es" in links_in(await fetch(client, f"{path}?lang=es"))
    assert f"/help/{guide}" in links_in(await fetch(client, path))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_guide_explains_every_outcome_and_column_of_a_file(client: httpx.AsyncClient, language: Language) -> None:
    page = await fetch(client, f"/help/add-keys?lang={language}")
    bodies = [page.inside("tr", of=body) for body in page.all("tbody")]
    outcomes, columns = ([page.inside("td", of=row)[0].text for row in body] for body in bodies)
    shown = {re.sub(r" \(\d+ %\)$", "", outcome.rpartition(": ")[2]) for outcome in outcomes}
    assert shown == {name_outcome(code, language) for code in OUTCOMES}
    headers = in_language(match_columns(["nombre", "municipio", "estado"]), language).headers([])
    assert [header for column in columns for header in column.split(", ")] == headers


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_unknown_guide_is_a_problem(client: httpx.AsyncClient, accept: str) -> None:
    answer = await client.get("/help/nothing", headers={"Accept": accept, "Accept-Language": "es"})
    assert answer.status_code == 404
    said = "No existe esa guía." if accept == "text/html" else "There is no such guide."
    assert said in answer.text


async def test_guide_names_the_address_of_the_service(app: FastAPI, seeded_database: str) -> None:
    running = running_app(seeded_database, public_url="https://claves.example/mx", in_background=False)
    async with running as public, client_of(public) as outside, behind_proxy(app, "/below") as below:
        pages = await fetch(outside, "/help/openrefine"), await fetch(below, "/below/help/openrefine")
    addresses = [page.inside("code", of=page.one("main"))[0] for page in pages]
    roots = "https://claves.example/mx", "http://127.0.0.1:8000/below"  # a script writes its own host
    assert [address.text for address in addresses] == [f"{root}/api/census/reconcile/" for root in roots]
    assert all("data-copy" in address.attributes for address in addresses)


async def test_picture_can_be_cached(client: httpx.AsyncClient) -> None:
    picture = await client.get("/help/pictures/openrefine-start.webp")
    assert picture.content.startswith(b"RIFF")
    assert picture.headers["content-type"] == "image/webp"
    kept = await client.get("/help/pictures/openrefine-start.webp", headers={"If-None-Match": picture.headers["etag"]})
    assert (kept.status_code, kept.content) == (304, b"")
    assert picture.headers["cache-control"] == kept.headers["cache-control"] == CACHE_CONTROL


async def test_browser_knows_the_sizes_of_pictures_before_they_come(browser: Browser, live_server: str) -> None:
    async with visit(browser, live_server) as page:
        await page.goto("/help/openrefine")
        await expect(page.locator("main code").first).to_have_text(f"{live_server}/api/census/reconcile/")
        for picture in await page.locator("main img").all():
            await picture.scroll_into_view_if_needed()
            await picture.evaluate("one => one.decode()")
            natural = await picture.evaluate("one => [one.naturalWidth, one.naturalHeight].map(String)")
            assert [await picture.get_attribute(name) for name in ("width", "height")] == natural
