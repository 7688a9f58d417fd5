"""Files of answers that come back: what people have decided in them stands."""

import pytest

from localidades_api.bulk.answer_columns import in_language, match_columns
from localidades_api.bulk.answers import match_row
from localidades_api.bulk.input_rows import Answer
from localidades_api.catalogue.columns import MATCHED_BY_DEFAULT
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.schemas import Match
from localidades_api.html.languages.match_words import name_outcome
from localidades_api.html.languages.translators import Language
from localidades_api.names.index import NameIndex
from tests.support.bulk import CSV, NDJSON, rows_in

HEADERS = {"en": "match_outcome,match_cvegeo", "es": "Resultado,Clave INEGI (CVEGEO)"}
TYPED = "Its key was typed into the file of an earlier answer."
DOUBT, CERTAIN, UNFOUND = "El Colorado,Puerto Vallarta", "Frontera,Centla", "Xochitepec,Centla"


def answer(
    index: NameIndex, place: str, *earlier: str, language: Language = "en", kind: PlaceKind | None = None
) -> Answer:
    body = f"nombre,municipio,{HEADERS[language]}\n{place},{','.join(earlier)}\n"
    (row,) = rows_in(body.encode(), CSV, kind=kind)
    found = match_row(row, index)
    Match.model_validate({"row": row.number, "sent": row.sent, **found}, strict=True)
    return found


@pytest.mark.parametrize(
    ("place", "outcome", "cell", "key"),
    [
        (DOUBT, "ambiguous", "140670021", "140670021"),
        (UNFOUND, "none", "270030001", "270030001"),
        (",Centla", "problem", "270030001", "270030001"),
        (DOUBT, "por decidir", "140670021 El Colorado (50)", "140670021"),
        (DOUBT, "", '"=""140670021"""', "140670021"),
        (CERTAIN, "sure", "140670021", "140670021"),
    ],
)
def test_key_that_was_typed_is_chosen(index: NameIndex, place: str, outcome: str, cell: str, key: str) -> None:
    found = answer(index, place, outcome, cell)
    assert (found["outcome"], found["cvegeo"], found["problem"]) == ("chosen", key, TYPED)
    assert (found["score"], found["faults"], found["label"] is None) == (None, [], False)
    undecided = answer(index, place, "", "")
    if undecided["cvegeo"]:
        assert [one["cvegeo"] for one in found["candidates"]] == [undecided["cvegeo"]]
    else:
        assert found["candidates"] == undecided["candidates"]


@pytest.mark.parametrize("language", ["en", "es"])
def test_what_was_decided_on_the_page_stands(index: NameIndex, language: Language) -> None:
    chosen, accepted, rejected = (name_outcome(code, language) for code in ("chosen", "accepted", "rejected"))
    columns = in_language(match_columns(MATCHED_BY_DEFAULT), language).cells
    for word, key, score in zip(
        (chosen, f"{accepted} (85 %)", rejected), ("140670021", "140670021", ""), (None, 85, None), strict=True
    ):
        found = answer(index, DOUBT, word, key, language=language)
        assert (found["cvegeo"] or "", found["score"], found["problem"]) == (key, score, None)
        assert len(found["candidates"]) > 1
        assert [columns[name](found) for name in ("outcome", "cvegeo")] == [word, key]


@pytest.mark.parametrize("cell", ["no sé", "99999", "270039999", "140670021123"])
def test_text_that_is_no_key_of_such_a_place_is_left_out(index: NameIndex, cell: str) -> None:
    found = answer(index, DOUBT, "ambiguous", cell)
    assert (found["outcome"], found["cvegeo"]) == ("ambiguous", None)
    assert found["problem"] == f"`{cell}` is not the key of such a place: it was left out."


def test_key_is_of_what_the_rows_are_about(index: NameIndex) -> None:
    assert answer(index, "Sentla,", "none", "27003", kind="municipio")["cvegeo"] == "27003"
    assert answer(index, "Sentla,", "none", "270030001", kind="municipio")["cvegeo"] != "270030001"


def test_key_of_a_row_that_was_certain_is_the_service_s_own(index: NameIndex) -> None:
    for place, key in ((CERTAIN, "270030001"), (DOUBT, "140670021")):  # this one in another release, perhaps
        assert answer(index, place, "sure", key) == answer(index, place, "", "")


def test_objects_with_an_earlier_answer_are_decided_too(index: NameIndex) -> None:
    body = b'{"nombre": "Xochitepec", "match_outcome": null, "match_cvegeo": 270030001}\n'
    assert match_row(rows_in(body, NDJSON)[0], index)["cvegeo"] == "270030001"
