"""Search, order and columns of the lists of estados and municipios."""

import json
from collections.abc import AsyncIterator, Callable
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin

import httpx
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from localidades_api.app import create_app
from localidades_api.catalogue.schemas import Municipality, State
from localidades_api.settings import Settings
from tests.http.test_sort import spanish
from tests.support.application import client_of, import_into, running_app, walk
from tests.support.catalogue import Place, write_catalogue
from tests.support.pages import BROWSER, Page
from tests.support.postgres import new_database

CENSUS = "/api/census/"
ESTADOS = {
    "05": ("Coahuila de Zaragoza", "Coah."), "09": ("Ciudad de México", "-"), "14": ("Jalisco", "Jal."),
    "15": ("México", "Mex."), "20": ("Oaxaca", "Oax."), "23": ("Quintana Roo", "Q. Roo"),
}  # fmt: skip
# The municipio's key, its name, that of its cabecera, and how many localities it has.
AREAS = (
    ("05018", "Monclova", "Monclova", 3),
    ("09014", "Benito Juárez", "Benito Juárez", 1),
    ("14039", "Guadalajara", "Guadalajara", 4),
    ("14101", "Tonalá", "Tonalá", 2),
    ("14103", "Tonila", "Tonila", 1),
    ("15057", "Ñ", "Ñ", 2),
    ("15058", "Nuño", "Nuño", 1),
    ("15059", "Nunó", "Nunó", 1),
    ("15060", "Nunez", "Nunez", 1),
    ("15106", "Toluca", "Toluca de Lerdo", 2),
    ("20166", "San José Chiltepec", "San José Chiltepec", 1),
    ("20208", "San Juan Mixtepec", "San Juan Mixtepec", 1),
    ("20209", "San Juan Mixtepec", "San Juan Mixtepec", 3),
    ("20397", "Heroica Ciudad de Tlaxiaco", "Tlaxiaco", 1),
    ("23005", "Benito Juárez", "Cancún", 2),
)  # fmt: skip
PLACES = [
    Place(f"{key}{1 + at:04d}", f"Lugar {at}" if at else seat, nom_ent=ESTADOS[key[:2]][0], nom_abr=ESTADOS[key[:2]][1],
          nom_mun=nombre)
    for key, nombre, seat, count in AREAS
    for at in range(count)
]  # fmt: skip
MUNICIPIOS = [
    {"id": int(key), "estado_id": int(key[:2]), "clave": key[2:], "nombre": nombre, "localidades": count}
    for key, nombre, _, count in AREAS
]
STATES = [
    {"id": int(clave), "clave": clave, "nombre": nombre, "abreviatura": None if abreviatura == "-" else abreviatura}
    for clave, (nombre, abreviatura) in ESTADOS.items()
]
RECORDS: dict[str, list[dict[str, Any]]] = {"municipios": MUNICIPIOS, "estados": STATES}


def in_spanish(name: str) -> Any:  # noqa: ANN401  # a key to sort by
    return spanish(Place("010010001", name))


KEYS: dict[str, dict[str, Callable[[dict[str, Any]], Any]]] = {
    "municipios": {
        "id": itemgetter("id"),
        "clave": itemgetter("clave"),
        "nombre": lambda one: in_spanish(one["nombre"]),
        "estado": lambda one: in_spanish(ESTADOS[f"{one['estado_id']:02d}"][0]),
        "localidades": itemgetter("localidades"),
    },
    "estados": {
        "id": itemgetter("id"),
        "clave": itemgetter("clave"),
        "nombre": lambda one: in_spanish(one["nombre"]),
        "abreviatura": lambda one: in_spanish(one["abreviatura"]),
    },
}
SORTS = [(path, sign + name) for path, names in KEYS.items() for name in names for sign in ("", "-")]


def ordered(path: str, sort: str) -> list[dict[str, Any]]:
    """Return the records of a list in an order: those without a value last, and equals by id."""
    name = sort.removeprefix("-")
    known = [one for one in RECORDS[path] if one.get(name, "") is not None]
    unknown = [one for one in RECORDS[path] if one not in known]
    return [*sorted(known, key=KEYS[path][name], reverse=sort.startswith("-")), *unknown]


@pytest.fixture(scope="module")
async def client(
    server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of an application on these areas."""
    file: Path = write_catalogue(tmp_path_factory.mktemp("areas") / "catun_localidad_2020-01.csv", PLACES)
    with new_database(server, migrated) as url:
        await import_into(url, file)
        async with running_app(url) as app, client_of(app) as client:
            yield client


async def read(client: httpx.AsyncClient, path: str, **asked: str) -> list[dict[str, Any]]:
    """Return all records of a list, page after page."""
    pages = walk(client, f"{CENSUS}{path}/?{urlencode(asked)}")
    return [record async for answer in pages for record in answer.json()["results"]]


async def keys_of(client: httpx.AsyncClient, path: str, **asked: str) -> list[int]:
    return [record["id"] for record in await read(client, path, **asked)]


@pytest.mark.parametrize("path", ["municipios", "estados"])
async def test_list_without_parameters_is_as_it_was(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(f"{CENSUS}{path}/")
    assert answer.json() == {"quantity": len(RECORDS[path]), "total_pages": 1, "results": RECORDS[path]}
    link = f'</api/census/{path}/?page=1&format=json&release=2020-01>; rel="first"'
    assert answer.headers["link"].startswith(link)
    by_name = await client.get(f"{CENSUS}{path}/?sort=id")
    assert (by_name.content, by_name.headers["link"]) == (answer.content, answer.headers["link"])


# -- Order


@pytest.mark.parametrize(("path", "sort"), SORTS)
async def test_walking_a_sorted_list_yields_each_record_once_in_order(
    client: httpx.AsyncClient, path: str, sort: str
) -> None:
    for size in ("1000", "4"):
        assert await read(client, path, sort=sort, page_size=size) == ordered(path, sort)


async def test_order_is_kept_within_an_estado_and_a_search(client: httpx.AsyncClient) -> None:
    for sort in KEYS["municipios"]:
        for sign in ("", "-"):
            expected = [one["id"] for one in ordered("municipios", f"{sign}{sort}")]
            of_estado = await keys_of(client, "municipios", sort=f"{sign}{sort}", estado_id="15", page_size="2")
            assert of_estado == [id_ for id_ in expected if id_ // 1000 == 15]
            found = await keys_of(client, "municipios", sort=f"{sign}{sort}", search="san j", page_size="2")
            assert found == [id_ for id_ in expected if id_ in {20166, 20208, 20209}]


async def test_relevance_is_the_order_of_suggestions(client: httpx.AsyncClient) -> None:
    for kind, search in (
        ("municipio", "san j"),
        ("municipio", "juarez"),
        ("municipio", "benito juarez cdmx"),
        ("municipio", "cancun"),
        ("municipio", "tonla"),
        ("municipio", "mixtepec juan"),
        ("municipio", "t"),
        ("estado", "mexico"),
        ("estado", "o"),
    ):
        asked = {"q": search, "kind": kind, "limit": "20"}
        suggested = (await client.get(f"{CENSUS}localidades/suggest/", params=asked)).json()["results"]
        assert suggested, search
        # With letters wrong only if nothing else is found.
        expected = [one["id"] for one in suggested if one["match"] != "near"] or [one["id"] for one in suggested]
        found = await keys_of(client, f"{kind}s", search=search, sort="relevance", page_size="2")
        assert found == expected
        assert await keys_of(client, f"{kind}s", search=search, page_size="2") == sorted(found)
    assert await keys_of(client, "estados", search="mexico", sort="relevance") == [15, 9]
    assert await keys_of(client, "municipios", sort="relevance") == await keys_of(client, "municipios")


# -- Search


@pytest.mark.parametrize(
    ("search", "keys"),
    [
        ("TONALÁ", [14101]),
        ("san j", [20166, 20208, 20209]),
        ("benito juarez", [9014, 23005]),
        ("benito juárez, quintana roo", [23005]),
        ("Municipio de Toluca", [15106]),
        ("tlaxiaco", [20397]),
        ("Cancún", [23005]),
        ("lerdo", [15106]),
        ("San Juan Mixtepec (209), Oaxaca", [20209]),
        ("guadaljara", [14039]),
        ("14", [14039, 14101, 14103]),
        ("14103", [14103]),
        ("coahuila", [5018]),
        ("zzzzzz", []),
    ],
)
async def test_search_finds_what_people_type(client: httpx.AsyncClient, search: str, keys: list[int]) -> None:
    answer = await client.get(f"{CENSUS}municipios/", params={"search": search})
    expected = [one for one in MUNICIPIOS if one["id"] in keys]
    assert answer.json() == {"quantity": len(keys), "total_pages": bool(keys), "results": expected}
    pages = -(-len(keys) // 2)
    asked: dict[str, str | int] = {"search": search, "page_size": 2, "page": max(pages, 1) + 1}
    beyond = await client.get(f"{CENSUS}municipios/", params=asked)
    assert (beyond.status_code, beyond.json()["total_pages"]) == (404, pages)


async def test_estado_narrows_a_search_without_changing_its_meaning(client: httpx.AsyncClient) -> None:
    assert await keys_of(client, "municipios", search="benito", estado_id="23") == [23005]
    assert await keys_of(client, "municipios", search="tonala", estado_id="15") == []  # no letter is taken for wrong


@pytest.mark.parametrize(
    ("search", "keys"),
    [("jal", [14]), ("MEXICO", [9, 15]), ("roo quint", [23]), ("jalizco", [14]), ("05", [5]), ("14039", []), ("x", [])],
)
async def test_search_finds_estados(client: httpx.AsyncClient, search: str, keys: list[int]) -> None:
    answer = await client.get(f"{CENSUS}estados/", params={"search": search})
    expected = [one for one in STATES if one["id"] in keys]
    assert answer.json() == {"quantity": len(keys), "total_pages": bool(keys), "results": expected}
    assert (await client.get(f"{CENSUS}estados/", params={"search": search, "page": 2})).status_code == 404


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    typed=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=100)
    | st.text(st.sampled_from("asnjoe 0129'\"\\&|!():*%_<>-½º°`´"), min_size=1, max_size=100),
    path=st.sampled_from(["municipios", "estados"]),
)
async def test_any_text_is_answered(client: httpx.AsyncClient, typed: str, path: str) -> None:
    for format_ in ("json", "api"):
        answer = await client.get(f"{CENSUS}{path}/", params={"search": typed, "format": format_})
        assert answer.status_code == 200 or not typed.strip()  # blank


# -- Columns


@pytest.mark.parametrize(
    ("path", "model"), [("municipios", Municipality), ("estados", State)], ids=["municipios", "estados"]
)
async def test_fields_choose_the_members_of_a_record(
    client: httpx.AsyncClient, path: str, model: type[BaseModel]
) -> None:
    names = list(model.model_fields)
    described = create_app(Settings()).openapi()["components"]["schemas"][model.__name__]["properties"]
    assert list(described) == names
    for count in (1, 2, len(names)):
        for chosen in combinations(names, count):
            fields = ",".join(reversed(chosen))
            answer = await client.get(f"{CENSUS}{path}/", params={"fields": fields, "page_size": "1000"})
            expected = [{name: record[name] for name in chosen} for record in RECORDS[path]]
            assert answer.json()["results"] == expected
            assert all(list(record) == list(chosen) for record in answer.json()["results"])
            for name, value in answer.json()["results"][-1].items():
                jsonschema_rs.validate(described[name], value)


async def test_links_keep_search_order_and_columns(client: httpx.AsyncClient) -> None:
    asked = {"search": "juan", "estado_id": "20", "sort": "-nombre", "fields": "nombre,id,nombre", "page_size": "1"}
    answer = await client.get(f"{CENSUS}municipios/", params=asked)
    kept = "release=2020-01&search=juan&estado_id=20&sort=-nombre&fields=id%2Cnombre&page_size=1"
    assert f"</api/census/municipios/?page=2&format=json&{kept}>" in answer.headers["link"]
    following = await client.get(answer.links["next"]["url"])
    assert (following.json()["quantity"], following.json()["total_pages"]) == (2, 2)
    assert following.json()["results"] == [{"id": 20209, "nombre": "San Juan Mixtepec"}]
    estados = await client.get(f"{CENSUS}estados/", params={"sort": "-abreviatura", "search": "o", "page_size": "1"})
    assert "release=2020-01&search=o&sort=-abreviatura&page_size=1>" in estados.headers["link"]


# -- Errors


SORTS_OF_MUNICIPIOS = "id, -id, clave, -clave, nombre, -nombre, estado, -estado, localidades, -localidades, relevance."


@pytest.mark.parametrize(
    ("query", "parameter", "message"),
    [
        ("municipios/?sort=Nombre", "sort", f"Did you mean `nombre`? This parameter takes: {SORTS_OF_MUNICIPIOS}"),
        ("municipios/?sort=poblacion", "sort", f"This parameter takes: {SORTS_OF_MUNICIPIOS}"),
        (
            "estados/?sort=localidades", "sort",
            "This parameter takes: id, -id, clave, -clave, nombre, -nombre, abreviatura, -abreviatura, relevance.",
        ),
        (
            "municipios/?fields=id,nombr", "fields",
            "Did you mean `nombre`? This parameter takes, separated by commas: id, estado_id, clave, nombre,"
            " localidades.",
        ),
        (
            "estados/?fields=estado_id", "fields",
            "This parameter takes, separated by commas: id, clave, nombre, abreviatura.",
        ),
        (f"estados/?search={'a' * 101}", "search", "Give 100 or fewer characters."),
        *((f"{path}/?search={blank}", "search", "Give 1 or more characters.")
          for path in ("localidades", "municipios", "estados") for blank in ("", "%20")),
        ("estados/?estado_id=1", "estado_id",
         "Unknown parameter. This resource takes: format, lang, release, page, page_size, search, sort, fields."),
    ],
)  # fmt: skip
async def test_what_a_list_does_not_take_is_refused(
    client: httpx.AsyncClient, query: str, parameter: str, message: str
) -> None:
    answer = await client.get(f"{CENSUS}{query}")
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert (fault["parameter"], fault["message"]) == (parameter, message)


@pytest.mark.parametrize("path", ["municipios", "estados"])
async def test_fields_are_refused_for_an_html_page(client: httpx.AsyncClient, path: str) -> None:
    page = await client.get(f"{CENSUS}{path}/?fields=id", headers=BROWSER)
    assert page.status_code == 422
    assert "<code>fields</code>: An HTML page has columns of its own" in page.text


# -- Caching


async def test_search_of_a_named_release_also_depends_on_the_names_of_earlier_ones(client: httpx.AsyncClient) -> None:
    plain = await client.get(f"{CENSUS}municipios/?release=2020-01")
    assert "max-age=86400" in plain.headers["cache-control"]
    searched = await client.get(f"{CENSUS}municipios/?release=2020-01&search=a")
    assert "max-age=60" in searched.headers["cache-control"]
    digest = searched.headers["etag"].split(".")[2]
    suggested = await client.get(f"{CENSUS}localidades/suggest/?q=a&release=2020-01")
    assert (len(digest), suggested.headers["etag"].split(".")[2]) == (12, digest)
    assert plain.headers["etag"].count(".") == 2


# -- Pages


@pytest.mark.parametrize(("path", "default"), [("municipios", "id"), ("estados", "id")])
async def test_page_links_to_every_order_and_marks_the_current_one(
    client: httpx.AsyncClient, path: str, default: str
) -> None:
    shown = {"municipios": ["nombre", "estado", "localidades", "id"], "estados": ["nombre", "id"]}[path]
    for sort in [sign + name for name in shown for sign in ("", "-")]:
        page = Page.of(await client.get(f"{CENSUS}{path}/?search=j&page_size=2&sort={sort}", headers=BROWSER))
        heads = [head for head in page.all("th") if page.inside("a", of=head)]
        links = [parse_qs(page.inside("a", of=head)[0].attributes["href"].removeprefix("?")) for head in heads]
        assert all((link["search"], link["page_size"]) == (["j"], ["2"]) and "page" not in link for link in links)
        reverse = sort.removeprefix("-") if sort.startswith("-") else f"-{sort}"
        first = {name: f"-{name}" if name == "localidades" else name for name in shown}
        offered = [link.get("sort", [default])[0] for link in links]
        assert offered == [reverse if name == sort.removeprefix("-") else first[name] for name in shown]
        direction = "descending" if sort.startswith("-") else "ascending"
        assert [head.attributes.get("aria-sort") for head in heads] == [
            direction if name == sort.removeprefix("-") else None for name in shown
        ]


async def test_page_of_estados_counts_what_each_has(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{CENSUS}estados/", headers=BROWSER))
    download = (await client.get(f"{CENSUS}localidades/download/?format=ndjson")).text.splitlines()
    places = [json.loads(line) for line in download]
    assert page.rows()
    for name, municipios, localidades, population, clave in page.rows():
        (of_estado,) = [[one for one in places if one["estado_id"] == int(clave)]]
        assert name in {one["estado"] for one in of_estado}
        assert int(municipios) == len({one["municipio_id"] for one in of_estado})
        assert int(localidades) == len(of_estado)
        assert int(population.replace(",", "")) == sum(one["poblacion"] or 0 for one in of_estado)
    drawn = [one.attributes["href"] for one in page.all("a") if "tabindex" in one.attributes]
    assert drawn == ["14/"]  # which has most of the places at the point that all share


@pytest.mark.parametrize(
    ("path", "sort", "language", "caption"),
    [
        ("municipios", "", "en", "Municipios, sorted by key"),
        ("municipios", "-nombre", "en", "Municipios, sorted by name"),
        ("municipios", "estado", "es", "Municipios, ordenados por estado"),
        ("municipios", "localidades", "es", "Municipios, ordenados por número de localidades"),
        ("municipios", "relevance", "en", "Municipios, sorted by relevance"),
        ("municipios", "clave", "es", "Municipios, ordenados por clave"),
        ("estados", "-id", "en", "Estados, sorted by key"),
        ("estados", "nombre", "es", "Estados, ordenados por nombre"),
        ("estados", "-abreviatura", "en", "Estados, sorted by abbreviation"),
        ("estados", "relevance", "es", "Estados, ordenados por relevancia"),
    ],
)
async def test_page_says_how_it_is_sorted(
    client: httpx.AsyncClient, path: str, sort: str, language: str, caption: str
) -> None:
    asked = {"lang": language} | ({"sort": sort} if sort else {})
    page = Page.of(await client.get(f"{CENSUS}{path}/", params=asked, headers=BROWSER))
    assert page.one("caption").text == caption


async def test_page_shows_what_was_searched(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{CENSUS}municipios/?search=cancun&estado_id=23&lang=es", headers=BROWSER))
    assert [row[:2] for row in page.rows()] == [["Benito Juárez", "Quintana Roo"]]
    field = page.one("input", id="search")
    assert (field.attributes["value"], field.attributes["data-kinds"]) == ("cancun", "municipio")
    assert "Filtros (2)" in [one.text for one in page.all("summary")]
    cleared = [link for link in page.all("a") if link.text == "Quitar filtros"]
    assert [link.attributes["href"] for link in cleared] == ["./?lang=es"]
    estados = Page.of(await client.get(f"{CENSUS}estados/?search=mex", headers=BROWSER))
    assert [row[0] for row in estados.rows()] == ["Ciudad de México", "México"]
    assert estados.one("input", id="search").attributes["data-kinds"] == "estado"


@pytest.mark.parametrize("path", ["municipios", "estados"])
async def test_page_without_results_says_so(client: httpx.AsyncClient, path: str) -> None:
    page = Page.of(await client.get(f"{CENSUS}{path}/?search=zzzzzz", headers=BROWSER))
    assert page.of_class("p", "amount").text == "0 records"
    assert page.all("table") == []
    assert "No results." in [one.text for one in page.all("p")]


@pytest.mark.parametrize(
    ("path", "typed", "arrival"),
    [
        ("municipios", {"search": "san juan"}, "../?search=san+juan&sort=relevance"),
        ("municipios", {"search": " Cancún ", "estado_id": "23"},
         "../?search=Canc%C3%BAn&estado_id=23&sort=relevance"),
        ("municipios", {"search": " \u00a0", "estado_id": "23"}, "../?estado_id=23"),
        ("municipios", {"search": "14039"}, "../14039/"),
        ("municipios", {"search": "14"}, "../../estados/14/"),
        ("municipios", {"search": "140390001"}, "../../localidades/140390001/"),
        ("municipios", {}, "../"),
        ("estados", {"search": "jal"}, "../?search=jal&sort=relevance"),
        ("estados", {"search": "05"}, "../5/"),
        ("estados", {"search": "05018"}, "../../municipios/5018/"),
    ],
)  # fmt: skip
async def test_form_leads_to_the_list_or_to_the_page_of_a_key(
    client: httpx.AsyncClient, path: str, typed: dict[str, str], arrival: str
) -> None:
    target = f"{CENSUS}{path}/"
    page = Page.of(await client.get(target, headers=BROWSER))
    form = page.of_class("form", "filters")
    action = urljoin(target, form.attributes["action"])
    moved = await client.get(action, params=page.fields(form) | typed)
    assert (moved.status_code, moved.headers["location"]) == (303, arrival)
    assert (await client.get(urljoin(action, arrival))).status_code == 200


async def test_form_keeps_the_order_that_was_chosen(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{CENSUS}municipios/?format=api&sort=-localidades&page_size=5&lang=es"))
    sent = page.fields(page.of_class("form", "filters"))
    assert (sent["sort"], sent["page_size"], sent["lang"]) == ("-localidades", "5", "es")
    moved = await client.get(f"{CENSUS}municipios/filter/", params={**sent, "search": "juan"})
    assert moved.headers["location"] == "../?lang=es&page_size=5&sort=-localidades&search=juan"
