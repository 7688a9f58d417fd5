"""Metadata of pages for search engines and social networks: titles, descriptions, and a picture."""

import struct
from collections.abc import AsyncIterator

import httpx
import pytest

from localidades_api.html.guides import GUIDES
from tests.pages.conftest import Reader
from tests.support.application import client_of, running_app
from tests.support.pages import BROWSER, ERRORS, INDEX, PAGES, Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

PUBLIC = "https://claves.example/mx"


@pytest.fixture(scope="module")
async def public(server: str, seeded: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the application with a public address."""
    with new_database(server, seeded) as url:
        async with running_app(url, public_url=PUBLIC, in_background=False) as app, client_of(app) as client:
            yield client


async def properties_of(client: httpx.AsyncClient, target: str) -> dict[str, str]:
    page = Page.of(await client.get(target, headers=BROWSER))
    metadata = [meta.attributes for meta in page.all("meta")]
    shared = {meta["property"]: meta["content"] for meta in metadata if "property" in meta}
    return shared | {meta["name"]: meta["content"] for meta in metadata if meta.get("name", "").startswith("twitter:")}


async def test_page_names_its_picture_if_there_is_a_public_address(
    public: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    shared = await properties_of(public, f"{LOCALIDADES}10010001/?release=2020-01&lang=es")
    assert shared["twitter:card"] == "summary_large_image"
    picture = await public.get(shared["og:image"].removeprefix(PUBLIC))
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    width, height = struct.unpack_from(">II", picture.content, 16)  # of the chunk IHDR
    assert (str(width), str(height)) == (shared["og:image:width"], shared["og:image:height"])
    without = await properties_of(client, f"{LOCALIDADES}10010001/?release=2020-01&lang=es")
    assert without == {name: value for name, value in shared.items() if name in without}
    assert without.keys() == {"og:type", "og:site_name", "og:locale", "og:title", "og:description"}


# -- Descriptions

EVERY = [
    *PAGES,
    *(f"/{name}?format=api" for name in ("map", "match", "docs", "redoc", "help", "problems", "ogc/")),
    *(f"/help/{name}?format=api" for name in GUIDES),
]


def described(page: Page) -> str:
    return page.one("meta", name="description").attributes["content"]


@pytest.mark.parametrize("target", EVERY)
async def test_every_page_describes_itself_in_its_language(read: Reader, target: str) -> None:
    descriptions = []
    for language, site, locale in (("en", "Localities of Mexico", "en_US"), ("es", "Localidades de México", "es_MX")):
        page = (await read(f"{target}&lang={language}")).page
        description = described(page)
        assert 60 <= len(description) <= 220
        assert description == " ".join(description.split())
        assert description.endswith(".")
        assert "{" not in description
        metadata = [meta.attributes for meta in page.all("meta")]
        shared = {meta["property"]: meta["content"] for meta in metadata if "property" in meta}
        title = shared.pop("og:title")
        assert title
        assert page.inside("title", of=page.one("head"))[0].text.startswith(title)
        assert shared == {
            "og:site_name": site, "og:locale": locale, "og:type": "website", "og:description": description,
        }  # fmt: skip
        descriptions.append(description)
    english, spanish = descriptions
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
        assert [meta for meta in page.all("meta") if {"property", "content"} <= meta.attributes.keys()] == []
        assert page.all("meta", name="description") == []
