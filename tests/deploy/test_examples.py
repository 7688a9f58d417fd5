"""The guides' examples on the demo: programs that read the service, and forms in a real Chromium."""

import asyncio
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.deploy.guides import DOCS, SERVICE, blocks_of, shell
from tests.support.application import import_file
from tests.support.browser import axe_faults
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.machine import READERS, needed
from tests.support.waiting import PATIENCE
from tests.support.wire import serving

pytestmark = pytest.mark.tail

EXAMPLES = DOCS / "examples"
ANALYSTS_GUIDE = "guides/match-rows.md"
FULL_LIST = "Localidades: 8"


# -- Programs


def copied(path: Path) -> dict[int, dict[str, Any]]:
    with closing(sqlite3.connect(path)) as copy:
        copy.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in copy.execute("SELECT * FROM localidades")}


def downloaded(base: str, columns: set[str]) -> dict[int, dict[str, Any]]:
    lines = httpx.get(f"{base}/api/census/localidades/download/?format=ndjson", timeout=PATIENCE).content.splitlines()
    records = [json.loads(line) for line in lines]
    return {record["id"]: {name: record[name] for name in columns} for record in records}


def test_copy_follows_the_served_release(seeded_database: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"

    def follow(base: str) -> str:
        command = [sys.executable, str(EXAMPLES / "follow.py"), base, str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout.strip()

    places = many(140)
    later = [
        *places[3:100],  # three are removed
        Place(places[100].cvegeo, "Otro nombre", nom_ent=places[100].nom_ent),
        *places[101:],
        Place("320580099", "Línea\N{LINE SEPARATOR}partida\N{NEXT LINE}", nom_ent="Zacatecas", nom_abr="Zac."),
    ]
    with serving(seeded_database) as live:
        assert follow(live.base).endswith("went from nothing to 2020-01")
        first = copied(path)
        assert len(first) == 132
        columns = set(next(iter(first.values())))
        assert first == downloaded(live.base, columns)
        file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", sorted(later, key=lambda one: one.cvegeo))
        import_file(seeded_database, file)
        with httpx.Client(base_url=live.base) as client:
            while client.get("/api/census/").json()["release"] != "2021-01":
                pass
        assert follow(live.base).endswith("went from 2020-01 to 2021-01")
        second = copied(path)
        assert len(second) == len(later)
        assert second == downloaded(live.base, columns)
        assert second != first
        assert follow(live.base).endswith("holds 2021-01 already")


def test_copy_of_a_removed_release_is_reloaded(live_server: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    command = [sys.executable, str(EXAMPLES / "follow.py"), live_server, str(path)]
    with closing(sqlite3.connect(path)) as copy, copy:
        copy.execute("CREATE TABLE held (release TEXT)")
        copy.execute("INSERT INTO held VALUES ('1999-01')")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert ended.stdout.strip().endswith("went from 1999-01 to 2020-01")
    assert len(copied(path)) == 132


_SQL = "import duckdb; print(duckdb.sql(open('match.sql').read()))"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        pytest.param(READERS, f'"{READERS}" match_pandas.py visits.csv SERVICE', id="pandas"),
        pytest.param(shutil.which("Rscript"), "Rscript match.R SERVICE", id="R"),
        pytest.param(READERS, f'"{READERS}" -c "{_SQL}"', id="DuckDB"),
    ],
)
def test_certain_rows_are_joined(program: str | Path | None, command: str, demo_service: str, tmp_path: Path) -> None:
    needed(program, "This test needs R (Debian's r-base-core), and what `make test-tools` installs.")
    for name in ("match_pandas.py", "match.R", "match.sql", "visits.csv"):  # the files that the guide saves
        shutil.copy(EXAMPLES / name, tmp_path)
    fetching = [re.sub(r"^\$ ", "", block.text).splitlines()[0] for block in blocks_of(ANALYSTS_GUIDE)]
    for fetch in fetching:
        if " -o " in fetch:
            shell(fetch.replace(SERVICE, demo_service.removeprefix("http://")), tmp_path)
    printed = shell(command.replace("SERVICE", demo_service), tmp_path)
    assert re.findall(r"(00\d)\W+(14\d{7})\W+(\w+ \w+)", printed) == [
        ("001", "140010022", "El Zapote"),
        ("002", "140020021", "Huerta San"),
        ("003", "140010011", "Charco Verde"),
    ]


def blocks_in(language: str) -> list[str]:
    """Return the programs in one language of the guide to Python and R."""
    text = (DOCS / "guides" / "python.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("program", "language"), [(READERS, "python"), pytest.param(shutil.which("Rscript"), "r", id="r")]
)
def test_python_and_r_programs_of_the_guide_match_rows(
    program: str | Path | None, language: str, demo_service: str, client_package: Path, tmp_path: Path
) -> None:
    needed(program, "This test needs R (Debian's r-base-core), and what `make test-tools` installs.")
    (tmp_path / client_package.name).symlink_to(client_package)
    for name in ("localidades.R", "visits.csv"):
        shutil.copy(EXAMPLES / name, tmp_path)
    found = []
    for text in blocks_in(language):
        (tmp_path / "program").write_text(text.replace(SERVICE, demo_service.removeprefix("http://")), "utf-8")
        found.append(re.findall(r"14\d{7}", shell(f'"{program}" program', tmp_path)))
    certain = ["140010022", "140020021", "140010011"]
    # The tables of pandas and polars, and a list with asyncio; the table of R, and a suggestion.
    assert found == ([certain, certain, certain[:1]] if language == "python" else [[*certain, "140390001"]])


# -- The cascading select


async def test_cascading_select_is_not_sent_without_a_localidad(browser: Browser, demo_service: str) -> None:
    page = await browser.new_page()
    estado, municipio, localidad = (page.locator(f"#{name}") for name in ("estado", "municipio", "localidad"))
    valid = []

    async def watch(route: Route) -> None:
        valid.append(await is_valid(page))  # while the list is on its way
        await route.continue_()

    await page.route(f"{demo_service}/**", watch)
    await page.goto(f"{(EXAMPLES / 'cascade.html').as_uri()}?service={demo_service}", wait_until="commit")
    for select, value in ((estado, "3"), (municipio, "3004"), (localidad, "30040001"), (estado, "9")):
        await expect(select.locator("option")).not_to_have_count(1)
        await select.select_option(value)
        valid.append(await is_valid(page))
    await expect(municipio.locator("option")).not_to_have_count(1)
    assert valid.count(True) == 1, valid
    assert not await is_valid(page)
    await page.close()


async def test_cascading_select_offers_each_municipio_once_after_going_back_and_forth(
    browser: Browser, demo_service: str
) -> None:
    page = await browser.new_page()
    late = asyncio.Event()

    async def hold(route: Route) -> None:
        await late.wait()
        await route.continue_()

    await page.goto(f"{(EXAMPLES / 'cascade.html').as_uri()}?service={demo_service}")
    await page.route(f"{demo_service}/**", hold)
    for value in ("3", "9", "3"):
        await page.locator("#estado").select_option(value)
    late.set()
    await expect(page.locator("#municipio option")).to_have_count(6)
    await page.evaluate("new Promise((done) => setTimeout(done, 300))")  # longer than a slow response
    await expect(page.locator("#municipio option")).to_have_count(6)
    await page.close()


# -- The typeahead


@pytest.fixture
async def page(browser: Browser, demo_service: str) -> AsyncIterator[Page]:
    """Yield the example; fail at the end if the console has anything but aborted requests."""
    wrong: list[str] = []
    page = await browser.new_page()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(f"{(EXAMPLES / 'typeahead.html').as_uri()}?service={demo_service}")
    yield page
    await page.close()
    assert [text for text in wrong if "net::ERR_FAILED" not in text] == []


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Localidad")


def selected(page: Page) -> Locator:
    return page.get_by_role("option", selected=True)


async def key(page: Page) -> str:
    """Return the fields that the form would send."""
    return str(await page.evaluate("new FormData(document.forms[0]).get('cvegeo')"))


async def is_valid(page: Page) -> bool:
    return bool(await page.evaluate("document.forms[0].checkValidity()"))


async def test_place_is_chosen_by_keyboard(page: Page) -> None:
    await field(page).press_sequentially("tonahuacoya de torres jal")
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    await expect(field(page)).to_have_attribute("aria-expanded", "true")
    await field(page).press("ArrowUp")
    await expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    await field(page).press("ArrowDown")
    await expect(selected(page)).to_have_text("Tonahuacoya de Torres, Tonahuacoya de Torres, Jalisco")
    await expect(field(page)).to_have_attribute("aria-activedescendant", "option-0")
    await expect(field(page)).to_be_focused()
    await field(page).press("Enter")
    await expect(field(page)).to_have_value("Tonahuacoya de Torres, Tonahuacoya de Torres, Jalisco")
    await expect(field(page)).to_have_attribute("aria-expanded", "false")
    assert await key(page) == "140010001"
    assert await is_valid(page)


async def test_place_is_chosen_by_mouse(page: Page) -> None:
    await field(page).fill("gdl")
    await page.get_by_role("option", name=re.compile(r", Jalisco \(GDL\)$")).click()
    await expect(field(page)).to_be_focused()
    assert (await key(page), await is_valid(page)) == ("140390001", True)
    await field(page).press("Backspace")  # which leaves a text that isn't a choice
    assert (await key(page), await is_valid(page)) == ("", False)


async def test_stale_answer_is_dropped(page: Page, demo_service: str) -> None:
    stale, released, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        stale.set()
        await released.wait()
        await route.continue_()

    await page.route(f"{demo_service}/**&q=gdl", hold)
    page.on("requestfailed", lambda _: gone.set())
    await field(page).fill("gdl")
    await asyncio.wait_for(stale.wait(), PATIENCE)
    await field(page).fill("zapote")
    await asyncio.wait_for(gone.wait(), PATIENCE)
    released.set()
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    assert "GDL" not in await page.get_by_role("listbox").inner_text()


async def test_unreachable_service_is_reported(page: Page, demo_service: str) -> None:
    await page.route(f"{demo_service}/**", lambda route: route.abort())
    await field(page).fill("zapote")
    await expect(page.get_by_role("status")).to_have_text("Failed to fetch")


async def test_open_list_passes_axe(page: Page) -> None:
    await field(page).fill("zapote")
    await expect(page.get_by_role("status")).to_have_text(FULL_LIST)
    await field(page).press("ArrowDown")
    assert await axe_faults(page, runOnly=["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]) == {}
