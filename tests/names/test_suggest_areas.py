"""Estados and municipios as people type them: one rule suggests them and searches their lists."""

import random
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.keys import PlaceKind, kind_of_key
from localidades_api.names.files.naming import name_areas
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former
from localidades_api.names.reading.areas import AreaBook
from localidades_api.names.suggestions.suggest_areas import AreaSuggester
from tests.support.names import MUNICIPIOS, PLACES, place

ESTADOS = {5: "Coahuila de Zaragoza", 8: "Chihuahua", 9: "Ciudad de México", 14: "Jalisco", 15: "México", 20: "Oaxaca",
           22: "Querétaro", 23: "Quintana Roo", 24: "San Luis Potosí"}  # fmt: skip
NAMES = {
    5007: "Cuatro Ciénegas", 8037: "Juárez", 8008: "Batopilas de Manuel Gómez Morín", 9014: "Benito Juárez",
    14039: "Guadalajara", 14070: "El Salto", 14101: "Tonalá", 14103: "Tonila", 14116: "Villa Hidalgo",
    14050: "Jocotepec", 15106: "Toluca", 20005: "Asunción Ixtaltepec", 20166: "San José Chiltepec",
    20208: "San Juan Mixtepec", 20209: "San Juan Mixtepec", 20397: "Heroica Ciudad de Tlaxiaco",
    20413: "Santa María Huatulco", 22016: "San Juan del Río", 23005: "Benito Juárez", 24028: "San Luis Potosí",
}  # fmt: skip
FORMER = {8008: "Batopilas", 14050: "San Cosme", 31001: "Retirado"}  # the last is gone
SEATS = {
    23005: ["Cancún"], 14039: ["Guadalajara", "GDL", "Guanatos"], 8037: ["Juárez", "Ciudad Juárez"],
    20413: ["Santa María Huatulco"], 5007: ["Cuatro Ciénegas de Carranza (Centro)"],
}  # fmt: skip


def suggester(
    estados: Mapping[int, str],
    municipios: Mapping[int, str],
    former: Mapping[int, str] = {},
    seats: Mapping[int, Sequence[str]] = {},
    populations: Mapping[int, int | None] = {},
) -> AreaSuggester:
    """Return the suggester of a release with these names."""
    book = AreaBook(estados, municipios, former)
    return AreaSuggester(book, name_areas(book, former, seats, populations))


AREAS = suggester(ESTADOS, NAMES, FORMER, SEATS)
BESIDE_LOCALITIES = suggester(ESTADOS, NAMES, FORMER)
KINDS: tuple[PlaceKind, ...] = ("estado", "municipio")
FOUND = """
# whole names and their beginnings, whatever their case and accents; one with the whole name first
TONALÁ                        | 14101
san j                         | 14050 20166 20208 20209 22016
juarez                        | 8037 9014 23005
hidalgo                       | 14116
sta. ma. huatulco             | 20413
# words in any order, with the estado before or after
chiltepec san                 | 20166
Benito Juárez, Q. Roo         | 23005
juarez qui                    | 23005
juarez qu                     |
cdmx benito                   | 9014
# titles that the name has, or not
tlaxiaco                      | 20397
Mpio. Toluca edomex           | 15106
alcaldía benito juárez        | 9014 23005
# cabeceras, everyday names of them, and former names
canc                          | 23005
gdl                           | 14039
ciudad juarez                 | 8037 9014
carranza                      | 5007
san cosme                     | 14050
# labels
San Juan Mixtepec (209), Oaxaca | 20209
San Juan Mixtepec (20         | 20208 20209
# keys
14039                         | 14039
14 039                        | 14039
20                            | 20005 20166 20208 20209 20397 20413
# only an estado was named, whole or begun
jalis                         | 14039 14050 14070 14101 14103 14116
# letters wrong, spaces left out, only if nothing else is found
tonala                        | 14101
tonla                         | 14101 14103
guadalajra jalisco            | 14039
huatlco maria                 | 20413
ixtaltapek asun               | 20005
cuatrocienegas                | 5007
guadakaj                      | 14039
# nothing
tonala oaxaca                 |
99999                         |
00014                         |
140                           |
retirado                      |
                              |
"""


@pytest.mark.parametrize("line", [line for line in FOUND.strip().splitlines() if line[0] != "#"])
def test_text_finds_every_municipio_that_it_names(line: str) -> None:
    text, _, keys = line.partition("|")
    assert sorted(AREAS.find(text, "municipio")) == [int(key) for key in keys.split()]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("jalisco", [14]), ("JAL", [14]), ("estado de mexico", [15, 9]), ("cdmx", [9]), ("potosi san", [24]),
        ("jalizco", [14]), ("quintanaroo", [23]), ("14", [14]), ("14039", []), ("guadalajara", []), ("31", []),
    ],
)  # fmt: skip
def test_text_finds_every_estado_that_it_names(text: str, keys: list[int]) -> None:
    assert AREAS.find(text, "estado") == keys


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("juarez", [(8037, "exact"), (9014, "prefix"), (23005, "prefix")]),
        ("san luis potosi", [(24, "exact"), (24028, "exact")]),
        ("Tonalá, Jalisco", [(14101, "label")]),
        ("jose chiltepec oaxaca", [(20166, "prefix")]),
        ("chiltepec san", [(20166, "words")]),
        ("cancun", [(23005, "seat")]),
        ("gdl", [(14039, "everyday")]),
        ("san cosme", [(14050, "former")]),
        ("ciudad juarez", [(8037, "everyday"), (9014, "prefix")]),
        ("tonalla", [(14101, "near")]),
    ],
)
def test_suggestions_say_why_and_the_likeliest_come_first(text: str, expected: list[tuple[int, str]]) -> None:
    assert [(id_, found.match) for id_, found in AREAS.suggest(text, KINDS)] == expected


@pytest.mark.parametrize(
    ("text", "match", "name"),
    [("canc", "seat", "Cancún"), ("guanatos", "everyday", "Guanatos"), ("kancun", "near", "Cancún"),
     ("kancun quint", "near", "Cancún"), ("cancun quint", "seat", "Cancún"), ("tonala", "exact", "")],
)  # fmt: skip
def test_name_that_was_recognized_is_told(text: str, match: str, name: str) -> None:
    (_, first), *_ = AREAS.suggest(text, ["municipio"])
    assert (first.match, first.written) == (match, name)


def test_largest_of_homonyms_comes_first() -> None:
    areas = suggester(ESTADOS, NAMES, populations={9014: 434153, 23005: 911503, 20208: 7000, 20209: None})
    assert [id_ for id_, _ in areas.suggest("benito juarez", KINDS)] == [23005, 9014]
    assert [id_ for id_, _ in areas.suggest("mixtepec", KINDS)] == [20208, 20209]


def test_letters_may_be_wrong_if_no_area_of_the_kind_has_the_words() -> None:
    areas = suggester({14: "Jalisco", 20: "Oaxaca"}, {14001: "San Juam", 20001: "San Juan"})
    assert areas.find("juam", "municipio") == [14001]
    assert areas.find("juam oaxaca", "municipio") == [20001]
    areas = suggester({14: "Jalisco", 18: "Nayarit"}, {18008: "San Xalisco"})
    assert [id_ for id_, _ in areas.suggest("jalisco", KINDS)] == [14]
    assert [id_ for id_, _ in areas.suggest("jalisco", ["municipio"])] == areas.find("jalisco", "municipio") == [18008]


def test_no_seat_and_no_word_with_letters_wrong_is_suggested_beside_localities() -> None:
    for text, alone in (("cancun", [23005]), ("gdl", [14039]), ("kancun", [23005]), ("chiltepek", [20166])):
        assert [id_ for id_, _ in AREAS.suggest(text, ["municipio"])] == alone
        assert BESIDE_LOCALITIES.suggest(text, ["municipio", "localidad"]) == []
    for text in ("toluka", "tluca", "toluuca"):
        assert [id_ for id_, _ in BESIDE_LOCALITIES.suggest(text, ["municipio", "localidad"])] == [15106]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("moreno lag", [14053]),  # short for Laguna, and the beginning of Lagos
        ("lag sta", [20001]),
        ("lag sto", [31001]),
        ("lag stgo", []),
        ("allende buena vista", [14001]),
        ("allende buenavista", [14001]),
    ],
)
def test_words_count_as_typed_and_without_abbreviations(text: str, keys: list[int]) -> None:
    names = {14001: "Buenavista de Allende", 14053: "Lagos de Moreno", 20001: "Santa María Lagos", 31001: "Los Lagos"}
    areas = suggester({**ESTADOS, 31: "Santo Tomás"}, names)
    assert [id_ for id_, _ in areas.suggest(text, ["municipio", "localidad"])] == keys


@given(st.text(max_size=60) | st.text(st.sampled_from("aelosnjuz 0124.,'\"()"), max_size=40), st.sampled_from(KINDS))
def test_any_text_finds_areas_of_its_kind_once_those_suggested_in_the_same_order(text: str, kind: PlaceKind) -> None:
    found, suggested = AREAS.find(text, kind), AREAS.suggest(text, [kind])
    assert len(set(found)) == len(found)
    assert {kind_of_key(id_) for id_ in found} <= {kind}
    if suggested and suggested[0][1].match != "near" and not any(map(str.isdecimal, text)):
        assert found == [id_ for id_, _ in suggested]


@given(st.sampled_from(sorted(NAMES)), st.randoms(use_true_random=False))
def test_every_name_finds_its_municipio_in_any_order_of_its_words(id_: int, chance: random.Random) -> None:
    for name in (NAMES[id_], FORMER.get(id_, NAMES[id_]), *SEATS.get(id_, [])):
        words = f"{name} {ESTADOS[id_ // 1000]}".split()
        assert AREAS.find(" ".join(words), "municipio")[0] == id_ or NAMES[id_] == "San Juan Mixtepec"
        chance.shuffle(words)
        assert id_ in AREAS.find(" ".join(words), "municipio")


def test_index_suggests_and_searches_by_the_seats_and_former_names_that_it_holds(
    index_of: Callable[..., NameIndex],
) -> None:
    benito = ("Benito Juárez", "Quintana Roo")
    cancun = place(230050001, "Cancún", *benito, former=(Former("Cancún", "Isla Mujeres del Sur", 230050001),))
    index = index_of(*PLACES, cancun, place(230050002, "Alfredo V. Bonfil", *benito))
    for text, match, name in (("cancun", "seat", "Cancún"), ("isla mujeres", "former", "Isla Mujeres del Sur")):
        [found] = index.suggest(text, kinds=["municipio"])
        assert (found.id, found.match, found.describe()["otro_nombre"]) == (23005, match, name)
        assert index.find_areas(text, "municipio") == [23005]
    assert index.suggest("bonfil", kinds=["municipio"]) == []
    # `Zaragoza, Coahuila` is the municipio, although the estado Coahuila de Zaragoza has the words.
    assert [area.id for area in index.suggest("zaragoza coahuila", kinds=["municipio", "estado"])] == [5038, 5]
    # With localities, the seat itself is suggested.
    assert [one.id for one in index.suggest("cancun", kinds=["localidad", "municipio"])] == [230050001]
    assert [one.id for one in index.suggest("benito", kinds=["localidad", "municipio"])] == [23005, 230050001]


def test_search_of_areas_is_not_cut_after_as_many_as_are_suggested(index_of: Callable[..., NameIndex]) -> None:
    index = index_of(*(place(20001_0001 + at * 10_000, "San X", f"San Juan {at}", "Oaxaca") for at in range(60)))
    assert index.find_areas("san j", "municipio") == list(range(20001, 20061))
    assert [one.id for one in index.suggest("san j", kinds=["municipio"], limit=20)] == list(range(20001, 20021))
    assert set(MUNICIPIOS).isdisjoint(index.find_areas("20", "municipio"))
