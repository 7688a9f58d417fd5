"""The `fields` parameter."""

from itertools import pairwise

import httpx
import pytest

from localidades_api.catalogue.schemas import LocalityRecord
from tests.support.wire import LOCALIDADES

COLUMNS = list(LocalityRecord.model_fields)


@pytest.mark.parametrize("kind", ["localidades", "municipios", "estados"])
async def test_list_with_any_fields_matches_the_records(client: httpx.AsyncClient, kind: str) -> None:
    address = f"/api/census/{kind}/"
    listed = (await client.get(address)).json()
    columns = COLUMNS if kind == "localidades" else list(listed["results"][0])
    whole = [(await client.get(f"{address}{record['id']}/")).json() for record in listed["results"]]
    for chosen in (["id"], ["clave"], *map(list, pairwise(columns)), columns):
        answer = await client.get(address, params={"fields": ",".join(reversed(chosen))})
        assert answer.json() == {**listed, "results": [{name: record[name] for name in chosen} for record in whole]}
        assert [list(record) for record in answer.json()["results"]] == [chosen] * len(whole)


@pytest.mark.parametrize(
    ("fields", "meant"),
    [("id,CVEGEO", "cvegeo"), ("id, nombre", "nombre"), ("", None), ("id,", None), ("folded", None)],
)
async def test_unknown_field_is_refused_with_a_suggestion(
    client: httpx.AsyncClient, fields: str, meant: str | None
) -> None:
    message = f"This parameter takes, separated by commas: {', '.join(COLUMNS)}."
    if meant:
        message = f"Did you mean `{meant}`? {message}"
    for path in ("", "10010001/"):
        answer = await client.get(f"{LOCALIDADES}{path}", params={"fields": fields})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [{"parameter": "fields", "message": message}]


@pytest.mark.parametrize("path", ["localidades/", "localidades/10010001/", "municipios/", "estados/"])
async def test_fields_are_refused_for_an_html_page(client: httpx.AsyncClient, path: str) -> None:
    page = await client.get(f"/api/census/{path}?fields=id&format=api")
    assert page.status_code == 422
    assert "<code>fields</code>: An HTML page has columns of its own" in page.text
