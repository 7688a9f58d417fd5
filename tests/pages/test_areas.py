"""The pages of estados and municipios: totals, largest places, and history."""

from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import urljoin

import httpx
import pytest
from fastapi import FastAPI

from tests.support.application import client_of, database_with, recorded_statements, running_app
from tests.support.catalogue import Place
from tests.support.pages import BROWSER, INDEX, Page

JALISCO = {"nom_ent": "Jalisco", "nom_abr": "Jal."}
# Twelve places of Jalisco with population, in two municipios; two without; one in another estado.
PLACES = [
    *(
        Place(f"1400{1 + n % 2}{1 + n:04d}", f"Lugar {n}", nom_mun=("Acatic", "Ñuñú")[n % 2], ambito="RU"[n == 0],
              poblacion=str(1000 - n), **JALISCO)
        for n in range(12)
    ),
    Place("140010050", "Sin Dato", nom_mun="Acatic", **JALISCO),
    Place("140010051", "Sin Dato Alguno", nom_mun="Acatic", ambito="-", **JALISCO),
    Place("310010001", "Abalá", nom_ent="Yucatán", nom_mun="Abalá", poblacion="9999999"),
]  # fmt: skip


@pytest.fixture(scope="module")
async def pages(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service whose second release lacks a place and renames a municipio."""
    earlier = [replace(place, nom_mun={"Acatic": "Acatique"}.get(place.nom_mun, place.nom_mun)) for place in PLACES]
    earlier.append(Place("140020060", "Retirado", nom_mun="Ñuñú", **JALISCO))
    earlier.sort(key=lambda place: place.cvegeo)
    with database_with(server, migrated, {"2020-01": earlier, "2021-01": PLACES}) as url:
        async with running_app(url) as app, client_of(app) as client:
            client.headers.update(BROWSER)
            yield client


def tiles(page: Page) -> list[str]:
    return [item.inner_text for item in page.inside("li", of=page.of_class("ul", "totals"))]


def key_of(page: Page) -> str:
    """Return the key, which can be copied."""
    (shown,) = page.inside("strong", of=page.of_class("p", "key"))
    assert "data-copy" in shown.attributes
    return shown.text


async def test_estado_page_links_to_its_totals_largest_places_and_municipios(pages: httpx.AsyncClient) -> None:
    target = f"{INDEX}estados/14/"
    page = Page.of(await pages.get(target))
    assert key_of(page) == "14"
    assert page.of_class("p", "lead").text == "One of Mexico’s 32 estados"  # only 15 is the Estado de México
    assert tiles(page) == [
        "2 municipios", "14 localities", "1 urban locality", "12 rural localities",
        f"{sum(range(989, 1001)):,} inhabitants sum of 12 localities with data",
    ]  # fmt: skip
    for link in page.inside("a", of=page.of_class("ul", "totals")):
        listed = Page.of(await pages.get(urljoin(target, link.attributes["href"])))
        assert listed.of_class("p", "amount").text.split()[0] == link.text.split()[0]
    assert page.rows() == [[f"Lugar {n}", ("Acatic", "Ñuñú")[n % 2], f"{1000 - n:,}"] for n in range(10)]
    first = page.inside("a", of=page.all("table")[0])[0]
    assert Page.of(await pages.get(urljoin(target, first.attributes["href"]))).one("h1").text == "Lugar 0"
    municipios = page.inside("li", of=page.of_class("ul", "columns"))
    assert [one.text for one in municipios] == ["Acatic 8", "Ñuñú 6"]


async def test_municipio_page_shows_cabecera_and_largest_places(pages: httpx.AsyncClient) -> None:
    page = Page.of(await pages.get(f"{INDEX}municipios/14001/"))
    assert key_of(page) == "14001"
    assert tiles(page)[:3] == ["8 localities", "1 urban locality", "6 rural localities"]
    assert "Lugar 0" in page.one("dl").text
    assert [row[0] for row in page.rows()] == [f"Lugar {n}" for n in range(0, 12, 2)]
    without = Page.of(await pages.get(f"{INDEX}municipios/14002/"))  # it has no clave 0001
    assert "abecera" not in without.one("dl").text


@pytest.mark.parametrize(
    ("path", "past"),
    [
        ("estados/14/", [["2020-01", "2", "15", ""], ["2021-01", "2", "14", "−1"]]),
        ("municipios/14001/", [["2020-01", "Acatique", "8", ""], ["2021-01", "Acatic", "8", "0"]]),
    ],
)
async def test_area_page_shows_its_history(pages: httpx.AsyncClient, path: str, past: list[list[str]]) -> None:
    page = Page.of(await pages.get(f"{INDEX}{path}"))
    table = page.all("table")[-1]
    rows = [[cell.text for cell in page.inside("td", of=row)] for row in page.inside("tr", of=table)]
    assert rows[1:] == past
    earlier = Page.of(await pages.get(f"{INDEX}{path}", params={"release": "2020-01"}))
    assert "Release 2020-01" in {" ".join(link.text.split()) for link in earlier.all("a")}  # not (current)


@pytest.mark.parametrize(("path", "most"), [("estados/", 2), ("municipios/", 3)])
async def test_page_of_many_areas_runs_few_statements(
    app: FastAPI, client: httpx.AsyncClient, path: str, most: int
) -> None:
    """However many areas it shows, with their cabeceras, estados and totals."""
    target = f"{INDEX}{path}?format=api"
    await client.get(target)  # the first request of a connection may run more
    with recorded_statements(app) as sent:
        assert (await client.get(target)).status_code == 200
    assert 0 < len(sent) <= most
