"""Rows by POST: names matched to keys, and points with their nearest places, in three formats."""

import asyncio
import base64
import csv
import io
import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest
from fastapi import FastAPI
from starlette.types import Message, Scope

from localidades_api.bulk.formats import XLSX
from localidades_api.catalogue.columns import MATCHED
from localidades_api.http import body
from localidades_api.http import body as http_body
from tests.support.application import await_release, client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import out_of_reach
from tests.support.wire import LOCALIDADES
from tests.support.workbooks import workbook_of

MATCH, NEAREST = f"{LOCALIDADES}match/", f"{LOCALIDADES}nearest/"
CSV, NDJSON, JSON = "text/csv", "application/x-ndjson", "application/json"
ROW = {"nombre": "Aguascalientes", "municipio": "Municipio 001", "estado": "Ags."}
DOUBTFUL = {"nombre": "Asintos", "estado": "Ags."}


async def post(
    client: httpx.AsyncClient, content: bytes | str, media_type: str = JSON, target: str = MATCH, **headers: str
) -> httpx.Response:
    return await client.post(target, content=content, headers={"content-type": media_type, **headers})


async def matched(client: httpx.AsyncClient, *rows: object, query: str = "") -> list[dict[str, Any]]:
    answer = await post(client, json.dumps({"rows": rows}), target=f"{MATCH}?{query}")
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def rows_of_workbook(content: bytes) -> list[dict[str, Any]]:
    header, *rows = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    return [dict(zip(map(str, header), row, strict=True)) for row in rows]


def without_times(content: bytes) -> bytes | list[dict[str, Any]]:
    """Return the contents of a response; the files in a workbook have timestamps."""
    return rows_of_workbook(content) if content.startswith(b"PK") else content


@pytest.mark.parametrize(
    ("media_type", "sent", "sent_back"),
    [
        (JSON, json.dumps({"rows": [ROW]}), JSON),
        *((name, json.dumps(ROW), NDJSON) for name in (NDJSON, "application/ndjson", "application/jsonl")),
        *((name, "nombre\testado\nAguascalientes\tAgs.\n", CSV) for name in (CSV, "text/tab-separated-values")),
        ("application/vnd.ms-excel", "nombre;estado\nAguascalientes;Ags.\n", CSV),
    ],
)
async def test_each_media_type_is_answered_in_the_same_or_the_requested_format(
    client: httpx.AsyncClient, media_type: str, sent: str, sent_back: str
) -> None:
    asked = [(await post(client, sent, media_type), sent_back)]
    for name, wanted in {"json": JSON, "ndjson": NDJSON, "csv": CSV, "xlsx": XLSX}.items():
        asked.append((await post(client, sent, media_type, f"{MATCH}?format={name}", accept="text/html"), wanted))
        asked.append((await post(client, sent, media_type, accept=f"{wanted}, */*;q=0.1"), wanted))
    for answer, wanted in asked:
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, wanted)
        if wanted == XLSX:
            [row] = rows_of_workbook(answer.content)
            assert row["match_cvegeo"] == "010010001"
        elif wanted == CSV:  # with the delimiter that was sent
            assert ("match_cvegeo" in answer.text, "010010001" in answer.text) == (True, True)
        else:
            content = answer.json()
            assert (content["results"][0] if wanted == JSON else content)["cvegeo"] == "010010001"


async def test_certainty_threshold_only_changes_the_outcome(client: httpx.AsyncClient) -> None:
    [doubtful] = await matched(client, DOUBTFUL)
    assert doubtful["outcome"] == "ambiguous"
    share = doubtful["score"] / 100
    assert 0.82 < share < 0.97
    assert await matched(client, DOUBTFUL, query=f"sure={share + 0.01:.3f}") == [doubtful]
    [below] = await matched(client, DOUBTFUL, query=f"sure={share - 0.01:.3f}")
    assert below["outcome"] == "sure"
    kept = {name for name, value in doubtful.items() if value is not None} - {"outcome", "candidates"}
    assert all(below[name] == doubtful[name] for name in kept)
    for sure in ("1", "0.79", "9e-1", "nan"):
        answer = await post(client, json.dumps({"rows": [ROW]}), target=f"{MATCH}?sure={sure}")
        assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "sure")


async def test_match_page_names_the_resource(client: httpx.AsyncClient) -> None:
    assert (await client.get("/match")).json()["resource"] == MATCH
    assert [(await client.get(f"/match?{query}")).status_code for query in ("x=1", "release=none")] == [422, 404]


@pytest.mark.parametrize("target", [MATCH, NEAREST])
async def test_lang_applies_to_tables_only(client: httpx.AsyncClient, target: str) -> None:
    rows = json.dumps({"rows": [{**ROW, "latitud": 21, "longitud": -102}, {"nombre": "", "latitud": 95}]})
    for format_, changes in (("csv", True), ("xlsx", True), ("json", False), ("ndjson", False)):
        plain, english, spanish = [
            without_times((await post(client, rows, target=f"{target}?format={format_}{lang}", **headers)).content)
            for lang, headers in (("", {}), ("&lang=en", {"accept-language": "es"}), ("&lang=es", {}))
        ]
        assert english == plain
        assert (spanish != plain) == changes
    assert (await post(client, rows, target=f"{target}?lang=fr")).status_code == 422


async def test_estado_and_municipio_of_all_rows_are_named_like_columns(client: httpx.AsyncClient) -> None:
    rows = "Localidad,Municipio\nAguascalientes,\nAsientos,Municipio 002\n"
    answer = await post(client, rows, CSV, f"{MATCH}?estado=Ags.&municipio=Municipio 001")
    assert [line.split(",")[2:4] for line in answer.text.splitlines()[1:]] == [
        ["exact", "010010001"], ["exact", "010020001"],
    ]  # fmt: skip
    by_key = await post(client, "Aguascalientes\n", CSV, f"{MATCH}?estado=01&municipio=01001")
    assert by_key.text.splitlines()[1].startswith("Aguascalientes,exact,010010001,")
    headed = await post(client, "Localidad,Ags.\nAguascalientes,Jalisco\n", CSV, f"{MATCH}?estado=Ags.")
    assert "ambiguous,," in headed.text  # a header comes first
    for query, sentence in (
        ("municipio=Municpio", "and no municipio has this name. Did you mean `Municipio`?"),
        ("municipio=Zona", "and no municipio has this name."),
        ("estado=Edo", "and no estado has this name."),
    ):
        refused = await post(client, rows, CSV, f"{MATCH}?{query}")
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems#unreadable-body")
        assert refused.json()["detail"].endswith(sentence)
    areas = await post(client, "Municipio\nMunicipio 001\n", CSV, f"{MATCH}?estado=Ags.")
    assert areas.text.splitlines()[1].startswith("Municipio 001,exact,01001,")


LINE = '{"nombre":"Ninguno"}'


@pytest.mark.parametrize(
    ("media_type", "sent", "slug", "sentence"),
    [
        ("", "x", "unsupported-media-type", ""),
        ("text/html", "x", "unsupported-media-type", ""),
        ("application/x-www-form-urlencoded", "x=1", "unsupported-media-type", "The body is a form: send the file"),
        ("multipart/form-data; boundary=x", "x", "unsupported-media-type", "The body is a form: send the file alone"),
        (CSV, "nombre\n" + "Ninguno\n" * 5000 + '"open', "unreadable-body", "A quote in line 5002 is never closed: "),
        (NDJSON, f"{LINE}\n" * 5000 + "x" * 1_100_000, "unreadable-body", "A line is longer than 1 MB: "),
        (JSON, '{"rows":[' + f"{LINE}," * 5000 + "}", "unreadable-body", "The JSON is broken at row 5001: "),
    ],
)
async def test_unreadable_body_is_a_problem_with_advice(
    client: httpx.AsyncClient, media_type: str, sent: str, slug: str, sentence: str
) -> None:
    answer = await post(client, sent, media_type)
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (422 if slug == "unreadable-body" else 415, f"/problems#{slug}")
    assert problem["detail"].startswith(sentence)
    assert problem["detail"].endswith(".")
    assert ("text/csv" in problem["detail"]) is (answer.status_code == 415)


async def test_oversized_body_is_refused(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps({"rows": [ROW] * 100})
    monkeypatch.setattr(http_body, "MAX_SPOOLED", len(content))
    assert (await post(client, content)).status_code == 200
    answer = await post(client, content + " ")
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems#content-too-large")


@pytest.mark.parametrize("leaves_early", [True, False])
async def test_rows_of_a_disconnected_client_are_not_matched(app: FastAPI, *, leaves_early: bool) -> None:
    sent: list[Message] = []
    messages: list[Message] = [{"type": "http.request", "body": f"{LINE}\n".encode() * 20_000, "more_body": False}]

    async def receive() -> Message:
        if messages and (leaves_early or not sent):
            return messages.pop()
        if not messages and not sent and not leaves_early:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": MATCH, "raw_path": MATCH.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"content-type", NDJSON.encode())], "client": ("127.0.0.1", 1), "server": ("test", 80),
    }  # fmt: skip
    await app(scope, receive, send)
    assert sum(message.get("body", b"").count(b"\n") for message in sent) < 20_000
    assert leaves_early is (200 not in [message.get("status") for message in sent])


async def test_body_is_accepted_without_the_trailing_slash(client: httpx.AsyncClient) -> None:
    """A redirect may lose the body."""
    document = (await client.get("/openapi.json")).json()
    paths = [path for path, operations in document["paths"].items() if "post" in operations]
    assert {MATCH, NEAREST} <= set(paths)
    rows = [{"nombre": "Aguascalientes", "latitud": 21.88, "longitud": -102.3}]
    for path in paths:
        content = json.dumps({"rows": rows})
        one, other = [await post(client, content, JSON, form, accept=JSON) for form in (path, path.rstrip("/"))]
        assert one.status_code == (404 if path.endswith("/at/") else 200), path  # this catalogue has no outlines
        assert (one.status_code, one.headers, one.content) == (other.status_code, other.headers, other.content)


async def test_rows_are_matched_in_the_named_release_by_earlier_names_too(seeded_database: str, tmp_path: Path) -> None:
    renamed = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in many(132)]
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", renamed))
    async with running_app(seeded_database) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        for release, nombre in (("2021-01", "Nuevo Asiento"), ("2020-01", "Asientos")):
            for asked in (nombre, "Asientos"):
                [result] = await matched(client, {"nombre": asked}, query=f"release={release}")
                label = result["label"] or result["candidates"][0]["label"]  # a place named twice is a doubt
                assert label.startswith(f"{nombre}, ")
                assert [fault["code"] for fault in result["faults"]] == ([] if asked == nombre else ["former_name"])
        answer = await post(client, json.dumps({"rows": [ROW]}), target=f"{MATCH}?release=2020-01")
        assert answer.headers["catalogue-release"] == "2020-01"
        unknown = await post(client, json.dumps({"rows": [ROW]}), target=f"{MATCH}?release=1999-01")
        assert unknown.status_code == 404


async def test_points_are_answered_with_their_nearest_places(client: httpx.AsyncClient) -> None:
    points: list[dict[str, Any]] = [
        {"lat": 21.88, "lon": -102.3}, {"lat": 21.88}, {"latitud": 95, "longitud": 0}, {"lat": "19,5", "lon": "-99"},
    ]  # fmt: skip
    answer = await post(client, json.dumps({"rows": points}), target=f"{NEAREST}?limit=2")
    first, half, wrong, last = answer.json()["results"]
    for point, result in ((points[0], first), ({"lat": 19.5, "lon": -99}, last)):
        single = await client.get(NEAREST, params={**point, "limit": 2})
        assert (result["results"], result["problem"]) == (single.json()["results"], None)
    assert half["problem"]
    assert wrong["problem"]


async def test_without_the_database_points_are_503_and_names_are_matched(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        with out_of_reach(server, seeded_database):
            answer = await post(client, '{"rows":[{"lat":1,"lon":1}]}', target=NEAREST)
            assert answer.json()["type"] == "/problems#database-unavailable"
            assert (await matched(client, ROW))[0]["outcome"] == "exact"


async def test_bodies_on_their_way_hold_no_place_of_other_requests(seeded_database: str) -> None:
    goes_on = asyncio.Event()

    async def row() -> AsyncIterator[bytes]:
        await goes_on.wait()
        yield LINE.encode()

    async with running_app(seeded_database, max_in_flight=2, max_transfers=1) as app, client_of(app) as client:
        paths = (await client.get("/openapi.json")).json()["paths"].items()
        taking = [(path, next(iter(item["post"]["requestBody"]["content"]))) for path, item in paths if "post" in item]
        assert len(taking) >= 3
        requests = [
            asyncio.create_task(client.post(path, content=row(), headers={"content-type": media_type}))
            for path, media_type in islice(cycle(taking), 9)
        ]
        (refused,), admitted = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result().json()["type"] == "/problems#overloaded"
        for target in (f"{LOCALIDADES}?page_size=7", f"{LOCALIDADES}download/", "/readyz"):
            assert (await client.get(target)).status_code == 200, target
        goes_on.set()
        await asyncio.gather(*admitted)
        for path, media_type in taking * 9:
            assert (await post(client, LINE, media_type, path)).status_code < 500


async def test_body_keeps_a_pace_from_its_beginning_to_its_end(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "MAX_SILENCE", 0.2)

    async def drops(size: int) -> AsyncIterator[bytes]:
        for _ in range(50):
            yield LINE.encode().ljust(size)
            await asyncio.sleep(0.02)

    headers = {"content-type": NDJSON}
    assert (await client.post(MATCH, content=drops(100), headers=headers)).status_code == 408  # 5,000 bytes a second
    assert (await client.post(MATCH, content=drops(5000), headers=headers)).status_code == 200
    monkeypatch.setattr(body, "_MAX_TIME", 0.2)
    assert (await client.post(MATCH, content=drops(5000), headers=headers)).status_code == 408


async def test_silent_body_times_out_and_a_steady_one_may_take_longer(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pieces(*, forever: bool) -> AsyncIterator[bytes]:
        for _ in range(4):
            yield json.dumps(ROW).encode() + b" " * 2000 + b"\n"
            await (asyncio.Event().wait() if forever else asyncio.sleep(0.3))

    headers = {"content-type": NDJSON}
    monkeypatch.setattr(body, "MAX_SILENCE", 0.1)
    silent = await client.post(MATCH, content=pieces(forever=True), headers=headers)
    assert (silent.status_code, silent.json()["type"]) == (408, "/problems#request-timeout")
    monkeypatch.setattr(body, "MAX_SILENCE", 1)  # less than the pieces take together
    assert len((await client.post(MATCH, content=pieces(forever=False), headers=headers)).text.splitlines()) == 4


# Excel workbooks

PLACES = ("Localidad", "CVE_ENT", "Folio"), ("Aguascalientes", 1, 7), (None, 1, 8), ("Asintos", 1, 9)


async def test_response_says_what_was_read_and_where_the_answer_is(client: httpx.AsyncClient) -> None:
    form = workbook_of(("Visitas",), *PLACES, sheet="Población 2026, A=B")
    english = await post(client, form, XLSX)
    assert english.headers["sheet-name"] == "Poblaci%C3%B3n%202026%2C%20A%3DB"
    assert english.headers["header-row"] == "2"
    assert english.headers["answer-columns"] == (
        "outcome=4, cvegeo=5, label=6, nombre=7, municipio=8, estado=9, score=10, margin=11, faults=12, candidates=13,"
        " withdrawn=14, problem=15"
    )
    again = await post(client, (await post(client, form, XLSX, f"{MATCH}?lang=es")).content, XLSX, f"{MATCH}?lang=es")
    assert again.headers["answer-columns"].startswith("outcome=4, cvegeo=5, ")  # those of the first are replaced
    header = openpyxl.load_workbook(io.BytesIO(again.content)).worksheets[0][2]
    assert [header[at - 1].value for at in (4, 5)] == ["Resultado", "Clave INEGI (CVEGEO)"]
    objects = await post(client, form, XLSX, f"{MATCH}?format=json")
    assert (objects.headers["header-row"], "answer-columns" in objects.headers) == ("2", False)
    assert [result["row"] for result in objects.json()["results"]] == [3, 4, 5]
    both = await post(client, form, XLSX, f"{MATCH}?format=ndjson&file=csv&lang=es")
    none = await post(client, json.dumps({"rows": []}), JSON, f"{MATCH}?format=csv")
    assert "sheet-name" not in none.headers
    for answer, first in ((both, 4), (none, 1)):
        assert answer.headers["answer-columns"].startswith(f"outcome={first}, ")


async def test_table_that_is_sent_as_another_format_is_answered_as_it_was_named(client: httpx.AsyncClient) -> None:
    table = await post(client, workbook_of(*PLACES), CSV)
    assert table.headers["content-type"].startswith(CSV)
    assert [row["match_cvegeo"] for row in csv.DictReader(io.StringIO(table.text))] == ["010010001", "", ""]
    [row] = rows_of_workbook((await post(client, "Localidad,Entidad,Folio\nAguascalientes,Ags.,007\n", XLSX)).content)
    assert (row["match_cvegeo"], row["Folio"]) == ("010010001", "007")
    assert rows_of_workbook((await post(client, workbook_of(PLACES[0]), XLSX)).content) == []


@pytest.mark.parametrize("wanted", ["csv", "xlsx"])
async def test_json_answer_includes_the_file_on_request(client: httpx.AsyncClient, wanted: str) -> None:
    chance = random.Random(1)  # noqa: S311  # texts that can't be compressed, for several pieces
    sent = workbook_of(PLACES[0], *(("Aguascalientes", 1, chance.randbytes(300).hex()) for _ in range(250)))
    plain, both, alone = [
        (await post(client, sent, XLSX, f"{MATCH}?lang=es&format={query}")).content
        for query in ("ndjson", f"ndjson&file={wanted}", wanted)
    ]
    lines = both.splitlines(keepends=True)
    pieces = [json.loads(line)["file"] for line in lines if line.startswith(b'{"file":')]
    assert len(pieces) > 1
    assert b"".join(line for line in lines if not line.startswith(b'{"file":')) == plain
    assert without_times(b"".join(map(base64.b64decode, pieces))) == without_times(alone)
    refused = await post(client, sent, XLSX, f"{MATCH}?file={wanted}")
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "file")


# -- Columns of the matched place


async def test_fields_are_the_values_that_the_download_has(client: httpx.AsyncClient) -> None:
    """Keys are text with their zeros in both."""
    lines = (await client.get(f"{LOCALIDADES}download/?format=ndjson")).text.splitlines()
    places = [json.loads(line) for line in lines]
    rows = [{"cvegeo": place["cvegeo"]} for place in places]
    results = await matched(client, *rows, query=f"fields={','.join(MATCHED)}")
    assert len(results) == 132
    for result, place in zip(results, places, strict=True):
        assert {name: result[name] for name in MATCHED} == {name: place.get(name) for name in MATCHED}


async def test_fields_come_once_in_the_order_of_the_table(client: httpx.AsyncClient) -> None:
    [result] = await matched(client, ROW, query="fields=viviendas,cve_mun,nombre,cve_mun")
    assert list(result)[5:10] == ["label", "nombre", "cve_mun", "viviendas", "score"]
    assert await matched(client, ROW, query="fields=nombre,municipio,estado") == await matched(client, ROW)
