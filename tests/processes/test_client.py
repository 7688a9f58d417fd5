"""The client for Python: results, errors and retries."""

import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest

from localidades_api.catalogue.columns import EVERY_COLUMN, MATCHED
from localidades_api.client import Backoff, Client, ClientError, ProblemError
from localidades_api.client.frames import NUMBERS
from tests.support.catalogue import many
from tests.support.http_server import Response, answering
from tests.support.machine import READERS, free_port, needed
from tests.support.wire import ROOT, run

KEYS = sorted(place.cvegeo for place in many(132))
ROWS: list[dict[str, Any]] = [{"localidad": "asientos", "estado": "Ags.", "folio": "01"}, {"localidad": None}]
POINTS = [{"n": 1, "lat": 21.88, "lon": -102.29}, {"n": 2, "lat": None, "lon": math.nan}]


@pytest.fixture(scope="module")
def catalogue(live_server: str) -> Iterator[Client]:
    """Yield a client of the running service."""
    with Client(live_server) as client:
        yield client


def test_record_is_read_by_key(catalogue: Client) -> None:
    assert catalogue.get("01")["nombre"] == "Aguascalientes"
    assert catalogue.get("01001")["nombre"] == "Municipio 001"
    assert catalogue.get("010010004") == catalogue.get(10010004)


@pytest.mark.parametrize("key", [1, 14, 1001, "1", "10010001", 140_390_0010, -1, "", "01001000x", 123_456, "١٤"])
def test_bad_key_is_refused(key: str | int) -> None:
    with Client() as catalogue, pytest.raises(ValueError, match=r"^A key is text of two, five or nine digits"):
        catalogue.get(key)


def test_suggestions_lists_and_files_are_read(catalogue: Client) -> None:
    [first] = catalogue.suggest("ardillas", kind=["localidad", "municipio"], limit=1)
    assert (first["cvegeo"], first["kind"]) == ("010010004", "localidad")
    assert sorted(place["cvegeo"] for place in catalogue.localidades(page_size=50, fields="cvegeo")) == KEYS
    urban = catalogue.localidades(estado_id=1, ambito="U", fields=["id", "cvegeo"])
    assert [place["cvegeo"] for place in urban] == ["010010001"]
    lines = catalogue.download("ndjson", to=None).splitlines()
    assert sorted(json.loads(line)["cvegeo"] for line in lines) == KEYS
    with pytest.raises(ValueError, match="to=None"):
        catalogue.download("csv")


def test_rows_are_matched_whatever_holds_them(catalogue: Client) -> None:
    for rows in (ROWS, tuple(ROWS), iter(ROWS), (row for row in ROWS)):
        first, second = catalogue.match(rows)
        assert list(first)[:5] == ["localidad", "estado", "folio", "match_outcome", "match_cvegeo"]
        assert (first["folio"], first["match_cvegeo"], type(first["match_score"])) == ("01", "010020001", float)
        assert (second["match_outcome"], second["match_cvegeo"]) == ("problem", None)
    assert list(ROWS[1]) == ["localidad"]
    assert catalogue.match([]) == catalogue.match(iter(())) == []


def test_texts_are_matched(catalogue: Client) -> None:
    matched = catalogue.match(["Asientos, Ags.", "", None, math.nan, "Asientos, Aguascalientes"])
    assert [row["nombre"] for row in matched[:3]] == ["Asientos, Ags.", "", None]
    assert [row["match_cvegeo"] for row in matched] == ["010020001", None, None, None, "010020001"]


def test_column_alone_has_names_whatever_its_header(catalogue: Client) -> None:
    rows = [{"sitio; visitado": "Asientos, Ags." if at else None} for at in range(1001)]
    matched = catalogue.match(rows)
    assert list(matched[0])[:2] == ["sitio; visitado", "match_outcome"]
    assert [row["match_cvegeo"] for row in matched] == [None, *["010020001"] * 1000]
    with pytest.raises(ProblemError, match="does not have the header that was named for `nombre`"):
        catalogue.match(rows, nombre="sitio")


def test_fields_are_numbers_and_keys_are_text(catalogue: Client) -> None:
    certain, unlike = catalogue.match([{"cvegeo": "010010001"}, {"nombre": "Xyzzyqwert"}], fields=MATCHED)
    expected = {
        "nombre": "Aguascalientes", "municipio": "Municipio 001", "estado": "Aguascalientes", "clave": "0001",
        "cve_ent": "01", "cve_mun": "001", "cvegeo_mun": "01001", "ambito": "U", "latitud": 21.880833,
        "longitud": -102.296111, "altitud": 1885, "poblacion": 863893, "viviendas": None,
        "localidades": None,
    }  # fmt: skip
    assert {name: certain[f"match_{name}"] for name in MATCHED} == expected
    assert {type(certain[f"match_{name}"]) for name in ("altitud", "poblacion")} == {int}
    assert {unlike[f"match_{name}"] for name in MATCHED} == {None}
    types = {"integer": int, "number": float}
    numbers = {name: types[column.kind] for name, column in EVERY_COLUMN.items() if column.kind in types}
    assert {name: type_ for name, type_ in NUMBERS.items() if name in numbers} == numbers


def test_nearest_places_are_added(catalogue: Client) -> None:
    first, second = catalogue.nearest(POINTS)
    [named] = catalogue.nearest([{"a": 21.88, "b": -102.29}], latitud="a", longitud="b")
    assert list(first) == ["n", "lat", "lon", "nearest_cvegeo", "nearest_label", "nearest_distancia", "nearest_problem"]
    assert (first["nearest_cvegeo"], type(first["nearest_distancia"])) == ("010010001", float)
    assert (second["nearest_cvegeo"], second["nearest_distancia"]) == (None, None)
    assert named["nearest_cvegeo"] == first["nearest_cvegeo"]


class FrameOfAnotherLibrary:
    """A table that yields the names of its columns, as those of many libraries do."""

    columns = ("nombre",)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"nombre": "Tequila"}, r"not dict\.$"),
        ("Tequila, Jal.", r"not str\.$"),
        (FrameOfAnotherLibrary(), r"not tests\.processes\.test_client\.FrameOfAnotherLibrary\.$"),
        ([("Tequila", "Jalisco")], r"the item at 0 is tuple\.$"),
        (["Tequila", 14], r"the item at 1 is int\.$"),
    ],
)
def test_other_rows_are_refused(rows: object, message: str) -> None:
    expected = "^Rows are a list of texts or of dicts, a DataFrame or Series of pandas or polars, or a LazyFrame"
    with Client() as catalogue, pytest.raises(TypeError, match=expected + ".*" + message):
        catalogue.match(rows)


def test_batches_are_in_order_and_of_the_release_of_the_first(live_server: str) -> None:
    """The service may publish another between two requests."""
    with answering(then=live_server) as (base, asked), Client(base) as catalogue:
        answers = catalogue.match([{"n": at, "cvegeo": "010010001" if at % 2 else ""} for at in range(2001)])
    keys = [(row["n"], row["match_cvegeo"]) for row in answers]
    assert keys == [(at, "010010001" if at % 2 else None) for at in range(2001)]
    queries = [dict(parse_qsl(request.target.partition("?")[2])) for request in asked]
    assert [query.get("release") for query in queries] == [None, *["2020-01"] * 2]


# -- Errors and retries


def test_refusal_is_an_exception_with_the_message(live_server: str, catalogue: Client) -> None:
    with pytest.raises(ProblemError, match=r"estado: .*Did you mean") as caught:
        catalogue.suggest("a", estado=1)
    assert (caught.value.status, caught.value.problem["type"]) == (422, "/problems#invalid-parameters")
    with pytest.raises(ProblemError, match="names no column for `nombre`"):
        catalogue.match([{"folio": "1", "fecha": "2"}])
    with Client(live_server, release="1999-01") as older, pytest.raises(ProblemError) as missing:
        next(older.localidades())
    assert missing.value.status == 404


def test_proxy_that_cannot_be_used_is_an_error_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks://someone:s3cr3t@proxy.example:1080")
    with pytest.raises(ClientError, match=r"environment names can't be used.*ALL_PROXY"):
        Client("https://catalogue.example")


def with_password(address: str) -> str:
    return address.replace("//", "//someone:s3cr3t@")


def test_service_that_is_away_or_another_is_reported_without_the_password() -> None:
    refusal = pytest.raises(ClientError, match=r"^http://127.*can't be reached")
    with Client(with_password(f"http://127.0.0.1:{free_port()}")) as away, refusal as refused:
        away.get("01")
    assert "s3cr3t" not in str(refused.value)
    page = Response(b"<!doctype html>\n<p>Hello", headers={"Content-Type": "text/html"})
    with answering(page, page, page) as (base, _), Client(with_password(base)) as other:
        for call in (lambda: other.get("01"), lambda: other.match(ROWS), lambda: other.suggest("a")):
            with pytest.raises(ClientError, match=r"^http://127.*is no address of localidades-api") as refused:
                call()
            assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    "answer", [b"localidad,estado,folio\r\na,b,c\r\nd,e,f\r\n", b"a,b,c,match_cvegeo\r\n1,2,3,4\r\n"]
)
def test_rows_without_their_answers_are_reported(answer: bytes) -> None:
    refused = pytest.raises(ClientError, match="does not answer each row")
    with answering(Response(answer)) as (base, _), Client(base) as catalogue, refused:
        catalogue.match(ROWS)


ESTADO = Response(b'{"nombre":"Aguascalientes"}', headers={"Content-Type": "application/json"})


def test_busy_service_is_retried_after_retry_after(caplog: pytest.LogCaptureFixture) -> None:
    busy = [Response(b"<p>busy", status, {"Retry-After": "0"}) for status in (503, 502, 504, 429)]
    with answering(*busy, ESTADO, ESTADO) as (base, asked), Client(with_password(base)) as catalogue:
        assert catalogue.get("01") == catalogue.get("01") == {"nombre": "Aguascalientes"}
    assert [request.target for request in asked] == ["/api/census/estados/1/"] * 6
    logged = [record.getMessage() for record in caplog.records if record.name == "localidades_api.client"]
    assert logged == [f"{base} answers 503: trying again for up to 300 seconds"]


def test_pauses_double_up_to_half_a_minute_whatever_retry_after_says() -> None:
    backoff = Backoff(3600)
    assert [backoff.next() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    pauses = {"0": 0, "29": 29, "31": 30, "999999": 30, "-1": 1, "1.5": 1, "Fri, 27 Nov 2026 21:00:00 GMT": 1, "": 1}
    assert {text: Backoff(3600).next(text) for text in pauses} == pauses
    assert (Backoff(30).next("31"), Backoff(31).next("31")) == (None, 30)


def test_long_retry_after_is_not_waited_for_and_a_broken_response_is_retried() -> None:
    busy = Response(b"<p>busy", 503, {"Retry-After": "20"})
    refused = pytest.raises(ProblemError, match=r"^The service answers 503\.$")
    with answering(busy) as (base, asked), Client(base, timeout=10) as catalogue, refused:
        catalogue.get("01")
    assert len(asked) == 1
    half = Response(ESTADO.body[:9], headers={**ESTADO.headers, "Content-Length": "27", "Connection": "close"})
    with answering(ESTADO, half, ESTADO) as (base, asked), Client(base) as catalogue:
        assert catalogue.get("01") == catalogue.get("01")
    assert len(asked) == 3


@pytest.mark.tail
def test_pandas_and_polars_frames_are_matched(live_server: str) -> None:
    python = needed(READERS, "`make test-tools` installs pandas and polars.")
    script = ROOT / "tests" / "clients" / "python" / "frames.py"
    ended = run(live_server, command=(python, "-W", "error", str(script)))
    assert ended.returncode == 0, ended.stderr
    columns, rows, keys = json.loads(ended.stdout)
    assert columns[:5] == ["Localidad", "MPIO", "edo", "match_outcome", "match_cvegeo"]
    assert [row[4] for row in rows] == ["010020001", None, None]
    assert [row[3] for row in rows] == ["exact", "problem", "none"]
    assert sorted(keys) == [key for key in KEYS if key.startswith("01")]
