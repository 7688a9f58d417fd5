"""A certain key agrees with the areas that the row gives."""

from collections.abc import Callable

import pytest

from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former
from localidades_api.names.rows import MatchRow
from tests.support.names import place, places_of

AMARILLAS, BACALAR, OJUELOS, TIJUANA, TOTOTLAN, ZAPOPAN = (
    190130011, 230100001, 140640001, 20040001, 141050001, 141200001,
)  # fmt: skip
PLACES = """
    20040001  | Tijuana                | Tijuana                  | Baja California      | 1300983
    50130004  | Los Borregos           | Hidalgo                  | Coahuila de Zaragoza | 10
    60020001  | Colima                 | Colima                   | Colima               | 137383
    70090005  | Las Amarillas          | Arriaga                  | Chiapas              | 3
    70340020  | Sinaloa                | Frontera Comalapa        | Chiapas              | 30
    90030001  | Coyoacán               | Coyoacán                 | Ciudad de México     | 614447
    130240001 | Huasca de Ocampo       | Huasca de Ocampo         | Hidalgo              | 600
    130630099 | Los Borregos           | Tepeji del Río de Ocampo | Hidalgo              | 5
    140600001 | Mexticacán             | Mexticacán               | Jalisco              | 3482
    140640001 | Ojuelos de Jalisco     | Ojuelos de Jalisco       | Jalisco              | 11881
    141050001 | Tototlán               | Tototlán                 | Jalisco              | 11735
    141200001 | Zapopan                | Zapopan                  | Jalisco              | 1142483
    141200007 | Ninguno                | Zapopan                  | Jalisco              | 3
    151060001 | Toluca de Lerdo        | Toluca                   | México               | 489333
    151060002 | Proyecto Tijuana       | Toluca                   | México               | 40
    160340001 | Ciudad Hidalgo         | Hidalgo                  | Michoacán de Ocampo  | 60542
    190130011 | Las Amarillas          | China                    | Nuevo León           | 5
    200840001 | San Agustín Etla       | San Agustín Etla         | Oaxaca               | 3893
    200860001 | San Agustín Tlacotepec | San Agustín Tlacotepec   | Oaxaca               | 862
    200860002 | El Tule                | San Agustín Tlacotepec   | Oaxaca               | 20
    211140050 | Pueblo Viejo           | Puebla                   | Puebla               | 40
    211140051 | Pueblo Nuevo           | Puebla                   | Puebla               | 50
    211140052 | Pueblo Alto            | Puebla                   | Puebla               | 60
    211140053 | Pueblo Bajo            | Puebla                   | Puebla               | 60
    211140060 | La Colina 0            | Puebla                   | Puebla               | 60
    211140061 | La Colina 1            | Puebla                   | Puebla               | 60
    211140062 | La Colina 2            | Puebla                   | Puebla               | 60
    211140063 | La Colina 3            | Puebla                   | Puebla               | 60
    230100001 | Bacalar                | Bacalar                  | Quintana Roo         | 11084
    230100011 | Andrés Quintana Roo    | Bacalar                  | Quintana Roo         | 300
"""


@pytest.fixture(scope="module")
def index(index_of: Callable[..., NameIndex]) -> NameIndex:
    return index_of(*places_of(PLACES))


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
        # The country in the place of an estado, and an estado in that of a municipio.
        *(
            (MatchRow("Zapopan", "Zapopan", country), ZAPOPAN, True, [])
            for country in ("MX", "Estados Unidos Mexicanos", "República Mexicana")
        ),
        *((MatchRow("Coyoacán", estado, "CDMX"), 90030001, True, []) for estado in ("CDMX", "Ciudad de México")),
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
        (MatchRow("Quintana Roo, Bacalar"), BACALAR, True, []),
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
    borregos, roo = (
        index.match(MatchRow(line)).candidates for line in ("Los Borregos, Hidalgo", "Quintana Roo, Bacalar")
    )
    assert {one.id for one in borregos} == {50130004, 130630099}
    assert [one.id for one in roo] == [BACALAR, 230100011]


def test_places_in_every_municipio_of_a_name_cut_short_are_candidates(index: NameIndex) -> None:
    assert index.match(MatchRow("El Tule", "San Agustín Tla", "Oaxaca")).candidates[0].id == 200860002


@pytest.mark.parametrize(
    ("nombre", "id_", "outcome"),
    [
        *((other, None, "none") for other in ("California", "Pueblo", "Campo", "Colina", "Nuevo", "New Mexico",
                                              "Huasca de Ocampo", "El Hidalgo", "Sin estado")),
        ("Pubela", 21, "sure"), ("Vaja California", 2, "sure"), ("Mechoacan", 16, "sure"),
        ("Michoacan Ocampo", 16, "exact"), ("Estado de Michoacán", 16, "exact"),
        ("Edo. Libre y Soberano de Puebla", 21, "exact"), ("Jal., Méx.", 14, "exact"),
        ("Estado de México", 15, "exact"), ("Edo. Mex.", 15, "exact"),
    ],
)  # fmt: skip
def test_estado_has_no_word_missing_or_added(index: NameIndex, nombre: str, id_: int | None, outcome: str) -> None:
    result = index.match(MatchRow(nombre, kind="estado"))
    assert (result.id, result.outcome) == (id_, outcome)


@pytest.mark.parametrize(
    ("row", "candidates", "outcome"),
    [
        (MatchRow("San Agustín Tla", estado="Oaxaca"), [20086, 20084], "ambiguous"),  # cut at 15 letters
        (MatchRow("San Agustín Etla", estado="Oaxaca"), [20084], "exact"),
        (MatchRow("Tijuana", estado="California"), [2004], "ambiguous"),
        (MatchRow("Tijuana", estado="Vaja California"), [2004], "sure"),
        *((MatchRow("Tijuana", estado=country), [2004], "exact") for country in ("N/A", "MX", "México")),
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


FILLERS = (
    "Sin localidad", "Ninguna", "Colonia", "Varias", "Varias localidades", "Todo el municipio", "Zona urbana",
    "Sin nombre", "S/D", "N/A", "N/D", "S/N", "No especificado", "NO ESPECIFICADA", "Se ignora", "Se desconoce",
    "No aplica", "Sin información", "Sin dato", "Desconocido", "No identificada", "Otra", "Todas", "Localidad",
    "Domicilio conocido", "Pendiente", "xxx", "Cobertura estatal", "No disponible", "Sin especificar",
    "Total estatal", "Nacional", "Localidad no especificada", "TOTAL DEL MUNICIPIO",
)  # fmt: skip


def test_name_that_says_that_no_place_is_given_has_none(index: NameIndex) -> None:
    areas = (("Frontera Comalapa", "Chiapas"), ("Zapopan", "Jalisco"), (None, "Puebla"), (None, None))
    rows = [MatchRow(nombre, municipio, estado) for nombre in FILLERS for municipio, estado in areas]
    assert [row for row in rows if index.match(row).outcome != "none"] == []
    keys = {index.match(MatchRow(nombre, "Zapopan", "Jalisco", cvegeo="141200001")).id for nombre in FILLERS}
    assert keys == {ZAPOPAN}


def test_place_that_is_called_so_is_found_by_its_exact_name(index: NameIndex) -> None:
    result = index.match(MatchRow("Ninguno", "Zapopan", "Jalisco"))
    assert (result.outcome, [one.id for one in result.candidates]) == ("ambiguous", [141200007])
    assert index.match(MatchRow("Ninguno", "Zapopan", "Jalisco", cvegeo="141200007")).id == 141200007
    assert index.match(MatchRow("Ninguno, Zapopan, Jalisco")).outcome == "ambiguous"
    assert index.match(MatchRow("Ninguna, Zapopan, Jalisco")).outcome == "none"


def test_place_that_is_called_so_comes_before_one_that_was(index_of: Callable[..., NameIndex]) -> None:
    zapopan, former = ("Zapopan", "Jalisco"), (Former("Ninguno", "Zapopan", 141200338),)
    called = [place(141200339 + at, "Ninguno", *zapopan, 1) for at in range(3)]
    index = index_of(place(141200338, "Ninguno (Armando)", *zapopan, 90, former=former), *called)
    result = index.match(MatchRow("Ninguno", *zapopan))
    assert (result.outcome, {one.id for one in result.candidates}) == ("ambiguous", {one.id for one in called})


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Tijuana, Baja California, México", TIJUANA), ("Tijuana, B.C., MX", TIJUANA),
        ("Tijuana, Baja California, Méx", TIJUANA), ("Tijuana, República Mexicana", TIJUANA),
        ("Tijuana, México", TIJUANA), ("Zapopan, Jalisco, Mé", ZAPOPAN), ("Proyecto Tijuana, México", 151060002),
        ("Toluca, Estado de México", 151060001), ("Toluca, México", 151060001),
    ],
)  # fmt: skip
def test_country_adds_nothing_to_a_suggestion(index: NameIndex, text: str, first: int) -> None:
    assert index.suggest(text)[0].id == first
