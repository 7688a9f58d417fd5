"""`fields` of a match: columns of the matched place, as the list and the downloads have them."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from localidades_api.app import create_app
from localidades_api.catalogue.columns import COLUMNS, MATCHED, RECORD
from localidades_api.settings import Settings
from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import Place, write_catalogue
from tests.support.wire import LOCALIDADES

MATCH = f"{LOCALIDADES}match/"
NUMBERS = [name for name in MATCHED if COLUMNS[name].kind in {"integer", "number"}]
# Whole degrees, which Postgres writes without a fraction; six decimals; unknown values.
PLACES = [
    Place("010010001", "Uno", latitud="21.0", longitud="-102.0", poblacion="0", viviendas="0", ambito="U"),
    Place("010010002", "Dos", latitud="21.880001", longitud="-102.100000", altitud="-3", poblacion="12"),
    Place("010010003", "Tres", latitud="-", longitud="-", altitud="-", viviendas="7", ambito="-"),
    Place("010010004", "Cuatro", latitud="14.5", longitud="-118.407654", altitud="0"),
]


async def post(client: httpx.AsyncClient, rows: list[dict[str, str]], fields: str) -> httpx.Response:
    return await client.post(MATCH, params={"fields": fields}, json={"rows": rows})


async def matched(client: httpx.AsyncClient, rows: list[dict[str, str]], fields: str) -> list[dict[str, Any]]:
    answer = await post(client, rows, fields)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def test_fields_are_the_values_that_the_download_has(client: httpx.AsyncClient) -> None:
    """Keys are text with their zeros in both."""
    lines = (await client.get(f"{LOCALIDADES}download/?format=ndjson")).text.splitlines()
    places = [json.loads(line) for line in lines]
    found = await matched(client, [{"cvegeo": place["cvegeo"]} for place in places], ",".join(MATCHED))
    assert len(found) == 132
    for one, place in zip(found, places, strict=True):
        assert {name: one[name] for name in MATCHED} == {name: place[name] for name in MATCHED}


async def test_numbers_are_written_as_in_the_list(database: str, tmp_path: Path) -> None:
    await import_into(database, write_catalogue(tmp_path / "catun_localidad_2020-01.csv", PLACES))
    shared = ",".join(name for name in RECORD if name in NUMBERS)
    async with running_app(database) as app, client_of(app) as client:
        listed = (await client.get(LOCALIDADES, params={"fields": shared})).text
        answers = (await post(client, [{"cvegeo": place.cvegeo} for place in PLACES], shared)).text
        table = await client.post(
            MATCH,
            params={"fields": shared, "format": "csv"},
            json={"rows": [{"cvegeo": place.cvegeo} for place in PLACES]},
        )
        download = await client.get(f"{LOCALIDADES}download/?format=csv")
    for name in NUMBERS:
        texts = re.findall(rf'"{name}":([^,}}]+)', listed)
        assert len(texts) == len(PLACES)
        assert re.findall(rf'"{name}":([^,}}]+)', answers) == texts
        in_table = [row[f"match_{name}"] for row in csv.DictReader(io.StringIO(table.text))]
        assert in_table == [row[name] for row in csv.DictReader(io.StringIO(download.text))]
    assert re.findall('"latitud":([^,}]+)', listed) == ["21", "21.880001", "null", "14.5"]


async def test_table_that_is_sent_has_the_fields_beside_its_columns(client: httpx.AsyncClient) -> None:
    """`fields` is not the role of a column."""
    answer = await client.post(
        MATCH, params={"fields": "clave"}, content="folio,cvegeo\n7,010010002\n", headers={"content-type": "text/csv"}
    )
    [row] = csv.DictReader(io.StringIO(answer.text))
    assert list(row)[:6] == ["folio", "cvegeo", "match_outcome", "match_cvegeo", "match_label", "match_clave"]
    assert (row["folio"], row["match_cvegeo"], row["match_clave"]) == ("7", "010010002", "0002")


async def test_candidates_have_the_fields(client: httpx.AsyncClient) -> None:
    [found] = await matched(client, [{"nombre": "Ninguno", "municipio": "Municipio 001", "estado": "Ags."}], "clave")
    assert found["outcome"] == "ambiguous"
    assert [one["clave"] for one in found["candidates"]] == ["0002", "0003"]
    assert "nombre" not in found


async def test_fields_come_once_in_the_order_of_the_table(client: httpx.AsyncClient) -> None:
    rows = [{"cvegeo": "010010001"}]
    [found] = await matched(client, rows, "viviendas,cve_mun,nombre,cve_mun")
    assert list(found)[5:10] == ["label", "nombre", "cve_mun", "viviendas", "score"]
    assert (await post(client, rows, "nombre,municipio,estado")).content == (
        await client.post(MATCH, json={"rows": rows})
    ).content


async def test_answer_with_every_field_matches_its_schema(client: httpx.AsyncClient) -> None:
    schemas = create_app(Settings()).openapi()["components"]["schemas"]
    rows = [{"nombre": "Ninguno", "municipio": "Municipio 001"}, {"cvegeo": "010020001"}, {"nombre": "Xochitepec"}, {}]
    found = await matched(client, rows, ",".join(MATCHED))
    assert [one["outcome"] for one in found] == ["ambiguous", "exact", "none", "problem"]
    for name, one in [("Match", found[0]), ("Match", found[1]), ("Match", found[2]), ("Match", found[3]),
                      ("MatchCandidate", found[0]["candidates"][0])]:  # fmt: skip
        assert set(MATCHED) <= one.keys() == schemas[name]["properties"].keys()
        assert not set(MATCHED) & set(schemas[name]["required"])
        for field in MATCHED:
            jsonschema_rs.validate(schemas[name]["properties"][field], one[field])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("poblacio", "poblacion"), ("Nombre", "nombre"), ("nombre,latitude", "latitud"), ("cvemun", "cve_mun"),
        ("carta", None), ("id", None), ("cvegeo", "cvegeo_mun"), ("", None), ("nombre,", None), ("*", None),
    ],
)  # fmt: skip
async def test_unknown_field_is_refused_with_those_that_exist(
    client: httpx.AsyncClient, given: str, meant: str | None
) -> None:
    answer = await post(client, [{"nombre": "x"}], given)
    assert answer.status_code == 422
    taken = f"This parameter takes, separated by commas: {', '.join(MATCHED)}."
    message = (f"Did you mean `{meant}`? " if meant else "") + taken
    assert answer.json()["errors"] == [{"parameter": "fields", "message": message}]


async def test_overlong_fields_are_refused(client: httpx.AsyncClient) -> None:
    answer = await post(client, [{"nombre": "x"}], ",".join([*MATCHED] * 3))
    assert answer.json()["errors"][0]["message"].endswith(" or fewer characters.")


async def test_points_have_no_fields(client: httpx.AsyncClient) -> None:
    """They come with all that a place has."""
    rows = {"rows": [{"latitud": 21.88, "longitud": -102.3}]}
    answer = await client.post(f"{LOCALIDADES}nearest/?fields=nombre", json=rows)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("row", "kind", "expected"),
    [
        (
            {"municipio": "Municipio 001", "estado": "Ags."},
            "municipio",
            {"nombre": "Municipio 001", "municipio": "Municipio 001", "estado": "Aguascalientes", "cve_ent": "01",
             "cve_mun": "001", "cvegeo_mun": "01001"},
        ),
        ({"estado": "Ags."}, "estado", {"nombre": "Aguascalientes", "estado": "Aguascalientes", "cve_ent": "01"}),
    ],
)  # fmt: skip
async def test_area_has_its_names_and_keys(
    client: httpx.AsyncClient, row: dict[str, str], kind: str, expected: dict[str, str]
) -> None:
    query = {"kind": kind, "fields": ",".join(MATCHED)}
    answer = await client.post(MATCH, params=query, json={"rows": [row]})
    [found] = answer.json()["results"]
    assert found["outcome"] == "exact"
    assert {name: found[name] for name in MATCHED} == {**dict.fromkeys(MATCHED), **expected}
