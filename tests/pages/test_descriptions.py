"""Pages describe themselves to search engines and social networks."""

import pytest

from localidades_api.html.guides import GUIDES
from tests.pages.conftest import Reader
from tests.support.pages import ERRORS, INDEX, PAGES, Page
from tests.support.wire import LOCALIDADES

EVERY = [
    *PAGES,
    "/map?format=api",
    "/match?format=api",
    "/docs?format=api",
    "/redoc?format=api",
    "/help?format=api",
    *(f"/help/{name}?format=api" for name in GUIDES),
    "/problems?format=api",
    "/wscatgeo/?format=api",
    "/ogc/?format=api",
]


def described(page: Page) -> str:
    return page.one("meta", name="description").attributes["content"]


@pytest.mark.parametrize("target", EVERY)
async def test_every_page_describes_itself_in_its_language(read: Reader, target: str) -> None:
    found = []
    for language, site, locale in (
        ("en", "Localities of Mexico", "en_US"),
        ("es", "Localidades de México", "es_MX"),
    ):
        page = (await read(f"{target}&lang={language}")).page
        description = described(page)
        assert 60 <= len(description) <= 220
        assert description == " ".join(description.split())
        assert description.endswith(".")
        assert "{" not in description
        shared = {
            one.attributes["property"]: one.attributes["content"]
            for one in page.all("meta")
            if "property" in one.attributes
        }
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
    ("target", "english", "spanish"),
    [
        (
            f"{LOCALIDADES}10010001/?format=api",
            "Aguascalientes: urban locality of the municipio of Municipio 001, Aguascalientes, Mexico."
            " INEGI key (CVEGEO): 010010001. Population: 863,893. Map, nearby localities and history.",
            "Aguascalientes: localidad urbana del municipio de Municipio 001, Aguascalientes, México."
            " Clave INEGI (CVEGEO): 010010001. Población: 863,893. Mapa, localidades cercanas e historia.",
        ),
        (
            f"{LOCALIDADES}10010011/?format=api",
            "<script>alert(1)</script>: rural locality of the municipio of Municipio 001, Aguascalientes, Mexico."
            " INEGI key (CVEGEO): 010010011. Map, nearby localities and history.",
            "<script>alert(1)</script>: localidad rural del municipio de Municipio 001, Aguascalientes, México."
            " Clave INEGI (CVEGEO): 010010011. Mapa, localidades cercanas e historia.",
        ),
        (
            f"{INDEX}municipios/1001/?format=api",
            "Municipio 001: municipio of Aguascalientes, Mexico. INEGI key: 01001. Localities: 12."
            " Population of its localities: 863,893. Largest places, map and files.",
            "Municipio 001: municipio de Aguascalientes, México. Clave del INEGI: 01001. Localidades: 12."
            " Población de sus localidades: 863,893. Localidades más pobladas, mapa y archivos.",
        ),
        (
            f"{INDEX}estados/9/?format=api",
            "Ciudad de México: estado of Mexico. INEGI key: 09. Municipios: 1. Localities: 1."
            " Largest places, map and files.",
            "Ciudad de México: estado de México. Clave del INEGI: 09. Municipios: 1. Localidades: 1."
            " Localidades más pobladas, mapa y archivos.",
        ),
    ],
)
async def test_pages_of_places_are_described_by_their_data(
    read: Reader, target: str, english: str, spanish: str
) -> None:
    assert described((await read(f"{target}&lang=en")).page) == english
    assert described((await read(f"{target}&lang=es")).page) == spanish


async def test_problem_page_has_no_description_and_shares_nothing(read: Reader) -> None:
    for target, _ in ERRORS:
        page = (await read(target)).page
        assert [one for one in page.all("meta") if {"property", "content"} <= one.attributes.keys()] == []
        assert page.all("meta", name="description") == []
