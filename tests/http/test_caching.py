"""ETag, If-None-Match, and the SQL statements of each request."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.api import Services
from localidades_api.caches.tiles import PREWARMED_ZOOM
from localidades_api.catalogue.mercator import MEXICO_BOX, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.http import caching
from localidades_api.http.caching import entity_tag, freshness_headers, is_fresh
from tests.support.application import (
    await_release,
    client_of,
    import_into,
    recorded_statements,
    running_app,
)
from tests.support.catalogue import many, write_catalogue
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
RELEASE = Release(
    id=1,
    name="2018-09",
    source="catun_localidad.zip",
    sha256="ab" * 32,
    states=32,
    municipalities=2463,
    localities=304363,
    published_at=datetime(2018, 9, 28, 10, 12, 13, 999999, tzinfo=UTC),
)
TAG = entity_tag(RELEASE, "json")


@pytest.mark.parametrize("changed", [{"name": "2018-10"}, {"sha256": "cd" * 32}])
def test_etag_differs_between_releases(changed: dict[str, str]) -> None:
    assert entity_tag(RELEASE.model_copy(update=changed), "json") != TAG


def test_etag_is_the_same_on_another_machine() -> None:
    elsewhere = RELEASE.model_copy(update={"id": 7, "published_at": RELEASE.published_at + timedelta(days=1)})
    assert entity_tag(elsewhere, "json") == TAG


def test_caching_headers_follow_the_contract() -> None:
    assert freshness_headers(RELEASE, "json") == {
        "Cache-Control": "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400",
        "Catalogue-Release": "2018-09",
        "ETag": TAG,
        "Last-Modified": "Fri, 28 Sep 2018 10:12:13 GMT",
    }


@pytest.mark.parametrize(
    "lines",
    [
        [TAG],
        [f"W/{TAG}"],
        ["*"],
        [f'"x", {TAG}'],
        [f'W/"x"\t,\tW/{TAG} , "y"'],
        [f'"a,b", {TAG}'],
        ['"x"', TAG],
        *(
            [f'{weak}{TAG[:-1]}{coding}"']
            for weak in ("", "W/")
            for coding in ("-gzip", ";gzip", "--gzip", "-br", "-zstd")
        ),
    ],
)
def test_if_none_match_with_the_etag_matches(lines: list[str]) -> None:
    assert is_fresh(lines, TAG)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ['"x"'],
        [TAG.strip('"')],
        [TAG.upper()],
        [f'"{TAG}'.replace('""', '"x')],
        ['"*"'],
        ['*, "x"'],
        [entity_tag(RELEASE, "api")],
        ["\xff\x00"],
        *([f'{TAG[:-1]}{ending}"'] for ending in ("-x", "gzip", "-gzip-gzip", "-gzipx")),
    ],
)
def test_if_none_match_without_the_etag_does_not_match(lines: list[str]) -> None:
    assert not is_fresh(lines, TAG)


@given(st.lists(st.text()))
def test_arbitrary_if_none_match_only_matches_the_etag_or_a_star(lines: list[str]) -> None:
    assert is_fresh(lines, TAG) <= (TAG.strip('"') in ", ".join(lines) or "*" in ", ".join(lines))


# -- Through the application


async def test_etag_differs_by_representation_but_not_by_page(client: httpx.AsyncClient) -> None:
    tags = {
        (target, format_): (await client.get(f"{target}format={format_}")).headers["etag"]
        for target in (f"{LOCALIDADES}?", f"{LOCALIDADES}?page=2&", f"{INDEX}?")
        for format_ in ("json", "api")
    }
    # JSON, lists as HTML, and the front page, which summarizes the release's changes.
    assert len(set(tags.values())) == 3


@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        (LOCALIDADES, 60),
        (f"{LOCALIDADES}?release=2020-01", 86400),
        (f"{LOCALIDADES}?estado_id=1&release=2020-01", 86400),
        (f"{LOCALIDADES}?release=2020-01&format=api", 60),  # its page mentions other releases
        (f"{LOCALIDADES}10010001/?release=2020-01", 86400),
        # Places are also found by their names in other releases.
        (f"{LOCALIDADES}suggest/?q=pa&release=2020-01", 60),
        (f"{LOCALIDADES}?search=pa&release=2020-01", 60),
        (f"{LOCALIDADES}download/?format=csv&search=pa&release=2020-01", 60),
        (f"{LOCALIDADES}download/?format=csv&release=2020-01", 86400),
        (f"{INDEX}releases/", 60),
        (f"{INDEX}releases/2020-01/changes/?since=2020-01", 86400),
        (f"{INDEX}releases/2020-01/changes/?since=2020-01&format=ndjson", 86400),
    ],
)
async def test_response_for_a_named_release_is_fresh_for_a_day(
    client: httpx.AsyncClient, target: str, seconds: int
) -> None:
    answer = await client.get(target)
    assert answer.status_code == 200
    assert f"max-age={seconds}," in answer.headers["cache-control"]
    unchanged = await client.get(target, headers={"If-None-Match": answer.headers["etag"]})
    assert unchanged.status_code == 304
    assert unchanged.headers["cache-control"] == answer.headers["cache-control"]


async def test_if_none_match_may_span_several_lines(app: FastAPI, client: httpx.AsyncClient) -> None:
    etag = (await client.get(LOCALIDADES)).headers["etag"]
    with recorded_statements(app) as statements:
        answer = await client.get(LOCALIDADES, headers=[("If-None-Match", '"x"'), ("If-None-Match", etag)])
    assert answer.status_code == 304
    assert not statements


async def test_unknown_page_is_404_despite_if_none_match(client: httpx.AsyncClient) -> None:
    for path in ("localidades/?", "localidades/?ambito=R&", "municipios/?", "estados/?", "releases/?"):
        for format_ in ("json", "api"):
            etag = (await client.get(f"{INDEX}{path}format={format_}")).headers["etag"]
            target = f"{INDEX}{path}format={format_}&page=99"
            assert (await client.get(target, headers={"If-None-Match": etag})).status_code == 404, target


@pytest.mark.parametrize(
    "target",
    [
        *(f"{INDEX}{path}/?format={format_}" for path in ("localidades/10010001", "municipios/1001", "estados/1")
          for format_ in ("json", "api")),
        *(f"/ogc/collections/{path}" for path in ("localidades/items/10010001", "municipios/items/1001")),
        *("/card.png", "/card.png?id=10010001", "/wscatgeo/mgee/01", LOCALIDADES, f"{LOCALIDADES}datapackage.json"),
    ],
)  # fmt: skip
async def test_whatever_exists_is_304_for_any_tag(client: httpx.AsyncClient, target: str) -> None:
    assert (await client.get(target, headers={"If-None-Match": "*"})).status_code == 304


async def test_unknown_key_of_wscatgeo_is_not_304_for_any_tag(client: httpx.AsyncClient) -> None:
    answer = await client.get("/wscatgeo/mgee/33", headers={"If-None-Match": "*"})
    assert (answer.status_code, answer.json()["result"]) == (200, "404")


async def test_if_modified_since_is_ignored(client: httpx.AsyncClient) -> None:
    header = {"If-Modified-Since": (await client.get(LOCALIDADES)).headers["last-modified"]}
    assert (await client.get(LOCALIDADES, headers=header)).status_code == 200


UNKNOWN = ("localidades/19999999", "municipios/1999", "estados/33")
OGC_UNKNOWN = ("localidades/items/19999999", "municipios/items/1999", "estados/items/33")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{LOCALIDADES}?page=4", 404),
        (f"{LOCALIDADES}?page=0", 422),
        (f"{LOCALIDADES}?release=none", 404),
        (f"{LOCALIDADES}?x=1", 422),
        (f"{INDEX}nothing/", 404),
        *((f"{INDEX}{path}/?format={format_}", 404) for path in UNKNOWN for format_ in ("json", "api")),
        *((f"/ogc/collections/{path}", 404) for path in OGC_UNKNOWN),
        ("/card.png?id=19999999", 404),
    ],
)
async def test_errors_are_never_304_or_cached(client: httpx.AsyncClient, target: str, status: int) -> None:
    answer = await client.get(target, headers={"If-None-Match": "*"})
    assert answer.status_code == status
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers


@dataclass(frozen=True)
class Cost:
    """A request, and the number of statements that it may run."""

    target: str
    statements: int
    method: str = "GET"
    accept: str = "*/*"


# Count and positions of a list are queried once, for all pages, spellings and orders of a filter.
IN_TURN = [
    Cost(LOCALIDADES, 1),
    Cost(f"{LOCALIDADES}?page_size=200", 1),
    Cost(f"{LOCALIDADES}?estado_id=1&page_size=5", 2),
    Cost(f"{LOCALIDADES}?estado_id=01&page_size=5&page=2", 1),
    Cost(f"{LOCALIDADES}?estado_id=1&fields=cvegeo,ambito", 1),
    Cost(f"{LOCALIDADES}?cvegeo=010010002,010010001", 2),
    Cost(f"{LOCALIDADES}?cvegeo=10010001,10010002,10010001", 1),
    Cost(f"{LOCALIDADES}?bbox=-118,14,-86,33", 2),
    Cost(f"{LOCALIDADES}?bbox=-118.0,14.00,-86,33&page_size=5&page=2", 1),
    Cost(f"{LOCALIDADES}?search=lugar&ambito=R", 0),
    Cost(f"{LOCALIDADES}?sort=nombre", 2),
    Cost(f"{LOCALIDADES}?sort=nombre&page=3", 1),
    Cost(f"{LOCALIDADES}?sort=-nombre", 2),
    Cost(f"{LOCALIDADES}?sort=nombre&estado_id=1", 2),
    Cost(f"{LOCALIDADES}?sort=nombre&search=lugar", 1),
    Cost(f"{LOCALIDADES}?sort=nombre&search=lugar&page=2&page_size=5", 0),
    Cost(f"{LOCALIDADES}?fields=cvegeo,ambito", 1),
    Cost(f"{LOCALIDADES}10010001/", 1),
    Cost(f"{LOCALIDADES}10010001/?fields=carta", 1),
    Cost(f"{LOCALIDADES}010010001/", 0),  # a redirect
    Cost(f"{LOCALIDADES}x/", 0),
    Cost(f"{LOCALIDADES}nearest/?lat=21&lon=-102", 1),
    Cost(f"{LOCALIDADES}suggest/?q=lugar", 0),
    Cost(f"{LOCALIDADES}tiles/5/6/14.mvt", 1),
    Cost(f"{LOCALIDADES}tiles/5/6/14.mvt?release=2020-01", 0),
    Cost(f"{LOCALIDADES}backdrop.svg", 1),
    Cost(f"{LOCALIDADES}backdrop.svg?release=2020-01", 0),
    Cost(f"{INDEX}estados/", 1),
    Cost(f"{INDEX}estados/1/", 1),
    Cost(f"{INDEX}estados/?search=agu&sort=relevance", 1),
    Cost(f"{INDEX}municipios/?page_size=1000", 1),
    Cost(f"{INDEX}municipios/?search=municipio&sort=-nombre&fields=id", 1),
    Cost(f"{INDEX}municipios/?search=zzzzzz", 1),
    Cost(f"{INDEX}municipios/1001/", 1),
]


async def test_number_of_sql_statements_per_request(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        await client.get(INDEX)  # the release is known now
        for cost in IN_TURN:
            with recorded_statements(app) as statements:
                answer = await client.get(cost.target)
            assert len(statements) == cost.statements, (cost, statements)
            if tag := answer.headers.get("etag"):
                with recorded_statements(app) as statements:
                    again = await client.get(cost.target, headers={"If-None-Match": tag})
                assert (again.status_code, statements) == (304, []), cost


@pytest.mark.parametrize(
    ("target", "once", "each"),
    [
        ("?page=2", 1, 0),
        ("?estado_id=1", 1, 1),
        ("?sort=poblacion", 1, 1),
        ("tiles/5/6/14.mvt", 1, 0),
        ("backdrop.svg", 1, 0),
    ],
)
async def test_concurrent_requests_for_the_same_page_run_one_query(
    seeded_database: str, target: str, once: int, each: int
) -> None:
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        await client.get(INDEX)  # the release is known now
        with recorded_statements(app) as statements:
            answers = await asyncio.gather(*(client.get(LOCALIDADES + target) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len(statements) == once + each * len(answers), statements


PREPARED = [
    Cost(LOCALIDADES, 0),
    Cost(f"{LOCALIDADES}?page=3", 0),
    *(Cost(f"{LOCALIDADES}?{chosen}", 1) for chosen in ("estado_id=1", "ambito=U", "ambito=R")),  # its page
    *(Cost(f"{LOCALIDADES}tiles/{tile}.mvt", 0) for tile in ("0/0/0", "3/1/3", "5/7/14", "6/14/28")),
    Cost(f"{LOCALIDADES}backdrop.svg", 0),
]


async def test_popular_pages_are_preloaded_with_a_release(seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=10**6) as app, client_of(app) as client:

        async def statements_of(cost: Cost) -> int:
            with recorded_statements(app) as statements:
                assert (await client.get(cost.target)).status_code == 200
            return len(statements)

        services: Services = app.state.services
        last = Tile.at(PREWARMED_ZOOM, MEXICO_BOX.east, MEXICO_BOX.south)

        async def is_prepared() -> bool:
            return services.tiles.held(await services.releases.current(), last) is not None

        await eventually_async(is_prepared)
        assert [(cost, await statements_of(cost)) for cost in PREPARED] == [
            (cost, cost.statements) for cost in PREPARED
        ]


async def test_etag_changes_with_a_publication(seeded_database: str, tmp_path: Path) -> None:
    other = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(130))
    async with running_app(seeded_database) as app, client_of(app) as client:
        first = await client.get(LOCALIDADES)
        await import_into(seeded_database, other)
        await await_release(client, "2021-01")
        second = await client.get(LOCALIDADES)
        assert second.headers["etag"] != first.headers["etag"]
        header = {"If-None-Match": first.headers["etag"]}
        assert (await client.get(LOCALIDADES, headers=header)).status_code == 200
        assert (await client.get(f"{LOCALIDADES}?release=2020-01", headers=header)).status_code == 304


@pytest.mark.parametrize("format_", ["json", "api"])
def test_etag_differs_between_versions_of_the_service(monkeypatch: pytest.MonkeyPatch, format_: str) -> None:
    """Another version may serialize the same rows differently, so its ETags must differ."""
    ours = entity_tag(RELEASE, format_)
    monkeypatch.setattr(caching, "__version__", "999.0.0")
    caching.entity_tag.cache_clear()
    try:
        assert entity_tag(RELEASE, format_) != ours
    finally:
        caching.entity_tag.cache_clear()
