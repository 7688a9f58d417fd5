"""Search and suggestions: the same assertions on a database of each locale."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.application import client_of, database_with, import_into, running_app
from tests.support.catalogue import Place, write_catalogue
from tests.support.postgres import LOCALE_C, database_of_locale
from tests.support.wire import LOCALIDADES

SUGGEST = f"{LOCALIDADES}suggest/"
GUADALAJARA, TONALA = "14039", "14101"
LONG_NAME = 140390020
_MUNICIPIOS = {
    GUADALAJARA: ("Jalisco", "Jal.", "Guadalajara"),
    TONALA: ("Jalisco", "Jal.", "Tonalá"),
    "10020": ("Durango", "Dgo.", "Pánuco de Coronado"),
}
_NAMES: dict[str, dict[str, int | None]] = {  # population
    GUADALAJARA: {
        "0001 Guadalajara": 1_385_629, "0002 San José": 5, "0003 San José": 10, "0004 San José del Castillo": 2_000,
        "0005 Rancho San José": 3_000, "0006 Cartagena [Fraccionamiento]": 700,
        "0007 Guadalajara Oriente (Cartagena)": None, "0008 SAN JOSE": None, "0009 José San": 1, "0010 El Sol": 40,
        "0011 La Luz": 30, "0012 Río": 20, "0013 Concepci½n": 15, "0014 Colonia N° 5": 14, "0015 Colonia Nº 6": 13,
        "0016 Campo de Tony (Tony`s Camp)": 12, "0017 O´Donnell Aeropuerto": 11, "0018 Peñón  Ñandú": 9,
        "0019 2 de Abril": 8,
        "0020 Heroica Villa Tezoatlán de Segura y Luna, Cuna de la Independencia de Oaxaca": 7,
        "0021 La\N{NO-BREAK SPACE}Güera": 6, "0022 Tamazunchale": 100,
    },
    TONALA: {"0001 Tonalá": 400_000, "0002 San José": 100, "0003 Tamazulapan": 50, "0004 San Joselito": 999},
    "10020": {"0035 Guadalajara": None, "0036 Guadalupe": 300},
}  # fmt: skip
PLACES = [
    Place(f"{municipio}{name[:4]}", name[5:], *_MUNICIPIOS[municipio], poblacion=str(population or "-"))
    for municipio, names in _NAMES.items()
    for name, population in names.items()
]


@pytest.fixture(scope="module")
def places_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_catalogue(tmp_path_factory.mktemp("places") / "catun_localidad_2020-01.csv", PLACES)


@pytest.fixture(scope="module")
async def places_client(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of an application on these places."""
    with database_with(server, migrated, {"2020-01": PLACES}) as url:
        async with running_app(url) as app, client_of(app) as client:
            yield client


async def search(client: httpx.AsyncClient, words: str, **filters: str) -> list[int]:
    answer = await client.get(LOCALIDADES, params={"search": words, "page_size": "1000", **filters})
    assert answer.status_code == 200
    return [row["id"] for row in answer.json()["results"]]


async def suggest(client: httpx.AsyncClient, q: str, **parameters: str) -> list[dict[str, Any]]:
    answer = await client.get(SUGGEST, params={"q": q, "limit": "20", **parameters})
    assert answer.status_code == 200
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def test_suggestions_can_be_limited_to_an_estado_or_municipio(places_client: httpx.AsyncClient) -> None:
    for words, within, first in (
        ("guadalajara", {"estado_id": "10"}, 100200035), ("tonalla", {"municipio_id": TONALA}, 141010001),
    ):  # fmt: skip
        assert (await suggest(places_client, words, **within))[0]["id"] == first


async def test_long_name_is_found_by_all_its_words(places_client: httpx.AsyncClient) -> None:
    """Only the longest words are looked up; the others are compared with the names found."""
    words = "heroica villa tezoatlan de segura y luna cuna de la independencia de oaxaca"
    for typed in (words, " ".join(word[:1] for word in words.split()) + " tezoatlan", "y l c d s h v t i o"):
        assert await search(places_client, typed) == [LONG_NAME]
    assert (await suggest(places_client, words))[0]["id"] == LONG_NAME
    for typed in (f"{words} rancho", "y l c d s h v t i o x", "tezoatlan independencia segura x"):
        assert await search(places_client, typed) == []


async def test_blank_text_is_answered_as_an_empty_one(places_client: httpx.AsyncClient) -> None:
    for target in (
        f"{LOCALIDADES}?search=", f"{LOCALIDADES}filter/?search=", f"{LOCALIDADES}download/?format=csv&search=",
        "/api/census/municipios/?search=", "/api/census/estados/?search=", f"{SUGGEST}?q=",
        "/api/census/reconcile/?queries=", "/api/census/reconcile/suggest/entity/?prefix=",
        "/api/census/reconcile/suggest/type/?prefix=", "/api/census/reconcile/suggest/property/?prefix=",
        "/ogc/collections/localidades/items?limit=1&clave=", "/ogc/collections/localidades/items?limit=1&nombre=",
    ):  # fmt: skip
        empty = await places_client.get(target)
        for blank in ("%20", "+%09", "%C2%A0", "%E3%80%80"):
            answer = await places_client.get(f"{target}{blank}")
            assert (answer.status_code, answer.content) == (empty.status_code, empty.content), target
            assert answer.headers.get("location") == empty.headers.get("location"), target


@pytest.mark.tail
async def test_search_does_not_depend_on_the_locale_of_the_database(
    server: str, places_client: httpx.AsyncClient, places_file: Path
) -> None:
    words = {word for place in PLACES for word in (place.nombre, place.nombre.upper(), place.nombre[:4])}
    words |= {"Guadaljara", "san joze", "rip", "el xol", "ñandu", "n° 5", "jose san", *"abcñ1"}
    targets = [f"{path}{quote(word)}" for word in sorted(words) for path in (f"{SUGGEST}?q=", f"{LOCALIDADES}?search=")]

    expected = {target: (await places_client.get(target)).content for target in targets}
    for clauses in (
        LOCALE_C,
        "LOCALE_PROVIDER libc LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
        "LOCALE_PROVIDER libc LC_COLLATE 'es_MX.UTF-8' LC_CTYPE 'es_MX.UTF-8'",
        "LOCALE_PROVIDER icu ICU_LOCALE 'es-MX' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
    ):
        with database_of_locale(server, clauses) as url:
            await import_into(url, places_file)
            async with running_app(url) as app, client_of(app) as client:
                assert {target: (await client.get(target)).content for target in targets} == expected, clauses
