"""Services for tests that only read them, and pages as clients and as a browser read them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, BrowserContext, Page

from tests.pages.country import a_year_later, places
from tests.support.application import client_of, serving_files
from tests.support.browser import WEBGL, forget, kept, launched, watched
from tests.support.catalogue import write_catalogue
from tests.support.pages import BROWSER
from tests.support.pages import Page as Parsed


class Read(NamedTuple):
    """An answer, and its page."""

    answer: httpx.Response
    page: Parsed


Reader = Callable[[str], Awaitable[Read]]


@pytest.fixture(scope="session")
async def read(app: FastAPI) -> AsyncIterator[Reader]:
    """Yield what reads a page of `app` as a browser gets it, each address once."""
    pages: dict[str, Read] = {}
    async with client_of(app) as client:

        async def read_once(target: str) -> Read:
            if target not in pages:
                answer = await client.get(target, headers=BROWSER)
                pages[target] = Read(answer, Parsed.of(answer))
            return pages[target]

        yield read_once


@pytest.fixture(scope="session")
async def with_webgl() -> AsyncIterator[Browser]:
    """Yield Debian's Chromium with WebGL."""
    async with launched(*WEBGL) as browser:
        yield browser


@pytest.fixture(scope="module")
def base(live_server: str) -> str:
    """Return the address of the service whose pages a module opens."""
    return live_server


@pytest.fixture(scope="module")
async def context(browser: Browser, base: str) -> AsyncIterator[BrowserContext]:
    """Yield a context for the pages of a module, whose console may report responses with an error status."""
    async with watched(browser, base, accept_downloads=True, errors=True) as context:
        yield context


@pytest.fixture(scope="module")
async def tab(context: BrowserContext) -> Page:
    """Return the page that the tests of a module open one after the other: a new one takes longer than many a test."""
    return await context.new_page()


@pytest.fixture
async def page(tab: Page) -> AsyncIterator[Page]:
    """Yield the module's page, whose tests go to an address first."""
    yield tab
    await tab.unroute_all(behavior="ignoreErrors")


@pytest.fixture
async def opened_match(page: Page, base: str) -> AsyncIterator[None]:
    """Open the page that matches lists, in a browser that has kept nothing of them."""
    await forget(page, base)
    await page.goto("/match?format=api")
    yield
    await kept(page)


@pytest.fixture(scope="session")
def two_releases(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a service that holds two releases, for tests that only read."""
    folder = tmp_path_factory.mktemp("country")
    releases = {"2020-01": places(), "2021-01": a_year_later()}
    files = (write_catalogue(folder / f"catun_localidad_{name}.csv", found) for name, found in releases.items())
    with serving_files(server, migrated, files) as address:
        yield address
