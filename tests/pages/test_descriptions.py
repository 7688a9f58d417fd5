"""Pages describe themselves in the results of search engines."""

import httpx
import pytest

from localidades_api.html.guides import GUIDES
from tests.support.pages import BROWSER, ERRORS, INDEX, PAGES, Page
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


async def description_of(client: httpx.AsyncClient, target: str, language: str) -> str:
    joined = f"{target.removesuffix('&lang=es')}&lang={language}"
    return Page.of(await client.get(joined, headers=BROWSER)).one("meta", name="description").attributes["content"]


@pytest.mark.parametrize("target", EVERY)
async def test_every_page_has_a_description_in_its_language(client: httpx.AsyncClient, target: str) -> None:
    english, spanish = [await description_of(client, target, language) for language in ("en", "es")]
    for description in (english, spanish):
        assert 60 <= len(description) <= 220
        assert description == " ".join(description.split())
        assert description.endswith(".")
        assert "{" not in description
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
    client: httpx.AsyncClient, target: str, english: str, spanish: str
) -> None:
    assert await description_of(client, target, "en") == english
    assert await description_of(client, target, "es") == spanish


@pytest.mark.parametrize("target", [target for target, _ in ERRORS])
async def test_problem_page_has_no_description(client: httpx.AsyncClient, target: str) -> None:
    assert Page.of(await client.get(target, headers=BROWSER)).all("meta", name="description") == []
