"""Rows by POST: names matched to keys, and points with their nearest places, in three formats."""

import asyncio
import base64
import csv
import io
import json
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest
from starlette.types import Message, Receive, Scope, Send

from localidades_api.bulk import exchange
from localidades_api.bulk.formats import XLSX
from localidades_api.http import body
from localidades_api.http.paths import RECONCILE
from tests.support.application import await_release, client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import out_of_reach
from tests.support.wire import LOCALIDADES
from tests.support.workbooks import workbook_of

MATCH, NEAREST = f"{LOCALIDADES}match/", f"{LOCALIDADES}nearest/"
CSV, NDJSON, JSON = "text/csv", "application/x-ndjson", "application/json"
ROW = {"nombre": "Aguascalientes", "municipio": "Municipio 001", "estado": "Ags."}
DOUBTFUL = {"nombre": "Azientos", "estado": "Ags."}


async def post(
    client: httpx.AsyncClient, content: bytes | str, media_type: str = JSON, target: str = MATCH, **headers: str
) -> httpx.Response:
    return await client.post(target, content=content, headers={"content-type": media_type, **headers})


async def matched(client: httpx.AsyncClient, *rows: object) -> list[dict[str, Any]]:
    answer = await post(client, json.dumps({"rows": rows}))
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def test_matched_row_has_its_key_and_the_sent_values(client: httpx.AsyncClient) -> None:
    [found] = await matched(client, {**ROW, "mine": [1, None]})
    assert found == {
        "row": 1,
        "sent": {**ROW, "mine": [1, None]},
        "outcome": "exact",
        "cvegeo": "010010001",
        "id": 10010001,
        "label": "Aguascalientes, Municipio 001, Aguascalientes",
        "nombre": "Aguascalientes",
        "municipio": "Municipio 001",
        "estado": "Aguascalientes",
        "score": 99.8,
        "margin": 99.8,
        "faults": [],
        "candidates": [],
        "withdrawn": None,
        "problem": None,
    }


@pytest.mark.parametrize(
    ("media_type", "body", "sent_back"),
    [
        (JSON, json.dumps({"rows": [ROW]}), JSON),
        *((name, json.dumps(ROW), NDJSON) for name in (NDJSON, "application/ndjson", "application/jsonl")),
        *((name, "nombre\tsitio\nAsientos\t1\n", CSV) for name in (CSV, "text/tab-separated-values")),
        ("application/vnd.ms-excel", "nombre;sitio\nAsientos;1\n", CSV),
    ],
)
async def test_media_type_has_several_names(
    client: httpx.AsyncClient, media_type: str, body: str, sent_back: str
) -> None:
    answer = await post(client, body, media_type)
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, sent_back)


async def test_certainty_threshold_only_changes_the_outcome(client: httpx.AsyncClient) -> None:
    [found] = await matched(client, DOUBTFUL)
    assert found["outcome"] == "ambiguous"
    share = found["score"] / 100
    assert 0.82 < share < 0.97
    answers = {}
    for sure in ("0.97", f"{share + 0.01:.3f}", f"{share - 0.01:.3f}"):
        answer = await post(client, json.dumps({"rows": [DOUBTFUL]}), target=f"{MATCH}?sure={sure}")
        [answers[sure]] = answer.json()["results"]
    default, above, below = answers.values()
    assert default == above == found
    assert below["outcome"] == "sure"
    assert all(below[name] == found[name] for name in found.keys() - {"outcome", "candidates"})


async def test_match_page_names_the_resource(client: httpx.AsyncClient) -> None:
    answer = await client.get("/match")
    assert answer.json()["resource"] == MATCH
    assert answer.headers["vary"] == "Accept"
    page = await client.get("/match", headers={"accept": "text/html"})
    assert page.headers["vary"] == "Accept, Accept-Language"
    held = {"accept": "text/html", "if-none-match": page.headers["etag"]}
    again = await client.get("/match", headers=held)
    assert (again.status_code, again.headers["vary"]) == (304, "Accept, Accept-Language")
    assert [(await client.get(f"/match?{query}")).status_code for query in ("x=1", "release=none")] == [422, 404]


async def test_each_format_is_answered_in_the_same_or_the_requested_format(client: httpx.AsyncClient) -> None:
    bodies = {
        JSON: json.dumps({"rows": [ROW]}),
        NDJSON: json.dumps(ROW),
        CSV: "nombre,municipio,estado\r\nAguascalientes,Municipio 001,Ags.\r\n",
    }
    keys = set()
    for media_type, content in bodies.items():
        own = await post(client, content, media_type)
        assert own.headers["content-type"].partition(";")[0] == media_type
        for name, wanted in {"json": JSON, "ndjson": NDJSON, "csv": CSV}.items():
            by_parameter = await post(client, content, media_type, f"{MATCH}?format={name}", accept="text/html")
            by_header = await post(client, content, media_type, accept=f"{wanted}, */*;q=0.1")
            for answer in (by_parameter, by_header):
                assert answer.headers["content-type"].partition(";")[0] == wanted
                keys.add(key_in(answer.text, wanted))
    assert keys == {"010010001"}


@pytest.mark.parametrize("target", [MATCH, NEAREST])
async def test_lang_applies_to_tables_only(client: httpx.AsyncClient, target: str) -> None:
    rows = json.dumps({"rows": [{**ROW, "latitud": 21, "longitud": -102}, {"nombre": "", "latitud": 95}]})
    for format_, changes in (("csv", True), ("xlsx", True), ("json", False), ("ndjson", False)):
        plain = await post(client, rows, target=f"{target}?format={format_}")
        english = await post(client, rows, target=f"{target}?format={format_}&lang=en", **{"accept-language": "es"})
        spanish = await post(client, rows, target=f"{target}?format={format_}&lang=es")
        assert without_times(english) == without_times(plain)
        assert (without_times(spanish) != without_times(plain)) == changes
    assert (await post(client, rows, target=f"{target}?lang=fr")).status_code == 422


def without_times(answer: httpx.Response) -> bytes | list[dict[str, Any]]:
    """Return the contents of a response; the files in a workbook have timestamps."""
    return rows_of_workbook(answer) if answer.content.startswith(b"PK") else answer.content


def key_in(text: str, media_type: str) -> str:
    if media_type == CSV:
        return next(csv.DictReader(io.StringIO(text)))["match_cvegeo"]
    found: dict[str, Any] = json.loads(text)
    return str((found["results"][0] if media_type == JSON else found)["cvegeo"])


async def test_csv_keeps_its_columns_which_can_be_named(client: httpx.AsyncClient) -> None:
    content = 'id;Lugar de trabajo;Mpio.\r\n1;"Aguascalientes";Municipio 001\r\n'
    unknown = await post(client, content.replace("Mpio.", "Otro"), CSV)
    assert unknown.status_code == 422
    assert unknown.json()["type"] == "/problems#unreadable-body"
    named = await post(client, content, CSV, f"{MATCH}?nombre=Lugar de trabajo&municipio=Mpio.")
    header, row = named.text.splitlines()
    assert header.startswith("id;Lugar de trabajo;Mpio.;match_outcome;match_cvegeo;")
    assert row.startswith("1;Aguascalientes;Municipio 001;exact;010010001;")


@pytest.mark.parametrize(
    ("media_type", "sent", "status", "slug"),
    [
        ("", "x", 415, "unsupported-media-type"),
        ("application/x-www-form-urlencoded", "x=1", 415, "unsupported-media-type"),
        (JSON, '{"rows":[{"nombre":"x"}', 422, "unreadable-body"),
        (CSV, 'nombre\n"open', 422, "unreadable-body"),
        (XLSX, "PK\x03\x04", 422, "unreadable-body"),
    ],
)
async def test_unreadable_body_is_a_problem_with_advice(
    client: httpx.AsyncClient, media_type: str, sent: str, status: int, slug: str
) -> None:
    answer = await post(client, sent, media_type)
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems#{slug}")
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert answer.json()["detail"].endswith(".")


@pytest.mark.parametrize(
    ("media_type", "is_form"),
    [("multipart/form-data; boundary=x", True), ("application/x-www-form-urlencoded", True), ("text/html", False)],
)
async def test_form_is_refused_with_the_way_to_send_a_file(
    client: httpx.AsyncClient, media_type: str, *, is_form: bool
) -> None:
    answer = await post(client, "nombre=x", media_type)
    assert answer.status_code == 415
    assert answer.json()["detail"].startswith("The body is a form: send the file alone") is is_form
    assert "text/csv" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("media_type", "start", "row", "end", "sentence"),
    [
        (CSV, "nombre\n", "Ninguno\n", '"open', "A quote in line 5002 is never closed: "),
        (NDJSON, "", '{"nombre":"Ninguno"}\n', "x" * 1_100_000, "A line is longer than 1 MB: "),
        (JSON, '{"rows":[', '{"nombre":"Ninguno"},', "}", "The JSON is broken at row 5001: "),
    ],
)
async def test_body_that_turns_bad_after_many_rows_is_a_problem(
    client: httpx.AsyncClient, media_type: str, start: str, row: str, end: str, sentence: str
) -> None:
    answer = await post(client, start + row * 5000 + end, media_type)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems#unreadable-body")
    assert answer.json()["detail"].startswith(sentence)


async def test_oversized_body_is_refused(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps({"rows": [ROW] * 100})
    monkeypatch.setattr(exchange, "MAX_BODY", len(content))
    assert (await post(client, content)).status_code == 200
    answer = await post(client, content + " ")
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems#content-too-large")


async def test_full_disk_is_a_problem(
    client: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert await matched(client, ROW)  # it fits into memory
    answer = await post(client, "nombre\n" + "x\n" * 600_000, CSV)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems#unavailable")


async def test_rows_of_a_disconnected_client_are_not_matched(seeded_database: str) -> None:
    rows, sent = b'{"nombre":"Ninguno"}\n' * 20_000, 0

    async def receive() -> Message:
        if sent:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": rows, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal sent
        sent += message.get("body", b"").count(b"\n")

    await call_match(seeded_database, receive, send)
    assert 0 < sent < 20_000


async def test_rows_of_a_disconnected_client_are_not_checked(seeded_database: str) -> None:
    messages: list[Message] = [{"type": "http.disconnect"}]
    rows = b'{"nombre":"Ninguno"}\n' * 20_000
    messages.append({"type": "http.request", "body": rows, "more_body": False})
    statuses = []

    async def receive() -> Message:
        return messages.pop() if len(messages) > 1 else messages[0]

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    await call_match(seeded_database, receive, send)
    assert 200 not in statuses


async def call_match(url: str, receive: Receive, send: Send) -> None:
    """Send rows to the application by ASGI."""
    headers = [(b"content-type", NDJSON.encode())]
    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": MATCH, "raw_path": MATCH.encode(), "query_string": b"", "root_path": "",
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("test", 80),
    }  # fmt: skip
    async with running_app(url) as app:
        await app(scope, receive, send)


async def test_bad_certainty_threshold_is_refused_by_name(client: httpx.AsyncClient) -> None:
    for sure in ("1", "0.79", "9e-1", "nan", ""):
        answer = await post(client, json.dumps({"rows": [ROW]}), target=f"{MATCH}?sure={sure}")
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems#invalid-parameters")
        assert [error["parameter"] for error in answer.json()["errors"]] == ["sure"]


async def test_methods_are_listed_by_allow_and_the_preflight(client: httpx.AsyncClient) -> None:
    refused = await client.get(MATCH)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST, OPTIONS")
    assert refused.json()["detail"] == "Use POST here."
    preflight = await client.options(MATCH)
    assert (preflight.status_code, preflight.headers["access-control-allow-methods"]) == (204, "POST")
    assert (await client.options(NEAREST)).headers["access-control-allow-methods"] == "GET, HEAD, POST"
    assert (await client.get(f"{NEAREST}?lat=1&lon=1")).headers["allow"] == "GET, POST, OPTIONS"
    assert (await client.post(LOCALIDADES)).headers["allow"] == "GET"


async def test_body_is_accepted_without_the_trailing_slash(client: httpx.AsyncClient) -> None:
    """A redirect may lose the body."""
    document = (await client.get("/openapi.json")).json()
    paths = [path for path, operations in document["paths"].items() if "post" in operations]
    assert {MATCH, NEAREST, RECONCILE} <= set(paths)
    for path in paths:
        bodies = document["paths"][path]["post"]["requestBody"]["content"]
        [(media_type, body)] = bodies.items()
        example = next(iter(body["examples"].values()))["value"]
        content = json.dumps(example) if media_type == "application/json" else str(httpx.QueryParams(example))
        asked = [
            await client.post(form, content=content, headers={"Content-Type": media_type, "Accept": "application/json"})
            for form in (path, path.rstrip("/"))
        ]
        assert [answer.status_code for answer in asked] == [200, 200], path
        assert asked[0].content == asked[1].content
        assert asked[0].headers == asked[1].headers
        told = [await client.options(form) for form in (path, path.rstrip("/"))]
        assert told[0].headers == told[1].headers
        assert "POST" in told[1].headers["access-control-allow-methods"]
        unknown = [(await client.post(f"{form}?x=1", content=content)).json() for form in (path, path.rstrip("/"))]
        assert unknown[0] == unknown[1]


async def test_rows_are_matched_in_the_named_release_by_earlier_names_too(seeded_database: str, tmp_path: Path) -> None:
    renamed = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in many(132)]
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", renamed))
    async with running_app(seeded_database) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        for release, nombre in (("2021-01", "Nuevo Asiento"), ("2020-01", "Asientos")):
            for asked in (nombre, "Asientos"):
                answer = await post(
                    client, json.dumps({"rows": [{"nombre": asked}]}), target=f"{MATCH}?release={release}"
                )
                assert answer.headers["catalogue-release"] == release
                [found] = answer.json()["results"]
                assert found["label"].startswith(f"{nombre}, ")
                assert [one["code"] for one in found["faults"]] == ([] if asked == nombre else ["former_name"])
        unknown = await post(client, json.dumps({"rows": [ROW]}), target=f"{MATCH}?release=1999-01")
        assert unknown.status_code == 404


async def test_points_are_answered_with_their_nearest_places(client: httpx.AsyncClient) -> None:
    points: list[dict[str, Any]] = [
        {"lat": 21.88, "lon": -102.3},
        {"lat": 21.88},
        {"latitud": 95, "longitud": 0},
        {"lat": "19,5", "lon": "-99"},
    ]
    answer = await post(client, json.dumps({"rows": points}), target=f"{NEAREST}?limit=2")
    first, half, wrong, last = answer.json()["results"]
    for point, found in ((points[0], first), ({"lat": 19.5, "lon": -99}, last)):
        single = await client.get(NEAREST, params={**point, "limit": 2})
        assert found["results"] == single.json()["results"]
        assert found["problem"] is None
    assert half["problem"]
    assert wrong["problem"]
    as_csv = await post(client, "id,lat,lon\n7,21.88,-102.3\n", CSV, NEAREST)
    [row] = csv.DictReader(io.StringIO(as_csv.text))
    assert row["id"] == "7"
    assert int(row["nearest_cvegeo"]) == first["results"][0]["id"]
    assert float(row["nearest_distancia"]) == first["results"][0]["distancia"]


async def test_without_the_database_points_are_503_and_names_are_matched(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        with out_of_reach(server, seeded_database):
            answer = await post(client, '{"rows":[{"lat":1,"lon":1}]}', target=NEAREST)
            assert answer.json()["type"] == "/problems#database-unavailable"
            assert (await matched(client, ROW))[0]["outcome"] == "exact"


async def test_request_beyond_the_concurrency_limit_is_refused(client: httpx.AsyncClient) -> None:
    content = json.dumps({"rows": [ROW]})
    goes_on = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield content[:5].encode()
        await goes_on.wait()
        yield content[5:].encode()

    asked = [client.post(MATCH, content=pieces(), headers={"content-type": JSON}) for _ in range(9)]
    tasks = [asyncio.create_task(request) for request in asked]
    (refused,), admitted = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    goes_on.set()
    answer = refused.result()
    assert (answer.json()["type"], answer.headers["retry-after"]) == ("/problems#transfers-full", "5")
    assert [answer.status_code for answer in await asyncio.gather(*admitted)] == [200] * 8
    assert await matched(client, ROW)


async def test_slow_body_times_out(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_SILENCE", 0.1)

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"rows":['
        await asyncio.Event().wait()

    answer = await client.post(MATCH, content=pieces(), headers={"content-type": JSON})
    assert (answer.status_code, answer.json()["type"]) == (408, "/problems#request-timeout")


async def test_steady_body_may_take_longer(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_SILENCE", 0.4)

    async def pieces(rows: int = 5) -> AsyncIterator[bytes]:
        for _ in range(rows):
            yield json.dumps(ROW).encode() + b" " * 2000 + b"\n"
            await asyncio.sleep(0.15)

    answer = await client.post(MATCH, content=pieces(), headers={"content-type": NDJSON})
    assert len(answer.text.splitlines()) == 5


# Excel workbooks


def rows_of_workbook(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == XLSX
    header, *rows = openpyxl.load_workbook(io.BytesIO(answer.content)).worksheets[0].iter_rows(values_only=True)
    return [dict(zip(map(str, header), row, strict=True)) for row in rows]


PLACES = ("Localidad", "CVE_ENT", "Folio"), ("Aguascalientes", 1, 7), (None, 1, 8), ("Azientos", 1, 9)


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
    assert again.headers["answer-columns"] == (
        "outcome=14, cvegeo=15, label=16, nombre=17, municipio=18, estado=19, score=20, faults=21, candidates=22,"
        " problem=23"
    )
    header = openpyxl.load_workbook(io.BytesIO(again.content)).worksheets[0][2]
    assert [header[at - 1].value for at in (14, 15, 23)] == [
        "Resultado (2)", "Clave INEGI (CVEGEO) (2)", "Observación (2)"
    ]  # fmt: skip
    objects = await post(client, form, XLSX, f"{MATCH}?format=json")
    assert (objects.headers["header-row"], "answer-columns" in objects.headers) == ("2", False)
    assert [one["row"] for one in objects.json()["results"]] == [3, 4, 5]
    both = await post(client, form, XLSX, f"{MATCH}?format=ndjson&file=csv&lang=es")
    assert both.headers["answer-columns"].startswith("outcome=4, ")
    rows = await post(client, json.dumps({"rows": [ROW]}), JSON, f"{MATCH}?format=csv")
    assert rows.headers["answer-columns"].startswith("outcome=4, ")
    assert "sheet-name" not in rows.headers
    none = await post(client, json.dumps({"rows": []}), JSON, f"{MATCH}?format=csv")
    assert none.headers["answer-columns"].startswith("outcome=1, ")
    points = await post(client, workbook_of(("lat", "lon"), (21.88, -102.3)), XLSX, NEAREST)
    assert points.headers["answer-columns"] == "cvegeo=3, label=4, distancia=5, problem=6"


async def test_table_that_is_sent_as_another_format_is_answered_as_it_was_named(client: httpx.AsyncClient) -> None:
    table = await post(client, workbook_of(*PLACES), CSV)
    assert table.headers["content-type"].startswith(CSV)
    assert [row["match_cvegeo"] for row in csv.DictReader(io.StringIO(table.text))] == ["010010001", "", ""]
    [row] = rows_of_workbook(await post(client, "Localidad,Entidad\nAguascalientes,Ags.\n", XLSX))
    assert row["match_cvegeo"] == "010010001"


async def test_workbook_with_only_a_header_is_answered(client: httpx.AsyncClient) -> None:
    answer = await post(client, workbook_of(PLACES[0]), XLSX)
    assert rows_of_workbook(answer) == []


@pytest.mark.parametrize("wanted", ["csv", "xlsx"])
async def test_json_answer_includes_the_file_on_request(client: httpx.AsyncClient, wanted: str) -> None:
    sent = workbook_of(PLACES[0], *(("Aguascalientes", 1, number) for number in range(3_000)))
    plain = await post(client, sent, XLSX, f"{MATCH}?format=ndjson&lang=es")
    both = await post(client, sent, XLSX, f"{MATCH}?format=ndjson&lang=es&file={wanted}")
    alone = await post(client, sent, XLSX, f"{MATCH}?format={wanted}&lang=es")
    lines = both.content.splitlines(keepends=True)
    pieces = [json.loads(line)["file"] for line in lines if line.startswith(b'{"file":')]
    assert len(pieces) > 1
    assert b"".join(line for line in lines if not line.startswith(b'{"file":')) == plain.content
    file = b"".join(map(base64.b64decode, pieces))
    kind = {"content-type": alone.headers["content-type"]}
    assert without_times(httpx.Response(200, headers=kind, content=file)) == without_times(alone)
    refused = await post(client, sent, XLSX, f"{MATCH}?file={wanted}")
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "file")


@pytest.mark.parametrize("choice", [{"target": f"{MATCH}?format=ndjson"}, {"accept": NDJSON}])
async def test_workbook_answered_in_another_format_keeps_its_zeros(
    client: httpx.AsyncClient, choice: dict[str, str]
) -> None:
    answer = await post(client, workbook_of(*PLACES), XLSX, **choice)
    first = json.loads(answer.text.splitlines()[0])
    assert first["sent"] == {"Localidad": "Aguascalientes", "CVE_ENT": "01", "Folio": "7"}
    assert first["cvegeo"] == "010010001"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [("Localidad,Entidad,Folio\nAguascalientes,Ags.,007\n", CSV), (json.dumps({"rows": [ROW]}), JSON)],
)
async def test_rows_of_text_are_answered_as_a_workbook(
    client: httpx.AsyncClient, content: str, media_type: str
) -> None:
    for asked in ({"target": f"{MATCH}?format=xlsx"}, {"accept": XLSX}):
        [row] = rows_of_workbook(await post(client, content, media_type, **asked))
        assert row["match_cvegeo"] == "010010001"
        assert row.get("Folio", "007") == "007"


async def test_sheet_can_be_named_and_a_missing_one_is_reported(client: httpx.AsyncClient) -> None:
    data = workbook_of(*PLACES, sheet="Mis lugares")
    assert rows_of_workbook(await post(client, data, XLSX, f"{MATCH}?sheet=Mis%20lugares"))
    answer = await post(client, data, XLSX, f"{MATCH}?sheet=Hoja2")
    assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (422, "unreadable-body")
    assert answer.json()["detail"] == "The workbook has no such sheet; it has `Mis lugares`."
    answer = await post(client, "nombre\nA\n", CSV, f"{MATCH}?sheet=Hoja2")
    assert answer.json()["detail"] == "Only a workbook (.xlsx) has sheets: leave out `sheet`."
    answer = await post(client, "nombre\nA\n", CSV, f"{MATCH}?header_row=2")
    assert answer.json()["detail"].startswith("Only a workbook (.xlsx) may have rows above its header")
    form = workbook_of(("lugar", "municipio"), ("localidad", "n"), *PLACES)
    answer = await post(client, form, XLSX, f"{MATCH}?header_row=2&format=json")
    assert [result["sent"]["localidad"] for result in answer.json()["results"]] == [row[0] or "" for row in PLACES]
    answer = await post(client, form, XLSX, f"{MATCH}?header_row=0&format=json")
    assert [one["sent"]["nombre"] for one in answer.json()["results"]][:2] == ["lugar", "localidad"]
    assert (await post(client, form, XLSX, f"{MATCH}?header_row=-1")).json()["type"] == "/problems#invalid-parameters"
