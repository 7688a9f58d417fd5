"""The page /match of a service on a small catalogue, for the modules that define no other."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, Page

from tests.pages.country import a_year_later, places
from tests.support.application import client_of
from tests.support.browser import WEBGL, launched, visit
from tests.support.catalogue import TRAPS, write_catalogue
from tests.support.catalogue_service import serving_files
from tests.support.pages import BROWSER
from tests.support.pages import Page as Parsed

PAGE = "/match?format=api"


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
def base(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a service on a small catalogue with homonyms."""
    file = write_catalogue(tmp_path_factory.mktemp("match") / "catun_localidad_2020-01.csv", TRAPS)
    with serving_files(server, migrated, [file]) as address:
        yield address


@pytest.fixture
async def page(browser: Browser, base: str) -> AsyncIterator[Page]:
    """Yield the page, whose console may report that a list is not understood."""
    async with visit(browser, base, accept_downloads=True, errors=True) as page:
        await page.goto(PAGE)
        yield page


@pytest.fixture(scope="session")
def two_releases(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a service that holds two releases, for tests that only read."""
    folder = tmp_path_factory.mktemp("country")
    releases = {"2020-01": places(), "2021-01": a_year_later()}
    files = (write_catalogue(folder / f"catun_localidad_{name}.csv", found) for name, found in releases.items())
    with serving_files(server, migrated, files) as address:
        yield address
