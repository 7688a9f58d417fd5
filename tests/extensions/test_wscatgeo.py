"""A reimplementation of INEGI's web service: members, their order and types, paths, errors."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import Place, write_catalogue
from tests.support.postgres import LOCALE_C, database_of_locale

V1, V2 = "/wscatgeo/", "/wscatgeo/v2/"


MAX_FOUND = 10_000  # docs/guides/wscatgeo.md
LAST_MUNICIPIO = "32999"  # the highest key that a catalogue can have
HILL = Place(f"{LAST_MUNICIPIO}0002", "Último Ñandú", nom_ent="Zacatecas", nom_mun="Último Ñandú", altitud="50")


@pytest.fixture(scope="module")
async def many_names(server: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Lend a client of an application on as many names as a search may find and two more, in the locale C."""
    aldeas = [Place(f"01{1 + n // 5000:03d}{1 + n % 5000:04d}", f"Aldea Lugar {n}") for n in range(MAX_FOUND)]
    places = [*aldeas, Place("010030001", "Otro lugar"), HILL]
    file = write_catalogue(tmp_path_factory.mktemp("names") / "catun_localidad_2020-01.csv", places)
    with database_of_locale(server, LOCALE_C) as url:
        await import_into(url, file)
        async with running_app(url, in_background=False) as app, client_of(app) as client:
            yield client


async def read(client: httpx.AsyncClient, target: str) -> dict[str, Any]:
    """Return the document at a path; check that it is compact."""
    answer = await client.get(target)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    document: dict[str, Any] = answer.json()
    assert answer.text == json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return document


async def refused(client: httpx.AsyncClient, target: str) -> str:
    """Return the error message of a path."""
    document = await read(client, target)
    assert (list(document), document["result"]) == (["result", "mensaje"], "404")
    return str(document["mensaje"])


async def test_values_are_written_as_inegi_writes_them(client: httpx.AsyncClient) -> None:
    rows = {row["cve_loc"]: row for row in (await read(client, f"{V1}localidades/01/001"))["datos"]}
    assert (rows["0001"]["ambito"], rows["0001"]["altitud"], rows["0001"]["pob"]) == ("URBANO", "1885", "863893")
    every = (await read(client, f"{V2}mgee"))["datos"]
    assert every[0] == (await read(client, f"{V2}mgee/01"))["datos"]
    assert [row["cvegeo"] for row in every] == sorted(row["cvegeo"] for row in every)
    listed = (await read(client, f"{V2}mgem/01"))["datos"]
    assert (await read(client, f"{V2}mgem/01/001"))["datos"] == listed[:1]
    assert listed[0]["pob_total"] != "-"
    [alcaldia] = (await read(client, f"{V2}mgem/09/002"))["datos"]
    assert (alcaldia["cvegeo"], alcaldia["cve_cab"]) == ("09002", "----")


@pytest.mark.parametrize(
    "spellings",
    [
        ("mgee", "mgee/"),
        ("mgee/01", "mgee/01/", "mgee/1"),
        ("mgem", "mgem/", "mgem/agem/"),
        ("mgem/01", "mgem/01/"),
        ("mgem/01/001", "mgem/01/001/", "mgem/01001", "mgem/01001/", "mgem/1/1", "mgem/01/1/", "mgem/1001"),
        ("mgee/buscar/agua", "mgee/buscar/AGUA/", "mgee/buscar/agua?otro=1"),
        ("localidades/01/001", "localidades/01001", "localidades/01/001/", "localidades/1/1", "localidades/01/01/"),
        ("localidades/01/001/R", "localidades/01001/r", "localidades/1/1/R"),
        (
            "localidades/010010006",
            "localidades/01/001/0006",
            "localidades/1/1/6",
            "localidades/01001/6",
            "localidades/10010006",
            "localidades/01/0010006",
            "localidades/buscar/pe%C3%B1%C3%B3n%20%C3%B1",
            "localidades/buscar/pe%C3%B1%C3%B3n+%C3%B1",
        ),
    ],
)
async def test_spellings_of_a_path_are_equivalent(client: httpx.AsyncClient, spellings: tuple[str, ...]) -> None:
    for base in (V1, V2):
        documents = [await read(client, base + spelling) for spelling in spellings]
        assert documents[0]["datos"]
        assert documents == [documents[0]] * len(documents)


async def test_ambito_filters_localities(client: httpx.AsyncClient) -> None:
    every, rural, urban = [
        (await read(client, f"{V2}localidades/01/001{ambito}"))["datos"] for ambito in ("", "/R", "/U")
    ]
    assert [row["cvegeo"] for row in urban] == ["010010001"]
    assert sorted(rural + urban, key=lambda row: row["cvegeo"]) == every


async def test_search_matches_substrings_with_accents(client: httpx.AsyncClient) -> None:
    found = (await read(client, f"{V1}localidades/buscar/ñandú"))["datos"]
    assert [row["nom_loc"] for row in found] == ["Peñón Ñandú  Doble"]
    assert await refused(client, f"{V1}localidades/buscar/nandu") == (
        "El texto no existe en los nombres de las localidades."
    )
    assert await refused(client, f"{V1}mgee/buscar/%25") == "El texto no existe en los nombres de las entidades."


async def test_search_finds_as_many_names_as_are_allowed_and_the_last_in_any_locale(
    many_names: httpx.AsyncClient,
) -> None:
    document = await read(many_names, f"{V2}localidades/buscar/aldea")
    assert (document["numReg"], len(document["datos"])) == (MAX_FOUND, MAX_FOUND)
    assert "más de 10,000 nombres" in await refused(many_names, f"{V2}localidades/buscar/lugar")
    for words in ("ÚLTIMO ÑANDÚ", "último ñandú"):
        [found] = (await read(many_names, f"{V2}localidades/buscar/{words}"))["datos"]
        assert (found["cvegeo"], found["altitud"]) == (HILL.cvegeo, "0050")


async def test_lists_end_with_the_last_key_which_may_have_no_cabecera(many_names: httpx.AsyncClient) -> None:
    for level in ("mgee", "mgem"):
        last = (await read(many_names, f"{V2}{level}"))["datos"][-1]
        assert last["cvegeo"] == LAST_MUNICIPIO[: len(last["cvegeo"])]
    [area] = (await read(many_names, f"{V2}mgem/buscar/último"))["datos"]
    assert (area["cvegeo"], area["pob_total"], "cve_cab" in area) == (LAST_MUNICIPIO, "-", False)


async def test_what_is_refused_is_explained(client: httpx.AsyncClient) -> None:
    for path in ("mgee/99", "mgem/99", "mgem/01/999", "localidades/01/999", "localidades/010019999"):
        assert (await refused(client, V2 + path)).startswith("La clave no existe entre "), path
    for path in (
        "geo/mgem/14", "mgel/14", "localidades", "localidades/14", "mgee/014", "v2/mgee", "mgee/١٤", "mgem/14/٠٣٩",
        "localidades/14/039/٠٠٠١", "mgee/１４", "mgem/014/039", "mgem/14/0039", "localidades/14/39001",
        "localidades/14/39/00001", "", "localidades/14/39/1/R", "geo/localidades/pol/01001", "mloc/01/001/",
        "asentamientos/01/001",
    ):  # fmt: skip
        assert "Calles, asentamientos y contornos" in await refused(client, V2 + path), path
    for words in ("%00", "a" * 101, "/", "%09"):
        assert "de 1 a 100 letras" in await refused(client, f"{V1}localidades/buscar/{words}"), words


async def test_release_can_be_chosen(client: httpx.AsyncClient) -> None:
    assert await read(client, f"{V2}mgee?release=2020-01") == await read(client, f"{V2}mgee")
    assert "`release`" in await refused(client, f"{V2}mgee?release=1999-01")
