"""The columns of a matched place, in answers of every format."""

import csv
import io
from typing import Any

import openpyxl
import pytest

from localidades_api.bulk.answer_columns import match_columns
from localidades_api.bulk.answers import describe_match, match_row
from localidades_api.bulk.formats import XLSX, MediaType
from localidades_api.bulk.writers import writer
from localidades_api.catalogue.columns import MATCHED, MATCHED_BY_DEFAULT
from localidades_api.catalogue.schemas import Match
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import Candidate, MatchResult
from tests.support.bulk import CSV, open_rows, rows_in

# The first is certain, the second one of two, the third unlike any place, and the fourth can't be read.
ROWS = b"folio,nombre,municipio\n1,Zaragoza,Zaragoza\n2,Ninguno,Centro\n3,Xochitepec,Centla\n4,,\n"
NAMES = ["nombre", "cve_ent", "latitud", "altitud", "poblacion"]


def answers(index: NameIndex, fields: list[str]) -> list[dict[str, Any]]:
    return [dict(match_row(row, index, fields=fields)) for row in rows_in(ROWS)]


def written(index: NameIndex, media_type: MediaType, fields: list[str]) -> bytes:
    source = open_rows(ROWS)
    target = writer(media_type, source, match_columns(fields))
    rows = target.begin() + b"".join(target.write(row, match_row(row, index, fields=fields)) for row in source)
    return rows + target.end()


@pytest.mark.parametrize("fields", [list(MATCHED), NAMES, ["viviendas"]])
def test_answers_and_candidates_have_the_fields_beside_their_labels(index: NameIndex, fields: list[str]) -> None:
    certain, doubtful, unlike, unreadable = answers(index, fields)
    places = [certain, doubtful, *doubtful["candidates"]]
    assert [one["outcome"] for one in (certain, doubtful, unlike, unreadable)] == [
        "exact", "ambiguous", "none", "problem"
    ]  # fmt: skip
    assert len(places) == 4
    for place in places:
        assert {name: place[name] for name in fields} == read_fields(index, place["id"], fields)
    for one in (*places, unlike, unreadable):
        assert list(one)[(at := list(one).index("label")) : at + len(fields) + 1] == ["label", *fields]
        assert not one.keys() & (set(MATCHED) - set(fields))
    for one in (unlike, unreadable):
        assert {one[name] for name in fields} == {None}


def test_answer_with_every_field_matches_its_schema(index: NameIndex) -> None:
    for answer in answers(index, list(MATCHED)):
        checked = Match.model_validate({"sent": None, "row": 1, **answer}, strict=True)
        assert checked.model_dump(exclude={"sent", "row"}) == answer
        assert Match.model_fields.keys() == {"sent", "row", *answer}


@pytest.mark.parametrize(("id_", "nombre", "municipio"), [(14039, "Guadalajara", "Guadalajara"), (14, "Jalisco", None)])
def test_result_that_is_an_area_has_its_fields(index: NameIndex, id_: int, nombre: str, municipio: str | None) -> None:
    candidate = Candidate(id_, "a label", 99.0, ())
    for outcome in ("sure", "ambiguous"):
        answer = describe_match(MatchResult(outcome, (candidate,)), index, MATCHED)
        assert [answer[name] for name in MATCHED_BY_DEFAULT] == [nombre, municipio, "Jalisco"]
        for one in answer["candidates"]:
            assert {name: one[name] for name in MATCHED} == {name: answer[name] for name in MATCHED}
        assert answer["poblacion"] is None


def test_table_has_the_fields_of_certain_places_only(index: NameIndex) -> None:
    rows = list(csv.DictReader(io.StringIO(written(index, CSV, NAMES).decode())))
    assert [name.removeprefix("match_") for name in rows[0]][4:11] == ["cvegeo", "label", *NAMES]
    place = read_fields(index, 50380001, NAMES)
    assert (rows[0]["match_cvegeo"], rows[0]["match_cve_ent"]) == ("050380001", "05")
    assert {name: rows[0][f"match_{name}"] for name in NAMES} == {name: str(place[name]) for name in NAMES}
    assert [rows[at][f"match_{name}"] for at in (1, 2, 3) for name in NAMES] == [""] * 3 * len(NAMES)


def test_workbook_has_numbers_as_numbers_and_keys_as_text(index: NameIndex) -> None:
    fields = list(MATCHED)
    workbook = openpyxl.load_workbook(io.BytesIO(written(index, XLSX, fields)))
    header, certain, *others = workbook.worksheets[0].iter_rows(values_only=True)
    at = [header.index(f"match_{name}") for name in fields]
    assert [certain[one] for one in at] == list(read_fields(index, 50380001, fields).values())
    assert {row[one] for row in others for one in at} == {None}
    workbook.close()
