"""The feed of releases, as a feed reader reads it."""

from pathlib import Path

import feedparser
import httpx
import pytest

from tests.support.application import await_release, client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.pages import Page

FEED = "/api/census/releases/feed.atom"


async def read(client: httpx.AsyncClient, target: str = FEED) -> feedparser.FeedParserDict:
    """Return the feed as feedparser reads it."""
    answer = await client.get(target)
    assert answer.headers["content-type"] == "application/atom+xml"
    headers = {"content-type": "application/atom+xml", "content-location": f"http://test{target}"}
    feed = feedparser.parse(answer.content, response_headers=headers)
    assert not feed.bozo, feed.get("bozo_exception")
    assert feed.version == "atom10"
    return feed


async def test_feed_has_an_entry_for_each_release_newest_first(database: str, tmp_path: Path) -> None:
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", many(132)))
    async with running_app(database) as app, client_of(app) as client:
        before = await read(client)
        await import_into(database, write_catalogue(tmp_path / "2021-01.csv", many(140)))
        await await_release(client, "2021-01")
        feed = await read(client)
        assert [entry.title for entry in feed.entries] == ["Release 2021-01", "Release 2020-01"]
        assert feed.entries[1].id == before.entries[0].id != feed.entries[0].id
        assert feed.feed.id == before.feed.id
        assert feed.feed.updated == feed.entries[0].updated == feed.entries[0].published
        assert "140 localities" in feed.entries[0].summary
        assert "Since 2020-01: 8 added, 0 removed" in feed.entries[0].summary
        for entry in feed.entries:
            for link in entry.links:
                assert "format=api" not in link.href
                answer = await client.get(link.href, headers={"Accept": f"{link.type},*/*;q=0.8"})
                assert answer.status_code == 200, link.href
                assert answer.headers["content-type"].startswith(link.type)


async def test_feed_is_in_spanish_only_if_the_url_says_so(client: httpx.AsyncClient) -> None:
    spanish = await read(client, f"{FEED}?lang=es")
    assert spanish.feed.title == "Localidades de México: versiones"
    assert "lang=es" in spanish.entries[0].link
    assert (await client.get(FEED, headers={"Accept-Language": "es"})).text == (await client.get(FEED)).text
    assert len({(await client.get(target)).headers["etag"] for target in (FEED, f"{FEED}?lang=es")}) == 2
    for query in ("x=1", "lang=fr", "lang=es&lang=es"):
        assert (await client.get(f"{FEED}?{query}")).status_code == 422


@pytest.mark.parametrize("path", ["/api/census/", "/api/census/releases/"])
async def test_pages_link_to_the_feed(client: httpx.AsyncClient, path: str) -> None:
    for suffix in ("", "&lang=es"):
        page = Page.of(await client.get(f"{path}?format=api{suffix}"))
        [link] = page.all("link", rel="alternate", type="application/atom+xml")
        assert (await client.get(link.attributes["href"])).status_code == 200
