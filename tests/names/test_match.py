"""What rows are matched with; `test_golden` has most of them, one a line."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.names.index import NameIndex
from localidades_api.names.places import Withdrawn
from localidades_api.names.rows import MatchRow
from localidades_api.names.weights import SURE
from tests.support.names import PLACES, place, places_of

DEGREES = st.none() | st.floats(-90, 90)
CELLS = st.none() | st.text(max_size=30) | st.sampled_from([place.nombre for place in PLACES])
KM = 360 / (2 * math.pi * 6371)  # a degree's part


KIND = st.sampled_from(["localidad", "municipio", "estado"])


@given(st.builds(MatchRow, CELLS, CELLS, CELLS, DEGREES, DEGREES, CELLS, CELLS, kind=KIND))
def test_any_row_has_a_result_whose_scores_are_probabilities(index: NameIndex, row: MatchRow) -> None:
    result = index.match(row)
    scores = [one.score for one in result.candidates]
    assert result == index.match(row)
    assert len(scores) <= 5
    assert 0 <= result.margin <= 100
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 100 for score in scores)
    assert sum(scores[1:]) <= 100
    assert all(fault.penalty > 0 for candidate in result.candidates for fault in candidate.faults)
    assert (result.id is not None) == (result.outcome in {"exact", "sure"})
    if result.id is not None:
        assert result.best is not None
        assert result.id == result.best.id
        assert scores[0] >= 100 * SURE
        assert index.match(row, 0.999).outcome in {result.outcome, "ambiguous"}


def test_fault_of_another_municipio_names_that_of_the_place(index: NameIndex) -> None:
    for municipio, (nombre, estado), found in (
        ("Centro", ("Seybaplaya", "Tabasco"), "Centla"),
        ("Atlantis", ("Seybaplaya", "Tabasco"), "Centla"),
        ("Compostela", ("LA MOJONERA", "Nayarit"), "Puerto Vallarta"),  # which it was in before
    ):
        fault = index.match(MatchRow(nombre, municipio, estado)).candidates[0].faults[0]
        assert (fault.code, fault.given, fault.found) == ("municipio", municipio, found)


@pytest.mark.parametrize(
    ("row", "id_"),
    [
        (MatchRow("Tlaquepaque", "San Pedro Tlaquepaque", "México"), 140980001),
        (MatchRow("Tlaquepaque", None, "MEX"), 140980001),
        (MatchRow("Metepec", "Metepec", "México"), 150540001),
        (MatchRow("Metepec", None, "Mex."), 150540001),  # of the estado, if it has the name
        (MatchRow("Metepec", "Metepec", "Hidalgo"), 130370001),
    ],
)
def test_mexico_is_an_estado_or_the_country(index_of: Callable[..., NameIndex], row: MatchRow, id_: int) -> None:
    metepec = [place(150540001, "Metepec", "Metepec", "México"), place(130370001, "Metepec", "Metepec", "Hidalgo")]
    assert index_of(*PLACES, *metepec).match(row).id == id_


def test_withdrawn_place_of_the_name_or_key_is_named(index: NameIndex, index_of: Callable[..., NameIndex]) -> None:
    assert index.match(MatchRow("Parrilla", "Centro", "Tabasco")).withdrawn == 270040098
    assert index.match(MatchRow("El Zapote", "Centla", "Tabasco")).withdrawn == 270030099
    assert index.match(MatchRow(cvegeo="270040098")).withdrawn == 270040098
    # In the second of two municipios of the name.
    other = index_of(*PLACES, withdrawn=(Withdrawn(202090099, "El Zapote", "San Juan Mixtepec"),))
    assert other.match(MatchRow("El Zapote", "San Juan Mixtepec", "Oaxaca")).withdrawn == 202090099


# -- Points


@pytest.mark.parametrize(
    ("north", "east", "told"),
    [(0.0, 1.9, []), (1.9, 0.0, []), (0.0, 2.1, ["2.1 km"]), (-2.1, 0.0, ["2.1 km"]), (3.0, -4.0, ["5.0 km"])],
)
def test_point_is_as_far_from_a_place_as_on_the_ground(
    index: NameIndex, north: float, east: float, told: list[str]
) -> None:
    [ixtapa] = [place for place in PLACES if place.nombre == "Ixtapa"]
    assert ixtapa.latitud is not None
    assert ixtapa.longitud is not None
    east /= math.cos(math.radians(ixtapa.latitud))  # where degrees of longitude are shorter
    row = MatchRow("Ixtapa", "Puerto Vallarta", "Jalisco", ixtapa.latitud + north * KM, ixtapa.longitud + east * KM)
    assert [fault.given for fault in index.match(row).candidates[0].faults] == told


# -- Keys


@pytest.fixture(scope="module")
def similar(index_of: Callable[..., NameIndex]) -> NameIndex:
    places = places_of("""
        270030002 | Chilapa              | Centla | Tabasco |
        270030003 | Chilapa (El Zarco)   | Centla | Tabasco |
        270030004 | Chilapa 2da. Sección | Centla | Tabasco |
        270030005 | Santa Rita Grande    | Centla | Tabasco |
        270030006 | El Tinto             | Centla | Tabasco |
        270030007 | El Tinto             | Centla | Tabasco |
        270040002 | El Tinto             | Centro | Tabasco |
        270040003 | Chilapa Mora         | Centro | Tabasco |
        270040004 | Chilapa              | Centro | Tabasco |
        270040005 | Zarco                | Centro | Tabasco |
    """)
    return index_of(*places)


@pytest.mark.parametrize(
    ("nombre", "key", "outcome", "score", "keys"),
    [
        # The name fits no other place better.
        ("Chilapa", "0002", "exact", 99.9, [270030002]),
        ("Chilapa", "270040004", "exact", 99.9, [270040004]),
        ("Santa Rita", "0005", "sure", 99.9, [270030005]),
        ("Sta. Rita de los Encinos", "0005", "sure", 99.9, [270030005]),
        ("Ejido El Tinto", "0007", "sure", 99.9, [270030007]),
        ("Zarco", "270030003", "sure", 98.9, [270030003]),
        # It fits another place better, slightly or much.
        ("Chilapa", "0003", "sure", 99.0, [270030003, 270030002]),
        ("Chilapa", "270030003", "sure", 97.7, [270030003, 270030002]),
        ("Chilapa", "0004", "ambiguous", 92.5, [270030004, 270030002]),
        ("Chilapa 2", "0002", "ambiguous", 73.6, [270030002, 270030004]),
        # It is another place's.
        ("El Tinto", "0004", "ambiguous", 49.0, [270030006, 270030007]),
        ("Qwrtz", "0004", "ambiguous", 99.8, [270030004]),
        # Of the municipios of the name and of the key one is wrong.
        ("El Tinto, Centla, Tabasco", "270040002", "ambiguous", 72.9, [270040002]),
        ("Chilapa Mora, Centla, Tabasco", "270040003", "ambiguous", 98.9, [270040003]),
    ],
)
def test_key_and_name_share_the_probability_by_how_well_the_name_fits(
    similar: NameIndex, nombre: str, key: str, outcome: str, score: float, keys: list[int]
) -> None:
    is_clave = len(key) == 4
    municipio, estado = ("Centla", "Tabasco") if is_clave or "," in nombre else (None, None)
    row = MatchRow(nombre.partition(",")[0], municipio, estado)
    row = row._replace(clave=key) if is_clave else row._replace(cvegeo=key)
    result = similar.match(row)
    assert [one.id for one in result.candidates[: len(keys)]] == keys
    assert result.outcome == outcome
    assert result.candidates[0].score == pytest.approx(score, abs=0.5)
    assert result.best == result.candidates[0]
    others = [one for one in result.candidates[1:] if one.id % 10_000 != int(key[-4:])]
    assert all("key" in {fault.code for fault in one.faults} for one in others)


# -- Towns and hamlets of one name


def test_estado_of_mexico_is_no_country_behind_a_name_alone(index_of: Callable[..., NameIndex]) -> None:
    index = index_of(
        place(150810077, "Hidalgo", "Tecámac", "México", 90),
        place(130480001, "Pachuca de Soto", "Pachuca de Soto", "Hidalgo", 256_584),
    )
    assert index.match(MatchRow("Hidalgo, México")).id == 150810077
    assert index.match(MatchRow("Pachuca de Soto, Hidalgo, México")).id == 130480001


@pytest.mark.parametrize(
    ("people", "outcome", "keys"),
    [(80_000, "exact", [15012]), (80_001, "ambiguous", [15012, 15013])],  # ten times those of the other seat
)
def test_name_that_a_much_larger_municipio_begins_with_leaves_doubt(
    index_of: Callable[..., NameIndex], people: int, outcome: str, keys: list[int]
) -> None:
    index = index_of(
        place(150120001, "Santa Cruz Atizapán", "Atizapán", "México", 8_000),
        place(150130001, "Ciudad López Mateos", "Atizapán de Zaragoza", "México", people),
    )
    result = index.match(MatchRow("Atizapán", estado="Edomex", kind="municipio"))
    assert (result.outcome, [one.id for one in result.candidates]) == (outcome, keys)
    assert index.match(MatchRow("Atizapán", estado="Edomex", cvegeo="15012", kind="municipio")).id == 15012
