"""The preview of a body of rows before they are matched."""

import json
from typing import Any

import httpx
import openpyxl
import pytest

from localidades_api.bulk.formats import XLSX
from tests.support.wire import LOCALIDADES
from tests.support.workbooks import workbook_of

PREVIEW = f"{LOCALIDADES}match/preview/"
CSV, NDJSON, JSON = "text/csv", "application/x-ndjson", "application/json"
PLACES = [(f"{number:03}", "Asientos", "Municipio 002", "Ags.") for number in range(1, 8)]
FORM = [("Visitas de campo", None, None, None), (), ("Folio", "Localidad", "Municipio", "Entidad"), *PLACES]


async def post(
    client: httpx.AsyncClient, content: bytes | str, media_type: str = CSV, query: str = ""
) -> httpx.Response:
    return await client.post(f"{PREVIEW}?{query}", content=content, headers={"content-type": media_type})


async def previewed(
    client: httpx.AsyncClient, content: bytes | str, media_type: str = CSV, query: str = ""
) -> dict[str, Any]:
    answer = await post(client, content, media_type, query)
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON), answer.text
    assert answer.headers["cache-control"] == "no-store"
    preview: dict[str, Any] = answer.json()
    return preview


def cover_and_visits(book: openpyxl.Workbook) -> None:
    book.create_sheet("Portada", 0).append(["Padrón", "2026"])
    book.create_sheet("Listas").sheet_state = "hidden"


async def test_workbook_is_previewed_with_its_sheet_and_header(client: httpx.AsyncClient) -> None:
    data = workbook_of(*FORM, sheet="Visitas", change=cover_and_visits)
    assert await previewed(client, data, XLSX) == {
        "sheets": ["Portada", "Visitas"],
        "sheet": "Visitas",
        "header_row": 3,
        "has_header": True,
        "note": None,
        "quantity": 7,
        "kind": "localidad",
        "columns": ["Folio", "Localidad", "Municipio", "Entidad"],
        "roles": {"nombre": "Localidad", "municipio": "Municipio", "estado": "Entidad"},
        "rows": [list(place) for place in PLACES[:5]],
        "unused": [],
    }
    other = await previewed(client, data, XLSX, "sheet=Visitas&header_row=5&nombre=Asientos&estado=Ags.")
    assert (other["header_row"], other["quantity"]) == (5, 5)
    assert other["roles"] == {"nombre": "Asientos", "municipio": "Municipio 002", "estado": "Ags."}


async def test_csv_is_previewed_with_few_rows_and_short_cells(client: httpx.AsyncClient) -> None:
    lines = ["Localidad;x;x;", f"Asientos;1;{'y' * 300}", "Ninguno;2", "", "Ninguno;3;4;5;6"]
    preview = await previewed(client, "\n".join(lines))
    assert (preview["sheets"], preview["sheet"], preview["header_row"], preview["quantity"]) == ([], None, None, 3)
    assert preview["columns"] == ["Localidad", "x", "x (2)", "column 4"]
    assert preview["rows"] == [["Asientos", "1", "y" * 200, ""], ["Ninguno", "2", "", ""], ["Ninguno", "3", "4", "5"]]
    assert (await previewed(client, "nombre\n"))["rows"] == []
    headless = await previewed(client, "Asientos\tAgs.\nNinguno\tAgs.\n", CSV, "kind=localidad")
    assert (headless["has_header"], headless["kind"], headless["quantity"]) == (False, "localidad", 2)


async def test_columns_are_named_as_the_preview_names_them(client: httpx.AsyncClient) -> None:
    text = "Localidad,x,x,,\nAsientos,1,2,Municipio 002,Ags.\n"
    named = {"municipio": "column 4", "estado": "column 5"}
    preview = await previewed(client, text, CSV, "municipio=column 4&estado=column 5&clave=x (2)")
    assert preview["roles"] == {"nombre": "Localidad", **named, "clave": "x (2)"}
    query = str(httpx.QueryParams({**named, "format": "json"}))
    headers = {"content-type": CSV}
    answer = await client.post(f"{LOCALIDADES}match/?{query}", content=text.encode(), headers=headers)
    assert [result["cvegeo"] for result in answer.json()["results"]] == ["010020001"]
    refused = await post(client, text, CSV, "municipio=x")
    assert refused.json()["detail"].startswith("The first line has the column `x`")


@pytest.mark.parametrize("media_type", [JSON, NDJSON])
async def test_objects_are_previewed_with_the_members_of_the_first(client: httpx.AsyncClient, media_type: str) -> None:
    rows: list[object] = [1, {"lugar": "Asientos", "n": 2}, {"Entidad": "Ags.", "n": [None]}, *[{"n": 1}] * 6]
    body = json.dumps({"rows": rows}) if media_type == JSON else "\n".join(map(json.dumps, rows))
    preview = await previewed(client, body, media_type)
    assert (preview["quantity"], preview["columns"]) == (9, ["lugar", "n", "Entidad"])
    assert preview["roles"] == {"nombre": "lugar"}
    assert preview["rows"][:2] == [["Asientos", "2", ""], ["", "[null]", "Ags."]]
    assert len(preview["rows"]) == 4


async def test_unrecognized_table_is_a_problem_with_its_first_rows(client: httpx.AsyncClient) -> None:
    problem = await post(client, "sitio,lat,lon\n\nAsientos,22,-102\n" + "x,y\n" * 9)
    assert (problem.status_code, problem.json()["type"]) == (422, "/problems#unreadable-body")
    assert problem.json()["detail"].startswith("The first line names no column for `nombre`")
    point = {"latitud": "lat", "longitud": "lon"}
    assert (problem.json()["columns"], problem.json()["roles"]) == (["sitio", "lat", "lon"], point)
    assert problem.json()["rows"] == [["Asientos", "22", "-102"], *[["x", "y", ""]] * 4]
    # An open quote further down doesn't hide the columns.
    problem = await post(client, 'sitio,n\nAsientos,1\n"Ninguno,2\n')
    assert (problem.json()["columns"], problem.json()["rows"]) == (["sitio", "n"], [["Asientos", "1"]])
    assert "quote in line 2 is never closed" in (await post(client, 'nombre\n"A\n')).json()["detail"]


async def test_preview_refuses_what_a_match_refuses(client: httpx.AsyncClient) -> None:
    assert (await post(client, "nombre\nA\n", "text/html")).status_code == 415
    assert (await post(client, "nombre\nA\n", CSV, "format=csv")).status_code == 422
    wide = await post(client, ",".join(f"c{number}" for number in range(101)) + "\n")
    assert len(wide.json()["columns"]) == 100
