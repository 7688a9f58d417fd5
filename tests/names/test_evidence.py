import pytest

from localidades_api.names.evidence import Question, gather, may_be_short
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import KEY
from localidades_api.names.rows import MatchRow

CENTLA = ("Centla", "Tabasco")
# Evidence of how rare words are, how far other candidates are behind, and what the place is, whatever differs.
OF_ANY = {
    "any", "cost", "ahead", "behind", "alone", "shared_rarity", "shared_words", "share_of_given", "share_of_place",
    "population", "is_seat", "is_urban", "homonym", "clave",
}  # fmt: skip
HEAVY = {"cost_heavy": 1.0}


@pytest.mark.parametrize(
    ("row", "key", "evidence"),
    [
        (MatchRow("Frontera", *CENTLA), 270030001, {"same_name": 1}),
        (MatchRow("ESTACION", *CENTLA), 270030012, {"differences": 1, "light": 1, "article": 1}),
        (MatchRow("FCO. I MADERO", *CENTLA), 270030014, {"differences": 1, "light": 1}),
        (
            MatchRow("FRONTERRA", *CENTLA),
            270030001,
            {"differences": 1, "spelling": 1, "spelling_only": 1, "spelling_cost": 0.667},
        ),
        (MatchRow("EJ. FRANCISCO I. MADERO", *CENTLA), 270030014, {"differences": 1, "kind_added_other": 1}),
        (MatchRow("Pueblo Frontera", *CENTLA), 270030001, {"differences": 1, "kind_added_settlement": 1}),
        (
            MatchRow("Rancho Frontera", *CENTLA),
            270030001,
            {"differences": 1, "kind_added_establishment": 1, "kind_added_to_town": 1},
        ),
        (
            MatchRow("Isla Frontera", *CENTLA),
            270030001,
            {"differences": 1, "kind_added_weighty": 1, "kind_added_to_town": 1},
        ),
        (MatchRow("Frontera [Rancho]", *CENTLA), 270030001, {"differences": 2, "bracket_establishment_added": 1}),
        (MatchRow("MARGEN IZQUIERDA", *CENTLA), 270030010, {"differences": 1, "bracket_alone": 1}),
        (MatchRow("Chilapa 1ra. Sección", *CENTLA), 270030010, {"differences": 1, "bracket_left_out": 1}),
        (
            MatchRow("Rancho El Colorado", "Puerto Vallarta", "Jalisco"),
            140670022,
            {"differences": 1, "light": 1, "order": 1},
        ),
        (
            MatchRow("El Coloradoo", "Puerto Vallarta", "Jalisco"),
            140670022,
            {"differences": 2, "spelling": 1, "spelling_cost": 0.667, "bracket_establishment_left_out": 1},
        ),
        (MatchRow("Frontera (Zarco)", *CENTLA), 270030001, {"differences": 2, "bracket_added": 1}),
        (MatchRow("Zarco (Frontera)", *CENTLA), 270030001, {"differences": 2, "bracket_added_alone": 1}),
        (MatchRow("Chilapa 2 (Margen Izquierda)", *CENTLA), 270030011, {"differences": 2, "bracket_added": 1}),
        (
            MatchRow("Chilapa 3ra. Sección", *CENTLA),
            270030011,
            HEAVY | {"differences": 3, "number_other": 1, "number_added": 1, "number_missing": 1},
        ),
        (MatchRow("Chilapa Sección", *CENTLA), 270030011, {"differences": 1, "number_missing": 1}),
        (
            MatchRow("Chilapa Sección", *CENTLA),
            270030010,
            {"differences": 2, "number_missing": 1, "bracket_left_out": 1},
        ),
        (MatchRow("Frontera 2", *CENTLA), 270030001, {"differences": 1, "number_added": 1}),
        (MatchRow("Frontera Alta", *CENTLA), 270030001, {"differences": 1, "contrast_added": 1}),
        (MatchRow("Frontera T", *CENTLA), 270030001, {"differences": 1, "added": 1}),
        (MatchRow("Frontera Centla", *CENTLA), 270030001, {"differences": 1, "added_of_area": 1}),
        (MatchRow("Puente", "Guadalajara", "Jalisco"), 140390045, {"differences": 1, "missing": 1}),
        (
            MatchRow("Centro", "Centro", "Tabasco"),
            270040001,
            {"differences": 1, "seat": 1, "named_like_municipio_seat": 1},
        ),
        (MatchRow("GDL", "Guadalajara", "Jalisco"), 140390001, {"differences": 1, "everyday": 1}),
        (MatchRow("San José", "Puerto Vallarta", "Jalisco"), 140670030, {"differences": 1, "former_name_literally": 1}),
        (
            MatchRow("San Jozé", "Puerto Vallarta", "Jalisco"),
            140670030,
            {"differences": 2, "former_name": 1, "spelling": 1, "spelling_cost": 0.24},
        ),
        (MatchRow("Frontera", "Centro", "Tabasco"), 270030001, HEAVY | {"same_name": 1, "municipio_other": 1}),
        (MatchRow("Frontera", "Atlantis", "Tabasco"), 270030001, {"same_name": 1, "municipio_unknown": 1}),
        (MatchRow("Frontera", "Sentla", "Tabasco"), 270030001, {"same_name": 1, "municipio_unlike": 0.667}),
        (MatchRow("La Mojonera", "Compostela", "Nayarit"), 140670031, {"same_name": 1, "municipio_unlike": 0.05}),
        (MatchRow("Frontera", None, "Tabasco"), 270030001, {"same_name": 1, "municipio_not_given": 1}),
        (MatchRow("Frontera", "Centla", None), 270030001, {"same_name": 1, "estado_not_given": 1}),
        (MatchRow("Frontera", *CENTLA, ambito="R"), 270030001, {"same_name": 1, "ambito_other": 1}),
    ],
)
def test_candidate_has_the_evidence_of_its_differences_and_no_other(
    index: NameIndex, row: MatchRow, key: int, evidence: dict[str, float]
) -> None:
    keys, gathered = index.candidates(row)
    found = {
        name: round(value, 3)
        for name, value in gathered[keys.index(key)].items()
        if value
        and name not in OF_ANY
        and not name.endswith(("_rarity", "added_unknown", "_word", "_without_municipio"))
    }
    assert found == evidence


@pytest.mark.parametrize(
    ("names", "is_short"),
    [
        ([("tezontepec", "aldama"), ("villa", "tezontepec")], True),
        ([("tezontepec",), ("tezontepec",)], True),
        ([("tezontepec",)], False),
        ([("tezontepec", "aldama"), ("ixmiquilpan",)], False),
        ([], False),
    ],
)
def test_name_in_those_of_two_municipios_may_be_short_for_either(
    index: NameIndex, names: list[tuple[str, ...]], is_short: object
) -> None:
    words = ("tezontepec",)
    row = MatchRow("Tezontepec", "Tezontepec", "Hidalgo")
    question = Question(row, "tezontepec", words, frozenset(words), names, lambda _: 1.0, lambda _: True)
    assert may_be_short(question, index.place(0)) == is_short


@pytest.mark.parametrize(("cost", "lead", "is_heavy", "is_alone"), [(20.0, 6.0, 0, 0), (20.01, 6.01, 1, 1)])
def test_bounds_of_cost_and_lead_are_not_yet_heavy_or_alone(
    index: NameIndex, cost: float, lead: float, is_heavy: int, is_alone: int
) -> None:
    words = ("frontera",)
    question = Question(MatchRow("Frontera"), "frontera", words, frozenset(words), [], lambda _: 1.0, lambda _: True)
    found = gather(question, index.place(0), [NameFault(Difference.ADDED, "x", "", cost)], lead)
    assert (found["cost_heavy"], found["alone"]) == (is_heavy, is_alone)


@pytest.mark.parametrize("estado", [None, "Tabasco"])
@pytest.mark.parametrize("municipio", [None, "Centla"])
def test_area_that_a_row_lacks_is_evidence(index: NameIndex, municipio: str | None, estado: str | None) -> None:
    seat = index.place(index.layout.find(KEY, "270030001")[0])
    row = MatchRow("Frontera", municipio, estado)
    question = Question(row, "frontera", ("frontera",), frozenset(), [], lambda _: 1.0, lambda _: True)
    found = gather(question, seat, [], 0.0)
    lacks = {
        "municipio_not_given": not municipio,
        "estado_not_given": not estado,
        "no_area_given": not municipio and not estado,
        "population_without_municipio": not municipio and found["population"],
        "seat_without_municipio": not municipio,
        "urban_without_municipio": not municipio,
    }
    ours = {name: found[name] for name in found if name.endswith(("_given", "_without_municipio"))}
    assert ours == {name: value for name, value in lacks.items() if value} | {"share_of_given": 1.0}


@pytest.mark.parametrize(
    ("km", "name"),
    [(0.9, "km_under_1"), (1.1, "km_1_to_3"), (3.1, "km_3_to_8"), (8.1, "km_over_8"), (90.0, "km_over_8")],
)
def test_distance_is_evidence_by_band(index: NameIndex, km: float, name: str) -> None:
    place = index.place(0)
    assert place.latitud is not None
    row = MatchRow("x", latitud=place.latitud + km / 111.2, longitud=place.longitud)
    found = gather(Question(row, "x", ("x",), frozenset(), [], lambda _: 1.0, lambda _: True), place, [], 0.0)
    assert {one for one in found if one.startswith("km_")} == {name}
