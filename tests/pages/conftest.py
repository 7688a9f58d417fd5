"""The page /match of a service on a small catalogue, for the modules that define no other."""

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page

from tests.pages.country import a_year_later, places
from tests.support.application import import_file
from tests.support.browser import visit
from tests.support.catalogue import TRAPS, write_catalogue
from tests.support.postgres import new_database
from tests.support.wire import await_names, serving

PAGE = "/match?format=api"


@pytest.fixture(scope="module")
def base(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a service on a small catalogue with homonyms."""
    file = write_catalogue(tmp_path_factory.mktemp("match") / "catun_localidad_2020-01.csv", TRAPS)
    with new_database(server, migrated) as url:
        import_file(url, file)
        with serving(url) as live:
            await_names(live.base)
            yield live.base


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
    with new_database(server, migrated) as url:
        for name, found in (("2020-01", places()), ("2021-01", a_year_later())):
            import_file(url, write_catalogue(folder / f"catun_localidad_{name}.csv", found))
        with serving(url) as live:
            await_names(live.base)
            yield live.base
