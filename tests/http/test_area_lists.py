"""Search, order and columns of the lists of estados and municipios."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin

import httpx
import pytest

from tests.http.test_sort import spanish
from tests.support.application import client_of, database_with, running_app, walk
from tests.support.catalogue import Place
from tests.support.pages import BROWSER, Page

CENSUS = "/api/census/"
ESTADOS = {
    "05": ("Coahuila de Zaragoza", "Coah."), "09": ("Ciudad de México", "-"), "14": ("Jalisco", "Jal."),
    "15": ("México", "Mex."), "20": ("Oaxaca", "Oax."), "23": ("Quintana Roo", "Q. Roo"),
}  # fmt: skip
# The municipio's key, its name, that of its cabecera, and how many localities it has.
AREAS = (
    ("05018", "Monclova", "Monclova", 3), ("09014", "Benito Juárez", "Benito Juárez", 1),
    ("14039", "Guadalajara", "Guadalajara", 4), ("14101", "Tonalá", "Tonalá", 2), ("14103", "Tonila", "Tonila", 1),
    ("15057", "Ñ", "Ñ", 2), ("15058", "Nuño", "Nuño", 1), ("15059", "Nunó", "Nunó", 1), ("15060", "Nunez", "Nunez", 1),
    ("15106", "Toluca", "Toluca de Lerdo", 2), ("20166", "San José Chiltepec", "San José Chiltepec", 1),
    ("20208", "San Juan Mixtepec", "San Juan Mixtepec", 1), ("20209", "San Juan Mixtepec", "San Juan Mixtepec", 3),
    ("20397", "Heroica Ciudad de Tlaxiaco", "Tlaxiaco", 1), ("23005", "Benito Juárez", "Cancún", 2),
)  # fmt: skip
PLACES = [
    Place(f"{key}{1 + at:04d}", f"Lugar {at}" if at else seat, nom_ent=ESTADOS[key[:2]][0], nom_abr=ESTADOS[key[:2]][1],
          nom_mun=nombre)
    for key, nombre, seat, count in AREAS
    for at in range(count)
]  # fmt: skip
RECORDS: dict[str, list[dict[str, Any]]] = {
    "municipios": [
        {"id": int(key), "estado_id": int(key[:2]), "clave": key[2:], "nombre": nombre, "localidades": count}
        for key, nombre, _, count in AREAS
    ],
    "estados": [
        {"id": int(clave), "clave": clave, "nombre": nombre, "abreviatura": None if short == "-" else short}
        for clave, (nombre, short) in ESTADOS.items()
    ],
}
SORTED = {
    "municipios": ("id", "clave", "nombre", "estado", "localidades"),
    "estados": ("id", "clave", "nombre", "abreviatura"),
}
SORTS = [(path, sign + name) for path, names in SORTED.items() for name in names for sign in ("", "-")]


def ordered(path: str, sort: str) -> list[dict[str, Any]]:
    """Return the records of a list in an order: those without a value last, and equals by id."""
    name = sort.removeprefix("-")

    def key(record: dict[str, Any]) -> Any:  # noqa: ANN401  # a key to sort by
        value = ESTADOS[f"{record['estado_id']:02d}"][0] if name == "estado" else record[name]
        return spanish(Place("010010001", value)) if name in {"nombre", "estado", "abreviatura"} else value

    known = [record for record in RECORDS[path] if record.get(name, "") is not None]
    unknown = [record for record in RECORDS[path] if record not in known]
    return [*sorted(known, key=key, reverse=sort.startswith("-")), *unknown]


@pytest.fixture(scope="module")
async def client(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of an application on these areas."""
    with database_with(server, migrated, {"2020-01": PLACES}) as url:
        async with running_app(url) as app, client_of(app) as client:
            yield client


async def read(client: httpx.AsyncClient, path: str, **asked: str) -> list[dict[str, Any]]:
    """Return all records of a list, page after page."""
    pages = walk(client, f"{CENSUS}{path}/?{urlencode(asked)}")
    return [record async for answer in pages for record in answer.json()["results"]]


async def keys_of(client: httpx.AsyncClient, path: str, **asked: str) -> list[int]:
    return [record["id"] for record in await read(client, path, **asked)]


# -- Order


@pytest.mark.parametrize(("path", "sort"), SORTS)
async def test_walking_a_sorted_list_yields_each_record_once_in_order(
    client: httpx.AsyncClient, path: str, sort: str
) -> None:
    expected = ordered(path, sort)
    assert await read(client, path, sort=sort, page_size="4") == expected
    if path == "municipios":
        of_estado = await read(client, path, sort=sort, estado_id="15", page_size="2")
        assert of_estado == [record for record in expected if record["estado_id"] == 15]
        keys = await keys_of(client, path, sort=sort, search="san j", page_size="2")
        assert keys == [record["id"] for record in expected if record["id"] in {20166, 20208, 20209}]


@pytest.mark.parametrize(
    ("kind", "search"),
    [
        ("municipio", "san j"), ("municipio", "cancun"), ("municipio", "tonla"), ("estado", "mexico"),
    ],
)  # fmt: skip
async def test_relevance_is_the_order_of_suggestions(client: httpx.AsyncClient, kind: str, search: str) -> None:
    asked = {"q": search, "kind": kind, "limit": "20"}
    suggested = (await client.get(f"{CENSUS}localidades/suggest/", params=asked)).json()["results"]
    assert suggested
    # With letters wrong only if nothing else is found.
    expected = [place["id"] for place in suggested if place["match"] != "near"] or [place["id"] for place in suggested]
    keys = await keys_of(client, f"{kind}s", search=search, sort="relevance", page_size="2")
    assert keys == expected
    assert await keys_of(client, f"{kind}s", search=search, page_size="2") == sorted(keys)


# -- Search


@pytest.mark.parametrize(
    ("path", "search", "keys"),
    [
        ("municipios", "san j", [20166, 20208, 20209]), ("municipios", "14103", [14103]), ("municipios", "zzzzzz", []),
        ("estados", "MEXICO", [9, 15]), ("estados", "14039", []),
    ],
)  # fmt: skip
async def test_search_finds_what_people_type(
    client: httpx.AsyncClient, path: str, search: str, keys: list[int]
) -> None:
    answer = await client.get(f"{CENSUS}{path}/", params={"search": search})
    expected = [record for record in RECORDS[path] if record["id"] in keys]
    assert answer.json() == {"quantity": len(keys), "total_pages": bool(keys), "results": expected}
    pages = -(-len(keys) // 2)
    asked: dict[str, str | int] = {"search": search, "page_size": 2, "page": max(pages, 1) + 1}
    beyond = await client.get(f"{CENSUS}{path}/", params=asked)
    assert (beyond.status_code, beyond.json()["total_pages"]) == (404, pages)


async def test_estado_narrows_a_search_without_changing_its_meaning(client: httpx.AsyncClient) -> None:
    assert await keys_of(client, "municipios", search="benito", estado_id="23") == [23005]
    assert await keys_of(client, "municipios", search="tonala", estado_id="15") == []  # no letter is taken for wrong


async def test_municipios_of_one_name_have_their_claves_in_labels(client: httpx.AsyncClient) -> None:
    near = (await client.get(f"{CENSUS}localidades/nearest/?lat=21.88&lon=-102.3&limit=100")).json()["results"]
    assert [row["label"].partition(", ")[2] for row in near if row["nombre"] in {"San Juan Mixtepec", "Cancún"}] == [
        "San Juan Mixtepec (208), Oaxaca", "San Juan Mixtepec (209), Oaxaca", "Benito Juárez, Quintana Roo",
    ]  # fmt: skip


# -- Columns and links


async def test_links_keep_search_order_and_columns(client: httpx.AsyncClient) -> None:
    asked = {"search": "juan", "estado_id": "20", "sort": "-nombre", "fields": "nombre,id,nombre", "page_size": "1"}
    answer = await client.get(f"{CENSUS}municipios/", params=asked)
    kept = "release=2020-01&search=juan&estado_id=20&sort=-nombre&fields=id%2Cnombre&page_size=1"
    assert f"</api/census/municipios/?page=2&format=json&{kept}>" in answer.headers["link"]
    following = await client.get(answer.links["next"]["url"])
    assert following.json() == {
        "quantity": 2, "total_pages": 2, "results": [{"id": 20209, "nombre": "San Juan Mixtepec"}],
    }  # fmt: skip
    by_default = await client.get(f"{CENSUS}estados/?sort=id")
    assert by_default.headers["link"] == (await client.get(f"{CENSUS}estados/")).headers["link"]


# -- Pages


@pytest.mark.parametrize(
    ("path", "sort", "caption", "orders"),
    [
        ("municipios", "-nombre", "Municipios, sorted by name", ["nombre", "estado", "-localidades", "id"]),
        ("municipios", "-id", "Municipios, sorted by key", ["nombre", "estado", "-localidades", "id"]),
        ("estados", "nombre", "Estados, sorted by name", ["-nombre", "id"]),
    ],
)  # fmt: skip
async def test_page_links_to_every_order_and_says_the_current_one(
    client: httpx.AsyncClient, path: str, sort: str, caption: str, orders: list[str]
) -> None:
    page = Page.of(await client.get(f"{CENSUS}{path}/?search=j&page_size=2&sort={sort}", headers=BROWSER))
    assert page.one("caption").text == caption
    heads = [head for head in page.all("th") if page.inside("a", of=head)]
    links = [parse_qs(page.inside("a", of=head)[0].attributes["href"].removeprefix("?")) for head in heads]
    assert all((link["search"], link["page_size"]) == (["j"], ["2"]) and "page" not in link for link in links)
    assert [link.get("sort", ["id"])[0] for link in links] == orders
    direction = "descending" if sort.startswith("-") else "ascending"
    marks = [head.attributes.get("aria-sort") for head in heads]
    assert marks == [direction if order.endswith(sort.removeprefix("-")) else None for order in orders]


async def test_page_of_estados_counts_what_each_has(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{CENSUS}estados/", headers=BROWSER))
    download = (await client.get(f"{CENSUS}localidades/download/?format=ndjson")).text.splitlines()
    places = [json.loads(line) for line in download]
    expected = []
    for estado in ordered("estados", "id"):
        within = [place for place in places if place["estado_id"] == estado["id"]]
        counts = len({place["municipio_id"] for place in within}), len(within)
        expected.append([estado["nombre"], *map(str, counts), "0", estado["clave"]])
    assert sorted(page.rows(), key=lambda row: row[-1]) == expected
    drawn = [link.attributes["href"] for link in page.all("a") if "tabindex" in link.attributes]
    assert drawn == ["14/"]  # which has most of the places at the point that all share


async def test_page_shows_what_was_searched(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{CENSUS}municipios/?search=cancun&estado_id=23&lang=es", headers=BROWSER))
    assert [row[:2] for row in page.rows()] == [["Benito Juárez", "Quintana Roo"]]
    field = page.one("input", id="search")
    assert (field.attributes["value"], field.attributes["data-kinds"]) == ("cancun", "municipio")
    assert "Filtros (2)" in [summary.text for summary in page.all("summary")]
    empty = Page.of(await client.get(f"{CENSUS}estados/?search=zzzzzz", headers=BROWSER))
    assert empty.one("input", id="search").attributes["data-kinds"] == "estado"
    assert (empty.of_class("p", "amount").text, empty.all("table")) == ("0 records", [])
    assert "No results." in [paragraph.text for paragraph in empty.all("p")]


@pytest.mark.parametrize(
    ("path", "typed", "arrival"),
    [
        ("municipios", {"search": " Cancún ", "estado_id": "23"}, "../?search=Canc%C3%BAn&estado_id=23&sort=relevance"),
        ("municipios", {"search": " \u00a0", "estado_id": "23"}, "../?estado_id=23"),
        ("municipios", {"search": "14039"}, "../14039/"),
        ("municipios", {"sort": "-localidades", "search": "juan"}, "../?sort=-localidades&search=juan"),
        ("estados", {"search": "05018"}, "../../municipios/5018/"),
    ],
)
async def test_form_leads_to_the_list_or_to_the_page_of_a_key(
    client: httpx.AsyncClient, path: str, typed: dict[str, str], arrival: str
) -> None:
    action = f"{CENSUS}{path}/filter/"
    moved = await client.get(action, params=typed)
    assert (moved.status_code, moved.headers["location"]) == (303, arrival)
    assert (await client.get(urljoin(action, arrival))).status_code == 200
