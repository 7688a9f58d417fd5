"""Metadata of pages for search engines and social networks: titles, descriptions, and a picture of the place."""

import struct
import zlib
from collections import Counter
from collections.abc import AsyncIterator

import httpx
import pytest

from localidades_api.catalogue.mercator import MEXICO
from localidades_api.html.guides import GUIDES
from localidades_api.html.png import draw_card
from tests.pages.conftest import Reader
from tests.support.application import client_of, running_app
from tests.support.pages import BROWSER, ERRORS, INDEX, PAGES, Page
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


async def test_card_of_what_there_is_not_is_a_problem(client: httpx.AsyncClient) -> None:
    for query, status in (("id=999999999", 404), ("release=2001-01", 404), ("id=0", 422), ("id=x", 422), ("a=b", 422)):
        answer = await client.get(f"{CARD}?{query}")
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), query


# -- Descriptions

EVERY = [
    *PAGES,
    *(f"/{name}?format=api" for name in ("map", "match", "docs", "redoc", "help", "problems", "wscatgeo/", "ogc/")),
    *(f"/help/{name}?format=api" for name in GUIDES),
]


def described(page: Page) -> str:
    return page.one("meta", name="description").attributes["content"]


@pytest.mark.parametrize("target", EVERY)
async def test_every_page_describes_itself_in_its_language(read: Reader, target: str) -> None:
    found = []
    for language, site, locale in (("en", "Localities of Mexico", "en_US"), ("es", "Localidades de México", "es_MX")):
        page = (await read(f"{target}&lang={language}")).page
        description = described(page)
        assert 60 <= len(description) <= 220
        assert description == " ".join(description.split())
        assert description.endswith(".")
        assert "{" not in description
        metadata = [one.attributes for one in page.all("meta")]
        shared = {one["property"]: one["content"] for one in metadata if "property" in one}
        title = shared.pop("og:title")
        assert title
        assert page.inside("title", of=page.one("head"))[0].text.startswith(title)
        assert shared == {
            "og:site_name": site, "og:locale": locale, "og:type": "website", "og:description": description,
        }  # fmt: skip
        found.append(description)
    english, spanish = found
    assert "Mexic" in english or "INEGI" in english
    assert "México" in spanish or "INEGI" in spanish
    assert english != spanish


@pytest.mark.parametrize(
    ("target", "description"),
    [
        (
            f"{LOCALIDADES}10010001/?format=api&lang=en",
            "Aguascalientes: urban locality of the municipio of Municipio 001, Aguascalientes, Mexico."
            " INEGI key (CVEGEO): 010010001. Population: 863,893. Map, nearby localities and history.",
        ),
        (
            f"{LOCALIDADES}10010011/?format=api&lang=es",
            "<script>alert(1)</script>: localidad rural del municipio de Municipio 001, Aguascalientes, México."
            " Clave INEGI (CVEGEO): 010010011. Mapa, localidades cercanas e historia.",
        ),
        (
            f"{INDEX}municipios/1001/?format=api&lang=es",
            "Municipio 001: municipio de Aguascalientes, México. Clave del INEGI: 01001. Localidades: 12."
            " Población de sus localidades: 863,893. Localidades más pobladas, mapa y archivos.",
        ),
        (
            f"{INDEX}estados/9/?format=api&lang=en",
            "Ciudad de México: estado of Mexico. INEGI key: 09. Municipios: 1. Localities: 1."
            " Largest places, map and files.",
        ),
    ],
)
async def test_pages_of_places_are_described_by_their_data(read: Reader, target: str, description: str) -> None:
    assert described((await read(target)).page) == description


async def test_problem_page_has_no_description_and_shares_nothing(read: Reader) -> None:
    for target, _ in ERRORS:
        page = (await read(target)).page
        assert [one for one in page.all("meta") if {"property", "content"} <= one.attributes.keys()] == []
        assert page.all("meta", name="description") == []
