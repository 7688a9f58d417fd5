"""The guides' examples on the demo: programs that read the service, and forms in a real Chromium."""

import asyncio
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.deploy.guides import DOCS, SERVICE, blocks_of, shell
from tests.support.application import import_file
from tests.support.browser import axe_faults, hold
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.machine import READERS, needed
from tests.support.postgres import execute, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import serving

pytestmark = pytest.mark.tail

EXAMPLES = DOCS / "examples"
CERTAIN = ["140010022", "140020021", "140010011"]  # the keys of the rows of visits.csv that are certain


# -- Programs


def follow(base: str, copy: str) -> str:
    program = ["sh", str(EXAMPLES / "follow.sh")] if "://" in copy else [sys.executable, str(EXAMPLES / "follow.py")]
    return subprocess.run(
        [*program, base, copy], capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout.strip()


def copied(copy: str) -> dict[int, dict[str, Any]]:
    if "://" in copy:
        [rows] = execute(copy, "SELECT * FROM localidades")
        return {row["id"]: dict(row) for row in rows}
    with closing(sqlite3.connect(copy)) as database:
        database.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in database.execute("SELECT * FROM localidades")}


def downloaded(base: str, columns: set[str]) -> dict[int, dict[str, Any]]:
    lines = httpx.get(f"{base}/api/census/localidades/download/?format=ndjson", timeout=PATIENCE).content.splitlines()
    records = [json.loads(line) for line in lines]
    return {record["id"]: {name: record[name] for name in columns} for record in records}


@pytest.mark.parametrize("is_postgres", [False, True], ids=["SQLite", "Postgres"])
def test_copy_follows_the_served_release(
    server: str, seeded_database: str, tmp_path: Path, *, is_postgres: bool
) -> None:
    """A copy has a release that the service no longer has, and another is new."""
    path, other = str(tmp_path / "copy.sqlite"), str(tmp_path / "new.sqlite")
    places = many(140)
    later = [
        *places[3:100],  # three are removed
        Place(places[100].cvegeo, "Otro nombre", nom_ent=places[100].nom_ent),
        *places[101:],
        Place("320580099", "Línea\N{LINE SEPARATOR}partida\N{NEXT LINE}", nom_ent="Zacatecas", nom_abr="Zac."),
    ]
    held = ("CREATE TABLE held (release text)", "INSERT INTO held VALUES ('1999-01')")
    with ExitStack() as stack:
        if is_postgres:
            needed(shutil.which("psql"), "This test needs psql (Debian's postgresql-client).")
            path, other = (stack.enter_context(new_database(server)) for _ in range(2))
            execute(path, *held)
        else:
            with closing(sqlite3.connect(path)) as copy, copy:
                copy.executescript(";".join(held))
        live = stack.enter_context(serving(seeded_database))
        assert follow(live.base, path).endswith("went from 1999-01 to 2020-01")
        first = copied(path)
        columns = set(next(iter(first.values())))
        assert first == downloaded(live.base, columns)
        file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", sorted(later, key=lambda place: place.cvegeo))
        import_file(seeded_database, file)
        eventually(lambda: httpx.get(f"{live.base}/api/census/", timeout=PATIENCE).json()["release"] == "2021-01")
        assert follow(live.base, path).endswith("went from 2020-01 to 2021-01")
        assert len(copied(path)) == len(later)
        assert copied(path) == downloaded(live.base, columns) != first
        assert follow(live.base, path).endswith("holds 2021-01 already")
        assert follow(live.base, other).endswith("went from nothing to 2021-01")


_SQL = "import duckdb; print(duckdb.sql(open('match.sql').read()))"
RSCRIPT = shutil.which("Rscript")
MISSING = "This test needs R (Debian's r-base-core), and what `make test-tools` installs."


def test_certain_rows_are_joined(demo_service: str, tmp_path: Path) -> None:
    needed(READERS, MISSING)
    for name in ("match.sql", "visits.csv"):  # the files that the guide saves
        shutil.copy(EXAMPLES / name, tmp_path)
    for block in blocks_of("guides/match-rows.md"):
        fetch = block.text.removeprefix("$ ").splitlines()[0]
        if " -o " in fetch:
            shell(fetch.replace(SERVICE, demo_service.removeprefix("http://")), tmp_path)
    printed = shell(f'"{READERS}" -c "{_SQL}"', tmp_path)
    assert re.findall(r"00\d\W+(14\d{7})\W+(\w+ \w+)", printed) == [
        *zip(CERTAIN, ("El Zapote", "Huerta San", "Charco Verde"), strict=True)
    ]


@pytest.mark.parametrize(
    ("program", "language", "expected"),
    [  # the tables of pandas and polars; the table of R, and a suggestion
        pytest.param(READERS, "python", [CERTAIN, CERTAIN], id="python"),
        pytest.param(RSCRIPT, "r", [[*CERTAIN, "140390001"]], id="r"),
    ],
)
def test_python_and_r_programs_of_the_guide_match_rows(
    program: str, language: str, expected: list[list[str]], demo_service: str, client_package: Path, tmp_path: Path
) -> None:
    needed(program, MISSING)
    (tmp_path / client_package.name).symlink_to(client_package)
    for name in ("localidades.R", "visits.csv"):
        shutil.copy(EXAMPLES / name, tmp_path)
    guide, keys = (DOCS / "guides" / "python.md").read_text(encoding="utf-8"), []
    for text in re.findall(rf"^```{language}\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        (tmp_path / "program").write_text(text.replace(SERVICE, demo_service.removeprefix("http://")), "utf-8")
        keys.append(re.findall(r"14\d{7}", shell(f'"{program}" program', tmp_path)))
    assert keys == expected


# -- Forms


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """Yield a page; fail at the end if the console has anything but aborted requests."""
    wrong: list[str] = []
    page = await browser.new_page()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    await page.close()
    assert [text for text in wrong if "net::ERR_FAILED" not in text] == []


def address_of(example: str, service: str) -> str:
    return f"{(EXAMPLES / example).as_uri()}?service={service}"


async def is_valid(page: Page) -> bool:
    return bool(await page.evaluate("document.forms[0].checkValidity()"))


async def test_cascading_select_is_not_sent_without_a_localidad_and_goes_back_and_forth(
    page: Page, demo_service: str
) -> None:
    valid = []

    async def watch(route: Route) -> None:
        valid.append(await is_valid(page))  # while the list is on its way
        await route.continue_()

    await page.route(f"{demo_service}/**", watch)
    await page.goto(address_of("cascade.html", demo_service), wait_until="commit")
    for select, value in (("estado", "3"), ("municipio", "3004"), ("localidad", "30040001"), ("estado", "9")):
        await expect(page.locator(f"#{select} option")).not_to_have_count(1)
        await page.locator(f"#{select}").select_option(value)
        valid.append(await is_valid(page))
    await expect(page.locator("#municipio option")).not_to_have_count(1)
    assert valid.count(True) == 1, valid
    assert not await is_valid(page)
    held = await hold(page, f"{demo_service}/**")
    for value in ("3", "9", "3"):
        await page.locator("#estado").select_option(value)
    held.release()
    await expect(page.locator("#municipio option")).to_have_count(6)
    await page.wait_for_load_state("networkidle")
    await expect(page.locator("#municipio option")).to_have_count(6)  # each municipio once


@pytest.fixture
async def typeahead(page: Page, demo_service: str) -> Page:
    await page.goto(address_of("typeahead.html", demo_service))
    return page


async def key(page: Page) -> str:
    """Return the field that the form would send."""
    return str(await page.evaluate("new FormData(document.forms[0]).get('cvegeo')"))


async def test_place_is_chosen_by_keyboard_and_mouse_from_a_list_that_passes_axe(typeahead: Page) -> None:
    field = typeahead.get_by_role("combobox", name="Localidad")
    await field.press_sequentially("tonahuacoya de torres jal")
    await expect(typeahead.get_by_role("status")).to_have_text("Localidades: 8")
    await expect(field).to_have_attribute("aria-expanded", "true")
    await field.press("ArrowUp")
    await expect(typeahead.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    await field.press("ArrowDown")
    assert await axe_faults(typeahead, runOnly=["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]) == {}
    place = "Tonahuacoya de Torres, Tonahuacoya de Torres, Jalisco"
    await expect(typeahead.get_by_role("option", selected=True)).to_have_text(place)
    await expect(field).to_have_attribute("aria-activedescendant", "option-0")
    await expect(field).to_be_focused()
    await field.press("Enter")
    await expect(field).to_have_value(place)
    await expect(field).to_have_attribute("aria-expanded", "false")
    assert (await key(typeahead), await is_valid(typeahead)) == ("140010001", True)
    await field.fill("gdl")
    await typeahead.get_by_role("option", name=re.compile(r", Jalisco \(GDL\)$")).click()
    await expect(field).to_be_focused()
    assert (await key(typeahead), await is_valid(typeahead)) == ("140390001", True)
    await field.press("Backspace")  # which leaves a text that isn't a choice
    assert (await key(typeahead), await is_valid(typeahead)) == ("", False)


async def test_stale_answer_is_dropped(typeahead: Page, demo_service: str) -> None:
    field, gone = typeahead.get_by_role("combobox", name="Localidad"), asyncio.Event()
    held = await hold(typeahead, f"{demo_service}/**&q=gdl")
    typeahead.on("requestfailed", lambda _: gone.set())
    await field.fill("gdl")
    await held.asked()
    await field.fill("zapote")
    await asyncio.wait_for(gone.wait(), PATIENCE)
    held.release()
    await expect(typeahead.get_by_role("status")).to_have_text("Localidades: 8")
    assert "GDL" not in await typeahead.get_by_role("listbox").inner_text()
