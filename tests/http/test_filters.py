"""The filters of the list, compared with an oracle in plain Python.

`tests/names/test_find.py` has searches by other names, keys and labels, and with typos.
"""

import asyncio
import runpy
from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo
from sqlalchemy import select
from sqlalchemy.dialects import postgresql

from localidades_api.api import Services
from localidades_api.caches.positions import PositionCache
from localidades_api.caches.results import ArrayCache
from localidades_api.catalogue.filters import ColumnFilters, LocalityFilters
from localidades_api.database.models import localities
from localidades_api.database.queries import conditions as conditions_module
from localidades_api.database.queries.conditions import conditions, filtered_by, values
from tests.http.filtered import EVERY_FILTER, FILTERS, PLACES, Filters, choose
from tests.support.application import database_with, recorded_statements, running_app, walk
from tests.support.pages import Page
from tests.support.postgres import execute, new_database
from tests.support.wire import LOCALIDADES


def address(filters: Filters, path: str = LOCALIDADES, **parameters: object) -> str:
    return f"{path}?{urlencode({**filters, **parameters})}"


@pytest.fixture(scope="module")
def varied_database(server: str, migrated: str) -> Iterator[str]:
    """Yield a template database with the varied places."""
    with database_with(server, migrated, {"2020-01": PLACES}) as url:
        yield url


@pytest.fixture(scope="module")
async def app(server: str, varied_database: str) -> AsyncIterator[FastAPI]:
    with new_database(server, varied_database) as url:
        async with running_app(url) as app:
            yield app


@pytest.mark.parametrize(
    "filters",
    [
        {"municipio_id": "1001"}, {"municipio_id": "32999"}, {"estado_id": "32"}, {"estado_id": "2"},
        {"municipio_id": "32001,1001,01001,32999"}, {"estado_id": "32,09"}, {"estado_id": "32,9", "search": "jose"},
        {"poblacion_min": "2500", "poblacion_max": "4999"}, {"altitud_max": "-1"}, {"poblacion_min": "0"},
        {"poblacion_min": "125", "poblacion_max": "125"}, {"municipio_id": "1001", "estado_id": "9,14"},
        {"clave": "0001"}, {"clave": "9999"}, {"ambito": "U"}, {"ambito": "R"},
        {"cvegeo": "10010001"}, {"cvegeo": "320580044,010010001,090020001"},
        {"bbox": "-106,19,-99,22"}, {"bbox": "-102.296111,21.880833,-102.296111,21.880833"}, {"bbox": "1,2,3,4"},
        {"search": "JOSÉ SAN"}, {"search": "riO (del"}, {"search": "colon 5"}, {"search": "zzz"},
        {"search": "san", "bbox": "-105,16,-100,20"}, *({name: value} for name, value in EVERY_FILTER.items()),
    ],
    ids=urlencode,
)  # fmt: skip
async def test_each_filter_matches_the_file(client: httpx.AsyncClient, filters: dict[str, str]) -> None:
    expected = choose(filters)
    body = (await client.get(address(filters, page_size=1000))).json()
    assert body == {"quantity": len(expected), "total_pages": -(-len(expected) // 1000), "results": expected[:1000]}


async def test_up_to_500_keys_are_accepted(client: httpx.AsyncClient) -> None:
    keys = [place.cvegeo for place in PLACES[:501]]
    for written in (keys, [key.lstrip("0") for key in keys]):
        body = (await client.get(address({"cvegeo": ",".join(written[:500])}, page_size=1000))).json()
        assert (body["quantity"], body["results"]) == (500, choose({"cvegeo": ",".join(keys[:500])}))
        refused = await client.get(address({"cvegeo": ",".join(written)}))
        assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "cvegeo")


def test_filter_without_a_condition_fails_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LocalityFilters.model_fields, "altura", FieldInfo(annotation=int))
    with pytest.raises(KeyError, match="altura"):
        runpy.run_path(conditions_module.__file__)


BAD = {
    "cvegeo": ("", "010010001,", "1001", "0100100011", "010010001, 010010002", "+10010001", "٠١٠٠١٠٠٠١", "010010001\n"),
    "municipio_id": ("", "1000", "33000", "+1001", "9" * 30, "1001,", "1001, 1002", ",".join(["1001"] * 101)),
    "estado_id": ("0", "33", "Jalisco", "14,33", "1,\n2", ",".join(["1"] * 101)),
    "poblacion_min": ("-1", "1e9", "2,500", "2.5", "1000000000", "٢"),
    "poblacion_max": ("-0", "1_000", ""),
    "altitud_min": ("-1000", "+5", "--5"),
    "altitud_max": ("10000",),
    "clave": ("1", "00001", "000x", "0001\n", "٠٠٠١", "0001,0002"),
    "ambito": ("", "u", "-"),
    "search": ("", "x" * 101),
    "bbox": (
        "", "1,2,3", "1,2,3,4,5", "1, 2,3,4", "3,2,1,4", "1,4,3,2", "-181,2,3,4", "1,-91,3,4", "1,2,181,4", "1,2,3,91",
        "nan,2,3,4", "1,2,3,4\n", f"1.{'0' * 26},2,3,4", "1,2,3,4.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("parameter", BAD)
async def test_bad_filter_is_refused_by_name(client: httpx.AsyncClient, parameter: str) -> None:
    for value in BAD[parameter]:
        answer = await client.get(address({parameter: value}))
        assert answer.status_code == 422, value
        assert [fault["parameter"] for fault in answer.json()["errors"]] == [parameter]


async def test_bounds_in_the_wrong_order_are_refused(client: httpx.AsyncClient) -> None:
    for name in ("poblacion", "altitud"):
        answer = await client.get(address({f"{name}_min": "101", f"{name}_max": "100"}))
        [error] = answer.json()["errors"]
        refusal = {"parameter": f"{name}_max", "message": "The upper bound is below the lower one."}
        assert (answer.status_code, error) == (422, refusal)


async def test_links_keep_filters_size_and_release(client: httpx.AsyncClient) -> None:
    """Each key once, in order and with its zeros; each number without those before it."""
    asked = {
        "cvegeo": "010010003,10010002,010010002", "municipio_id": "32001,01001,1001", "estado_id": "14,09,1",
        "poblacion_max": "007", "altitud_min": "-0",
    }  # fmt: skip
    written = {
        "cvegeo": "010010002,010010003", "municipio_id": "1001,32001", "estado_id": "1,9,14", "poblacion_max": "7",
        "altitud_min": "0",
    }  # fmt: skip
    answer = await client.get(address(asked, page_size=20))
    expected = {**written, "release": "2020-01", "format": "json", "page_size": "20", "page": "1"}
    assert answer.links.keys() == {"first", "last"}
    for relation in answer.links:
        link = urlsplit(answer.links[relation]["url"])
        assert (link.path, dict(parse_qsl(link.query, strict_parsing=True))) == (LOCALIDADES, expected)


_MOST_PAGES = 10  # limits a walk


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=FILTERS, page_size=st.integers(1, 1000) | st.integers(1, 20))
async def test_walking_a_filtered_list_yields_each_match_once_in_order(
    client: httpx.AsyncClient, filters: dict[str, str], page_size: int
) -> None:
    if "search" in filters and "zzz" not in filters["search"]:
        assume(choose({"search": filters["search"]}))  # the oracle knows no typos
    expected = choose(filters)
    page_size = max(page_size, len(expected) // _MOST_PAGES)
    walked, sizes = [], []
    async for answer in walk(client, address(filters, page_size=page_size)):
        body = answer.json()
        assert body["quantity"] == len(expected)
        assert body["total_pages"] == -(-len(expected) // page_size)
        walked += body["results"]
        sizes.append(len(body["results"]))
    assert walked == expected
    assert set(sizes[:-1]) <= {page_size}


async def test_form_of_a_page_keeps_every_filter(client: httpx.AsyncClient) -> None:
    assert [*EVERY_FILTER] == [*LocalityFilters.model_fields]
    asked = EVERY_FILTER | {"page_size": "7", "sort": "nombre", "release": "2020-01", "lang": "es"}
    page = Page.of(await client.get(LOCALIDADES, params=asked, headers={"Accept": "text/html"}))
    assert page.fields(page.of_class("form", "filters")) == asked


@pytest.mark.parametrize("areas", [{"estado_id": "1,14"}, {"municipio_id": "1001,14001"}], ids=urlencode)
async def test_several_areas_are_one_choice_and_not_on_the_map(
    client: httpx.AsyncClient, areas: dict[str, str]
) -> None:
    page = Page.of(await client.get(LOCALIDADES, params=areas, headers={"Accept": "text/html"}))
    form = page.of_class("form", "filters")
    assert {name: value for name, value in page.fields(form).items() if value} == areas
    [chosen] = [
        option.text for option in page.inside("option", of=form) if option.attributes["value"] in areas.values()
    ]
    assert chosen in {"Aguascalientes, Jalisco", "Municipio 001, Municipio 001"}
    assert not any(
        "estado_id" in link.attributes["href"] for link in page.all("a") if "/map" in link.attributes["href"]
    )


async def test_ogc_features_have_the_filters_of_the_list(client: httpx.AsyncClient) -> None:
    for name in ColumnFilters.model_fields:
        asked = {name: EVERY_FILTER[name]}
        body = (await client.get("/ogc/collections/localidades/items", params={**asked, "limit": "1"})).json()
        assert 0 < body["numberMatched"] == len(choose(asked)) < len(PLACES)


async def test_bounding_boxes_do_not_evict_other_filters(app: FastAPI) -> None:
    services: Services = app.state.services
    release, rural = await services.releases.current(), LocalityFilters(ambito="R")
    slots = asyncio.Semaphore(1)
    arrays, boxes = ArrayCache(slots, 5, 20_000), ArrayCache(slots, 5, 5_000)
    cache = PositionCache(services.repository, services.repository, arrays, boxes)
    await cache.get(release, rural)
    for west in range(100):
        await cache.get(release, LocalityFilters(bbox=f"{-118 + west / 100},14,-86,33"))
    with recorded_statements(app) as statements:
        await cache.get(release, rural)
    assert statements == []


def test_bounding_box_uses_the_spatial_index(varied_database: str) -> None:
    filters = LocalityFilters(bbox="-103,21,-102.9,21.1")
    chosen = conditions(filtered_by(filters))
    statement = select(localities.c.position).where(localities.c.release_id == 1, *chosen).params(values(filters))
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    written = str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
    # A sequential scan is cheaper for a table this small.
    address = f"{varied_database}{'&' if '?' in varied_database else '?'}enable_seqscan=off"
    plan = execute(address, f"EXPLAIN {written}")[0]
    assert any("point_idx" in line for (line,) in plan), plan
