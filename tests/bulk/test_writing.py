import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.bulk.answers import describe_problem
from localidades_api.bulk.columns import MATCH_COLUMNS, NEAREST_COLUMNS, in_language
from localidades_api.bulk.readers import MediaType
from localidades_api.bulk.rows import Answer
from localidades_api.bulk.writers import writer
from tests.support.bulk import CSV, JSON, NDJSON, open_rows

GUADALAJARA = "Guadalajara, Guadalajara, Jalisco"
ANSWER: Answer = {
    "outcome": "ambiguous",
    "cvegeo": None,
    "id": None,
    "label": None,
    "score": 94.5,
    "margin": 0.0,
    "faults": [
        {"code": "spelling", "given": "Guadalajra", "found": "Guadalajara", "penalty": 5.5},
        {"code": "kind", "given": "", "found": "ejido", "penalty": 2.5},
    ],
    "candidates": [
        {
            "cvegeo": "140390001",
            "id": 140390001,
            "label": GUADALAJARA,
            "score": 97,
            "faults": [],
        },
        {"cvegeo": "270040052", "id": 270040052, "label": "Guadalajara, Centro, Tabasco", "score": 96.5, "faults": []},
    ],
    "withdrawn": "270030099",
    "problem": None,
}
ANSWERED = [
    "ambiguous", "", "", "94.5", "0", "spelling: Guadalajra → Guadalajara (-5.5); kind: ejido (-2.5)",
    "140390001 Guadalajara, Guadalajara, Jalisco (97) | 270040052 Guadalajara, Centro, Tabasco (96.5)",
    "270030099", "",
]  # fmt: skip
DEEP = b'{"nombre": "x", "a": ' + b"[" * 150 + b"]" * 150 + b"}"
NAMES = [f"match_{name}" for name in MATCH_COLUMNS]
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9) | st.sampled_from(
    ["\r", "a\nb", "a\r\nb", '"', ",", ";", "=1+1"]
)


def answered(body: bytes, sent_as: MediaType = CSV, wanted: MediaType = CSV, answer: Answer = ANSWER) -> bytes:
    source = open_rows(body, sent_as)
    target = writer(wanted, source)
    return b"".join([target.begin(), *(target.write(row, answer) for row in source), target.end()])


def test_csv_answer_is_appended_to_the_sent_columns() -> None:
    assert answered(b"Folio;Localidad \n007;  Guadalajra\n").decode() == (
        f"Folio;Localidad ;{';'.join(NAMES)}\n"
        '007;  Guadalajra;ambiguous;;;94.5;0;"spelling: Guadalajra → Guadalajara (-5.5); kind: ejido (-2.5)";'
        "140390001 Guadalajara, Guadalajara, Jalisco (97) | 270040052 Guadalajara, Centro, Tabasco (96.5);270030099;\n"
    )


PROBLEM = (
    "`latitud` can't be read as degrees, such as 20.6736. The row was matched without its coordinates."
    " `cvegeo` has the key of its `municipio`, not of a locality: it was left out."
)


def test_values_of_a_table_are_translated_but_not_its_headers() -> None:
    spanish = in_language(MATCH_COLUMNS, "es")
    assert list(spanish) == list(MATCH_COLUMNS)
    cells = {name: cell({**ANSWER, "problem": PROBLEM}) for name, cell in spanish.items()}
    assert cells["outcome"] == "ambigua"
    assert cells["faults"] == "ortografía: Guadalajra → Guadalajara (-5.5); tipo de lugar: ejido (-2.5)"
    assert cells["problem"] == (
        "`latitud` no se puede leer como grados, por ejemplo 20.6736. La clave se buscó sin las coordenadas de la fila."
        " `cvegeo` trae la clave de su `municipio`, no la de una localidad: no se usó."
    )
    unchanged = set(MATCH_COLUMNS) - {"outcome", "faults", "problem"}
    assert all(cells[name] == MATCH_COLUMNS[name](ANSWER) for name in unchanged)
    assert in_language(MATCH_COLUMNS, "en") is MATCH_COLUMNS


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("It is not JSON.", "No es JSON."),
        ("It has no `nombre`, or `cvegeo`.", "Le falta `nombre`, o `cvegeo`."),
        (
            "It has `a\nb` twice: rename or remove one of them.",
            "Tiene `a\nb` dos veces: cambie el nombre de uno o quítelo.",
        ),
        ("Give both `latitud` and `longitud`.", "Indique tanto `latitud` como `longitud`."),
    ],
)
def test_every_row_problem_has_a_spanish_translation(problem: str, said: str) -> None:
    assert in_language(NEAREST_COLUMNS, "es")["problem"]({"results": [], "problem": problem}) == said


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
    assert list(csv.reader(io.StringIO(body.decode(), newline=""), delimiter=delimiter))[1:] == [
        [*row, *ANSWERED] for row in rows
    ]


def test_byte_order_mark_is_written_for_spreadsheets() -> None:
    mark = "\ufeff".encode()
    assert answered(b"nombre\nx\n").startswith(b"nombre")
    assert answered(mark + b"nombre\nx\n").startswith(mark + b"nombre")
    assert answered("nombre\nPeñón\n".encode("cp1252")).startswith(mark + b"nombre")
    assert answered(b"nombre\n" + b"x\n" * 50_000 + b"Pe\xf1\xf3n\n").startswith(mark + b"nombre")


def test_answer_columns_never_clash_with_sent_columns() -> None:
    again = answered(answered(b"nombre\nx\n")).decode().splitlines()
    assert again[0] == ",".join(["nombre", *NAMES, *(name.replace("match_", "match2_") for name in NAMES)])
    assert again[1].startswith("x,ambiguous,")


def test_extra_cells_follow_the_answer() -> None:
    problem = describe_problem("It has 3 cells.")
    assert answered(b"nombre,estado\na,b,c\n", answer=problem).decode().splitlines()[1] == (
        "a,b,problem,,,,,,,,It has 3 cells.,c"
    )


def test_csv_columns_for_objects_are_the_members_of_the_first() -> None:
    body = b'{"nombre": "x", "folio": 7, "lista": [1]}\n{"nombre": "y", "otro": 1}\n5\n'
    lines = list(csv.reader(io.StringIO(answered(body, NDJSON).decode())))
    assert lines[0] == ["nombre", "folio", "lista", *NAMES]
    assert [line[:3] for line in lines[1:]] == [["x", "7", "[1]"], ["y", "", ""], ["", "", ""]]


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
    empty = {CSV: ",".join(NAMES) + "\r\n", NDJSON: "", JSON: '{"results":[]}\n'}[wanted]
    assert answered(b"", NDJSON, wanted).decode() == empty
    empty = {CSV: "nombre," + ",".join(NAMES) + "\n", NDJSON: "", JSON: '{"results":[]}\n'}[wanted]
    assert answered(b"nombre\n", CSV, wanted).decode() == empty
