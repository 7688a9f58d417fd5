import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.names.areas import AreaBook
from localidades_api.names.build import build_index
from localidades_api.names.differences import distance_fault
from localidades_api.names.evidence import has_homonym
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import KEY
from localidades_api.names.places import MIN_URBAN, IndexedPlace, Withdrawn
from localidades_api.names.rows import MatchRow
from localidades_api.names.weights import MIN_SURE, SURE
from tests.support.names import PLACES

CENTLA = {"municipio": "CENTLA", "estado": "TAB"}
CENTRO = {"municipio": "Centro", "estado": "Tabasco"}
VALLARTA = {"municipio": "Puerto Vallarta", "estado": "Jal."}
DEGREES = st.none() | st.floats(-90, 90)
CELLS = st.none() | st.text(max_size=30) | st.sampled_from([place.nombre for place in PLACES])


@pytest.mark.parametrize(
    ("nombre", "where", "key", "outcome", "codes"),
    [
        ("Frontera", CENTLA, 270030001, "exact", []),
        ("ESTACION, LA", CENTLA, 270030012, "exact", []),
        ("ESTACION", CENTLA, 270030012, "ambiguous", ["article"]),
        ("SEYBA PLAYA", CENTLA, 270030015, "sure", ["spacing"]),
        ("FCO. I MADERO", CENTLA, 270030014, "sure", ["wording"]),
        ("FRONTERRA", CENTLA, 270030001, "sure", ["spelling"]),
        ("RA. RIBERA ALTA", CENTLA, 270030016, "sure", ["order"]),
        ("EJ. FRANCISCO I. MADERO", CENTLA, 270030014, "sure", ["kind"]),
        ("CHILAPA 1A. SECC.", CENTLA, 270030010, "sure", ["bracket", "wording"]),
        ("MARGEN IZQUIERDA", CENTLA, 270030010, "sure", ["bracket"]),
        ("CONCEPCI?N", CENTLA, 270030017, "sure", ["spelling"]),
        ("CENTRO", {"municipio": "Centro", "estado": "Tabasco"}, 270040001, "sure", ["seat"]),
        ("GDL", {"municipio": "Guadalajara", "estado": "Jalisco"}, 140390001, "sure", ["everyday"]),
        ("San José", VALLARTA, 140670030, "sure", ["former_name"]),
        (
            "LA MOJONERA",
            {"municipio": "Compostela", "estado": "Nayarit"},
            140670031,
            "ambiguous",
            ["municipio", "estado"],
        ),
        (
            "LA MOJONERRA",  # sought among the names of the municipio that it was in
            {"municipio": "Compostela", "estado": "Nayarit"},
            140670031,
            "ambiguous",
            ["spelling", "municipio", "estado"],
        ),
        ("El Colorado", VALLARTA, 140670020, "ambiguous", []),
        ("Guadalajara", {}, 140390001, "ambiguous", []),
        ("Iztapalapa", {}, 90070001, "exact", []),
        ("Parrilla", {"municipio": "Centro", "estado": "Tabasco"}, 270040051, "ambiguous", []),
        ("FRONTERA, CENTLA", CENTLA, 270030001, "exact", []),
        ("FRONTERA (CENTLA), TABASCO.", CENTLA, 270030001, "exact", []),
        ("FRONTERA, BALANCAN", CENTLA, 270030001, "ambiguous", ["added"]),
        ("CENTRO", CENTRO, 270040001, "sure", ["seat"]),
        ("CENTRO, CENTRO", CENTRO, 270040001, "sure", ["seat"]),
        ("SEIVAPLALLA", CENTLA, 270030015, "sure", ["spelling"]),
        ("F. I. MADERO", CENTLA, 270030014, "sure", ["wording"]),
        ("0001 Frontera", CENTLA, 270030001, "exact", []),
        ("0001.- FRONTERRA", CENTLA, 270030001, "sure", ["spelling"]),
        ("270030001 Frontera", {}, 270030001, "exact", []),
        ("0001-Frontera, Centla, Tabasco", {}, 270030001, "exact", []),
        ("0001 Frontera", {"estado": "Tabasco"}, 270030001, "exact", []),
        ("0001 Villahermosa", CENTLA, 270030001, "ambiguous", ["name"]),
    ],
)
def test_row_is_matched_with_its_faults(
    index: NameIndex, nombre: str, where: dict[str, str], key: int, outcome: str, codes: list[str]
) -> None:
    result = index.match(MatchRow(nombre, where.get("municipio"), where.get("estado")))
    assert result.best is not None
    assert (result.best.id, result.outcome) == (key, outcome)
    assert [fault.code for fault in result.best.faults] == codes
    assert result.id == (key if outcome in {"exact", "sure"} else None)


@pytest.mark.parametrize(
    ("row", "difference", "found"),
    [
        (MatchRow("LA MOJONERA", "Compostela", "Nayarit"), Difference.MUNICIPIO_FORMER, "Puerto Vallarta"),
        (MatchRow("Seybaplaya", "Centro", "Tabasco"), Difference.MUNICIPIO_OTHER, "Centla"),
        (MatchRow("Seybaplaya", "Atlantis", "Tabasco"), Difference.MUNICIPIO_UNKNOWN, "Centla"),
    ],
)
def test_fault_of_another_municipio_names_that_of_the_place(
    index: NameIndex, row: MatchRow, difference: Difference, found: str
) -> None:
    best = index.match(row).candidates[0]
    assert best.faults[0][:3] == (difference, row.municipio, found)


@pytest.mark.parametrize(
    ("difference", "is_homonym"),
    [
        (Difference.WORDING, True),
        (Difference.FORMER_NAME, False),
        (Difference.FORMER_NAME_LITERALLY, False),
        (Difference.BRACKET_ALONE, False),
        (Difference.SEAT, False),
        (Difference.EVERYDAY, False),
    ],
)
def test_homonyms_share_the_name_itself_and_no_other(
    index: NameIndex, difference: Difference, is_homonym: object
) -> None:
    place = index.place(index.layout.find(KEY, "140670020")[0])
    assert has_homonym(place, [NameFault(difference, "", "", 1.0)]) == is_homonym


@pytest.mark.parametrize("nombre", ["Xochitepec", "El Zapote", "Qwrtz"])
def test_row_that_no_place_is_like_has_no_key(index: NameIndex, nombre: str) -> None:
    result = index.match(MatchRow(nombre, CENTLA["municipio"], CENTLA["estado"]))
    assert result.id is None


def test_withdrawn_place_of_the_name_leaves_doubt_and_is_named(index: NameIndex) -> None:
    assert index.match(MatchRow("Parrilla", "Centro", "Tabasco")).withdrawn == 270040098
    assert index.match(MatchRow("El Zapote", "Centla", "Tabasco")).withdrawn == 270030099
    assert index.match(MatchRow(cvegeo="270040098")).withdrawn == 270040098


def test_withdrawn_place_is_found_in_any_municipio_of_the_name(tmp_path: Path) -> None:
    build_index(tmp_path / "names", PLACES, [Withdrawn(202090099, "El Zapote", "San Juan Mixtepec")])
    index = NameIndex(tmp_path / "names")
    assert [area.id for area in index.areas.find_municipios("San Juan Mixtepec", 20)] == [20208, 20209]
    assert index.match(MatchRow("El Zapote", "San Juan Mixtepec", "Oaxaca")).withdrawn == 202090099
    index.close()


def test_misspelt_homonyms_are_ambiguous_and_a_point_is_a_difference_of_all_but_one(index: NameIndex) -> None:
    misspelt = index.match(MatchRow("El Colorrado", "Puerto Vallarta", "Jalisco"))
    assert misspelt.outcome == "ambiguous"
    assert [candidate.id for candidate in misspelt.candidates][:2] == [140670020, 140670021]
    place = next(place for place in PLACES if place.id == 140670021)
    result = index.match(MatchRow("El Colorado", "Puerto Vallarta", "Jalisco", place.latitud, place.longitud))
    assert (result.id, result.outcome) == (140670021, "exact")
    assert [fault.code for fault in result.candidates[1].faults] == ["distance"]


@pytest.mark.parametrize(
    ("north", "east", "distances"),
    [(0.0, 1.9, []), (1.9, 0.0, []), (0.0, 2.1, ["2.1 km"]), (-2.1, 0.0, ["2.1 km"]), (3.0, -4.0, ["5.0 km"])],
)
def test_point_is_as_far_from_a_place_as_on_the_ground(
    index: NameIndex, north: float, east: float, distances: list[str]
) -> None:
    """A degree of longitude is shorter than one of latitude, away from the equator."""
    place = index.place(0)._replace(latitud=22.0, longitud=-102.0)
    per_degree = 2 * math.pi * 6371 / 360
    row = MatchRow(latitud=22 + north / per_degree, longitud=-102 + east / per_degree / math.cos(math.radians(22)))
    fault = distance_fault(row, place)
    assert ([fault.given] if fault else []) == distances


@pytest.mark.parametrize(
    ("row", "key", "codes"),
    [
        (MatchRow(cvegeo="140390001"), 140390001, []),
        (MatchRow(cvegeo="90070001"), 90070001, []),
        (MatchRow(cvegeo="140390001", nombre="GUADALAJARA"), 140390001, []),
        (MatchRow(cvegeo="180040112"), 140670031, ["former_key"]),
        (MatchRow(clave="0001", municipio="Centla", estado="Tabasco"), 270030001, []),
        (MatchRow(clave="1", municipio="003", estado="27"), 270030001, []),
        (MatchRow("El Colorado", "Puerto Vallarta", "Jal.", clave="0021"), 140670021, []),
        (MatchRow("EL COLORDO", "067", "14", clave="21"), 140670021, ["spelling"]),
        (MatchRow("El Colorado", "Pto. Vallarta", clave="20"), 140670020, []),
        (MatchRow("El Colorado", estado="Jal.", clave="0670021"), 140670021, []),
        (MatchRow(estado="Jal.", clave="670021"), 140670021, []),
    ],
)
def test_keys_lead_to_their_places(index: NameIndex, row: MatchRow, key: int, codes: list[str]) -> None:
    result = index.match(row)
    assert result.id == key
    assert result.best is not None
    assert [fault.code for fault in result.best.faults] == codes


def test_clave_in_a_municipio_whose_name_two_have_is_no_key(index: NameIndex) -> None:
    result = index.match(MatchRow(clave="0001", municipio="San Juan Mixtepec", estado="Oaxaca"))
    assert (result.outcome, result.best, result.candidates) == ("none", None, ())


def test_clave_of_a_place_with_another_name_comes_first_and_is_not_certain(index: NameIndex) -> None:
    result = index.match(MatchRow("La Mojonera", "Puerto Vallarta", "Jalisco", clave="0021"))
    assert (result.outcome, result.id) == ("ambiguous", None)
    assert [candidate.id for candidate in result.candidates][:2] == [140670021, 140670031]
    assert [fault.code for fault in result.candidates[1].faults] == ["key"]
    assert result.candidates[0].score >= result.candidates[1].score


@pytest.fixture(scope="module")
def similar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Lend an index of places with similar names."""
    rows = (
        (270030002, "Chilapa", 27003, "Centla"),
        (270030003, "Chilapa (El Zarco)", 27003, "Centla"),
        (270030004, "Chilapa 2da. Sección", 27003, "Centla"),
        (270030005, "Santa Rita Grande", 27003, "Centla"),
        (270030006, "El Tinto", 27003, "Centla"),
        (270030007, "El Tinto", 27003, "Centla"),
        (270040002, "El Tinto", 27004, "Centro"),
        (270040005, "Zarco", 27004, "Centro"),
        (270040003, "Chilapa Mora", 27004, "Centro"),
        (270040004, "Chilapa", 27004, "Centro"),
    )
    places = [IndexedPlace(id_, nombre, of, municipio, 27, "Tabasco") for id_, nombre, of, municipio in rows]
    folder = tmp_path_factory.mktemp("similar") / "names"
    build_index(folder, places, [])
    index = NameIndex(folder)
    yield index
    index.close()


@pytest.mark.parametrize(
    ("row", "outcome", "score", "keys"),
    [
        # The name fits no other place better.
        (MatchRow("Chilapa", "Centla", "Tabasco", clave="0002"), "exact", 99.9, [270030002]),
        (MatchRow("Chilapa", cvegeo="270040004"), "exact", 99.9, [270040004]),
        (MatchRow("Santa Rita", "Centla", "Tabasco", clave="0005"), "sure", 99.9, [270030005]),
        (MatchRow("Sta. Rita de los Encinos", "Centla", "Tabasco", clave="0005"), "sure", 99.9, [270030005]),
        (MatchRow("Ejido El Tinto", "Centla", "Tabasco", clave="0007"), "sure", 99.9, [270030007]),
        (MatchRow("Zarco", cvegeo="270030003"), "sure", 99.9, [270030003]),
        # It fits another place better, slightly or much.
        (MatchRow("Chilapa", "Centla", "Tabasco", clave="0003"), "sure", 99.0, [270030003, 270030002]),
        (MatchRow("Chilapa", cvegeo="270030003"), "sure", 99.0, [270030003, 270030002]),
        (MatchRow("Chilapa", "Centla", "Tabasco", clave="0004"), "ambiguous", 96.0, [270030004, 270030002]),
        (MatchRow("Chilapa 2", "Centla", "Tabasco", clave="0002"), "ambiguous", 80.0, [270030002, 270030004]),
        # It is another place's.
        (MatchRow("El Tinto", "Centla", "Tabasco", clave="0004"), "ambiguous", 50.0, [270030004, 270030006]),
        (MatchRow("Qwrtz", "Centla", "Tabasco", clave="0004"), "ambiguous", 95.0, [270030004]),
        # Of the municipios of the name and of the key one is wrong.
        (MatchRow("El Tinto", "Centla", "Tabasco", cvegeo="270040002"), "ambiguous", 80.0, [270040002]),
        (MatchRow("Chilapa Mora", "Centla", "Tabasco", cvegeo="270040003"), "ambiguous", 80.0, [270040003]),
    ],
)
def test_key_and_name_share_the_probability_by_how_well_the_name_fits(
    similar: NameIndex, row: MatchRow, outcome: str, score: float, keys: list[int]
) -> None:
    result = similar.match(row)
    assert [one.id for one in result.candidates[: len(keys)]] == keys
    assert result.outcome == outcome
    assert result.candidates[0].score == pytest.approx(score, abs=0.5)
    assert result.best == result.candidates[0]
    assert all("key" in {fault.code for fault in one.faults} for one in result.candidates[1:])


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        (MatchRow(municipio="Centla", estado="Tabasco", cvegeo="140390001"), ["estado", "municipio"]),
        (MatchRow(municipio="Centla", cvegeo="140390001"), ["municipio"]),
        (MatchRow(estado="Tabasco", cvegeo="140390001"), ["estado"]),
        (MatchRow(estado="Atlantis", cvegeo="140390001"), ["estado"]),
        (MatchRow(municipio="Atlantis", cvegeo="140390001"), ["municipio"]),
        (MatchRow(municipio="Guadalajara", estado="Tabasco", cvegeo="140390001"), ["estado"]),
        (MatchRow("Guadalajara", "Centla", "Tabasco", cvegeo="140390001"), ["estado", "municipio"]),
        (MatchRow("Guadalajara", estado="Oaxaca", cvegeo="140390001"), ["estado"]),
        (MatchRow(municipio="Centla", estado="Jalisco", clave="0390001"), ["municipio"]),
        (MatchRow(cvegeo="140390001", cve_mun="14067"), ["key"]),
        (MatchRow(cvegeo="140390001", estado="14", cve_mun="067"), ["key"]),
        (MatchRow(cvegeo="140390001", estado="Tabasco", cve_mun="14039"), ["estado"]),
        (MatchRow("Guadalajara", "Guadalajara", cve_mun="14067"), ["key"]),
        (MatchRow("Guadalajara", "Guadalajara", "Jalisco", cve_mun="27003"), ["key"]),
        (MatchRow("Guadalajara", cve_mun="14039", estado="Tabasco"), ["key"]),
        (MatchRow(cvegeo="180040112", municipio="Centla"), ["former_key", "municipio"]),
    ],
)
def test_key_that_the_areas_of_the_row_contradict_is_never_certain(
    index: NameIndex, row: MatchRow, codes: list[str]
) -> None:
    result = index.match(row, 0.8)
    assert result.outcome == "ambiguous"
    assert result.best is not None
    assert [fault.code for fault in result.best.faults] == codes


@pytest.mark.parametrize(
    ("row", "key", "outcome"),
    [
        (MatchRow(municipio="Guadalajara", estado="Jal.", cvegeo="140390001"), 140390001, "exact"),
        (MatchRow(municipio="39", estado="14", cvegeo="140390001", cve_mun="039"), 140390001, "exact"),
        (MatchRow(municipio="Gudalajara", cvegeo="140390001"), 140390001, "exact"),
        (MatchRow(municipio="Crucecita", cvegeo="204130001"), 204130001, "exact"),  # a town of the municipio
        (MatchRow(municipio="Compostela", cvegeo="180040112"), 140670031, "sure"),
        (MatchRow("Guadalajara", "Guadalajara", cve_mun="14039"), 140390001, "exact"),
        (MatchRow("Guadalajara", "Guadalajara", "Jalisco", cve_mun="999"), 140390001, "exact"),
    ],
)
def test_key_that_the_areas_of_the_row_agree_with_is_certain(
    index: NameIndex, row: MatchRow, key: int, outcome: str
) -> None:
    result = index.match(row)
    assert (result.id, result.outcome) == (key, outcome)


@pytest.mark.parametrize(
    ("row", "key"),
    [
        (MatchRow("La Mojonera", "Puerto Vallarta", "Jalisco", clave="9999"), 140670031),
        (MatchRow("Villahermosa", "Centro", "Tabasco", cvegeo="279999999"), 270040001),
    ],
)
def test_unknown_key_is_a_fault_of_what_the_name_finds(index: NameIndex, row: MatchRow, key: int) -> None:
    best = index.match(row).candidates[0]
    assert (best.id, [fault.code for fault in best.faults]) == (key, ["unknown_key"])


@pytest.mark.parametrize("outside", ["1234567890", "0"])
def test_clave_that_is_not_a_key_leaves_the_name_alone(index: NameIndex, outside: str) -> None:
    row = MatchRow("Ixtapa", "Puerto Vallarta", "Jalisco")
    assert index.match(row._replace(clave=outside)).best == index.match(row).best


def test_clave_in_another_municipio_of_the_same_name_is_not_certain(index: NameIndex) -> None:
    named = index.match(MatchRow("San Juan Mixtepec", "San Juan Mixtepec", "Oaxaca", clave="0001"))
    assert named.id is None


@pytest.mark.parametrize(
    ("nombre", "clave", "outcome", "key", "codes"),
    [
        ("San Juan Mixtepec", "0001", "ambiguous", 202080001, []),  # of both
        ("El Rosario", "0002", "ambiguous", 202080002, []),
        ("San Juan Mixtepec", "0003", "ambiguous", 202080001, ["key"]),
        ("La Trinidad", "0003", "exact", 202090003, []),
        ("Ejido Trinidad", "3", "sure", 202090003, ["kind", "article"]),
        ("La Trinidad", "0001", "ambiguous", 202090003, ["key"]),
    ],
)
def test_clave_in_municipios_of_one_name_is_that_of_the_place_with_the_name(
    tmp_path: Path, nombre: str, clave: str, outcome: str, key: int, codes: list[str]
) -> None:
    trinidad = IndexedPlace(202090003, "La Trinidad", 20209, "San Juan Mixtepec", 20, "Oaxaca")
    build_index(tmp_path / "names", [*PLACES, trinidad], [])
    index = NameIndex(tmp_path / "names")
    result = index.match(MatchRow(nombre, "San Juan Mixtepec", "Oaxaca", clave=clave))
    index.close()
    assert result.best is not None
    assert (result.outcome, result.best.id) == (outcome, key)
    assert [fault.code for fault in result.best.faults] == codes


def test_dates_and_letters_of_ms_dos_are_read_with_a_difference(tmp_path: Path) -> None:
    """`test_text` has all spellings of dates, as Excel saves 18 de Marzo, and of letters, as MS-DOS wrote them."""
    rows = ((20, "18 de Marzo"), (21, "José María Páez"), (22, "Juárez"), (23, "Álamo"), (24, "20 de Noviembre"))
    places = [IndexedPlace(270030000 + clave, name, 27003, "Centla", 27, "Tabasco") for clave, name in rows]
    build_index(tmp_path / "names", places, [])
    index = NameIndex(tmp_path / "names")
    for nombre, key in (
        ("18-MAR", 270030020),
        ("2026-03-18 00:00:00", 270030020),
        ("Jos‚ Mar¡a P\N{NO-BREAK SPACE}ez", 270030021),
        ("Ju\N{NO-BREAK SPACE}rez", 270030022),
        ("µLAMO", 270030023),
    ):
        result = index.match(MatchRow(nombre, "Centla", "Tabasco"))
        assert (result.outcome, result.id) == ("sure", key)
        assert [(fault.code, fault.given) for fault in result.candidates[0].faults] == [("wording", nombre)]
    index.close()


@given(st.builds(MatchRow, CELLS, CELLS, CELLS, DEGREES, DEGREES, CELLS, CELLS))
def test_any_row_has_a_result_whose_scores_are_probabilities(index: NameIndex, row: MatchRow) -> None:
    result = index.match(row)
    assert result == index.match(row)
    assert len(result.candidates) <= 5
    assert 0 <= result.margin <= 100
    assert [one.score for one in result.candidates] == sorted((one.score for one in result.candidates), reverse=True)
    assert all(0 <= one.score <= 100 for one in result.candidates)
    assert sum(one.score for one in result.candidates[1:]) <= 100
    assert all(fault.penalty > 0 for candidate in result.candidates for fault in candidate.faults)
    if result.id is not None:
        assert result.candidates[0].score >= 100 * SURE
        assert index.match(row, 0.999).outcome in {result.outcome, "ambiguous"}


def test_ambito_orders_homonyms_and_decides_nothing(index: NameIndex) -> None:
    rural = index.match(MatchRow("Guadalajara", estado="Tabasco", ambito="U"))
    assert rural.best is not None
    assert [fault.code for fault in rural.best.faults] == ["ambito"]
    for ambito, key in (("U", 140390001), ("R", 270040052)):
        result = index.match(MatchRow("Guadalajara", ambito=ambito))
        assert result.best is not None
        assert (result.best.id, result.outcome) == (key, "ambiguous")


@pytest.mark.parametrize(
    ("row", "certain"),
    [
        (MatchRow("Parrilla Dos", "Centro", "Tabasco"), False),
        (MatchRow("Seybaplaya", "Centla", "Tabasco"), True),
        (MatchRow("Seybaplaya", "CENTLAA", "Tabasco"), True),
        (MatchRow("Seybaplaya", "Atlantis", "Tabasco"), False),
        (MatchRow("Seybaplaya", estado="Tabasco"), True),
        (MatchRow("Seybaplaya"), False),
        (MatchRow("Seybaplaya", latitud=25.7, longitud=-101.0), True),
        (MatchRow(cvegeo="270030015"), True),
        (MatchRow("Iztapalapa", estado="CDMX"), True),
        (MatchRow("Iztapalapa"), True),
        (MatchRow("Iztapalappa", estado="CDMX"), False),
        (MatchRow("Frontera", estado="Tabasco"), True),
    ],
)
def test_certain_is_what_the_row_says_enough_of(index: NameIndex, row: MatchRow, certain: object) -> None:
    assert (index.match(row).id is not None) == certain


# Towns whose short names others bear: a hamlet beside the town, another municipio's hamlet, and two seats.
TOWNS = (
    (3, "Baja California Sur", 8, "Los Cabos", 1, "San José del Cabo", 69_788),
    (3, "Baja California Sur", 8, "Los Cabos", 2, "San José", 12),
    (3, "Baja California Sur", 8, "Los Cabos", 3, "San Lucas", 40),
    (3, "Baja California Sur", 1, "Comondú", 1, "Ciudad Constitución", 40_935),
    (3, "Baja California Sur", 1, "Comondú", 2, "San José", 90),
    (13, "Hidalgo", 66, "Villa de Tezontepec", 1, "Tezontepec", 9_000),
    (13, "Hidalgo", 67, "Tezontepec de Aldama", 1, "Tezontepec de Aldama", 8_000),
    (13, "Hidalgo", 67, "Tezontepec de Aldama", 2, "Panuaya", 3_000),
    (3, "Baja California Sur", 2, "Mulegé", 1, "Santa Rosalía", 14_160),
    (3, "Baja California Sur", 2, "Mulegé", 2, "Mulegé", 3_821),
    (5, "Coahuila de Zaragoza", 7, "Cuatro Ciénegas", 1, "Cuatro Ciénegas de Carranza", 10_395),
    (23, "Quintana Roo", 5, "Benito Juárez", 1, "Cancún", 888_797),
    *((23, "Quintana Roo", 4, "Othón P. Blanco", 10 + number, "Benito Juárez", 200) for number in range(9)),
    (8, "Chihuahua", 37, "Juárez", 1, "Juárez", 1_321_004),
    (10, "Durango", 12, "Lerdo", 52, "Ciudad Juárez", 7_643),
    (14, "Jalisco", 61, "Mezquitic", 60, "Ciudad Juárez", 60),
    (14, "Jalisco", 61, "Mezquitic", 61, "Rancho Juárez", 6),
)


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Lend an index of those towns."""
    folder = tmp_path_factory.mktemp("towns") / "names"
    places = [
        IndexedPlace(
            (estado_id * 1000 + municipio) * 10_000 + clave, nombre, estado_id * 1000 + municipio, nom_mun,
            estado_id, estado, "U" if poblacion >= MIN_URBAN else "R", poblacion, is_seat=clave == 1,
        )
        for estado_id, estado, municipio, nom_mun, clave, nombre, poblacion in TOWNS
    ]  # fmt: skip
    build_index(folder, places)
    index = NameIndex(folder)
    yield index
    index.close()


@pytest.mark.parametrize(
    ("row", "certain"),
    [
        (MatchRow("San José", "Los Cabos", "BCS"), None),  # the hamlet, or San José del Cabo
        (MatchRow("San José", "Comondú", "BCS"), 30010002),
        (MatchRow("San José", None, "BCS"), None),
        (MatchRow("San Lucas", "Los Cabos", "BCS"), 30080003),
        (MatchRow("Tezontepec", "Tezontepec", "Hidalgo"), None),  # the seats of two municipios
        (MatchRow("Tezontepec", None, "Hidalgo"), None),
        (MatchRow("Tezontepec", "Villa de Tezontepec", "Hidalgo"), 130660001),
        (MatchRow("Panuaya", "Tezontepec", "Hidalgo"), 130670002),
        (MatchRow("Cuatrociénegas", "Cuatrociénegas", "Coahuila"), 50070001),
        (MatchRow("Cuatrociénegas", None, "Coahuila"), 50070001),
        (MatchRow("Cuatrociénegas, Coahuila"), 50070001),
    ],
)
def test_name_that_a_town_has_for_short_may_be_the_town(towns: NameIndex, row: MatchRow, certain: int | None) -> None:
    result = towns.match(row)
    assert result.id == certain
    assert result.candidates


@pytest.mark.parametrize(
    ("row", "first"),
    [
        (MatchRow("cd juarez"), 80370001),
        (MatchRow("Ciudad Juárez"), 80370001),
        (MatchRow("Ciudad Juárez", None, "Durango"), 100120052),
        (MatchRow("Ciudad Juárez", "Lerdo"), 100120052),
        (MatchRow("Ciudad Juárez", latitud=22.3, longitud=-103.7), 140610060),
        (MatchRow("Rancho Juárez"), 140610061),
    ],
)
def test_town_comes_before_much_smaller_places_that_are_called_so_too(
    towns: NameIndex, row: MatchRow, first: int
) -> None:
    result = towns.match(row)
    assert result.candidates[0].id == first
    assert [one.score for one in result.candidates] == sorted((one.score for one in result.candidates), reverse=True)
    assert result.id is None or row.estado or row.municipio or first == 140610061


def test_seat_that_is_named_comes_before_a_larger_town_of_the_name(tmp_path: Path) -> None:
    places = [
        IndexedPlace(130150001, "Cardonal", 13015, "Cardonal", 13, "Hidalgo", is_seat=True),
        IndexedPlace(130100002, "Cardonal", 13010, "Atitalaquia", 13, "Hidalgo", "R", 2000),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert [one.id for one in index.match(MatchRow("Cardonal", None, "Hidalgo")).candidates] == [130150001, 130100002]
    index.close()


def test_town_has_to_be_ten_times_as_large(tmp_path: Path) -> None:
    for population, first in ((70, 80370001), (69, 100120052)):
        places = [
            IndexedPlace(80370001, "Juárez", 8037, "Juárez", 8, "Chihuahua", "U", population + 1, is_seat=True),
            IndexedPlace(100120052, "Ciudad Juárez", 10012, "Lerdo", 10, "Durango", "R", 7),
        ]
        build_index(tmp_path / str(population), places)
        index = NameIndex(tmp_path / str(population))
        assert index.match(MatchRow("cd juarez")).candidates[0].id == first
        index.close()


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("Cuatro Ciénegas de Carranza (Coahuila)", 50070001),
        ("Panuaya (Tezontepec de Aldama, Hidalgo)", 130670002),
        ("Cuatrociénegas, Coahuila, México", 50070001),
        ("Panuaya, Tezontepec de Aldama, Hidalgo, Mx.", 130670002),
    ],
)
def test_line_may_name_its_areas_in_brackets_and_the_country(towns: NameIndex, line: str, key: int) -> None:
    assert towns.match(MatchRow(line)).id == key


def test_estado_of_mexico_is_no_country_behind_a_name_alone(tmp_path: Path) -> None:
    places = [
        IndexedPlace(150810077, "Hidalgo", 15081, "Tecámac", 15, "México", "R", 90),
        IndexedPlace(130480001, "Pachuca de Soto", 13048, "Pachuca de Soto", 13, "Hidalgo", "U", 256_584, is_seat=True),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert index.match(MatchRow("Hidalgo, México")).id == 150810077
    assert index.match(MatchRow("Pachuca de Soto, Hidalgo, México")).id == 130480001
    index.close()


def test_estado_in_the_column_of_municipios_is_read_as_one(towns: NameIndex, index: NameIndex) -> None:
    assert towns.match(MatchRow("Panuaya", "Hgo.")) == towns.match(MatchRow("Panuaya", None, "Hgo."))
    assert towns.match(MatchRow("Ciudad Constitución", "BCS")).id == 30010001
    both = index.match(MatchRow("Frontera", "Tabasco", "Tabasco"))
    assert both.best is not None
    assert [fault.code for fault in both.best.faults] == ["municipio"]
    by_key = index.match(MatchRow("Frontera", "27"))
    assert (
        by_key.best is None or by_key.best.faults != index.match(MatchRow("Frontera", None, "27")).candidates[0].faults
    )


def test_seat_comes_first_of_what_bears_its_municipios_name(towns: NameIndex) -> None:
    result = towns.match(MatchRow("Benito Juárez", None, "Quintana Roo"), MIN_SURE)
    assert (result.outcome, result.candidates[0].id) == ("ambiguous", 230050001)
    assert [one.score for one in result.candidates] == sorted((one.score for one in result.candidates), reverse=True)


@pytest.mark.parametrize(
    ("municipio", "estado", "seat", "difference"),
    [
        ("Mulegé", "BCS", 30020001, Difference.SEAT_WITH_NAMESAKE),
        ("Benito Juárez", "Quintana Roo", 230050001, Difference.SEAT),
    ],
)
def test_seat_differs_more_if_another_place_has_the_name_of_the_municipio(
    towns: NameIndex, municipio: str, estado: str, seat: int, difference: Difference
) -> None:
    [found] = [one for one in towns.match(MatchRow(municipio, municipio, estado)).candidates if one.id == seat]
    assert [fault.difference for fault in found.faults] == [difference]


def test_place_that_has_the_name_of_its_municipio_comes_before_a_larger_seat(towns: NameIndex) -> None:
    assert [one.id for one in towns.suggest("mulege")] == [30020002, 30020001]


def test_name_of_the_municipio_at_a_point_far_away_is_none_that_a_person_may_know(index: NameIndex) -> None:
    result = index.match(MatchRow("Seybaplaya", "Centla", "Tabasco", 32.5, -117.0))
    assert result.outcome == "none"
    assert result.candidates[0].score < 10
    assert [fault.code for fault in result.candidates[0].faults] == ["distance"]


# -- Names on one line, and areas


@pytest.mark.parametrize(
    ("text", "key", "outcome"),
    [
        ("Guadalajara, Jalisco", 140390001, "exact"),
        ("frontera, centla, tab.", 270030001, "exact"),
        ("Chilapa 2da. Sección, Centla", 270030011, "exact"),
        ("140390001", 140390001, "exact"),
        ("90070001", 90070001, "exact"),
        ("ESTACION, LA", 270030012, "ambiguous"),
        ("El Colorado, Puerto Vallarta, Jalisco", 140670020, "ambiguous"),
        ("La Mojonerra, Compostela", 140670031, "ambiguous"),
        ("Frontera", 270030001, "ambiguous"),
    ],
)
def test_text_may_hold_the_areas_behind_commas_or_be_a_key(index: NameIndex, text: str, key: int, outcome: str) -> None:
    result = index.match(MatchRow(text))
    assert result.best is not None
    assert (result.best.id, result.outcome) == (key, outcome)


@pytest.mark.parametrize(
    ("text", "key", "outcome"),
    [
        ("Jalisco", 14, "exact"),
        ("jal.", 14, "exact"),
        ("14", 14, "exact"),
        ("CDMX", 9, "exact"),
        ("Jalizco", 14, "sure"),
        ("Jalisco, ", 14, "exact"),
        ("CDM", None, "none"),  # of three letters any may be wrong
        ("Atlantis", None, "none"),
    ],
)
def test_estado_is_matched_by_any_of_its_names(index: NameIndex, text: str, key: int | None, outcome: str) -> None:
    result = index.match(MatchRow(text, kind="estado"))
    assert (result.best and result.best.id, result.outcome) == (key, outcome)


@pytest.mark.parametrize(
    ("text", "estado", "key", "outcome", "codes"),
    [
        ("Guadalajara", None, 14039, "exact", []),
        ("Guadalajara, Jal.", None, 14039, "exact", []),
        ("14039", None, 14039, "exact", []),
        ("Guadalajara, Jal.", "Oaxaca", None, "none", []),  # the estado that was given apart counts
        ("GUADALAJRA", "Jalisco", 14039, "sure", ["spelling"]),
        ("Gdljra", "Jalisco", None, "none", []),
        ("Tlaquepaque", "Jalisco", 14098, "sure", ["seat"]),
        ("Villahermosa", None, 27004, "sure", ["seat"]),
        ("Mpio. de Guadalajara", "Jalisco", 14039, "sure", ["kind"]),
        ("Guadalajara (Jalisco)", None, 14039, "exact", []),
        ("Guadalajara Jal.", None, 14039, "exact", []),
        ("Sta. Ma. Huatulco", "Oax.", 20413, "exact", []),
        ("Oaxaca", "Oaxaca", 20067, "sure", ["seat"]),
        ("Guadalajara", "Atlantis", 14039, "ambiguous", ["estado"]),
        ("San Juan Mixtepec", "Oaxaca", 20208, "ambiguous", []),
        ("Compostela", None, None, "none", []),
    ],
)
def test_municipio_is_matched_with_its_faults(
    index: NameIndex, text: str, estado: str | None, key: int | None, outcome: str, codes: list[str]
) -> None:
    result = index.match(MatchRow(text, estado=estado, kind="municipio"))
    assert (result.best and result.best.id, result.outcome) == (key, outcome)
    assert [fault.code for fault in (result.best.faults if result.best else ())] == codes


@pytest.mark.parametrize(
    ("text", "estado_id", "found"),
    [
        ("San Juan Mixtepec", 20, [20001]),
        ("San Pedro y San Pablo Teposcolula", 20, [20003]),
        ("San Pedro y San Pablo Teposcolul", 20, [20003, 20004]),
        ("San Juan Mixtepe", 20, [20001]),  # the other is much less like it
        ("20001", 20, [20001]),
        ("1", 20, [20001]),
        ("20001", None, [20001]),
        ("20001", 27, []),
    ],
)
def test_municipios_that_a_text_may_name_are_those_most_like_it(
    text: str, estado_id: int | None, found: list[int]
) -> None:
    municipios = {
        20001: "San Juan Mixtepec",
        20002: "San Juan Mistepec",
        20003: "San Pedro y San Pablo Teposcolula",
        20004: "San Pedro y San Pablo Teposcolulo",
        27001: "Balancán",
    }
    book = AreaBook({20: "Oaxaca", 27: "Tabasco"}, municipios, {})
    assert [area.id for area in book.find_municipios(text, estado_id)] == found


def test_candidates_are_the_same_in_every_process(tmp_path: Path) -> None:
    names = [f"{word} {number}" for word in ("Alfa", "Beta") for number in range(10, 60)]
    places = [IndexedPlace(140010001 + at, name, 14001, "Acatic", 14, "Jalisco") for at, name in enumerate(names)]
    build_index(tmp_path / "names", places, [])
    script = (
        "import sys; from pathlib import Path; from localidades_api.names.index import NameIndex;"
        " from localidades_api.names.rows import MatchRow;"
        " found = NameIndex(Path(sys.argv[1])).match(MatchRow('Beta Alfa', 'Acatic', 'Jalisco')).candidates;"
        " print([one.id for one in found])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "names")],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1)  # which iterate over `{"alfa", "beta"}` in two orders
    }
    assert len(answers) == 1
    assert "14001" in answers.pop()


@pytest.mark.parametrize(
    ("people", "outcome", "keys"),
    [(80_000, "exact", [15012]), (80_001, "ambiguous", [15012, 15013])],  # ten times those of the other seat
)
def test_name_that_a_much_larger_municipio_begins_with_leaves_doubt(
    tmp_path: Path, people: int, outcome: str, keys: list[int]
) -> None:
    places = [
        IndexedPlace(id_, nombre, id_ // 10_000, municipio, 15, "México", "U", poblacion, is_seat=True)
        for id_, nombre, municipio, poblacion in (
            (150120001, "Santa Cruz Atizapán", "Atizapán", 8_000),
            (150130001, "Ciudad López Mateos", "Atizapán de Zaragoza", people),
        )
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    result = index.match(MatchRow("Atizapán", estado="Edomex", kind="municipio"))
    assert (result.outcome, sorted(one.id for one in result.candidates)) == (outcome, keys)
    assert result.candidates[0].id == 15012
    assert index.match(MatchRow("Atizapán", estado="Edomex", cvegeo="15012", kind="municipio")).id == 15012
    index.close()
