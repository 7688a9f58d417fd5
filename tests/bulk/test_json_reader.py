import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.errors import UnreadableBodyError
from tests.support.bulk import JSON, NDJSON, open_rows, rows_in

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SCALAR = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXT
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
ROW = st.dictionaries(st.sampled_from(["nombre", "municipio", "lat", "folio", '"', "]"]), VALUE, max_size=4) | VALUE


@given(st.lists(ROW, max_size=6), st.booleans(), st.sampled_from([None, 2]))
def test_written_document_is_read_back_unchanged(
    rows: list[Any],
    as_ascii: bool,  # noqa: FBT001  # hypothesis gives it
    indent: int | None,
) -> None:
    found = rows_in(json.dumps({"rows": rows}, ensure_ascii=as_ascii, indent=indent).encode(), JSON)
    assert [row.sent for row in found] == rows
    assert [row.number for row in found] == list(range(1, len(rows) + 1))


@given(st.lists(ROW, max_size=6), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_written_lines_are_read_back_unchanged(rows: list[Any], end: str) -> None:
    found = rows_in(end.join(json.dumps(row, ensure_ascii=False) for row in rows).encode(), NDJSON)
    assert [row.sent for row in found] == rows


@pytest.mark.parametrize("length", [3, 1_000, 1_048_000])
def test_document_may_span_several_reads(length: int) -> None:
    rows = [{"nombre": f"{number} ".ljust(length, "ñ")} for number in range(3_300_000 // length % 10_000)]
    for separators in ((",", ":"), (" ,\n\t ", " : ")):
        found = rows_in(json.dumps({"rows": rows}, ensure_ascii=False, separators=separators).encode(), JSON)
        assert [row.sent for row in found] == rows


def test_members_are_recognized_in_each_row() -> None:
    body = b'{"localidad": "Ixtapa", "NOM_MUN": "Puerto Vallarta", "folio": 7}\n'
    body += b'{"cvegeo": 140390001, "lat": 20.5, "lon": -103}\n'
    assert [row.cells for row in rows_in(body, NDJSON)] == [
        {"nombre": "Ixtapa", "municipio": "Puerto Vallarta"},
        {"cvegeo": "140390001", "latitud": 20.5, "longitud": -103.0},
    ]
    (row,) = rows_in(b'{"Lugar": "Ixtapa", "nombre": "Ana"}', NDJSON, named={"nombre": "Lugar"})
    assert row.cells == {"nombre": "Ixtapa"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"nombre": "Ixtapa"', "It is not JSON."),
        (b"nombre,estado", "It is not JSON."),
        (b'["Ixtapa"]', "It is no object."),
        (b'{"Localidad": "Ixtapa", "LOCALIDAD": "x"}', "It has `Localidad` twice: rename or remove one of them."),
        (b'{"lugar del evento": 1}', "It has no `nombre`, or `cvegeo`, or `clave`, or `municipio`, or `estado`."),
        (b'{"nombre": ["Ixtapa"]}', "`nombre` must be a text or a number."),
        (b'{"nombre": true}', "`nombre` must be a text or a number."),
        (b'{"nombre": "x", "lat": 1e300, "lon": 0}', "`latitud` is a number beyond any key or degree."),
        (b'{"nombre": "x", "cvegeo": 1' + b"0" * 5000 + b"}", "It is not JSON."),
        (b'{"nombre": "\\ud800"}', "It is not JSON."),
        (b'{"nombre": ' + b"[" * 5000 + b"]" * 5000 + b"}", "It is not JSON."),
    ],
)
def test_bad_line_does_not_affect_the_others(line: bytes, problem: str) -> None:
    rows = rows_in(b'{"nombre": "a"}\n%b\n{"nombre": "b"}\n' % line, NDJSON)
    assert [row.problem is None for row in rows] == [True, False, True]
    assert (rows[1].problem or "").startswith(problem)


def test_placeholders_for_missing_values_are_read_as_none() -> None:
    (row,) = rows_in(b'{"rows": [{"nombre": NaN, "cvegeo": 140390001.0, "lat": null, "lon": null}]}', JSON)
    assert row.cells == {"nombre": None, "cvegeo": "140390001", "latitud": None, "longitud": None}


def test_encoding_of_lines_may_be_windows_1252_and_that_of_documents_not() -> None:
    (row,) = rows_in('{"nombre": "Peñón"}'.encode("cp1252"), NDJSON)
    assert row.cells == {"nombre": "Peñón"}
    for body, sentence in {
        '{"rows": [{"nombre": "Peñón"}]}'.encode("cp1252"): "The JSON is not UTF-8",
        '{"rows": []}'.encode("utf-16") + b"{": "The JSON is not UTF-8",
        b'{"rows": [{"nombre": "Pe\xc3': "The JSON is not UTF-8",
    }.items():
        with pytest.raises(UnreadableBodyError, match=sentence):
            rows_in(body, JSON)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", 'The JSON does not begin with {"rows": ['),
        ('{"filas": [', 'The JSON does not begin with {"rows": ['),
        (" " * 5000, 'The JSON does not begin with {"rows": ['),
        ('{"rows": [{"nombre": "x"}]', "The JSON is broken at row 2: it ends too early."),
        ('{"rows": [{"nombre": "x"},]}', "The JSON is broken at row 2: "),
        ('{"rows": [,]}', "The JSON is broken at row 1: "),
        ('{"rows": [{"nombre": "x"} {"nombre": "y"}]}', "The JSON is broken at row 2: a comma is missing"),
        ('{"rows": [{"nombre": "x}]}', "The JSON is broken at row 1: "),
        ('{"rows": [], "x": 1}', "The JSON is broken at row 1: only `rows` may be in it"),
        ('{"rows": []}' + " " * 4_000_000 + "{}", "The JSON is broken at row 1: only `rows` may be in it"),
        ('{"rows": [1, 2' + " " * 3_000_000 + "3]}", "The JSON is broken at row 3: a comma is missing"),
        ('{"rows": []} {}', "The JSON is broken at row 1: only `rows` may be in it"),
        ('{"rows": [' + "[" * 100_000, "The JSON is broken at row 1: it is nested too deeply."),
        ('{"rows": ["' + "x" * 1_200_000, "The JSON is broken at row 1: it has no end within 1 MB."),
        ('{"rows": ["' + "x" * 1_050_000 + '"]}', "The JSON is broken at row 1: it is longer than 1 MB."),
    ],
)
def test_unreadable_document_is_explained(body: str, sentence: str) -> None:
    with pytest.raises(UnreadableBodyError) as caught:
        open_rows(body.encode(), JSON)
    assert str(caught.value).startswith(sentence)
