"""The list of releases and the changes between two of them, which keep a copy up to date."""

import asyncio
import csv
import hashlib
import io
import json
import operator
import re
import tempfile
import zipfile
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest
from alembic import command
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.utils import get_column_letter
from pydantic_core import from_json

from localidades_api.api import Services
from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.database.queries.changes import find_changes, get_stored_changes
from localidades_api.downloads import changes as changes_module
from localidades_api.downloads.changes import write_changes
from localidades_api.errors import DatabaseUnavailableError, NotAcceptableError
from tests.support.application import client_of, import_into, recorded_statements, running_app, walk
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.database import SOMEBODY_WAITS, WHO_WAIT, connected
from tests.support.pages import Page
from tests.support.postgres import alembic_config, execute, locked, new_database, run_sql
from tests.support.records import Record, record_of, row_of
from tests.support.waiting import eventually_async, in_thread

RELEASES = "/api/census/releases/"
KINDS = ("added", "removed", "renamed", "relocated", "updated")
FIGURES = tuple(name for name in ATTRIBUTES if name not in POINT)
COLUMNS = [
    "id", "municipio_id", "clave", "nombre", "latitud", "longitud", *FIGURES, "cvegeo"]  # fmt: skip

OLD = many(132)
NEW = [
    *(replace(place, nombre=f"{place.nombre} nuevo") for place in OLD[:3]),
    *(replace(place, latitud="19.5") for place in OLD[3:6]),
    *(replace(place, longitud="-") for place in OLD[6:8]),
    *(replace(place, poblacion="77") for place in OLD[8:11]),
    replace(OLD[11], nombre="<b>Otro</b>", latitud="-", longitud="-", altitud="3", carta="X", ambito="U"),
    *OLD[17:],
    *(Place(f"31001{number:04d}", f"Nueva {number}", nom_ent="Yucatán") for number in range(1, 61)),
]
AREAS = {row["id"]: (row["municipio"], row["estado"]) for row in map(row_of, OLD + NEW)}
SOURCES = {"2019-01": OLD, "2020-01": NEW}


def changes_of(old: list[Place], new: list[Place]) -> list[Record]:
    """Return the expected changes, by comparing all columns of all records."""
    before = {record["id"]: record for record in map(record_of, old)}
    after = {record["id"]: record for record in map(record_of, new)}
    found = []
    for id_ in before.keys() | after.keys():
        one, other = before.get(id_), after.get(id_)
        if one is None or other is None:
            kinds = ["added" if one is None else "removed"]
        else:
            columns = {"renamed": ("nombre",), "relocated": ("latitud", "longitud"), "updated": FIGURES}
            kinds = [kind for kind, names in columns.items() if any(one[name] != other[name] for name in names)]
        found += [{"change": kind, "id": id_, "before": one, "after": other} for kind in kinds]
    return sorted(found, key=lambda change: (KINDS.index(change["change"]), change["id"]))


@pytest.fixture(scope="module")
async def template(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """Yield a template database with both releases."""
    folder = tmp_path_factory.mktemp("changes")
    with new_database(server, migrated) as url:
        for name, places in SOURCES.items():
            await import_into(url, write_catalogue(folder / f"catun_localidad_{name}.csv", places))
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
async def client(both: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service on it."""
    async with running_app(both) as app, client_of(app) as client:
        yield client


async def get(client: httpx.AsyncClient, target: str, status: int = 200) -> Any:  # noqa: ANN401  # JSON
    answer = await client.get(RELEASES + target)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_html_page_says_what_changed_about_each_place(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{RELEASES}2020-01/changes/?since=2019-01&format=api&page_size=100"))

    def point(record: Record) -> str:
        known = record["latitud"] is not None and record["longitud"] is not None
        return f"{record['latitud']}, {record['longitud']}" if known else "no data"

    def figure(value: object) -> str:
        return "no data" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    def change_of(kind: str, before: Record, after: Record) -> str:
        if kind == "updated":
            changed = (name for name in FIGURES if before[name] != after[name])
            return "".join(f"{name} {figure(before[name])} → {figure(after[name])}" for name in changed)
        shown = point if kind == "relocated" else operator.itemgetter("nombre")
        return f"{shown(before)} → {shown(after)}"

    expected: list[list[str]] = []
    kinds: list[str] = []
    for change in changes_of(OLD, NEW):
        kind, before, after = change["change"], change["before"], change["after"]
        if kind.capitalize() not in kinds:
            kinds.append(kind.capitalize())
        said = change_of(kind, before, after) if kind in {"renamed", "relocated", "updated"} else ""
        present = after or before
        expected.append([present["nombre"], ", ".join(AREAS[change["id"]]), said, present["cvegeo"]])
    assert [[cell.strip() for cell in row] for row in page.rows()] == expected
    assert "poblacion no data → 77" in [row[2] for row in page.rows()]
    assert [one.text for one in page.elements if one.attributes.get("scope") == "rowgroup"] == kinds
    marked = [(one.tag, one.text) for one in page.elements if one.tag in {"del", "ins"}]
    assert marked[:3] == [("ins", "nuevo")] * 3  # three places got a word
    assert ("del", OLD[11].nombre) in marked
    assert ("ins", "<b>Otro</b>") in marked


async def is_answered(client: httpx.AsyncClient, target: str) -> bool:
    return (await client.get(RELEASES + target)).status_code == 200


async def every_record(client: httpx.AsyncClient, target: str) -> list[Record]:
    """Return every record of a list by following its links."""
    pages = [answer.json() async for answer in walk(client, RELEASES + target)]
    sizes = [len(page["results"]) for page in pages]
    assert sum(sizes) == pages[-1]["quantity"]
    assert len(sizes) == max(pages[-1]["total_pages"], 1)
    assert all(size == sizes[0] for size in sizes[:-1])
    return [record for page in pages for record in page["results"]]


async def read_ndjson(client: httpx.AsyncClient, target: str) -> list[Record]:
    answer = await client.get(target)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [from_json(line) for line in answer.content.split(b"\n")[:-1]]
    assert answer.headers["catalogue-records"] == str(len(lines))
    return lines


# -- The list of releases


async def test_releases_are_listed_oldest_first_with_counts_and_digest(
    client: httpx.AsyncClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = await get(client, "")
    assert list(content) == ["quantity", "total_pages", "results"]
    assert (content["quantity"], content["total_pages"]) == (2, 1)
    for one, (name, places) in zip(content["results"], SOURCES.items(), strict=True):
        file = write_catalogue(tmp_path_factory.mktemp("again") / f"catun_localidad_{name}.csv", places)
        assert one == {
            "release": name,
            "current": name == "2020-01",
            "published_at": one["published_at"],
            "source": file.name,
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "totals": {
                "estados": len({place.cvegeo[:2] for place in places}),
                "municipios": len({place.cvegeo[:5] for place in places}),
                "localidades": len(places),
            },
        }
    first, second = (one["published_at"] for one in content["results"])
    assert first < second


async def test_releases_have_an_etag_that_changes_with_each_publication(
    server: str, seeded: str, tmp_path: Path
) -> None:
    with new_database(server, seeded) as url:
        async with running_app(url) as app, client_of(app) as client:
            first = await client.get(RELEASES)
            assert (first.headers["vary"], first.headers["allow"]) == ("Accept", "GET")
            held = {"If-None-Match": first.headers["etag"]}
            assert (await client.get(RELEASES, headers=held)).status_code == 304
            older = write_catalogue(tmp_path / "catun_localidad_2018-01.csv", [*OLD[:1], *OLD[3:]])
            await import_into(url, older)
            answer = await client.get(f"{RELEASES}2018-01/changes/?since=2018-01")  # which makes the release known
            assert answer.status_code == 200
            again = await client.get(RELEASES, headers=held)
            assert again.status_code == 200
            assert [one["release"] for one in again.json()["results"]] == ["2020-01", "2018-01"]
            assert sum(one["current"] for one in again.json()["results"]) == 1


async def test_releases_before_the_first_publication_are_503(database: str) -> None:
    async with running_app(database) as app, client_of(app) as client:
        assert (await client.get(RELEASES)).status_code == 503
        assert (await client.get(f"{RELEASES}2020-01/changes/?since=2019-01")).status_code == 404


# -- The page of the releases


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
    async with running_app(both) as app, client_of(app) as client:
        with locked(both, "localities"):
            assert await shown_on_page(client) == {"2019-01": {}, "2020-01": counted(OLD, NEW)}


async def test_releases_page_works_without_counts(server: str, template: str) -> None:
    with new_database(server, template) as url:
        async with running_app(url) as app, client_of(app) as client:
            first = await client.get(f"{RELEASES}?format=api")
            await run_sql(url, "DELETE FROM comparisons")

            async def shows_no_counts() -> bool:
                return not (await shown_on_page(client))["2020-01"]

            await eventually_async(shows_no_counts)
            again = await client.get(f"{RELEASES}?format=api", headers={"If-None-Match": first.headers["etag"]})
            assert again.status_code == 200


async def test_import_after_a_rollback_is_compared_with_the_current_and_the_previous_release(
    server: str, template: str, tmp_path: Path
) -> None:
    """Readers notice the changes since the current release; the page is a history that includes the bad one."""
    places = [*NEW, Place("300020001", "Una más", nom_ent="Veracruz")]
    with new_database(server, template) as url:
        await run_sql(url, "UPDATE current_release SET release_id = 1")
        report = await import_into(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
        assert (report.comparison.previous, report.comparison.added) == ("2019-01", counted(OLD, places)["added"])
        async with running_app(url) as app, client_of(app) as client:
            shown = await shown_on_page(client)
    assert shown == {"2019-01": {}, "2020-01": counted(OLD, NEW), "2021-01": {"added": 1}}


# -- Changes


@pytest.mark.parametrize("size", ["", "&page_size=7"])
async def test_following_next_links_yields_every_change(client: httpx.AsyncClient, size: str) -> None:
    expected = changes_of(OLD, NEW)
    assert {change["change"] for change in expected} == set(KINDS)
    walked = await every_record(client, f"2020-01/changes/?since=2019-01{size}")
    assert walked == expected
    for change in walked:
        assert list(change) == ["change", "id", "before", "after"]
        for side in ("before", "after"):
            assert change[side] is None or list(change[side]) == COLUMNS
    page = f"{RELEASES}2020-01/changes/?since=2019-01&format=ndjson&page=2&page_size=7"
    assert await read_ndjson(client, page) == expected[7:14]


async def test_changes_can_be_filtered_by_kind_and_estado(client: httpx.AsyncClient) -> None:
    every = changes_of(OLD, NEW)
    choices = [(kind, None) for kind in KINDS] + [(None, 31), (None, 1), (None, 32), ("added", 31), ("updated", 1)]
    for kind, estado in choices:
        expected = [
            change for change in every if kind in {None, change["change"]} and estado in {None, change["id"] // 10**7}
        ]
        assert bool(expected) is (estado != 32), (kind, estado)
        target = "2020-01/changes/?since=2019-01" + (f"&change={kind}" if kind else "")
        target += f"&estado_id={estado}" if estado else ""
        assert await every_record(client, f"{target}&page_size=7") == expected
        assert await read_ndjson(client, f"{RELEASES}{target}&format=ndjson") == expected


def table_of(changes: list[Record]) -> list[list[object]]:
    """Return the expected table: a row for each change, and values in the columns that differ."""
    names = ("nombre", *ATTRIBUTES)
    rows: list[list[object]] = [["change", "cvegeo", "nombre", "municipio", "estado"]]
    rows[0] += [f"{when}_{name}" for name in names for when in ("before", "after")]
    for change in changes:
        before, after = change["before"] or dict.fromkeys(names), change["after"] or dict.fromkeys(names)
        cvegeo = f"{change['id']:09d}"
        nombre = after["nombre"] or before["nombre"]
        row: list[object] = [change["change"], cvegeo, nombre, *AREAS[change["id"]]]
        for name in names:
            row += [before[name], after[name]] if before[name] != after[name] else [None, None]
        rows.append(row)
    return rows


@pytest.mark.parametrize("query", ["", "&page=2&page_size=7", "&estado_id=32"])
async def test_table_of_changes_has_the_values_that_differ(client: httpx.AsyncClient, query: str) -> None:
    target = f"{RELEASES}2020-01/changes/?since=2019-01{query}"
    expected = table_of(await read_ndjson(client, f"{target}&format=ndjson"))
    written = await client.get(f"{target}&format=csv")
    assert written.headers["content-disposition"] == 'attachment; filename="changes-2019-01-2020-01.csv"'
    assert written.content.count(b"\r\n") == len(expected)
    rows = list(csv.reader(io.StringIO(written.text, newline="")))
    assert rows == [["" if value is None else str(value) for value in row] for row in expected]
    workbook = await client.get(f"{target}&format=xlsx")
    assert workbook.headers["content-disposition"] == 'attachment; filename="changes-2019-01-2020-01.xlsx"'
    sheet = openpyxl.load_workbook(io.BytesIO(workbook.content))["Cambios"]
    width = len(expected[0])
    assert [[cell.value for cell in row[:width]] for row in sheet.iter_rows(max_col=width)] == expected
    assert sheet.column_dimensions["A"].width == pytest.approx(18, abs=1)
    with zipfile.ZipFile(io.BytesIO(workbook.content)) as parts:
        assert b'<ignoredError sqref="B1:B1048576" numberStoredAsText="1"/>' in parts.read("xl/worksheets/sheet1.xml")
    assert sheet.auto_filter.ref == f"A1:{get_column_letter(width)}{len(expected)}"
    for answer in (written, workbook):
        assert answer.headers["catalogue-records"] == str(len(expected) - 1)


async def test_workbook_that_breaks_off_or_has_no_room_leaves_no_file(
    both: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with running_app(both, in_background=False) as app:
        services: Services = app.state.services
        old, new = [await services.releases.named(name) for name in ("2019-01", "2020-01")]
        lost = array("i", [0, 320580001])  # added, and in neither release
        with pytest.raises(DatabaseUnavailableError, match="has lost the record 320580001"):
            await anext(write_changes(services.database, old, new, lost, "xlsx"))
        too_many = array("i", bytes(2**20 * 2 * lost.itemsize))
        with pytest.raises(NotAcceptableError, match="room for 1,048,575 changes, and these are 1,048,576"):
            write_changes(services.database, old, new, too_many, "xlsx")
        write_changes(services.database, old, new, too_many[2:], "xlsx")
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


@pytest.mark.parametrize(
    ("accept", "type_"),
    [("text/csv", "text/csv; charset=utf-8; header=present"), ("application/x-ndjson", "application/x-ndjson")],
)
async def test_file_of_changes_is_chosen_by_accept_and_resumed_anywhere(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, accept: str, type_: str
) -> None:
    target = f"{RELEASES}2020-01/changes/?since=2019-01"
    identity = {"Accept": accept, "Accept-Encoding": "identity"}
    whole = await client.get(target, headers=identity)
    assert (whole.headers["content-type"], whole.headers["accept-ranges"]) == (type_, "bytes")
    monkeypatch.setattr(changes_module, "_CHUNK", 10)
    for first in range(0, len(whole.content), 997):
        part = {"Range": f"bytes={first}-", "If-Range": whole.headers["etag"]}
        # Another query, so that its layout is not known from a chunk of another size.
        rest = await client.get(f"{target}&lang=en", headers={**identity, **part})
        assert (rest.status_code, rest.content) == (206, whole.content[first:])


async def test_release_has_no_changes_since_itself(client: httpx.AsyncClient) -> None:
    name = "2019-01"
    empty = {"quantity": 0, "total_pages": 0, "results": []}
    assert await get(client, f"{name}/changes/?since={name}") == empty
    assert await get(client, f"{name}/changes/?since={name}&change=added") == empty
    assert (await get(client, f"{name}/changes/?since={name}&page=2", 404))["total_pages"] == 0
    assert await read_ndjson(client, f"{RELEASES}{name}/changes/?since={name}&format=ndjson") == []


async def test_impossible_comparison_is_explained(client: httpx.AsyncClient) -> None:
    for target, status, named in (
        ("2020-01/changes/", 422, "since"), ("2020-01/changes/?since=", 422, "since"),
        ("2020-01/changes/?since=2019-01&change=moved", 422, "change"),
        ("2020-01/changes/?since=2019-01&release=2019-01", 422, "release"),
        ("2020-01/changes/?since=2001-01", 404, None), ("2001-01/changes/?since=2019-01", 404, None),
        ("2020-01/changes/?since=2019-01&format=gpkg", 422, "format"), ("2020-01/", 404, None),
        ("2020-01/changes/?since=2019-01&format=ndjson&page=99", 404, None),
    ):  # fmt: skip
        answer = await client.get(RELEASES + target)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), target
        assert [fault["parameter"] for fault in answer.json().get("errors", [])] == ([named] if named else []), target


@pytest.mark.parametrize(
    ("format_", "accept"),
    [("json", "*/*"), ("api", "text/html"), ("ndjson", "application/x-ndjson"), ("csv", "text/csv")],
)
async def test_changes_have_an_etag_and_304(client: httpx.AsyncClient, format_: str, accept: str) -> None:
    tags = set()
    queries = ["since=2019-01", "since=2020-01", "since=2019-01&change=added", "since=2019-01&estado_id=1"]
    for query in (*(f"2020-01/changes/?{query}" for query in queries), "2019-01/changes/?since=2020-01"):
        by_format = await client.get(f"{RELEASES}{query}&format={format_}", headers={"Accept": "image/png"})
        first = await client.get(RELEASES + query, headers={"Accept": accept})
        assert first.status_code == by_format.status_code == 200
        assert first.headers["etag"] == by_format.headers["etag"]
        assert first.headers["content-type"] == by_format.headers["content-type"]
        also = {"json": "", "api": ", Accept-Language", "ndjson": ", Accept-Encoding", "csv": ", Accept-Encoding"}[
            format_
        ]
        assert first.headers["vary"] == f"Accept{also}"
        assert first.headers["catalogue-release"] == query[:7]
        assert first.headers["etag"].startswith("W/") == (format_ in {"ndjson", "csv"})
        again = await client.get(RELEASES + query, headers={"Accept": accept, "If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for name in ("etag", "vary", "allow", "cache-control", "last-modified", "catalogue-release"):
            assert again.headers[name] == first.headers[name]
        tags.add(first.headers["etag"])
    assert len(tags) == 5


async def test_304_for_changes_needs_no_comparison(both: str, client: httpx.AsyncClient) -> None:
    async with running_app(both, wants_names=False) as app, client_of(app) as fresh:
        for query in ("", "&page_size=2", "&change=added", "&format=api", "&format=ndjson", "&page=1&format=ndjson"):
            target = f"{RELEASES}2020-01/changes/?since=2019-01{query}"
            first = await client.get(target)
            assert first.status_code == 200
            with recorded_statements(app) as statements:
                again = await fresh.get(target, headers={"If-None-Match": first.headers["etag"]})
            assert (again.status_code, again.content, statements) == (304, b"", [])


# -- Changes that an import has stored


PAIRS = [f"{new}/changes/?since={old}" for new, old in (("2020-01", "2019-01"), ("2019-01", "2020-01"))]
ITSELF = "2020-01/changes/?since=2020-01"


async def stored_and_compared(app: FastAPI, new: str, old: str) -> list[Any]:
    """Return the changes that are stored, if any, and those that a comparison finds."""
    services: Services = app.state.services
    pair = (await services.releases.named(old), await services.releases.named(new))
    return [await read(services.database, *pair) for read in (get_stored_changes, find_changes)]


def purpose_of(statement: str) -> str:
    parts = {"FROM comparisons": "stored", "FULL JOIN": "compare", "lpad": "records"}
    [purpose] = [purpose for part, purpose in parts.items() if part in statement]
    return purpose


async def test_stored_changes_are_read_once_and_others_compared_once(both: str) -> None:
    async with running_app(both) as app, client_of(app) as client:
        await client.get(RELEASES)  # the releases are known now
        for target, purposes in (
            (PAIRS[0], ["stored", "records"]),
            (f"{PAIRS[0]}&page=2&page_size=5", ["records"]),
            (f"{PAIRS[0]}&change=added", ["records"]),
            (PAIRS[1], ["stored", "compare", "records"]),
            (f"{PAIRS[1]}&page=2&page_size=5", ["records"]),
            (ITSELF, ["stored", "compare"]),
            (f"{ITSELF}&change=added", []),
        ):
            with recorded_statements(app) as statements:
                assert (await client.get(RELEASES + target)).status_code == 200
            assert list(map(purpose_of, statements)) == purposes, target


async def test_concurrent_requests_read_the_stored_changes_once(both: str) -> None:
    async with running_app(both) as app, client_of(app) as client:
        await client.get(RELEASES)
        with recorded_statements(app) as statements:
            answers = await asyncio.gather(*(client.get(RELEASES + PAIRS[0]) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(map(purpose_of, statements)) == ["records"] * 8 + ["stored"]


async def test_stored_changes_are_those_that_a_comparison_finds(both: str) -> None:
    async with running_app(both, wants_names=False) as app:
        stored, compared = await stored_and_compared(app, "2020-01", "2019-01")
        assert stored == compared
        assert len(stored) == 2 * len(changes_of(OLD, NEW))
        assert (await stored_and_compared(app, "2019-01", "2020-01"))[0] is None


async def test_stored_changes_need_no_slot(server: str, template: str, tmp_path: Path) -> None:
    places = [*NEW, Place("300020001", "Una más", nom_ent="Veracruz")]
    with new_database(server, template) as url:
        await import_into(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
        async with running_app(url) as app, client_of(app) as client:
            async with connected(url) as other, other.transaction():
                await other.execute("LOCK TABLE localities")
                running = [asyncio.create_task(client.get(RELEASES + target)) for target in (PAIRS[1], ITSELF)]

                async def all_slots_are_taken() -> bool:
                    return len(await other.fetchval(WHO_WAIT) or []) == len(running)

                await eventually_async(all_slots_are_taken)
                found = await get(client, "2021-01/changes/?since=2020-01&change=removed")
            assert found == {"quantity": 0, "total_pages": 0, "results": []}
            assert [answer.status_code for answer in await asyncio.gather(*running)] == [200, 200]


async def test_release_with_the_same_localities_stores_that_nothing_changed(
    server: str, template: str, tmp_path: Path
) -> None:
    with new_database(server, template) as url:
        await import_into(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", [*NEW[1:], NEW[0]]))
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            assert await get(client, "2021-01/changes/?since=2020-01") == {
                "quantity": 0, "total_pages": 0, "results": []}  # fmt: skip
            assert [list(changes) for changes in await stored_and_compared(app, "2021-01", "2020-01")] == [[], []]


async def test_changes_of_releases_from_before_an_upgrade_are_found_by_comparing(upgraded: str) -> None:
    async with running_app(upgraded) as app, client_of(app) as client:
        assert (await stored_and_compared(app, "2020-01", "2019-01"))[0] is None
        assert await every_record(client, f"{PAIRS[0]}&page_size=1000") == changes_of(OLD, NEW)
        assert await every_record(client, f"{PAIRS[1]}&page_size=1000") == changes_of(NEW, OLD)
        assert await shown_on_page(client) == {"2019-01": {}, "2020-01": counted(OLD, NEW)}


async def test_changes_are_right_after_an_earlier_version_has_retired_a_release(
    server: str, template: str, tmp_path: Path
) -> None:
    """It stores new counts, and leaves the columns that it doesn't know."""
    places = [*NEW, Place("300020001", "Una más", nom_ent="Veracruz")]
    with new_database(server, template) as url:
        await import_into(url, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
        await run_sql(url, "UPDATE releases SET retired_at = now() WHERE name = '2020-01'")
        await run_sql(
            url,
            "INSERT INTO comparisons (release_id, previous_id, added, removed, renamed, relocated, updated)"
            " VALUES (3, 1, 61, 5, 4, 6, 4) ON CONFLICT (release_id)"
            " DO UPDATE SET (previous_id, added, removed, renamed, relocated, updated) = (excluded.previous_id,"
            " excluded.added, excluded.removed, excluded.renamed, excluded.relocated, excluded.updated)",
        )
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            assert await every_record(client, "2021-01/changes/?since=2019-01") == changes_of(OLD, places)
            assert (await client.get(f"{RELEASES}2021-01/changes/?since=2020-01")).status_code == 404


# -- Comparisons that take longer than a request


def assert_comparing(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems#comparison-running")
    assert int(answer.headers["retry-after"]) > 0


async def test_slow_comparison_continues_after_its_request_and_is_cached(upgraded: str) -> None:
    """A later request gets its result, and meanwhile other requests have the only connection."""
    async with running_app(upgraded, pool_size=1, database_timeout=1.5) as app, client_of(app) as client:
        async with connected(upgraded) as other, other.transaction():
            await other.execute("LOCK TABLE localities_r1 IN ACCESS EXCLUSIVE MODE")
            waited = []
            for _ in range(2):
                for answer in await asyncio.gather(*(client.get(RELEASES + PAIRS[0]) for _ in range(3))):
                    assert_comparing(answer)
                waited += await other.fetchval(WHO_WAIT)
            assert waited == [waited[0]] * 2, "it goes on"
            assert (await client.get("/api/census/estados/")).status_code == 200
        await eventually_async(partial(is_answered, client, PAIRS[0]))
        assert await every_record(client, f"{PAIRS[0]}&page_size=1000") == changes_of(OLD, NEW)


async def test_two_comparisons_run_at_a_time_and_abandoned_ones_are_dropped(upgraded: str) -> None:
    async with running_app(upgraded, database_timeout=1.5) as app, client_of(app) as client:
        async with connected(upgraded) as other, other.transaction():
            await other.execute("LOCK TABLE localities_r1, localities_r2 IN ACCESS EXCLUSIVE MODE")
            for answer in await asyncio.gather(*(client.get(RELEASES + pair) for pair in (*PAIRS, ITSELF))):
                assert_comparing(answer)
            assert len(await other.fetchval(WHO_WAIT)) == 2
        for pair in (*PAIRS, ITSELF):
            await eventually_async(partial(is_answered, client, pair))


async def test_running_comparison_ends_with_the_service(upgraded: str) -> None:
    async with connected(upgraded) as other, other.transaction():
        await other.execute("LOCK TABLE localities_r1 IN ACCESS EXCLUSIVE MODE")
        async with running_app(upgraded, database_timeout=1) as app, client_of(app) as client:
            assert_comparing(await client.get(RELEASES + PAIRS[0]))

        async def nobody_waits() -> bool:
            return not await other.fetchval(SOMEBODY_WAITS)

        await eventually_async(nobody_waits)


async def test_comparison_with_a_release_being_retired_is_never_wrong(server: str, template: str) -> None:
    """Without its rows every locality would look added."""
    with new_database(server, template) as url:
        async with running_app(url, release_poll=60) as app, client_of(app) as client:
            assert (await client.get(RELEASES)).status_code == 200
            await run_sql(url, "UPDATE releases SET retired_at = now() WHERE id = 1")
            await run_sql(url, "ALTER TABLE localities DETACH PARTITION localities_r1")
            for pair in PAIRS:  # one is stored
                assert (await client.get(RELEASES + pair)).status_code == 404
            assert (await client.get(f"{RELEASES}2020-01/changes/?since=2020-01")).status_code == 200


# -- Following by NDJSON


def applied(records: list[Record], changes: list[Record]) -> dict[int, Record]:
    """Apply the changes to a copy."""
    copy = {record["id"]: record for record in records}
    for change in changes:
        if change["after"] is None:
            del copy[change["id"]]
        else:
            copy[change["id"]] = change["after"]
    return copy


async def own_columns(client: httpx.AsyncClient, release: str) -> list[Record]:
    rows = await read_ndjson(client, f"/api/census/localidades/download/?format=ndjson&release={release}")
    return [{name: row[name] for name in COLUMNS} for row in rows]


async def test_ndjson_is_an_attachment_with_all_changes(client: httpx.AsyncClient) -> None:
    answer = await client.get(
        f"{RELEASES}2020-01/changes/?since=2019-01",
        headers={"Accept": "application/x-ndjson", "Accept-Encoding": "zstd"},
    )
    assert [json.loads(line) for line in answer.content.splitlines()] == changes_of(OLD, NEW)
    assert answer.content.endswith(b"\n")
    assert answer.headers["content-encoding"] == "zstd"
    assert answer.headers["content-disposition"] == 'attachment; filename="changes-2019-01-2020-01.ndjson"'
    assert answer.headers["catalogue-records"] == str(len(changes_of(OLD, NEW)))


# -- Random edits


TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters='\0\n\r"', exclude_categories=["C", "Z"]), min_size=1, max_size=12
)
EDITS = st.fixed_dictionaries(
    {},
    optional={
        "nombre": TEXT,
        "latitud": st.sampled_from(["-", "0", "20.5", "21.880833"]),
        "longitud": st.sampled_from(["-", "-99", "-102.296111"]),
        "altitud": st.sampled_from(["-", "*", "1885", "-3"]),
        "ambito": st.sampled_from(["U", "R", "-"]),
        "carta": st.sampled_from(["-", "F13D19", "x"]),
        "poblacion": st.sampled_from(["-", "0", "12"]),
        "poblacion_masculina": st.sampled_from(["-", "0"]),
        "poblacion_femenina": st.sampled_from(["*", "3"]),
        "viviendas": st.sampled_from(["-", "1"]),
    },
)  # fmt: skip


@pytest.mark.tail
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.dictionaries(st.integers(0, 131), EDITS, max_size=40),
    removed=st.sets(st.integers(0, 131), max_size=12),
    added=st.sets(st.integers(1, 9997), max_size=12),
)
async def test_changes_after_random_edits_match_the_oracle(
    server: str,
    seeded: str,
    tmp_path_factory: pytest.TempPathFactory,
    edits: dict[int, dict[str, str]],
    removed: set[int],
    added: set[int],
) -> None:
    places = many(132)
    new = [replace(place, **edits.get(number, {})) for number, place in enumerate(places) if number not in removed]
    new += [Place(f"30001{number:04d}", f"Nueva {number}", nom_ent="Veracruz") for number in added]
    new.append(Place("300020001", "Siempre", nom_ent="Veracruz"))  # two releases can't come from the same file
    file = write_catalogue(tmp_path_factory.mktemp("edits") / "catun_localidad_2021-01.csv", new)
    with new_database(server, seeded) as url:
        await import_into(url, file, allow_shrink=True)  # the edits may remove a whole estado
        async with running_app(url) as app, client_of(app) as client:
            there = f"{RELEASES}2021-01/changes/?since=2020-01&format=ndjson"
            back = f"{RELEASES}2020-01/changes/?since=2021-01&format=ndjson"
            assert await read_ndjson(client, there) == changes_of(places, new)
            assert await read_ndjson(client, back) == changes_of(new, places)
            assert await every_record(client, "2021-01/changes/?since=2020-01&page_size=9") == changes_of(places, new)
            stored, compared = await stored_and_compared(app, "2021-01", "2020-01")
            assert stored == compared


# -- INEGI's catalogues


@pytest.fixture(scope="module")
async def real(server: str, migrated: str, real_catalogues: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service with two of INEGI's catalogues; a million records are kept from the collector."""
    with new_database(server, migrated) as url:
        for name in ("2012-06", "2018-09"):
            await import_into(url, real_catalogues / f"catun_localidad_{name}.zip")
        async with running_app(url) as app, client_of(app) as client:
            for new, old in (("2018-09", "2012-06"), ("2012-06", "2018-09")):
                await await_comparison(client, f"{RELEASES}{new}/changes/?since={old}")
            yield client


async def await_comparison(client: httpx.AsyncClient, target: str) -> None:
    """Wait until a comparison is cached; on a busy machine it may take longer than a request."""
    await eventually_async(partial(is_answered, client, target.removeprefix(RELEASES)))


async def test_applying_the_changes_to_the_first_real_catalogue_gives_the_second(real: httpx.AsyncClient) -> None:
    changes = await read_ndjson(real, f"{RELEASES}2018-09/changes/?since=2012-06&format=ndjson")
    keys = [(KINDS.index(change["change"]), change["id"]) for change in changes]
    assert keys == sorted(set(keys))
    copy = applied(await own_columns(real, "2012-06"), changes)
    assert copy == {record["id"]: record for record in await own_columns(real, "2018-09")}


async def test_page_beyond_the_last_is_404_although_its_entity_tag_is_known(client: httpx.AsyncClient) -> None:
    target = f"{RELEASES}2020-01/changes/?since=2019-01&page="
    first = await client.get(f"{target}1")
    held = {"If-None-Match": first.headers["etag"]}
    assert [(await client.get(f"{target}{page}", headers=held)).status_code for page in (1, 2, 99)] == [304, 304, 404]


async def test_comparison_whose_records_are_lost_is_503(database: str, tmp_path: Path) -> None:
    places = many(20)
    for name in ("2019-01", "2020-01"):
        await import_into(database, write_catalogue(tmp_path / f"{name}.csv", places))
        places = [replace(places[0], nombre="Nuevo"), *places[1:]]
    async with running_app(database, in_background=False) as app, client_of(app) as client:
        target = f"{RELEASES}2020-01/changes/?since=2019-01"
        assert (await client.get(target)).json()["quantity"] == 1
        execute(database, f"DELETE FROM localities WHERE id = {int(places[0].cvegeo)}")  # noqa: S608  # our own key
        for query in ("", "&format=ndjson"):
            answer = await client.get(target + query)
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems#database-unavailable")
