import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.names.areas import AreaBook, is_state_name
from localidades_api.names.match_areas import decide, municipality_candidates, state_candidates
from localidades_api.names.rows import MatchResult
from localidades_api.names.text import canonical
from localidades_api.names.weights import SURE

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


def match_state(book: AreaBook, text: str) -> MatchResult:
    return decide(state_candidates(book, text), SURE)


def match_municipality(book: AreaBook, text: str, estado: str | None = None) -> MatchResult:
    return decide(municipality_candidates(book, text, estado), SURE)


ISO = "AGU BCN BCS CAM COA COL CHP CHH CMX DUR GUA GRO HID JAL MEX MIC MOR NAY NLE OAX PUE QUE ROO SLP SIN SON TAB TAM"
CURP = "AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("san juan del rio", [10028, 22016]),
        ("san juan del rio queretaro", [22016]),
        ("durango san juan del rio", [10028]),
        ("cuatro cienegas", [5007]),
        ("atlanga tepec", []),  # a former name
        ("queretaro", [22]),
        ("estado de mexico", [15]),
        ("san juan", []),
    ],
)
def test_areas_have_exactly_these_words(text: str, keys: list[int]) -> None:
    assert sorted(BOOK.scopes(canonical(text))) == keys


@pytest.mark.parametrize("codes", [f"{ISO} TLA VER YUC ZAC", CURP], ids=["ISO and SAT", "CURP"])
def test_estado_is_found_by_its_code(codes: str) -> None:
    for id_, code in enumerate(codes.split(), 1):
        for text in (code, code.lower(), f"MX-{code}"):
            assert BOOK.find_state(text) == id_
        result = match_state(BOOK, code)
        assert (result.id, result.outcome) == (id_, "exact")
    assert BOOK.find_state("DIF") == 9
    assert BOOK.find_state("NE") is None  # of the CURP: born abroad


@pytest.mark.parametrize(
    ("text", "estado_id", "id_"),
    [
        ("Cuatrociénegas", 5, 5007),
        ("CUATROCIENEGAS", None, 5007),
        ("Cuatro Cienegas", 5, 5007),
        ("Cuatrocienagas", 5, 5007),
        ("sanjuandelrio", 22, 22016),
        ("Sanfelipe Orizatlan", 13, 13046),
        ("San Felipe Oriza Tlan", 13, 13046),
        ("Elsalto", 14, 14070),
        ("Atlanga tepec", 29, 29003),
    ],
)
def test_municipio_is_found_with_its_spaces_left_out_or_added(text: str, estado_id: int | None, id_: int) -> None:
    assert [area.id for area in BOOK.find_municipios(text, estado_id)] == [id_]


def test_municipio_in_one_word_is_not_quite_the_name() -> None:
    [found] = BOOK.find_municipios("Cuatrociénegas", 5)
    assert found.likeness < 100
    assert match_municipality(BOOK, "Cuatrociénegas", "Coahuila").best is not None


# -- Scores


def score(text: str, estado: str | None = None, book: AreaBook = BOOK) -> float:
    result = match_municipality(book, text, estado)
    assert result.best is not None
    return result.best.score


def test_score_of_an_area_falls_with_what_differs() -> None:
    same = score("San Felipe Orizatlán", "Hidalgo")
    one_letter, two_letters = (score(text, "Hidalgo") for text in ("San Felipe Orisatlan", "San Phelipe Orisatlan"))
    assert same > one_letter > two_letters > score("San Phelipe Orisatlan") > 10
    part = score("Orizatlan", "Hidalgo")
    assert one_letter > part > score("Orizatlan") > 10
    assert score("San Felipe Orizatlán Centro", "Hidalgo") == part  # words too many
    assert same > score("Municipio de San Felipe Orizatlán", "Hidalgo") > one_letter


def test_municipios_of_one_name_share_the_probability_and_neither_is_certain() -> None:
    result = match_municipality(BOOK, "San Juan del Río")
    assert (result.outcome, result.margin) == ("ambiguous", 0)
    assert [one.id for one in result.candidates] == [10028, 22016]
    assert 45 < result.candidates[0].score == result.candidates[1].score <= 50
    assert match_municipality(BOOK, "San Juan del Río", "Querétaro").outcome == "exact"


def test_unknown_estado_makes_a_municipio_less_likely_and_never_certain() -> None:
    result = match_municipality(BOOK, "Monclova", "Atlantis")
    assert result.outcome == "ambiguous"
    assert 90 < result.candidates[0].score < score("Monclova")
    assert [fault.code for fault in result.candidates[0].faults] == ["estado"]
    likely = match_municipality(BOOK, "Monclova", "Coahuila")
    assert (likely.outcome, likely.margin) == ("exact", likely.candidates[0].score)


def test_former_name_of_a_municipio_is_sure_if_no_other_is_like_it() -> None:
    result = match_municipality(BOOK, "Atlanga Tepec", "Tlaxcala")
    assert (result.id, result.outcome) == (29003, "sure")
    former = {29003: "San Felipe Atlanga Tepec", 29004: "San Felipe Atlanga Tepe"}
    two = AreaBook(BOOK.estados, {29003: "Uno", 29004: "Dos"}, former)
    result = match_municipality(two, "San Felipe Atlanga Tepec", "Tlaxcala")
    assert [one.id for one in result.candidates] == [29003, 29004]
    assert (result.outcome, result.candidates[0].faults[0].code) == ("ambiguous", "former_name")
    misspelt = match_municipality(BOOK, "Atlamga Tepek", "Tlaxcala")
    assert misspelt.outcome == "ambiguous"
    assert misspelt.candidates[0].score < 99


def test_misspelt_estado_is_less_likely() -> None:
    right, misspelt = match_state(BOOK, "Jalisco"), match_state(BOOK, "Jalizco")
    assert (right.outcome, misspelt.outcome) == ("exact", "sure")
    assert right.candidates[0].score > misspelt.candidates[0].score


@given(st.sampled_from(sorted(BOOK.municipios.values())) | st.text(max_size=20), st.sampled_from([None, *ESTADOS, "x"]))
def test_scores_of_areas_are_probabilities_and_certain_is_one_alone(text: str, estado: str | None) -> None:
    result = match_municipality(BOOK, text, estado)
    scores = [one.score for one in result.candidates]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) <= 100
    assert result.id is None or (len(scores) == 1 and scores[0] >= 97)


@pytest.mark.parametrize(
    "text", ["Jalisco", "Jal.", "JAL", "JC", "Estado de México", "Edomex", "CDMX", "MEX", "Edo. de Jal."]
)
def test_name_of_an_estado_is_recognized_alone(text: str) -> None:
    assert is_state_name(text)


@pytest.mark.parametrize("text", ["Guadalajara", "", "14", "Jalisco Nuevo", "localidad"])
def test_other_text_is_no_name_of_an_estado(text: str) -> None:
    assert not is_state_name(text)
