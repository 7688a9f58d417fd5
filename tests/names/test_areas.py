from collections.abc import Callable
from typing import Protocol

import pytest

from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former
from localidades_api.names.reading.areas import AreaBook, is_state_name
from localidades_api.names.rows import MatchResult, MatchRow
from tests.support.names import places_of

ESTADOS = (
    "Aguascalientes", "Baja California", "Baja California Sur", "Campeche", "Coahuila de Zaragoza", "Colima", "Chiapas",
    "Chihuahua", "Ciudad de México", "Durango", "Guanajuato", "Guerrero", "Hidalgo", "Jalisco", "México",
    "Michoacán de Ocampo", "Morelos", "Nayarit", "Nuevo León", "Oaxaca", "Puebla", "Querétaro", "Quintana Roo",
    "San Luis Potosí", "Sinaloa", "Sonora", "Tabasco", "Tamaulipas", "Tlaxcala", "Veracruz de Ignacio de la Llave",
    "Yucatán", "Zacatecas",
)  # fmt: skip
BOOK = AreaBook(
    dict(enumerate(ESTADOS, 1)),
    {5007: "Cuatro Ciénegas", 5018: "Monclova", 10028: "San Juan del Río", 13046: "San Felipe Orizatlán",
     14070: "El Salto", 22016: "San Juan del Río", 29003: "Atlangatepec"},
    {29003: "Atlanga Tepec"},
)  # fmt: skip


# Each municipio has a cabecera of its name: the match of an area reads the words of the places, too.
PLACES = """
    50070001  | Cuatro Ciénegas        | Cuatro Ciénegas        | Coahuila de Zaragoza | 10000
    50180001  | Monclova               | Monclova               | Coahuila de Zaragoza | 200000
    70080001  | Angel Albino Corzo     | Ángel Albino Corzo     | Chiapas              | 8000
    70270001  | Chiapa de Corzo        | Chiapa de Corzo        | Chiapas              | 45000
    71070001  | Villa Corzo            | Villa Corzo            | Chiapas              | 9000
    100280001 | San Juan del Río       | San Juan del Río       | Durango              | 3000
    130460001 | San Felipe Orizatlán   | San Felipe Orizatlán   | Hidalgo              | 9000
    140700001 | El Salto               | El Salto               | Jalisco              | 20000
    220160001 | San Juan del Río       | San Juan del Río       | Querétaro            | 138878
    290030001 | Atlangatepec           | Atlangatepec           | Tlaxcala             | 900
"""


@pytest.fixture(scope="module")
def index(index_of: Callable[..., NameIndex]) -> NameIndex:
    former = Former("Atlangatepec", "Atlanga Tepec", 290030001)
    return index_of(
        *(place._replace(former=(former,)) if place.municipio_id == 29003 else place for place in places_of(PLACES))
    )


class Match(Protocol):
    """Matches the name of a municipio, beside that of an estado."""

    def __call__(self, text: str, estado: str | None = None) -> MatchResult: ...


@pytest.fixture(scope="module")
def match(index: NameIndex) -> Match:
    return lambda text, estado=None: index.match(MatchRow(text, estado=estado, kind="municipio"))


ISO = "AGU BCN BCS CAM COA COL CHP CHH CMX DUR GUA GRO HID JAL MEX MIC MOR NAY NLE OAX PUE QUE ROO SLP SIN SON TAB TAM"
CURP = "AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS"


@pytest.mark.parametrize("codes", [f"{ISO} TLA VER YUC ZAC", CURP], ids=["ISO and SAT", "CURP"])
def test_estado_is_found_by_its_code(codes: str) -> None:
    for id_, code in enumerate(codes.split(), 1):
        assert {BOOK.find_state(text) for text in (code, code.lower(), f"MX-{code}")} == {id_}
    assert BOOK.find_state("DIF") == 9
    assert BOOK.find_state("NE") is None  # of the CURP: born abroad


@pytest.mark.parametrize(
    ("text", "estado_id", "id_"),
    [
        ("CUATROCIENEGAS", None, 5007), ("Cuatro Cienegas", 5, 5007), ("Cuatrocienagas", 5, 5007),
        ("sanjuandelrio", 22, 22016), ("Sanfelipe Orizatlan", 13, 13046), ("San Felipe Oriza Tlan", 13, 13046),
        ("Elsalto", 14, 14070), ("Atlanga tepec", 29, 29003),
    ],
)  # fmt: skip
def test_municipio_is_found_with_its_spaces_left_out_or_added(text: str, estado_id: int | None, id_: int) -> None:
    assert [area.id for area in BOOK.find_municipios(text, estado_id)] == [id_]


@pytest.mark.parametrize(
    ("text", "estado_id", "municipios"),
    [
        ("San Juan Mixtepec", 20, [20001]),
        ("San Juan Mixtepe", 20, [20001]),  # the other is much less like it
        ("San Pedro y San Pablo Teposcolula", 20, [20003]),
        ("San Pedro y San Pablo Teposcolul", 20, [20003, 20004]),
        ("20001", 20, [20001]),
        ("1", 20, [20001]),
        ("20001", None, [20001]),
        ("20001", 27, []),
    ],
)
def test_municipios_that_a_text_may_name_are_those_most_like_it(
    text: str, estado_id: int | None, municipios: list[int]
) -> None:
    teposcolula = "San Pedro y San Pablo Teposcolul"
    names = {20001: "San Juan Mixtepec", 20002: "San Juan Mistepec", 20003: f"{teposcolula}a", 20004: f"{teposcolula}o",
             27001: "Balancán"}  # fmt: skip
    book = AreaBook({20: "Oaxaca", 27: "Tabasco"}, names, {})
    assert [area.id for area in book.find_municipios(text, estado_id)] == municipios


@pytest.mark.parametrize(
    ("text", "is_name"),
    [(name, True) for name in ("Jalisco", "Jal.", "JAL", "JC", "Estado de México", "Edomex", "CDMX", "Edo. de Jal.")]
    + [(text, False) for text in ("Guadalajara", "", "14", "Jalisco Nuevo", "localidad")],
)
def test_name_of_an_estado_is_recognized_alone(text: str, is_name: object) -> None:
    assert is_state_name(text) == is_name


# -- Scores


def test_score_of_an_area_falls_with_what_differs(match: Match, index: NameIndex) -> None:
    def score(text: str, estado: str | None = None) -> float:
        return match(text, estado).candidates[0].score

    same = score("San Felipe Orizatlán", "Hidalgo")
    one_letter, two_letters = (score(text, "Hidalgo") for text in ("San Felipe Orisatlan", "San Phelipe Orisatlan"))
    part = score("Orizatlan", "Hidalgo")
    assert same >= one_letter >= two_letters > part
    assert part > score("Orizatlan") > 10
    assert same >= score("Municipio de San Felipe Orizatlán", "Hidalgo")
    jalisco, jalizco = (index.match(MatchRow(text, kind="estado")).candidates[0] for text in ("Jalisco", "Jalizco"))
    assert jalisco.score > jalizco.score


def test_municipios_of_one_name_share_the_probability_and_neither_is_certain(match: Match) -> None:
    result = match("San Juan del Río")
    assert (result.outcome, result.margin) == ("ambiguous", 0)
    assert [candidate.id for candidate in result.candidates] == [10028, 22016]
    assert 45 < result.candidates[0].score == result.candidates[1].score <= 50
    assert match("San Juan del Río", "Querétaro").outcome == "exact"


def test_unknown_estado_makes_a_municipio_less_likely_and_never_certain(match: Match) -> None:
    result = match("Monclova", "Atlantis")
    assert (result.outcome, [fault.code for fault in result.candidates[0].faults]) == ("ambiguous", ["estado"])
    assert 80 < result.candidates[0].score <= match("Monclova").candidates[0].score
    likely = match("Monclova", "Coahuila")
    assert (likely.outcome, likely.margin) == ("exact", likely.candidates[0].score)


def test_part_of_the_names_of_several_municipios_is_ambiguous(match: Match) -> None:
    result = match("Corzo", "Chiapas")
    assert (result.outcome, {candidate.id for candidate in result.candidates}) == ("ambiguous", {7008, 7027, 7107})


def test_former_name_of_a_municipio_is_sure_and_misspelt_less_likely(match: Match) -> None:
    former, misspelt = (match(text, "Tlaxcala") for text in ("Atlanga Tepec", "Atlamga Tepek"))
    assert (former.id, former.outcome, former.candidates[0].faults[0].code) == (29003, "sure", "former_name")
    assert misspelt.candidates[0].id == 29003
    assert misspelt.candidates[0].score < former.candidates[0].score


def test_key_and_name_of_two_municipios_have_half_of_the_probability_each(index: NameIndex) -> None:
    result = index.match(MatchRow("Monclova", estado="Coahuila", cvegeo="14070", kind="municipio"))
    assert (result.outcome, [candidate.id for candidate in result.candidates]) == ("ambiguous", [14070, 5018])
    assert [round(candidate.score) for candidate in result.candidates] == [50, 50]
