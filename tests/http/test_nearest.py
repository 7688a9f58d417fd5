"""The places nearest to a point, compared with the distance to every place."""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from random import Random
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from localidades_api.database.pool import Database
from localidades_api.database.queries.nearest import NEAREST, find_nearest, find_nearest_to_each
from localidades_api.database.queries.releases import get_release_snapshot
from tests.support.application import client_of, database_with, running_app
from tests.support.catalogue import Place
from tests.support.wire import LOCALIDADES

ADDRESS = f"{LOCALIDADES}nearest/"
EARTH_RADIUS = 6_371_008.8  # metres, the mean radius (IUGG)
NONE = ("-", "-")
# Odd places: equal points, both sides of the 180th meridian, the poles, an incomplete point.
ODD: list[tuple[str, str]] = [
    *[("21.880833", "-102.296111")] * 12,
    ("21.880834", "-102.296111"), ("21.880833", "-102.296112"),
    NONE, NONE, ("21.5", "-"), ("-", "-102.5"),
    ("0", "180"), ("0", "-180"), ("0.5", "179.999999"), ("0.5", "-179.999999"), ("-65", "179.5"), ("-65", "-179.5"),
    ("90", "0"), ("90", "120"), ("-90", "-60"), ("89.99", "-179"), ("89.99", "1"), ("-89.95", "90"), ("89.5", "45"),
    ("85", "10"), ("85", "60"), ("84", "-100"), ("0", "0"), ("0", "90"), ("0", "-90"), ("-45", "77.7"), ("60", "-150"),
    ("32.718611", "-114.728611"), ("14.532778", "-92.218056"),
]  # fmt: skip


def spread() -> list[tuple[str, str]]:
    """Return the same points in every run: over Mexico, in a cluster, and over the globe."""
    random = Random(4)  # noqa: S311  # not for secrets
    boxes = [(14.5, 32.7, -118.4, -86.7)] * 150 + [(19.2, 19.6, -99.4, -98.9)] * 100 + [(-90, 90, -180, 180)] * 100
    return [
        (f"{random.uniform(south, north):.6f}", f"{random.uniform(west, east):.6f}")
        for south, north, west, east in boxes
    ]


def places_at(points: Sequence[tuple[str, str]]) -> list[Place]:
    return [
        Place(f"01{1 + number % 7:03d}{1 + number:04d}", f"Lugar {number}", latitud=latitude, longitud=longitude)
        for number, (latitude, longitude) in enumerate(points)
    ]


PLACES = places_at([*ODD, *spread()])


def distance(place: Place, lat: float, lon: float) -> float:
    """Return the great-circle distance in metres by the haversine formula."""
    latitude, longitude = math.radians(float(place.latitud)), math.radians(float(place.longitud))
    north, east = latitude - math.radians(lat), longitude - math.radians(lon)
    half = math.sin(north / 2) ** 2 + math.cos(math.radians(lat)) * math.cos(latitude) * math.sin(east / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, half)))


def located(places: Sequence[Place]) -> dict[int, Place]:
    return {int(place.cvegeo): place for place in places if place.latitud != "-" != place.longitud}


LOCATED = located(PLACES)


async def nearest(client: httpx.AsyncClient, lat: float, lon: float, limit: int = 100) -> list[dict[str, Any]]:
    answer = await client.get(ADDRESS, params={"lat": f"{lat:.20f}", "lon": f"{lon:.20f}", "limit": str(limit)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def check(
    results: list[dict[str, Any]], lat: float, lon: float, limit: int, places: Mapping[int, Place] = LOCATED
) -> None:
    """Compare a response with the distance to every place.

    Distances within a centimetre count as equal: the sines of two processors may differ in the last bit.
    """
    distances = {id_: distance(place, lat, lon) for id_, place in places.items()}
    expected = sorted(distances.values())[:limit]
    found = [row["id"] for row in results]
    assert len(found) == len(set(found)) == len(expected)
    for row, metres in zip(results, expected, strict=True):
        assert row["distancia"] == pytest.approx(metres, abs=0.06)  # it is given in tenths
        assert row["distancia"] == round(row["distancia"], 1)
        assert distances[row["id"]] == pytest.approx(metres, abs=0.01)


@pytest.fixture(scope="module")
async def globe(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    with database_with(server, migrated, {"2020-01": PLACES}) as url:
        async with running_app(url) as app, client_of(app) as client:
            yield client


random = Random(5)  # noqa: S311  # not for secrets
# Over Mexico, many times more than a request returns.
COUNTRY = places_at(
    [(f"{random.uniform(14.5, 32.7):.6f}", f"{random.uniform(-118.4, -86.7):.6f}") for _ in range(3000)]
)


@pytest.fixture(scope="module")
async def database(server: str, migrated: str) -> AsyncIterator[Database]:
    """Yield a database with these places."""
    with database_with(server, migrated, {"2020-01": COUNTRY}) as url:
        database = Database.for_reading(url, pool_size=1, timeout=30)
        yield database
        await database.dispose()


LATITUDES = st.floats(-90, 90) | st.sampled_from([-90.0, 90.0, 89.9, -89.9, 89.0, -0.0]) | st.integers(-90, 90)
LONGITUDES = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0, 179.999, -179.999]) | st.integers(-180, 180)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lat=LATITUDES, lon=LONGITUDES, limit=st.integers(1, 100) | st.just(1))
@example(lat=90, lon=0, limit=5)
@example(lat=-90, lon=180, limit=100)
@example(lat=0, lon=180, limit=3)
@example(lat=0.4, lon=-180, limit=4)
@example(lat=89.97, lon=100, limit=3)
@example(lat=21.880833, lon=-102.296111, limit=12)
@example(lat=-21.880833, lon=77.703889, limit=100)  # the other side of the world
@example(lat=1e-20, lon=-1e-20, limit=1)
@example(lat=-38.18626697354286, lon=-29.25422681266747, limit=30)  # the last of them is at the pole
@example(lat=21.8808330000001, lon=-102.296111, limit=3)
async def test_nearest_places_match_brute_force(globe: httpx.AsyncClient, lat: float, lon: float, limit: int) -> None:
    check(await nearest(globe, lat, lon, limit), lat, lon, limit)


def rows_read(node: Mapping[str, Any]) -> float:
    """Count the localities that a plan has read by any kind of scan."""
    own = 0.0
    if node.get("Relation Name", "").startswith("localities"):
        dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        own = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return own + sum(rows_read(below) for below in node.get("Plans", ()))


async def test_distant_point_reads_a_small_part_of_the_catalogue(database: Database) -> None:
    """The test counts rows, since time says little on a busy machine."""
    explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {NEAREST}")
    for lat, lon in ((59.3, 18), (35.7, 139.7), (-33.9, 151.2), (-33.9, 18.4), (-23, 78), (90, 0), (-90, 0)):
        [[[plan]]] = await database.fetch(explained, {"release_id": 1, "lats": [lat], "lons": [lon], "limit": 1})
        assert 1 <= rows_read(plan["Plan"]) < len(COUNTRY) / 10, (lat, lon)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(sorted(LOCATED)), degrees=st.floats(1e-6, 20), side=st.sampled_from([1, -1]))
async def test_place_due_east_or_west_is_found(globe: httpx.AsyncClient, place: int, degrees: float, side: int) -> None:
    """A circle around a point touches its bounding meridian nearer to the pole than the point."""
    latitude, longitude = float(LOCATED[place].latitud), float(LOCATED[place].longitud)
    angle = math.radians(degrees)
    lat = math.degrees(math.asin(math.sin(math.radians(latitude)) * math.cos(angle)))
    sine = math.sin(angle) / max(math.cos(math.radians(lat)), 1e-9)
    lon = (longitude + side * math.degrees(math.asin(min(1.0, sine))) + 180) % 360 - 180
    for limit in (1, 2, 30):
        check(await nearest(globe, lat, lon, limit), lat, lon, limit)


async def test_places_at_the_same_point_are_ordered_by_id(globe: httpx.AsyncClient) -> None:
    at_one_point = [int(place.cvegeo) for place in PLACES[:12]]
    for limit in (1, 5, 12):
        results = await nearest(globe, 21.880833, -102.296111, limit)
        assert [row["id"] for row in results] == sorted(at_one_point)[:limit]
        assert {row["distancia"] for row in results} == {0}
    results = await nearest(globe, 22.0, -102.296111, 20)
    same = [row["id"] for row in results if row["id"] in at_one_point]
    assert same == sorted(at_one_point)


async def test_plain_decimals_are_accepted_and_ten_places_are_the_default(globe: httpx.AsyncClient) -> None:
    for number in ("21", "-21.5", "021.50", "-0.0", "0." + "3" * 25):
        results = (await globe.get(ADDRESS, params={"lat": number, "lon": number})).json()["results"]
        check(results, float(number), float(number), 10)


async def test_other_numbers_are_refused_by_name(globe: httpx.AsyncClient) -> None:
    latitudes = ("", "nan", "91", "-90.0000001", "1,5", "1_0", "+1", "1e1", "20.", ".5", "2\n", "0." + "3" * 26)
    for parameter, values in {"lat": latitudes, "lon": ("181", "-180.0000001"), "limit": ("0", "101", "+1")}.items():
        for value in values:
            answer = await globe.get(ADDRESS, params={"lat": "20", "lon": "-100", parameter: value})
            named = [fault["parameter"] for fault in answer.json()["errors"]]
            assert (answer.status_code, named) == (422, [parameter]), value


async def test_catalogue_with_few_points_gives_all_of_them(server: str, migrated: str) -> None:
    places = places_at([NONE, ("20", "-"), ("-", "-100"), ("20", "-100")])
    with database_with(server, migrated, {"2020-01": places}) as url:
        async with running_app(url, in_background=False) as app, client_of(app) as client:
            for lat, lon in ((20, -100), (90, 0), (-45.5, 180)):
                assert [row["id"] for row in await nearest(client, lat, lon)] == [int(places[3].cvegeo)]


async def test_many_points_of_a_whole_country_are_answered_like_each_alone(database: Database) -> None:
    points = [(random.uniform(-90, 90), random.uniform(-180, 180)) for _ in range(40)]
    points += [(random.uniform(15, 32), random.uniform(-118, -87)) for _ in range(60)]
    release = (await get_release_snapshot(database)).every[0]
    at_once, places = await find_nearest_to_each(database, release, points, 3), located(COUNTRY)
    for (lat, lon), together in zip(points, at_once, strict=True):
        alone = await find_nearest(database, release, lat, lon, 3)
        found = [{"id": row.id, "distancia": round(row.distance, 1)} for row in together]
        check(found, lat, lon, 3, places)
        assert [(row.id, row.distance) for row in together] == [(row.id, row.distance) for row in alone]
