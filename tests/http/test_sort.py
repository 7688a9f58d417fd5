"""The orders of the list, compared with plain Python."""

import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import make_url, select
from sqlalchemy.ext.asyncio import create_async_engine

from localidades_api.catalogue.folding import APOSTROPHES, fold
from localidades_api.database.models import localities
from localidades_api.database.queries.conditions import with_enye
from localidades_api.names.files import query
from tests.support.application import database_with, running_app, walk
from tests.support.catalogue import Place
from tests.support.pages import BROWSER, Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

ALPHABET = "0123456789abcdefghijklmnñopqrstuvwxyz"
NAMES = (
    "Nube", "Ñandú", "ñandú", "Ñ", "Nz", "Peña", "Pena", "Penzacola", "Peñasco", "Pen", "Peo", "Peñón", "Penón",
    "PEÑÓN", "El Álamo", "El alamo", "El Alamo", "ELÁLAMO", "La Güera", "La Guerra", "10 de Abril", "2 de Abril",
    "Álvaro Ñúñez", "[Granja] Ñ", "(Ñandú)", "Ñ 'D'Artagnan'", "Ñ D'Artagnan", "Ñ-Dos Nº 5", "Ñ Dos No 5",
    "Niño Ándale", "Nino Andale", "Señor {Ñ}", "Año ½", "Zúñiga", "Zurupio", "San José", "San Jose",
    "Sana", "San Zenón",
)  # fmt: skip
POPULATIONS = ("-", "0", "7", "7", "863893", "-", "12")
PLACES = [
    Place(
        f"{1 + at % 3:02d}{1 + at % 4:03d}{1 + at // 5:04d}",
        name,
        nom_ent=f"Estado {1 + at % 3}",
        ambito="UR"[at % 2],
        poblacion=POPULATIONS[at % len(POPULATIONS)],
    )
    for at, name in enumerate(NAMES * 4)
]


def spanish(place: Place) -> tuple[list[list[int]], str]:
    """Return the sort key of a Spanish dictionary: letters with ñ among them, then accents and capitals."""
    kept = place.nombre.lower().replace("ñ", "\0").translate(dict.fromkeys(map(ord, APOSTROPHES)))
    plain = unicodedata.normalize("NFD", kept.replace("º", "o").replace("½", "o"))
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign)).replace("\0", "ñ")
    return [[ALPHABET.index(letter) for letter in word] for word in re.findall("[0-9a-zñ]+", letters)], place.nombre


KEYS: dict[str, Callable[[Place], Any]] = {
    "clave": lambda place: place.cvegeo[5:],
    "nombre": spanish,
    "poblacion": lambda place: int(place.poblacion),
}
SORTS = [sign + name for name in KEYS for sign in ("", "-")]


def ordered(sort: str, places: list[Place] = PLACES) -> list[int]:
    """Return the keys of places in an order: unknown populations last, and equals by key."""
    name, by_key = sort.removeprefix("-"), sorted(places, key=attrgetter("cvegeo"))
    known = [place for place in by_key if name != "poblacion" or place.poblacion != "-"]
    unknown = [place for place in by_key if place not in known]
    known.sort(key=KEYS[name], reverse=sort.startswith("-"))
    return [int(place.cvegeo) for place in [*known, *unknown]]


@pytest.fixture(scope="module")
def named_database(server: str, migrated: str) -> Iterator[str]:
    """Yield a template database with these names."""
    with database_with(server, migrated, {"2020-01": PLACES}) as url:
        yield url


@pytest.fixture(scope="module")
async def app(server: str, named_database: str) -> AsyncIterator[FastAPI]:
    with new_database(server, named_database) as url:
        async with running_app(url) as app:
            yield app


async def keys_of(client: httpx.AsyncClient, **asked: str) -> list[int]:
    """Return the keys of all records of a list, page after page."""
    pages = walk(client, f"{LOCALIDADES}?{urlencode(asked)}")
    return [record["id"] async for answer in pages for record in answer.json()["results"]]


async def test_names_are_folded_in_postgres_as_in_python_except_for_enye(named_database: str) -> None:
    database = create_async_engine(make_url(named_database).set(drivername="postgresql+asyncpg"))
    async with database.connect() as connection:
        rows = await connection.execute(select(localities.c.nombre, with_enye(localities.c.nombre)))
    await database.dispose()
    folded: dict[str, str] = dict(rows.all())
    assert {nombre: written.replace("{", "") for nombre, written in folded.items()} == {
        text: fold(text) for text in NAMES
    }
    assert folded["Peñón"] == "pen{on"


@pytest.mark.parametrize("sort", SORTS)
async def test_walking_a_sorted_list_yields_each_record_once_in_order(client: httpx.AsyncClient, sort: str) -> None:
    expected = ordered(sort)
    for size in ("1000", "17"):
        assert await keys_of(client, sort=sort, page_size=size) == expected
    chosen = [place for place in PLACES if place.cvegeo[:2] == "02" and place.ambito == "R"]
    assert await keys_of(client, sort=sort, estado_id="2", ambito="R", page_size="5") == ordered(sort, chosen)
    assert await keys_of(client, sort=sort, bbox="-180,0,0,90", page_size="50") == expected
    keys = set(await keys_of(client, sort="clave", search="pe", page_size="100"))
    assert len(keys) > 20
    searched = [place for place in PLACES if int(place.cvegeo) in keys]
    assert await keys_of(client, sort=sort, search="pe", page_size="15") == ordered(sort, searched)


@pytest.mark.parametrize(
    ("search", "named"),
    [("pen", {"Pen"}), ("peñón", {"Peñón", "Penón", "PEÑÓN"}), ("pen estado 2", {"Pen"}), ("abril", set[str]())],
)
async def test_relevance_prefers_suggestions_then_the_exact_name_prefixes_and_population(
    client: httpx.AsyncClient, search: str, named: set[str]
) -> None:
    keys = await keys_of(client, search=search, page_size="1000")
    at, begins = {int(place.cvegeo): place for place in PLACES}, fold(search)

    def rank(key: int) -> tuple[int, int, int]:
        name, people = at[key].nombre, at[key].poblacion
        return (0 if name in named else 1 if fold(name).startswith(begins) else 2), -int(people.replace("-", "-1")), key

    suggested = (await client.get(f"{LOCALIDADES}suggest/", params={"q": search, "limit": 20})).json()["results"]
    first = [place["id"] for place in suggested if place["id"] in keys]
    rest = sorted(set(keys) - {*first}, key=rank)
    assert first
    for other in (f"{search},", f"({search})"):  # which find the same places, and suggest others
        await keys_of(client, search=other, sort="relevance", page_size="16")
    assert await keys_of(client, search=search, sort="relevance", page_size="16") == [*first, *rest]
    rural = await keys_of(client, search=search, ambito="R", page_size="1000")
    filtered = await keys_of(client, search=search, sort="relevance", ambito="R", page_size="17")
    assert sorted(filtered) == sorted(rural)
    assert [key for key in filtered if key in first] == [key for key in first if key in rural]


@pytest.mark.parametrize("chosen", [{"estado_id": "2"}, {"estado_id": "2", "municipio_id": "2001"}])
async def test_relevance_begins_with_what_is_suggested_in_the_area(
    client: httpx.AsyncClient, chosen: dict[str, str]
) -> None:
    asked = {"q": "n", "limit": "20", **chosen}
    suggested = (await client.get(f"{LOCALIDADES}suggest/", params=asked)).json()["results"]
    keys = await keys_of(client, search="n", sort="relevance", page_size="1000", **chosen)
    assert suggested
    assert keys[: len(suggested)] == [place["id"] for place in suggested]


async def test_search_finds_all_places_however_many_it_reads_at_once(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = await keys_of(client, search="pe", page_size="1000")
    for piece in (5, len(keys) // 2, len(keys), len(keys) + 1):
        monkeypatch.setattr(query, "_PIECE", piece)
        box = f"-180,0,0,{80 + piece / 1000}"  # a selection that isn't held
        assert await keys_of(client, search="pe", bbox=box, page_size="1000") == keys


async def test_relevance_without_a_search_is_population(client: httpx.AsyncClient) -> None:
    by_relevance, by_population = [
        await keys_of(client, sort=sort, estado_id="2") for sort in ("relevance", "-poblacion")
    ]
    assert by_relevance == by_population


async def test_html_page_shows_what_it_is_sorted_by_and_links_to_other_orders(client: httpx.AsyncClient) -> None:
    asked = f"{LOCALIDADES}?estado_id=2&sort=-poblacion&page_size=20&page=2"
    page = Page.of(await client.get(asked, headers=BROWSER))
    chosen = {place.cvegeo: place.poblacion for place in PLACES if place.cvegeo[:2] == "02"}
    shown = [(row[-1], row[-2].strip().replace(",", "").replace("no data", "-")) for row in page.rows()]
    keys = ordered("-poblacion", [place for place in PLACES if place.cvegeo in chosen])[20:40]
    assert shown == [(f"{key:09d}", chosen[f"{key:09d}"]) for key in keys]
    heads = [head for head in page.all("th") if page.inside("a", of=head)]
    assert [(page.inside("a", of=head)[0].attributes["href"], head.attributes.get("aria-sort")) for head in heads] == [
        ("?estado_id=2&page_size=20&sort=nombre", None),
        ("?estado_id=2&page_size=20&sort=poblacion", "descending"),
        ("?estado_id=2&page_size=20", None),
    ]
