import csv
import io
import json
import re

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.bulk.answer_columns import (
    MATCH_COLUMNS,
    NEAREST_COLUMNS,
    AnswerColumns,
    as_cell,
    in_language,
    match_columns,
)
from localidades_api.bulk.answers import describe_problem, match_row
from localidades_api.bulk.formats import XLSX, MediaType
from localidades_api.bulk.input_rows import Answer
from localidades_api.bulk.writers import writer
from localidades_api.catalogue.columns import MATCHED
from localidades_api.html.languages.translators import Language
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex
from tests.support.bulk import CSV, JSON, NDJSON, answer_all, open_rows, rows_in

GUADALAJARA = "Guadalajara, Guadalajara, Jalisco"
ANSWER: Answer = {
    "outcome": "ambiguous", "cvegeo": None, "id": None, "label": None, "score": 94.5, "margin": 0.0,
    "faults": [
        {"code": "spelling", "given": "Guadalajra", "found": "Guadalajara", "penalty": 5.5},
        {"code": "kind", "given": "", "found": "ejido", "penalty": 2.5},
    ],
    "candidates": [
        {"cvegeo": "140390001", "id": 140390001, "label": GUADALAJARA, "score": 97, "faults": []},
        {"cvegeo": "270040052", "id": 270040052, "label": "Guadalajara, Centro, Tabasco", "score": 96.5, "faults": []},
    ],
    "withdrawn": "270030099", "problem": None,
}  # fmt: skip
ANSWERED = [
    "ambiguous", "", "", "94.5", "0", "spelling: Guadalajra → Guadalajara (-5.5); kind: ejido (-2.5)",
    "140390001 Guadalajara, Guadalajara, Jalisco (97) | 270040052 Guadalajara, Centro, Tabasco (96.5)",
    "270030099", "",
]  # fmt: skip
DEEP = b'{"nombre": "x", "a": ' + b"[" * 150 + b"]" * 150 + b"}"
NAMES = [f"match_{name}" for name in MATCH_COLUMNS.cells]
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9) | st.sampled_from(
    ["\r", "a\nb", "a\r\nb", '"', ",", ";", "=1+1"]
)


def answered(
    body: bytes,
    sent_as: MediaType = CSV,
    wanted: MediaType = CSV,
    answer: Answer = ANSWER,
    columns: AnswerColumns = MATCH_COLUMNS,
) -> bytes:
    return answer_all(open_rows(body, sent_as), answer, wanted, columns)


def test_csv_answer_is_appended_to_the_sent_columns() -> None:
    assert answered(b"Folio;Localidad \n007;  Guadalajra\n").decode() == (
        f"Folio;Localidad ;{';'.join(NAMES)}\n"
        '007;  Guadalajra;ambiguous;;;94.5;0;"spelling: Guadalajra → Guadalajara (-5.5); kind: ejido (-2.5)";'
        "140390001 Guadalajara, Guadalajara, Jalisco (97) | 270040052 Guadalajara, Centro, Tabasco (96.5);270030099;\n"
    )
    # Extra cells follow it.
    lines = answered(b"nombre,estado\na,b,c\n", answer=describe_problem("It has 3 cells.")).decode().splitlines()
    assert lines[1] == "a,b,problem,,,,,,,,It has 3 cells.,c"


PROBLEM = (
    "`latitud` can't be read as degrees, such as 20.6736. The row was matched without its coordinates."
    " `cvegeo` has the key of its `municipio`, not of a locality: it was left out."
)


SPANISH = ["Resultado", "Clave INEGI (CVEGEO)", "Lugar", "Certeza", "Diferencias", "Opciones", "Observación"]


def test_table_is_written_in_spanish_for_people() -> None:
    spanish = in_language(MATCH_COLUMNS, "es")
    assert spanish.headers([]) == SPANISH
    cells = {name: cell({**ANSWER, "problem": PROBLEM}) for name, cell in spanish.cells.items()}
    assert list(cells) == ["outcome", "cvegeo", "label", "score", "faults", "candidates", "problem"]
    assert cells["outcome"] == "por decidir"
    assert cells["faults"] == "ortografía: Guadalajra → Guadalajara (-5.5); tipo de lugar: ejido (-2.5)"
    assert cells["problem"] == (
        "“latitud” no se puede leer como grados, por ejemplo 20.6736. La clave se buscó sin las coordenadas de la fila."
        " “cvegeo” trae la clave de su “municipio”, no la de una localidad: no se usó."
        " El INEGI dio de baja el lugar con la clave 270030099."
    )
    assert spanish.cells["problem"]({**ANSWER, "withdrawn": None}) == ""
    unchanged = cells.keys() - {"outcome", "faults", "problem"}
    assert all(cells[name] == MATCH_COLUMNS.cells[name](ANSWER) for name in unchanged)
    assert in_language(MATCH_COLUMNS, "en") is MATCH_COLUMNS
    assert in_language(NEAREST_COLUMNS, "es").headers([]) == [
        "Clave INEGI (CVEGEO)", "Lugar", "Distancia (m)", "Observación"
    ]  # fmt: skip


def test_headers_of_answers_clash_with_none_of_the_sender() -> None:
    fields = {"outcome": as_cell, "nombre": as_cell, "cve_mun": as_cell}
    assert AnswerColumns("match", fields, "es").headers([]) == ["Resultado", "Nombre", "CVE_MUN"]  # as in downloads
    assert AnswerColumns("match", fields).headers([]) == ["match_outcome", "match_nombre", "match_cve_mun"]
    spanish = in_language(MATCH_COLUMNS, "es")
    numbered = ["Resultado (2)", SPANISH[1], "Lugar (3)", *SPANISH[3:]]
    assert spanish.headers(["RESULTADO", "Lugar", "lugar (2)"]) == numbered
    assert spanish.headers(SPANISH) == [f"{header} (2)" for header in SPANISH]
    assert MATCH_COLUMNS.headers(["Match_Score"]) == [name.replace("match_", "match2_") for name in NAMES]
    assert MATCH_COLUMNS.headers(["match_score", "match3_cvegeo"])[0] == "match2_outcome"
    assert MATCH_COLUMNS.headers(["match_score", "match2_cvegeo"])[0] == "match3_outcome"


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("It is not JSON.", "No es JSON."),
        ("It has no `nombre`, or `cvegeo`.", "Le falta “nombre”, o “cvegeo”."),
        (
            "It has `a\nb` twice: rename or remove one of them.",
            "Tiene “a\nb” dos veces: cambie el nombre de uno o quítelo.",
        ),
        ("Give both `latitud` and `longitud`.", "Indique tanto “latitud” como “longitud”."),
    ],
)
def test_every_row_problem_has_a_spanish_translation(problem: str, said: str) -> None:
    assert in_language(NEAREST_COLUMNS, "es").cells["problem"]({"results": [], "problem": problem}) == said


@given(st.lists(st.tuples(CELL, CELL), max_size=5), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_written_csv_can_be_read_again(rows: list[tuple[str, str]], delimiter: str, end: str) -> None:
    sent = io.StringIO()
    quoting = csv.writer(sent, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    quoting.writerows([("nombre", "nota"), *rows])
    body = answered(sent.getvalue().encode())
    source = open_rows(body)
    found = list(source)
    assert source.layout.columns == ["nombre", "nota", *NAMES]
    assert [row.sent for row in found] == [[*row, *ANSWERED] for row in rows]
    lines = [sum(len(re.split("\r\n|\r|\n", cell)) - 1 for cell in row) + 1 for row in [("nombre", "nota"), *rows]]
    assert [row.number for row in found] == [1 + sum(lines[:at]) for at in range(1, len(rows) + 1)]
    assert list(csv.reader(io.StringIO(body.decode(), newline=""), delimiter=delimiter))[1:] == [
        [*row, *ANSWERED] for row in rows
    ]


def test_byte_order_mark_is_written_for_spreadsheets() -> None:
    mark = "\ufeff".encode()
    assert answered(b"nombre\nx\n").startswith(b"nombre")
    assert answered(mark + b"nombre\nx\n").startswith(mark + b"nombre")
    assert answered("nombre\nPeñón\n".encode("cp1252")).startswith(mark + b"nombre")
    assert answered(b"nombre\n" + b"x\n" * 40_000 + b"Pe\xf1\xf3n\n").startswith(mark + b"nombre")


def test_columns_for_objects_are_the_members_of_the_first() -> None:
    body = b'{"nombre": "x", "folio": 7, "lista": [1]}\n{"nombre": "=y", "otro": 1}\n5\n'
    sheet = openpyxl.load_workbook(io.BytesIO(answered(body, NDJSON, XLSX))).worksheets[0]
    table = list(csv.reader(io.StringIO(answered(body, NDJSON).decode())))
    for lines in (table, [[cell or "" for cell in row] for row in sheet.iter_rows(values_only=True)]):
        assert lines[0] == ["nombre", "folio", "lista", *NAMES]
        assert [line[:3] for line in lines[1:]] == [["x", "7", "[1]"], ["=y", "", ""], ["", "", ""]]


@pytest.mark.parametrize(
    ("body", "sent_as", "sent"),
    [
        (b"nombre,x,x,\na,b,c,d\n", CSV, [{"nombre": "a", "x": "b", "x (2)": "c", "column 4": "d"}]),
        (b"nombre\nx,y\n", CSV, [{"nombre": "x", "column 2": "y"}]),
        (b'{"nombre": "x", "outcome": NaN}\n', NDJSON, [{"nombre": "x", "outcome": None}]),
        (b'{"rows": [{"nombre": "x"}, 5, "y"]}', JSON, [{"nombre": "x"}, 5, "y"]),
        (b'{"nombre": \n', NDJSON, ['{"nombre": ']),
        (DEEP, NDJSON, [json.loads(DEEP)]),
        (b"", NDJSON, []),
    ],
)
def test_objects_hold_the_answer_and_the_sent_row(body: bytes, sent_as: MediaType, sent: list[object]) -> None:
    lines = [json.loads(line) for line in answered(body, sent_as, NDJSON).splitlines()]
    assert json.loads(answered(body, sent_as, JSON)) == {"results": lines}
    assert all({name: line[name] for name in ANSWER} == ANSWER for line in lines)
    assert [line["sent"] for line in lines] == sent


@pytest.mark.parametrize("wanted", [CSV, NDJSON, JSON])
def test_no_rows_give_no_answers(wanted: MediaType) -> None:
    names = ",".join(NAMES)
    for body, sent_as, header in ((b"", NDJSON, f"{names}\r\n"), (b"nombre\n", CSV, f"nombre,{names}\n")):
        assert answered(body, sent_as, wanted).decode() == {CSV: header, NDJSON: "", JSON: '{"results":[]}\n'}[wanted]


@pytest.mark.parametrize("language", ["en", "es"])
def test_columns_of_an_earlier_answer_are_replaced_and_not_read(language: Language) -> None:
    columns = in_language(match_columns(["municipio", "estado"]), language)
    answer = {**ANSWER, "municipio": "x", "estado": "y"}
    first = answered(b"Localidad,Mpio.\nTala,Tala\n", columns=columns, answer=answer)
    for chosen in (columns, in_language(match_columns([], ["outcome", "cvegeo"]), language)):
        assert [row.cells for row in open_rows(first)] == [{"nombre": "Tala", "municipio": "Tala"}]
        again = answered(first, columns=chosen, answer=answer)
        header, row = csv.reader(io.StringIO(again.decode()))
        assert header == ["Localidad", "Mpio.", *chosen.headers([])]
        assert (row[:2], len(row)) == (["Tala", "Tala"], len(header))
    ahead = b"match_outcome,x,Localidad\na,b,Tala\n"  # a column of such a name alone is the sender's
    assert answered(ahead).startswith(b"match_outcome,x,Localidad,match2_outcome,")


@pytest.mark.parametrize("language", ["en", "es"])
def test_column_that_someone_has_added_after_an_earlier_answer_is_kept(language: Language) -> None:
    columns = in_language(MATCH_COLUMNS, language)
    first, row = answered(b"Localidad\nTala\n", columns=columns).decode().splitlines()
    for added in ("Visita", "", columns.headers([])[-1]):
        again = answered(f"{first},{added}\n{row},12 de mayo\n".encode(), columns=columns)
        header, cells = csv.reader(io.StringIO(again.decode()))
        kept = ["Localidad", *columns.headers([]), added]
        assert header == [*kept, *columns.headers(kept)]
        assert cells[len(kept) - 1] == "12 de mayo"


# -- Columns of the matched place

# The first is certain, the second one of two, the third unlike any place, and the fourth can't be read.
ROWS = b"folio,nombre,municipio\n1,Zaragoza,Zaragoza\n2,Ninguno,Centro\n3,Xochitepec,Centla\n4,,\n"
FIELDS = ["nombre", "cve_ent", "latitud", "altitud", "poblacion"]


def written(index: NameIndex, media_type: MediaType, fields: list[str]) -> bytes:
    source = open_rows(ROWS)
    target = writer(media_type, source, match_columns(fields))
    rows = target.begin() + b"".join(target.write(row, match_row(row, index, fields=fields)) for row in source)
    return rows + target.end()


@pytest.mark.parametrize("fields", [list(MATCHED), FIELDS, ["viviendas"]])
def test_answers_and_candidates_have_the_fields_beside_their_labels(index: NameIndex, fields: list[str]) -> None:
    certain, doubtful, unlike, unreadable = (match_row(row, index, fields=fields) for row in rows_in(ROWS))
    places = [certain, *doubtful["candidates"]]
    assert [one["outcome"] for one in (certain, doubtful, unlike, unreadable)] == [
        "exact", "ambiguous", "none", "problem"
    ]  # fmt: skip
    assert len(places) == 3
    for place in places:
        assert {name: place[name] for name in fields} == read_fields(index, place["id"], fields)
    for one in (*places, unlike, unreadable):
        assert list(one)[(at := list(one).index("label")) : at + len(fields) + 1] == ["label", *fields]
        assert not one.keys() & (set(MATCHED) - set(fields))
    for one in (doubtful, unlike, unreadable):
        assert {one[name] for name in fields} == {None}


def test_table_has_the_fields_of_certain_places_only(index: NameIndex) -> None:
    rows = list(csv.DictReader(io.StringIO(written(index, CSV, FIELDS).decode())))
    assert [name.removeprefix("match_") for name in rows[0]][4:11] == ["cvegeo", "label", *FIELDS]
    place = read_fields(index, 50380001, FIELDS)
    assert (rows[0]["match_cvegeo"], rows[0]["match_cve_ent"]) == ("050380001", "05")
    assert {name: rows[0][f"match_{name}"] for name in FIELDS} == {name: str(place[name]) for name in FIELDS}
    assert [rows[at][f"match_{name}"] for at in (1, 2, 3) for name in FIELDS] == [""] * 3 * len(FIELDS)


def test_workbook_has_numbers_as_numbers_and_keys_as_text(index: NameIndex) -> None:
    fields = list(MATCHED)
    workbook = openpyxl.load_workbook(io.BytesIO(written(index, XLSX, fields)))
    header, certain, *others = workbook.worksheets[0].iter_rows(values_only=True)
    at = [header.index(f"match_{name}") for name in fields]
    assert [certain[one] for one in at] == list(read_fields(index, 50380001, fields).values())
    assert {row[one] for row in others for one in at} == {None}
    workbook.close()
