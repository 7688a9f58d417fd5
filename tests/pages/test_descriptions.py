"""Pages describe themselves to search engines and social networks."""

import pytest

from localidades_api.html.guides import GUIDES
from tests.pages.conftest import Reader
from tests.support.pages import ERRORS, INDEX, PAGES, Page
from tests.support.wire import LOCALIDADES

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
