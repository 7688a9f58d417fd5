"""`fields` of a match: columns of the matched place, as the list and the downloads have them."""

import csv
import io
import json

import httpx

from localidades_api.catalogue.columns import MATCHED
from tests.support.wire import LOCALIDADES

MATCH = f"{LOCALIDADES}match/"


async def post(client: httpx.AsyncClient, rows: list[dict[str, str]], fields: str) -> httpx.Response:
    return await client.post(MATCH, params={"fields": fields}, json={"rows": rows})


async def test_fields_are_the_values_that_the_download_has(client: httpx.AsyncClient) -> None:
    """Keys are text with their zeros in both."""
    lines = (await client.get(f"{LOCALIDADES}download/?format=ndjson")).text.splitlines()
    places = [json.loads(line) for line in lines]
    answer = await post(client, [{"cvegeo": place["cvegeo"]} for place in places], ",".join(MATCHED))
    found = answer.json()["results"]
    assert len(found) == 132
    for one, place in zip(found, places, strict=True):
        assert {name: one[name] for name in MATCHED} == {name: place[name] for name in MATCHED}


async def test_table_that_is_sent_has_the_fields_beside_its_columns(client: httpx.AsyncClient) -> None:
    """`fields` is not the role of a column."""
    answer = await client.post(
        MATCH, params={"fields": "clave"}, content="folio,cvegeo\n7,010010002\n", headers={"content-type": "text/csv"}
    )
    [row] = csv.DictReader(io.StringIO(answer.text))
    assert list(row)[:6] == ["folio", "cvegeo", "match_outcome", "match_cvegeo", "match_label", "match_clave"]
    assert (row["folio"], row["match_cvegeo"], row["match_clave"]) == ("7", "010010002", "0002")


async def test_fields_come_once_in_the_order_of_the_table(client: httpx.AsyncClient) -> None:
    rows = [{"cvegeo": "010010001"}]
    [found] = (await post(client, rows, "viviendas,cve_mun,nombre,cve_mun")).json()["results"]
    assert list(found)[5:10] == ["label", "nombre", "cve_mun", "viviendas", "score"]
    default = await client.post(MATCH, json={"rows": rows})
    assert (await post(client, rows, "nombre,municipio,estado")).content == default.content


async def test_unknown_field_is_refused_with_those_that_exist(client: httpx.AsyncClient) -> None:
    taken = f"This parameter takes, separated by commas: {', '.join(MATCHED)}."
    for given, meant in (("poblacio", "poblacion"), ("cvemun", "cve_mun"), ("carta", None), ("id", None), ("", None)):
        answer = await post(client, [{"nombre": "x"}], given)
        assert answer.status_code == 422
        message = (f"Did you mean `{meant}`? " if meant else "") + taken
        assert answer.json()["errors"] == [{"parameter": "fields", "message": message}]


async def test_points_have_no_fields(client: httpx.AsyncClient) -> None:
    rows = {"rows": [{"latitud": 21.88, "longitud": -102.3}]}
    answer = await client.post(f"{LOCALIDADES}nearest/?fields=nombre", json=rows)
    assert answer.status_code == 422
