"""The changes between two releases, which keep a copy up to date, and their counts on the page of releases."""

import asyncio
import csv
import io
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from alembic import command
from fastapi import FastAPI
from pydantic_core import from_json

from localidades_api.api import Services
from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.database.queries.changes import find_changes, get_stored_changes
from localidades_api.downloads import changes as changes_module
from tests.support.application import (
    await_status,
    client_of,
    database_with,
    import_into,
    recorded_statements,
    running_app,
    walk,
)
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.database import WHO_WAIT, connected
from tests.support.pages import Page
from tests.support.postgres import alembic_config, execute, locked_in_thread, new_database, run_sql
from tests.support.records import Record, record_of, row_of
from tests.support.waiting import eventually_async, in_thread
from tests.support.wire import LOCALIDADES

RELEASES = "/api/census/releases/"
PAIRS = [f"{new}/changes/?since={old}" for new, old in (("2020-01", "2019-01"), ("2019-01", "2020-01"))]
ITSELF = "2020-01/changes/?since=2020-01"
NOTHING = {"quantity": 0, "total_pages": 0, "results": []}
KINDS = ("added", "removed", "renamed", "relocated", "updated")
FIGURES = tuple(name for name in ATTRIBUTES if name not in POINT)

OLD = many(132)
NEW = [
    *(replace(place, nombre=f"{place.nombre} nuevo", altitud=place.altitud.replace("*", "-")) for place in OLD[:3]),
    *(replace(place, latitud="19.5", nombre=place.nombre.replace("  ", " ")) for place in OLD[3:6]),
    *(replace(place, longitud="-") for place in OLD[6:8]),
    *(replace(place, poblacion="77") for place in OLD[8:11]),
    replace(OLD[11], nombre="<b>Otro</b>", latitud="-", longitud="-", altitud="3", carta="X", ambito="U"),
    *OLD[17:],
    *(Place(f"31001{number:04d}", f"Nueva {number}", nom_ent="Yucatán") for number in range(1, 61)),
]
LATER = [*NEW, Place("300020001", "Una más", nom_ent="Veracruz")]
AREAS = {row["id"]: (row["municipio"], row["estado"]) for row in map(row_of, OLD + NEW)}
SOURCES = {"2019-01": OLD, "2020-01": NEW}


def changes_of(old: list[Place], new: list[Place]) -> list[Record]:
    """Return the expected changes, by comparing all columns of all records."""
    before = {record["id"]: record for record in map(record_of, old)}
    after = {record["id"]: record for record in map(record_of, new)}
    changes = []
    for id_ in before.keys() | after.keys():
        former, later = before.get(id_), after.get(id_)
        if former is None or later is None:
            kinds = ["added" if former is None else "removed"]
        else:
            columns = {"renamed": ("nombre",), "relocated": ("latitud", "longitud"), "updated": FIGURES}
            kinds = [kind for kind, names in columns.items() if any(former[name] != later[name] for name in names)]
        changes += [{"change": kind, "id": id_, "before": former, "after": later} for kind in kinds]
    return sorted(changes, key=lambda change: (KINDS.index(change["change"]), change["id"]))


CHANGES = changes_of(OLD, NEW)


@pytest.fixture(scope="module")
def template(server: str, migrated: str) -> Iterator[str]:
    """Yield a template database with both releases."""
    with database_with(server, migrated, SOURCES) as url:
        yield url


@pytest.fixture(scope="module")
def both(server: str, template: str) -> Iterator[str]:
    """Yield a database that holds both releases."""
    with new_database(server, template) as url:
        yield url


@pytest.fixture(scope="module")
def upgraded(server: str, template: str) -> Iterator[str]:
    """Yield a database whose releases were imported before there was a column for their changes."""
    with new_database(server, template) as url:
        in_thread(lambda: command.downgrade(alembic_config(url), "0002"))
        in_thread(lambda: command.upgrade(alembic_config(url), "head"))
        yield url


@pytest.fixture(scope="module")
async def app(both: str) -> AsyncIterator[FastAPI]:
    """Yield an application on it."""
    async with running_app(both) as app:
        yield app


async def get(client: httpx.AsyncClient, target: str, status: int = 200) -> Any:  # noqa: ANN401  # JSON
    answer = await client.get(RELEASES + target)
    assert answer.status_code == status, answer.text
    return answer.json()


async def every_record(client: httpx.AsyncClient, target: str) -> list[Record]:
    """Return every record of a list by following its links."""
    pages = [answer.json() async for answer in walk(client, RELEASES + target)]
    sizes = [len(page["results"]) for page in pages]
    assert (sum(sizes), len(sizes)) == (pages[-1]["quantity"], max(pages[-1]["total_pages"], 1))
    assert all(size == sizes[0] for size in sizes[:-1])
    return [record for page in pages for record in page["results"]]


async def read_ndjson(client: httpx.AsyncClient, target: str) -> list[Record]:
    answer = await client.get(f"{RELEASES}{target}&format=ndjson")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    lines = [from_json(line) for line in answer.content.split(b"\n")[:-1]]
    assert answer.headers["catalogue-records"] == str(len(lines))
    return lines


# -- Releases


async def shown_on_page(client: httpx.AsyncClient) -> dict[str, dict[str, int]]:
    """Return the numbers of changes that the page shows, by release."""
    answer = await client.get(f"{RELEASES}?format=api")
    assert answer.status_code == 200
    timeline = answer.text.partition('<ol class="timeline">')[2].partition("</ol>")[0]
    return {
        re.search(r"release=([^&\"]*)\"", entry)[1]: {  # type: ignore[index]
            kind: int(count.replace(",", "")) for kind, count in re.findall(r"change=(\w+)\">([\d,]+) \w+</a>", entry)
        }
        for entry in re.findall(r"<li.*?</li>", timeline, re.DOTALL)
    }


def counted(old: list[Place], new: list[Place]) -> dict[str, int]:
    return dict(Counter(change["change"] for change in changes_of(old, new)))


async def test_releases_page_shows_the_importers_counts_without_a_comparison(both: str) -> None:
    async with running_app(both) as app, client_of(app) as client, locked_in_thread(both, "localities"):
        assert await shown_on_page(client) == {"2019-01": {}, "2020-01": counted(OLD, NEW)}


async def test_import_after_a_rollback_is_compared_with_the_current_and_the_previous_release(
    server: str, template: str, tmp_path: Path
) -> None:
    """Readers notice the changes since the current release; the page is a history that includes the bad one."""
    with new_database(server, template) as url:
        await run_sql(url, "UPDATE current_release SET release_id = 1")
        report = await import_into(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", LATER))
        assert (report.comparison.previous, report.comparison.added) == ("2019-01", counted(OLD, LATER)["added"])
        async with running_app(url) as app, client_of(app) as client:
            shown = await shown_on_page(client)
    assert shown == {"2019-01": {}, "2020-01": counted(OLD, NEW), "2021-01": {"added": 1}}


# -- Changes


async def test_following_next_links_yields_every_change(client: httpx.AsyncClient) -> None:
    assert {change["change"] for change in CHANGES} == set(KINDS)
    assert await every_record(client, f"{PAIRS[0]}&page_size=7") == CHANGES
    assert await read_ndjson(client, f"{PAIRS[0]}&page=2&page_size=7") == CHANGES[7:14]


async def test_changes_can_be_filtered_by_kind_and_estado(client: httpx.AsyncClient) -> None:
    for kind, estado in [*((kind, None) for kind in KINDS), (None, 31), (None, 32), ("added", 31), ("updated", 1)]:
        expected = [
            change for change in CHANGES if kind in {None, change["change"]} and estado in {None, change["id"] // 10**7}
        ]
        assert bool(expected) is (estado != 32), (kind, estado)
        target = PAIRS[0] + (f"&change={kind}" if kind else "") + (f"&estado_id={estado}" if estado else "")
        assert await every_record(client, f"{target}&page_size=7") == expected
        assert await read_ndjson(client, target) == expected


async def test_html_page_says_what_changed_about_each_place(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{RELEASES}{PAIRS[0]}&format=api&page_size=100"))
    rows = [[cell.strip() for cell in row] for row in page.rows()]
    shown = [change["after"] or change["before"] for change in CHANGES]
    assert [(nombre, area, cvegeo) for nombre, area, _, cvegeo in rows] == [
        (place["nombre"], ", ".join(AREAS[place["id"]]), place["cvegeo"]) for place in shown
    ]
    assert {(nombre, said) for nombre, _, said, _ in rows} >= {
        ("Aguascalientes nuevo", "Aguascalientes → Aguascalientes nuevo"),
        ("<b>Otro</b>", f"{OLD[11].nombre} → <b>Otro</b>"),
        (OLD[3].nombre, "21.880833, -102.296111 → 19.5, -102.296111"),
        (OLD[6].nombre, "21.880833, -102.296111 → no data"),
        (OLD[8].nombre, "poblacion no data → 77"),
        ("Nueva 1", ""),
    }
    groups = [element.text for element in page.elements if element.attributes.get("scope") == "rowgroup"]
    assert groups == [kind.capitalize() for kind in KINDS]


def table_of(changes: list[Record]) -> list[list[object]]:
    """Return the expected table: a row for each change, with both records."""
    names = ("nombre", *ATTRIBUTES)
    keys = ("id", "municipio_id", "cvegeo", "clave", "nombre")
    rows: list[list[object]] = [["change", *keys, "municipio", "estado", "differs"]]
    rows[0] += [f"{when}_{name}" for name in names for when in ("before", "after")]
    for change in changes:
        before, after = change["before"] or {}, change["after"] or {}
        differs = [name for name in names if before and after and before[name] != after[name]]
        row = [change["change"], *((after or before)[name] for name in keys), *AREAS[change["id"]], ",".join(differs)]
        for name in names:
            row += [before.get(name), after.get(name)]
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("query", "changes"), [("", CHANGES), ("&page=2&page_size=7", CHANGES[7:14]), ("&estado_id=32", [])]
)
async def test_table_of_changes_has_whole_records(client: httpx.AsyncClient, query: str, changes: list[Record]) -> None:
    expected = table_of(changes)
    answer = await client.get(f"{RELEASES}{PAIRS[0]}{query}&format=csv")
    assert answer.content.count(b"\r\n") == len(expected)
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    assert rows == [["" if value is None else str(value) for value in row] for row in expected]
    assert answer.headers["catalogue-records"] == str(len(changes))
    assert answer.headers["content-disposition"] == 'attachment; filename="changes-2019-01-2020-01.csv"'


@pytest.mark.parametrize(
    ("accept", "type_"),
    [("text/csv", "text/csv; charset=utf-8; header=present"), ("application/x-ndjson", "application/x-ndjson")],
)
async def test_file_of_changes_is_chosen_by_accept_and_written_in_chunks(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, accept: str, type_: str
) -> None:
    identity = {"Accept": accept, "Accept-Encoding": "identity"}
    whole = await client.get(RELEASES + PAIRS[0], headers=identity)
    assert whole.headers["content-type"] == type_
    monkeypatch.setattr(changes_module, "_CHUNK", 10)
    packed = await client.get(RELEASES + PAIRS[0], headers=identity | {"Accept-Encoding": "zstd"})
    assert (packed.headers["content-encoding"], packed.content) == ("zstd", whole.content)


async def test_release_has_no_changes_since_itself(client: httpx.AsyncClient) -> None:
    assert await get(client, ITSELF) == await get(client, f"{ITSELF}&change=added") == NOTHING
    assert (await get(client, f"{ITSELF}&page=2", 404))["total_pages"] == 0
    assert await read_ndjson(client, ITSELF) == []


@pytest.mark.parametrize(
    ("target", "status", "named"),
    [
        ("2020-01/changes/", 422, ["since"]), ("2020-01/changes/?since=", 422, ["since"]),
        (f"{PAIRS[0]}&change=moved", 422, ["change"]), (f"{PAIRS[0]}&release=2019-01", 422, ["release"]),
        (f"{PAIRS[0]}&format=xlsx", 422, ["format"]), (f"{PAIRS[0]}&format=ndjson&page=99", 404, []),
        ("2001-01/changes/?since=2019-01", 404, []), ("2020-01/", 404, []),
    ],
)  # fmt: skip
async def test_impossible_comparison_is_explained(
    client: httpx.AsyncClient, target: str, status: int, named: list[str]
) -> None:
    answer = await client.get(RELEASES + target)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert [fault["parameter"] for fault in answer.json().get("errors", [])] == named


async def test_304_for_changes_needs_no_comparison(both: str, client: httpx.AsyncClient) -> None:
    queries = [*PAIRS, ITSELF, f"{PAIRS[0]}&change=added", f"{PAIRS[0]}&estado_id=1"]
    targets = [f"{RELEASES}{query}&format={name}" for query in queries for name in ("json", "api", "ndjson", "csv")]
    tags = {target: (await client.get(target)).headers["etag"] for target in targets}
    assert len({*tags.values()}) == len(targets)
    async with running_app(both, wants_names=False) as app, client_of(app) as fresh:
        with recorded_statements(app) as statements:
            again = [await fresh.get(target, headers={"If-None-Match": tag}) for target, tag in tags.items()]
        assert ({answer.status_code for answer in again}, statements) == ({304}, [])


async def test_comparison_whose_records_are_lost_is_503(server: str, template: str) -> None:
    with new_database(server, template) as url:
        async with running_app(url, in_background=False) as app, client_of(app) as client:
            await get(client, PAIRS[0])
            execute(url, f"DELETE FROM localities WHERE id = {int(OLD[0].cvegeo)}")  # noqa: S608  # our own key
            for query in ("&change=renamed", "&format=ndjson", "&format=csv"):
                assert (await get(client, PAIRS[0] + query, 503))["type"] == "/problems#database-unavailable"


# -- Changes that an import has stored


async def stored_and_compared(app: FastAPI, new: str, old: str) -> list[Any]:
    """Return the changes that are stored, if any, and those that a comparison finds."""
    services: Services = app.state.services
    pair = (await services.releases.named(old), await services.releases.named(new))
    return [await read(services.database, *pair) for read in (get_stored_changes, find_changes)]


async def test_stored_changes_are_read_once_and_others_compared_once(both: str) -> None:
    async with running_app(both) as app, client_of(app) as client:
        await client.get(RELEASES)  # the releases are known now
        for target, purposes in (
            (PAIRS[0], ["FROM comparisons", "lpad"]),
            (f"{PAIRS[0]}&page=2&page_size=5", ["lpad"]),
            (PAIRS[1], ["FROM comparisons", "FULL JOIN", "lpad"]),
            (f"{PAIRS[1]}&change=added", ["lpad"]),
        ):
            with recorded_statements(app) as statements:
                await get(client, target)
            assert len(statements) == len(purposes)
            assert all(purpose in statement for purpose, statement in zip(purposes, statements, strict=True)), target


async def test_stored_changes_are_those_that_a_comparison_finds(server: str, template: str, tmp_path: Path) -> None:
    with new_database(server, template) as url:
        same = [*NEW[1:], NEW[0]]
        await import_into(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", same))
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            stored, compared = await stored_and_compared(app, "2020-01", "2019-01")
            assert stored == compared
            assert len(stored) == 2 * len(CHANGES)
            assert (await stored_and_compared(app, "2019-01", "2020-01"))[0] is None
            assert await get(client, "2021-01/changes/?since=2020-01") == NOTHING
            assert [list(changes) for changes in await stored_and_compared(app, "2021-01", "2020-01")] == [[], []]


async def test_changes_of_releases_from_before_an_upgrade_are_found_by_comparing(upgraded: str) -> None:
    async with running_app(upgraded) as app, client_of(app) as client:
        assert (await stored_and_compared(app, "2020-01", "2019-01"))[0] is None
        assert await every_record(client, f"{PAIRS[0]}&page_size=1000") == CHANGES
        assert await every_record(client, f"{PAIRS[1]}&page_size=1000") == changes_of(NEW, OLD)
        assert await shown_on_page(client) == {"2019-01": {}, "2020-01": counted(OLD, NEW)}


# -- Comparisons and sorts that take longer than a request


async def test_slow_comparison_and_sort_continue_after_their_requests_and_are_cached(upgraded: str) -> None:
    """Later requests get their results, and meanwhile other requests have the only connection."""
    slow = {RELEASES + PAIRS[0]: "comparison-running", f"{LOCALIDADES}?sort=nombre": "database-unavailable"}
    async with running_app(upgraded, pool_size=1, database_timeout=1) as app, client_of(app) as client:
        async with connected(upgraded) as other, other.transaction():
            await other.execute("LOCK TABLE localities_r1, localities_r2 IN ACCESS EXCLUSIVE MODE")
            waited = []
            for _ in range(2):
                for answer in await asyncio.gather(*(client.get(target) for target in [*slow] * 2)):
                    problem = f"/problems#{slow[answer.request.url.raw_path.decode()]}"
                    assert (answer.status_code, answer.json()["type"]) == (503, problem)
                    assert int(answer.headers["retry-after"]) > 0
                waited.append(await eventually_async(partial(other.fetchval, WHO_WAIT)))
            assert len(waited[0]) == 2
            assert waited == [waited[0]] * 2, "they go on"
            assert (await client.get("/api/census/estados/")).status_code == 200
        for target in slow:
            await await_status(client, target)
        assert await every_record(client, f"{PAIRS[0]}&page_size=1000") == CHANGES


async def test_comparison_with_a_release_being_retired_is_never_wrong(server: str, template: str) -> None:
    """Without its rows every locality would look added."""
    with new_database(server, template) as url:
        async with running_app(url, release_poll=60) as app, client_of(app) as client:
            await get(client, "")
            await run_sql(url, "UPDATE releases SET retired_at = now() WHERE id = 1")
            await run_sql(url, "ALTER TABLE localities DETACH PARTITION localities_r1")
            for pair in PAIRS:  # one is stored
                await get(client, pair, 404)
            await get(client, ITSELF)
