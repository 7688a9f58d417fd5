"""Maps: tiles, read with another library, and the backdrop, compared with the imported file."""

import asyncio
import gzip
import math
import random
import re
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from xml.etree import ElementTree

import httpx
import pytest
from fastapi import FastAPI
from pydantic_core import to_json

from localidades_api.caches.tiles import MAX_TILE_BYTES, TileCache, encode_tile
from localidades_api.catalogue.mercator import MAX_ZOOM, MEXICO, Tile
from localidades_api.database.queries.tiles import CELLS, EXTENT, TileContent, TilePlace
from tests.http.vector_tiles import Layer, read_tile
from tests.support.application import await_release, client_of, database_with, recorded_statements, running_app
from tests.support.catalogue import TRAPS, Place
from tests.support.wire import LOCALIDADES

TILES = f"{LOCALIDADES}tiles/"


def spread() -> list[Place]:
    """Return the traps of one estado, places all over the country, and many around one point."""
    chance = random.Random(32)  # noqa: S311  # the same places in every run

    def place(number: int, longitude: float, latitude: float) -> Place:
        state, rest = 2 + number % 30, number // 30
        population = str(chance.randrange(100_000)) if number % 4 else "-"
        return Place(
            f"{state:02d}{1 + rest // 90:03d}{1 + rest % 90:04d}",
            f"Lugar {number}",
            nom_ent=f"Estado {state:02d}",
            longitud=f"{longitude:.6f}",
            latitud=f"{latitude:.6f}",
            poblacion="0" if number % 4 == 1 else population,
            ambito="UR-"[number % 3],
        )

    country = [place(number, chance.uniform(-117, -87), chance.uniform(15, 32)) for number in range(1500)]
    city = [place(number, chance.gauss(-99.13, 0.1), chance.gauss(19.43, 0.1)) for number in range(1500, 4000)]
    return [*(trap for trap in TRAPS if trap.cvegeo[:2] == "01"), *country, *city]


PLACES = {int(place.cvegeo): place for place in spread()}
LOCATED = {key: place for key, place in PLACES.items() if place.longitud != "-"}


def unit_of(place: Place, zoom: int) -> tuple[Tile, int, int]:
    """Return the tile of a place and its position in it, by the formula of OpenStreetMap's wiki."""
    radians = math.radians(float(place.latitud))
    x = (float(place.longitud) + 180) / 360
    y = (1 - math.log(math.tan(radians) + 1 / math.cos(radians)) / math.pi) / 2
    column, row = (math.floor(value * 2**zoom * EXTENT) for value in (x, y))
    return Tile(zoom, column // EXTENT, row // EXTENT), column % EXTENT, row % EXTENT


def path_of(tile: Tile) -> str:
    return f"{TILES}{tile.zoom}/{tile.column}/{tile.row}.mvt"


def cell_of(x: int, y: int) -> tuple[int, int]:
    return x * CELLS // EXTENT, y * CELLS // EXTENT


async def layers_of(client: httpx.AsyncClient, tile: Tile) -> dict[str, Layer]:
    answer = await client.get(path_of(tile))
    assert answer.status_code == 200, answer.text
    return read_tile(answer.content)


@pytest.fixture(scope="module")
async def app(server: str, migrated: str) -> AsyncIterator[FastAPI]:
    """Yield an application on the places on the map."""
    with database_with(server, migrated, {"2020-01": PLACES.values()}) as url:
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            await await_release(client, "2020-01")
            yield app


async def test_every_place_is_in_exactly_one_tile_of_the_highest_zoom(client: httpx.AsyncClient) -> None:
    units = {key: unit_of(place, MAX_ZOOM) for key, place in LOCATED.items()}
    tiles = sorted({tile for tile, _, _ in units.values()})[::40]  # one in forty, of the country and of the city
    drawn = {}
    for tile in tiles:
        layers = await layers_of(client, tile)
        assert list(layers) == ["places"]
        for feature in layers["places"].features:
            assert feature.id not in drawn
            (drawn[feature.id],) = [(tile, *point) for point in feature.points]
    assert drawn.keys() == {key for key, unit in units.items() if unit[0] in tiles}
    for key, (tile, x, y) in drawn.items():
        its, column, row = units[key]
        assert (tile, math.dist((x, y), (column, row)) <= 1) == (its, True)  # another order of the same sums


@pytest.mark.parametrize("zoom", [0, 5, 10])
async def test_tile_lists_the_most_populous_places_first(client: httpx.AsyncClient, zoom: int) -> None:
    tile = Tile.at(zoom, -99.13, 19.43)
    inside = {key: place for key, place in LOCATED.items() if unit_of(place, zoom)[0] == tile}
    layers = await layers_of(client, tile)
    assert set(layers) == {"places", "backdrop"}
    assert layers["places"].extent == EXTENT
    shown = [feature.id for feature in layers["places"].features]
    assert 400 < len(shown) < len(inside)
    populations = [int(inside[key].poblacion.replace("-", "-1")) for key in shown]
    assert populations == sorted(populations, reverse=True)
    left_out = [int(place.poblacion.replace("-", "-1")) for key, place in inside.items() if key not in shown]
    assert populations[-1] >= max(left_out)
    assert layers["backdrop"].extent == 2 * CELLS
    per_cell = Counter(cell_of(x, y) for _, x, y in (unit_of(place, zoom) for place in inside.values()))
    cells = {(x // 2, y // 2): feature.properties for feature in layers["backdrop"].features for x, y in feature.points}
    assert sum(len(feature.points) for feature in layers["backdrop"].features) == len(cells)
    assert len(cells.keys() ^ per_cell.keys()) <= len(per_cell) / 500  # places on the edge of two cells
    expected = {cell: {"density": 1 + (count > 3) + (count > 11) + (count > 35)} for cell, count in per_cell.items()}
    assert sum(cells[cell] != expected[cell] for cell in cells.keys() & expected.keys()) <= len(per_cell) / 250
    assert len({str(density) for density in cells.values()}) == len(layers["backdrop"].features)


async def test_feature_matches_the_catalogue(client: httpx.AsyncClient) -> None:
    tile, _, _ = unit_of(PLACES[10010001], MAX_ZOOM)
    features = {feature.id: feature for feature in (await layers_of(client, tile))["places"].features}
    assert features[10010001].properties == {
        "nombre": "Aguascalientes", "cvegeo": "010010001", "municipio_id": 1001, "estado_id": 1, "ambito": "U",
        "poblacion": 863893,
    }  # fmt: skip
    assert features[10010007].properties["nombre"] == "San José\N{NO-BREAK SPACE}del Río"
    assert "poblacion" not in features[10010007].properties


async def test_tiles_elsewhere_do_not_exist(client: httpx.AsyncClient) -> None:
    for name in (f"{MAX_ZOOM + 1}/0/0", "0/1/0", "0/0/1", "5/32/0", "5/0/32", "99/0/0"):
        assert (await client.get(f"{TILES}{name}.mvt")).status_code == 404, name
    for name in ("x/0/0", "1/-1/0", "1/0/0.5", "1/0/+1", "1/0/٠", f"1/0/{'9' * 30}", "1/0/0.mvt", "1/0/", "5/7"):
        answer = await client.get(f"{TILES}{name}.mvt")
        assert answer.status_code in {404, 422}, name
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("accepted", "coding"), [("gzip", "gzip"), ("gzip;q=0, *", None), ("br", None), ("", None)])
async def test_tile_is_compressed_if_accepted(client: httpx.AsyncClient, accepted: str, coding: str | None) -> None:
    answer = await client.get(f"{TILES}0/0/0.mvt", headers={"Accept-Encoding": accepted})
    assert answer.headers.get("content-encoding") == coding
    assert set(read_tile(answer.content)) == {"places", "backdrop"}
    assert (int(answer.headers["content-length"]) < len(answer.content)) == (coding == "gzip")


def test_incompressible_tile_stays_within_the_limit() -> None:
    chance = random.Random(1)  # noqa: S311  # as above
    letters = [chr(code) for code in range(0x4E00, 0x9000)]
    places = [
        TilePlace(chance.randrange(10**9), chance.randrange(EXTENT), chance.randrange(EXTENT),
                  "".join(chance.choices(letters, k=30)), "U", chance.randrange(10**7))
        for _ in range(1000)
    ]  # fmt: skip
    for share in (0.2, 0.5, 0.8):
        cells = array("i")
        for cell in sorted(chance.sample(range(CELLS**2), int(CELLS**2 * share))):
            cells.extend((cell, int(chance.expovariate(0.05)) + 1))
        tile = encode_tile(TileContent(to_json(places).decode(), cells))
        assert set(read_tile(tile)) == {"places", "backdrop"}
        assert len(gzip.compress(tile, 6)) < MAX_TILE_BYTES
    for count in (10, 200, 500, 1000):
        whole = encode_tile(TileContent(to_json(places[:count]).decode(), array("i")))
        assert len(gzip.compress(whole, 6)) < MAX_TILE_BYTES
        assert len(read_tile(whole)["places"].features) == count or "backdrop" in read_tile(whole)


async def test_tilejson_points_to_the_tiles(client: httpx.AsyncClient) -> None:
    described = (await client.get(f"{LOCALIDADES}tiles.json")).json()
    degrees = [(float(place.longitud), float(place.latitud)) for place in LOCATED.values()]
    wests, souths = zip(*degrees, strict=True)
    assert described["bounds"] == [min(wests), min(souths), max(wests), max(souths)]
    (template,) = described["tiles"]
    assert template.startswith("http://test/")
    tile = await client.get(template.format(z=5, x=7, y=14))
    assert tile.headers["cache-control"].startswith("public, max-age=86400,")
    layers = read_tile(tile.content)
    assert {layer["id"] for layer in described["vector_layers"]} == layers.keys()
    properties = {name for feature in layers["places"].features for name in feature.properties}
    assert {name for layer in described["vector_layers"] for name in layer["fields"]} == properties


async def test_backdrop_covers_the_places(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{LOCALIDADES}backdrop.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    drawing = ElementTree.fromstring(answer.content)  # noqa: S314  # our own
    assert drawing.attrib["viewBox"] == f"0 0 {MEXICO.columns} {MEXICO.rows}"
    paths = drawing.iterfind(".//{*}path")
    located = [MEXICO.locate(float(place.longitud), float(place.latitud)) for place in LOCATED.values()]
    per_block = Counter((int(point[0]) // 2, int(point[1]) // 2) for point in located if point)
    assert max(per_block.values()) > 60
    for path, least in zip(paths, (1, 16, 60), strict=True):
        expected = {block for block, count in per_block.items() if count >= least}
        assert len(read_cells(path.attrib["d"]) ^ expected) <= 2  # places on the edge of two cells


def read_cells(path: str) -> set[tuple[int, int]]:
    """Return the cells that the runs of a path cover."""
    x = y = 0
    cells = set()
    for right, down, length in re.findall(r"m(-?\d+) (-?\d+)h(\d+)", path):
        x, y = x + int(right), y + int(down)
        cells |= {(x + step, y) for step in range(int(length))}
        x += int(length)
    return cells


async def test_cache_stays_within_its_limit(app: FastAPI) -> None:
    services = app.state.services
    release = await services.releases.current()
    cache = TileCache(app.state.services.database, limit=40_000)
    tiles = [Tile(7, column, row) for column in range(24, 36) for row in range(54, 60)]
    sizes = [len(await cache.get(release, tile)) for tile in tiles]
    held = [body for tile in tiles if (body := cache.held(release, tile)) is not None]
    assert sum(map(len, held)) <= 40_000 < sum(sizes)
    assert cache.held(release, tiles[-1]) is not None


@pytest.mark.parametrize("method", [TileCache.bounds, TileCache.state_cells, TileCache.backdrop])
async def test_concurrent_callers_share_a_query(app: FastAPI, method: Callable[..., Awaitable[object]]) -> None:
    release = await app.state.services.releases.current()
    cache = TileCache(app.state.services.database)
    with recorded_statements(app) as statements:
        await asyncio.gather(*(method(cache, release) for _ in range(50)))
    assert len(statements) == 1
    await cache.close()
