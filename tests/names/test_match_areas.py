"""A certain key agrees with the areas that the row gives."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localidades_api.names.build import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import MIN_URBAN, Former, IndexedPlace
from localidades_api.names.rows import MatchRow

PLACES = (
    (2, "Baja California", 4, "Tijuana", 1, "Tijuana", 1_300_983),
    (5, "Coahuila de Zaragoza", 13, "Hidalgo", 4, "Los Borregos", 10),
    (6, "Colima", 2, "Colima", 1, "Colima", 137_383),
    (7, "Chiapas", 9, "Arriaga", 5, "Las Amarillas", 3),
    (7, "Chiapas", 34, "Frontera Comalapa", 20, "Sinaloa", 30),
    (13, "Hidalgo", 24, "Huasca de Ocampo", 1, "Huasca de Ocampo", 600),
    (13, "Hidalgo", 63, "Tepeji del Río de Ocampo", 99, "Los Borregos", 5),
    (14, "Jalisco", 60, "Mexticacán", 1, "Mexticacán", 3_482),
    (14, "Jalisco", 64, "Ojuelos de Jalisco", 1, "Ojuelos de Jalisco", 11_881),
    (14, "Jalisco", 105, "Tototlán", 1, "Tototlán", 11_735),
    (14, "Jalisco", 120, "Zapopan", 1, "Zapopan", 1_142_483),
    (14, "Jalisco", 120, "Zapopan", 7, "Ninguno", 3),
    (15, "México", 106, "Toluca", 1, "Toluca de Lerdo", 489_333),
    (15, "México", 106, "Toluca", 2, "Proyecto Tijuana", 40),
    (16, "Michoacán de Ocampo", 34, "Hidalgo", 1, "Ciudad Hidalgo", 60_542),
    (19, "Nuevo León", 13, "China", 11, "Las Amarillas", 5),
    (20, "Oaxaca", 84, "San Agustín Etla", 1, "San Agustín Etla", 3_893),
    (20, "Oaxaca", 86, "San Agustín Tlacotepec", 1, "San Agustín Tlacotepec", 862),
    (20, "Oaxaca", 86, "San Agustín Tlacotepec", 2, "El Tule", 20),
    (21, "Puebla", 114, "Puebla", 50, "Pueblo Viejo", 40),
    (21, "Puebla", 114, "Puebla", 51, "Pueblo Nuevo", 50),
    *((21, "Puebla", 114, "Puebla", 52 + at, f"Pueblo {name}", 60) for at, name in enumerate(("Alto", "Bajo"))),
    *((21, "Puebla", 114, "Puebla", 60 + at, f"La Colina {at}", 60) for at in range(4)),
    (23, "Quintana Roo", 10, "Bacalar", 1, "Bacalar", 11_084),
    (23, "Quintana Roo", 10, "Bacalar", 11, "Andrés Quintana Roo", 300),
)
AMARILLAS, BACALAR, OJUELOS, TIJUANA, TOTOTLAN, ZAPOPAN = (
    190130011, 230100001, 140640001, 20040001, 141050001, 141200001,
)  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Lend an index of these places."""
    folder = tmp_path_factory.mktemp("areas") / "names"
    build_index(
        folder,
        [
            IndexedPlace(
                (estado_id * 1000 + municipio) * 10_000 + clave, nombre, estado_id * 1000 + municipio, nom_mun,
                estado_id, estado, "U" if poblacion >= MIN_URBAN else "R", poblacion, is_seat=clave == 1,
            )
            for estado_id, estado, municipio, nom_mun, clave, nombre, poblacion in PLACES
        ],
    )  # fmt: skip
    index = NameIndex(folder)
    yield index
    index.close()


@pytest.mark.parametrize(
    ("row", "first", "is_certain", "codes"),
    [
        # A municipio's name is no misspelt estado.
        (MatchRow("Los Borregos", estado="Huasca de Ocampo"), None, False, ["estado"]),
        (MatchRow("Las Amarillas, China"), AMARILLAS, True, []),
        (MatchRow("Tijuana", estado="California"), TIJUANA, False, ["estado"]),
        (MatchRow("Zapopan", estado="Jalizco"), ZAPOPAN, True, ["estado"]),
        (MatchRow("Zapopan", "Zapopan", "Jalizco"), ZAPOPAN, True, ["estado"]),
        (MatchRow("Zapopan, Jalizco"), ZAPOPAN, True, ["estado"]),
        (MatchRow("Tototlán", "Tototlán [Fumigaciones]", "Jalisco"), TOTOTLAN, False, ["municipio"]),
        (MatchRow("Tototlán", "Tototlan", "Jalisco"), TOTOTLAN, True, []),
        # Formal names of estados.
        *(
            (MatchRow("Zapopan", "Zapopan", estado), ZAPOPAN, True, [])
            for estado in (
                "Estado de Jalisco", "Edo. de Jalisco", "Edo. Jal.", "Estado Libre y Soberano de Jalisco",
                "Entidad Federativa: Jalisco", "Jal., Méx.", "Jalisco, México", "Jalisco MX",
            )
        ),
        (MatchRow("Toluca de Lerdo", "Toluca", "Estado Libre y Soberano de México"), 151060001, True, []),
        # An area that is not given.
        *(
            (MatchRow("Tototlán", municipio, "Jalisco"), TOTOTLAN, True, [])
            for municipio in ("No especificado", "S/D", "N/A", "Se ignora", "Sin municipio")
        ),
        (MatchRow("Mexticacán", "Mexticacán", "No aplica"), 140600001, True, []),
        # Lines.
        *(
            (MatchRow(line), ZAPOPAN, True, [])
            for line in (
                "Zapopan, Jalisco,", "Zapopan - Jalisco", "Zapopan / Jalisco", "Zapopan/Jal.", "Zapopan; Jalisco",
                "45100 Zapopan, Jalisco", "Zapopan, Jalisco. C.P. 45100", "Zapopan, C.P. 45100, Jalisco",
                "Zapopan, Jalisco 45100", "Zapopan, Jalisco, C.P. 45100, México", "Zapopan, Jal., México",
                "Zapopan (Jalisco), MX", "Jalisco, Zapopan", "45100 Zapopan", "Zapopan, Zapopan, Estado de Jalisco",
            )
        ),
        (MatchRow("Ojuelos de Jalisco, Mpio. Ojuelos de Jalisco", estado="Jalisco"), OJUELOS, True, ["municipio"]),
        (MatchRow("Quintana Roo, Bacalar"), BACALAR, False, []),
        (MatchRow("Los Borregos, Hidalgo"), None, False, []),
        (MatchRow("Los Borregos, Estado de Hidalgo"), 130630099, True, []),
    ],
)  # fmt: skip
def test_key_is_certain_only_if_the_areas_of_the_row_agree(
    index: NameIndex, row: MatchRow, first: int | None, is_certain: object, codes: list[str]
) -> None:
    result = index.match(row)
    assert result.best is not None
    assert first in {None, result.best.id}
    assert (result.id is not None, [fault.code for fault in result.best.faults]) == (is_certain, codes)


def test_both_readings_of_a_line_are_candidates(index: NameIndex) -> None:
    found = [one.id for one in index.match(MatchRow("Los Borregos, Hidalgo")).candidates]
    assert set(found) == {50130004, 130630099}
    found = [one.id for one in index.match(MatchRow("Quintana Roo, Bacalar")).candidates]
    assert found == [BACALAR, 230100011]


@pytest.mark.parametrize(
    ("nombre", "id_", "outcome"),
    [
        ("California", None, "none"),
        ("Pueblo", None, "none"),
        ("Campo", None, "none"),
        ("Colina", None, "none"),
        ("Nuevo", None, "none"),
        ("New Mexico", None, "none"),
        ("Huasca de Ocampo", None, "none"),
        ("El Hidalgo", None, "none"),
        ("Sin estado", None, "none"),
        ("Pubela", 21, "sure"),
        ("Vaja California", 2, "sure"),
        ("Mechoacan", 16, "sure"),
        ("Michoacan Ocampo", 16, "exact"),
        ("Estado de Michoacán", 16, "exact"),
        ("Edo. Libre y Soberano de Puebla", 21, "exact"),
        ("Jal., Méx.", 14, "exact"),
        ("Estado de México", 15, "exact"),
        ("Edo. Mex.", 15, "exact"),
    ],
)
def test_estado_has_no_word_missing_or_added(index: NameIndex, nombre: str, id_: int | None, outcome: str) -> None:
    result = index.match(MatchRow(nombre, kind="estado"))
    assert (result.id, result.outcome) == (id_, outcome)


@pytest.mark.parametrize(
    ("row", "candidates", "outcome"),
    [
        (MatchRow("San Agustín Tla", estado="Oaxaca"), [20084, 20086], "ambiguous"),  # cut at 15 letters
        (MatchRow("San Agustín Etla", estado="Oaxaca"), [20084], "exact"),
        (MatchRow("Tijuana", estado="California"), [2004], "ambiguous"),
        (MatchRow("Tijuana", estado="Vaja California"), [2004], "sure"),
        (MatchRow("Tijuana", estado="N/A"), [2004], "exact"),
        (MatchRow("Tototlán [Fumigaciones]", estado="Jalisco"), [14105], "ambiguous"),
        (MatchRow("No especificado", estado="Jalisco"), [], "none"),
        (MatchRow("Zapopan / Jalisco"), [14120], "exact"),
        # A key must agree with the name and the estado.
        (MatchRow("Zapopan", cvegeo="14120"), [14120], "exact"),
        (MatchRow(cvegeo="14120", estado="Jal."), [14120], "exact"),
        (MatchRow(cvegeo="14120", estado="Oaxaca"), [14120], "ambiguous"),
        (MatchRow("Zapopan", cvegeo="14120", estado="Oaxaca"), [14120], "ambiguous"),
        (MatchRow("Tijuana", cvegeo="14120"), [14120, 2004], "ambiguous"),
    ],
)
def test_municipio_agrees_with_all_that_the_row_gives(
    index: NameIndex, row: MatchRow, candidates: list[int], outcome: str
) -> None:
    result = index.match(row._replace(kind="municipio"))
    assert ([one.id for one in result.candidates], result.outcome) == (candidates, outcome)


def test_places_in_every_municipio_of_a_name_cut_short_are_candidates(index: NameIndex) -> None:
    result = index.match(MatchRow("El Tule", "San Agustín Tla", "Oaxaca"))
    assert result.candidates[0].id == 200860002


FILLERS = (
    "Sin localidad", "Ninguna", "Colonia", "Varias", "Varias localidades", "Todo el municipio", "Zona urbana",
    "Sin nombre", "S/D", "N/A", "N/D", "S/N", "No especificado", "NO ESPECIFICADA", "Se ignora", "Se desconoce",
    "No aplica", "Sin información", "Sin dato", "Desconocido", "No identificada", "Otra", "Todas", "Localidad",
    "Domicilio conocido", "Pendiente", "xxx", "Cobertura estatal", "No disponible", "Sin especificar",
)  # fmt: skip


@pytest.mark.parametrize("nombre", FILLERS)
def test_name_that_says_that_no_place_is_given_has_none(index: NameIndex, nombre: str) -> None:
    for municipio, estado in (("Frontera Comalapa", "Chiapas"), ("Zapopan", "Jalisco"), (None, "Puebla"), (None, None)):
        assert index.match(MatchRow(nombre, municipio, estado)).outcome == "none"
    assert index.match(MatchRow(nombre, "Zapopan", "Jalisco", cvegeo="141200001")).id == ZAPOPAN


def test_place_that_is_called_so_is_found_by_its_exact_name(index: NameIndex) -> None:
    result = index.match(MatchRow("Ninguno", "Zapopan", "Jalisco"))
    assert (result.outcome, [one.id for one in result.candidates]) == ("ambiguous", [141200007])
    assert index.match(MatchRow("Ninguno", "Zapopan", "Jalisco", cvegeo="141200007")).id == 141200007
    assert index.match(MatchRow("Ninguno, Zapopan, Jalisco")).outcome == "ambiguous"
    assert index.match(MatchRow("Ninguna, Zapopan, Jalisco")).outcome == "none"


def test_place_that_is_called_so_comes_before_one_that_was(tmp_path: Path) -> None:
    former = Former("Ninguno", "Zapopan", 141200338)
    places = [
        IndexedPlace(141200338, "Ninguno (Armando)", 14120, "Zapopan", 14, "Jalisco", "R", 90, former=(former,)),
        *(IndexedPlace(141200339 + at, "Ninguno", 14120, "Zapopan", 14, "Jalisco", "R", 1) for at in range(3)),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    result = index.match(MatchRow("Ninguno", "Zapopan", "Jalisco"))
    index.close()
    assert result.outcome == "ambiguous"
    assert {one.id for one in result.candidates} == {141200339, 141200340, 141200341}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Tijuana, Baja California, México", TIJUANA),
        ("Tijuana, Baja California, Mex.", TIJUANA),
        ("Tijuana, B.C., MX", TIJUANA),
        ("Tijuana, Baja California, Méx", TIJUANA),
        ("Tijuana, República Mexicana", TIJUANA),
        ("Tijuana, México", TIJUANA),
        ("Zapopan, Jalisco, Mé", ZAPOPAN),
        ("Proyecto Tijuana, México", 151060002),
        ("Toluca, Estado de México", 151060001),
        ("Toluca, México", 151060001),
    ],
)
def test_country_adds_nothing_to_a_suggestion(index: NameIndex, text: str, first: int) -> None:
    assert index.suggest(text)[0].id == first
