"""Metadata of pages for social networks: titles, descriptions, and a picture of the country with the place marked."""

import struct
import zlib
from collections import Counter
from collections.abc import AsyncIterator

import httpx
import pytest

from localidades_api.catalogue.mercator import MEXICO
from localidades_api.html.png import draw_card
from tests.support.application import client_of, running_app
from tests.support.pages import BROWSER, INDEX, Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

PUBLIC = "https://claves.example/mx"
CARD = "/card.png"
WHITE, GREY, RED = (0xFF, 0xFF, 0xFF), (0x8F, 0xA3, 0x9E), (0xB4, 0x23, 0x18)
AGUASCALIENTES = (-102.296, 21.88)  # the locality 10010001


@pytest.fixture(scope="module")
async def public(server: str, seeded: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the application with a public address."""
    with new_database(server, seeded) as url:
        async with running_app(url, public_url=PUBLIC, in_background=False) as app, client_of(app) as client:
            yield client


async def properties_of(client: httpx.AsyncClient, target: str) -> dict[str, str]:
    page = Page.of(await client.get(target, headers=BROWSER))
    found = [one.attributes for one in page.all("meta")]
    shared = {one["property"]: one["content"] for one in found if "property" in one}
    return shared | {one["name"]: one["content"] for one in found if one.get("name", "").startswith("twitter:")}


def decode(png: bytes) -> list[list[tuple[int, ...]]]:
    """Return the colours of the pixels of an unfiltered image with a palette."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert png[at + 8 + length : at + 12 + length] == struct.pack(">I", zlib.crc32(kind + data))
        chunks[kind] = data
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, *how = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert how == [8, 3, 0, 0, 0]
    palette = [tuple(chunks[b"PLTE"][color : color + 3]) for color in range(0, len(chunks[b"PLTE"]), 3)]
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == height * (width + 1)
    rows = [pixels[start : start + width + 1] for start in range(0, len(pixels), width + 1)]
    assert all(row[0] == 0 for row in rows)
    return [[palette[index] for index in row[1:]] for row in rows]


def position_of(longitude: float, latitude: float) -> tuple[int, int]:
    """Return the column and row of a point: the frame of Mexico, twice as large, is in the middle of the picture."""
    point = MEXICO.locate(longitude, latitude)
    assert point
    return round(200 + 2 * point[0]), round((630 - 2 * MEXICO.rows) / 2 + 2 * point[1])


def test_card_shows_each_cell_and_marks_the_place() -> None:
    cells = [0, 399, 100 * 400 + 7, 100 * 400 + 8, (MEXICO.rows - 1) * 400]
    top = (630 - 2 * MEXICO.rows) // 2
    plain = decode(draw_card(cells, MEXICO, None))
    grey = {(x, y) for y, row in enumerate(plain) for x, color in enumerate(row) if color == GREY}
    assert grey == {
        (200 + 2 * (cell % 400) + right, top + 2 * (cell // 400) + down)
        for cell in cells
        for right in (0, 1)
        for down in (0, 1)
    }
    marked = decode(draw_card(cells, MEXICO, AGUASCALIENTES))
    red = [(x, y) for y, row in enumerate(marked) for x, color in enumerate(row) if color == RED]
    middle = tuple(sum(axis) / len(red) for axis in zip(*red, strict=True))
    assert middle == position_of(*AGUASCALIENTES)
    assert len(red) == pytest.approx(3.1416 * 13**2, rel=0.06)


@pytest.mark.parametrize("corner", [(-118.79, 33.09), (-86.31, 14.12)])
def test_mark_at_a_corner_of_the_country_is_whole(corner: tuple[float, float]) -> None:
    rows = decode(draw_card([], MEXICO, corner))
    assert sum(Counter(row)[RED] for row in rows) == pytest.approx(3.1416 * 13**2, rel=0.06)


@pytest.mark.parametrize(
    ("target", "query"),
    [
        (f"{LOCALIDADES}10010001/", "?id=10010001"),
        (f"{LOCALIDADES}10010001/?release=2020-01&lang=es", "?id=10010001&release=2020-01"),
        (f"{LOCALIDADES}10020001/", ""),  # without coordinates
        (f"{INDEX}municipios/1001/", "?id=10010001"),
        (f"{INDEX}estados/1/", "?id=10010001"),
        (LOCALIDADES, ""),
    ],
)
async def test_page_names_its_picture_if_there_is_a_public_address(
    public: httpx.AsyncClient, client: httpx.AsyncClient, target: str, query: str
) -> None:
    shared = await properties_of(public, target)
    assert shared["og:image"] == f"{PUBLIC}{CARD}{query}"
    assert shared["twitter:card"] == "summary_large_image"
    picture = await public.get(f"{CARD}{query}")
    assert picture.headers["content-type"] == "image/png"
    rows = decode(picture.content)
    assert (str(len(rows[0])), str(len(rows))) == (shared["og:image:width"], shared["og:image:height"])
    assert any(RED in row for row in rows) == bool(query)
    without = await properties_of(client, target)
    assert without == {name: value for name, value in shared.items() if name in without}
    assert without.keys() == {"og:type", "og:site_name", "og:locale", "og:title", "og:description"}


async def test_card_has_the_validators_of_its_release(client: httpx.AsyncClient) -> None:
    first = await client.get(CARD)
    assert first.headers["catalogue-release"] == "2020-01"
    assert first.headers["cache-control"].startswith("public, max-age=60,")
    again = await client.get(CARD, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    pinned = await client.get(f"{CARD}?release=2020-01")
    assert pinned.headers["cache-control"].startswith("public, max-age=86400,")
    for query, status in (("id=999999999", 404), ("release=2001-01", 404), ("id=0", 422), ("id=x", 422), ("a=b", 422)):
        answer = await client.get(f"{CARD}?{query}")
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), query
