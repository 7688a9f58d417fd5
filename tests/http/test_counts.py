"""Counts of localities, compared with those of the file in plain Python."""

import csv
import io
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlencode, urljoin

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.http.filtered import FILTERS, PLACES, choose, is_chosen
from tests.support.application import database_with, recorded_statements, running_app
from tests.support.pages import Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

COUNTS = f"{LOCALIDADES}counts/"
GROUPS = ("municipio", "estado", "ambito", "tamano")
SIZES = {
    0: "0", 1: "1 a 249", 250: "250 a 499", 500: "500 a 999", 1000: "1,000 a 2,499", 2500: "2,500 a 4,999",
    5000: "5,000 a 9,999", 10_000: "10,000 a 14,999", 15_000: "15,000 a 29,999", 30_000: "30,000 a 49,999",
    50_000: "50,000 a 99,999", 100_000: "100,000 a 249,999", 250_000: "250,000 a 499,999",
    500_000: "500,000 a 999,999", 1_000_000: "1,000,000 y más",
}  # fmt: skip
AREAS = {place.cvegeo[:2]: place.nom_ent for place in PLACES} | {
    place.cvegeo[:5]: place.nom_mun or f"Municipio {place.cvegeo[2:5]}" for place in PLACES
}


NAMES: dict[Any, str] = {**AREAS, **SIZES, "U": "Urbana", "R": "Rural"}


@pytest.fixture(scope="module")
async def app(server: str, migrated: str) -> AsyncIterator[FastAPI]:
    with database_with(server, migrated, {"2020-01": PLACES}) as url, new_database(server, url) as own:
        async with running_app(own) as app:
            yield app


def count(by: str, filters: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the counts of the places that match, in order."""
    groups: dict[Any, list[int | None]] = defaultdict(list)
    for place in PLACES:
        if is_chosen(place, filters):
            population = None if place.poblacion == "-" else int(place.poblacion)
            size = None if population is None else max(least for least in SIZES if least <= population)
            ambito = None if place.ambito == "-" else place.ambito
            key = {"municipio": place.cvegeo[:5], "estado": place.cvegeo[:2], "ambito": ambito, "tamano": size}[by]
            groups[key].append(population)
    for key in sorted(groups, key=lambda key: (key is None, key)):
        known = [population for population in groups[key] if population is not None]
        is_area = by in {"municipio", "estado"}
        yield {
            "id": int(key) if is_area else key,
            "cvegeo": key if is_area else None,
            "nombre": NAMES.get(key),
            "localidades": len(groups[key]),
            "poblacion": sum(known) if known else None,
        }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=FILTERS, by=st.sampled_from(GROUPS))
async def test_counts_are_those_of_the_list(client: httpx.AsyncClient, filters: dict[str, str], by: str) -> None:
    if "search" in filters and "zzz" not in filters["search"]:
        assume(choose({"search": filters["search"]}))  # the oracle knows no typos
    body = (await client.get(COUNTS, params={**filters, "by": by})).json()
    assert body["results"] == list(count(by, filters))
    assert body["quantity"] == len(body["results"])


async def test_counts_take_one_statement(client: httpx.AsyncClient, app: FastAPI) -> None:
    searches: tuple[dict[str, str], ...] = ({}, {"estado_id": "1,14", "poblacion_min": "250"}, {"search": "rancho"})
    for by in GROUPS:
        for filters in searches:
            with recorded_statements(app) as statements:
                assert (await client.get(COUNTS, params={**filters, "by": by})).status_code == 200
            assert len(statements) == 1, (by, filters)


@pytest.mark.parametrize("asked", [{}, {"release": "2020-01"}, {"release": "2020-01", "search": "san"}])
async def test_counts_are_cached_as_the_list_is(client: httpx.AsyncClient, asked: dict[str, str]) -> None:
    answer, listed = [await client.get(path, params=asked) for path in (COUNTS, LOCALIDADES)]
    names = ("cache-control", "catalogue-release", "last-modified", "vary", "allow")
    assert [answer.headers[name] for name in names] == [listed.headers[name] for name in names]
    again = await client.get(COUNTS, params=asked, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_counts_as_csv(client: httpx.AsyncClient) -> None:
    answer = await client.get(COUNTS, params={"by": "ambito", "format": "csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    expected = [[str("" if value is None else value) for value in row.values()] for row in count("ambito", {})]
    assert list(csv.reader(io.StringIO(answer.text)))[1:] == expected
    assert (await client.get(COUNTS, headers={"Accept": "text/csv"})).text.startswith("id,cvegeo,nombre,localidades,")


@pytest.mark.parametrize("by", GROUPS)
async def test_page_links_each_count_to_its_localities(client: httpx.AsyncClient, by: str) -> None:
    filters = (
        {"ambito": "R", "estado_id": "1,32", "poblacion_min": "100", "altitud_max": "2500"} if by != "ambito" else {}
    )
    address = f"{COUNTS}?{urlencode({**filters, 'by': by, 'format': 'api'})}"
    page = Page.of(await client.get(address))
    [body] = page.all("tbody")
    links = [link.attributes["href"] for link in page.inside("a", of=body)]
    rows = [row for row in count(by, filters) if row["id"] is not None]
    assert len(links) == len(rows) > 1
    for link, row in zip(links, rows, strict=True):
        listed = await client.get(urljoin(f"http://service{address}", link), headers={"Accept": "application/json"})
        assert listed.json()["quantity"] == row["localidades"], link


@pytest.mark.parametrize("by", ["", "localidad", "Estado"])
async def test_unknown_group_is_refused(client: httpx.AsyncClient, by: str) -> None:
    answer = await client.get(COUNTS, params={"by": by})
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["parameter"]) == (422, "by")
    assert error["message"].endswith("This parameter takes: municipio, estado, ambito, tamano.")
