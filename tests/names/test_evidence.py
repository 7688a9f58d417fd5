import pytest

from localidades_api.names.evidence import Question, gather, may_be_short
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import KEY
from localidades_api.names.rows import MatchRow

CENTLA, VALLARTA = ("Centla", "Tabasco"), ("Puerto Vallarta", "Jalisco")
# The evidence that a difference has alone: no other test would see that two kinds are taken for each other.
OF_ONE_KIND = (
    "article", "order", "spelling", "kind_added", "bracket", "number", "contrast", "added", "missing", "seat",
    "everyday", "former_name", "municipio", "estado", "ambito",
)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "key", "evidence"),
    [
        (MatchRow("ESTACION", *CENTLA), 270030012, {"article"}),
        (MatchRow("EJ. FRANCISCO I. MADERO", *CENTLA), 270030014, {"kind_added_other"}),
        (MatchRow("Pueblo Frontera", *CENTLA), 270030001, {"kind_added_settlement"}),
        (MatchRow("Rancho Frontera", *CENTLA), 270030001, {"kind_added_establishment", "kind_added_to_town"}),
        (MatchRow("Isla Frontera", *CENTLA), 270030001, {"kind_added_weighty", "kind_added_to_town"}),
        (MatchRow("Frontera [Rancho]", *CENTLA), 270030001, {"bracket_establishment_added"}),
        (MatchRow("MARGEN IZQUIERDA", *CENTLA), 270030010, {"bracket_alone"}),
        (MatchRow("Chilapa 1ra. Sección", *CENTLA), 270030010, {"bracket_left_out"}),
        (MatchRow("Rancho El Colorado", *VALLARTA), 140670022, {"order"}),
        (MatchRow("El Coloradoo", *VALLARTA), 140670022, {"bracket_establishment_left_out", "spelling"}),
        (MatchRow("Frontera (Zarco)", *CENTLA), 270030001, {"bracket_added"}),
        (MatchRow("Zarco (Frontera)", *CENTLA), 270030001, {"bracket_added_alone"}),
        (MatchRow("Chilapa 3ra. Sección", *CENTLA), 270030011, {"number_other", "number_added", "number_missing"}),
        (MatchRow("Chilapa Sección", *CENTLA), 270030010, {"number_missing", "bracket_left_out"}),
        (MatchRow("Frontera Alta", *CENTLA), 270030001, {"contrast_added"}),
        (MatchRow("Frontera T", *CENTLA), 270030001, {"added"}),
        (MatchRow("Frontera Centla", *CENTLA), 270030001, {"added_of_area"}),
        (MatchRow("Puente", "Guadalajara", "Jalisco"), 140390045, {"missing"}),
        (MatchRow("Centro", "Centro", "Tabasco"), 270040001, {"seat"}),
        (MatchRow("GDL", "Guadalajara", "Jalisco"), 140390001, {"everyday"}),
        (MatchRow("San José", *VALLARTA), 140670030, {"former_name_literally"}),
        (MatchRow("San Jozé", *VALLARTA), 140670030, {"former_name", "spelling"}),
        (MatchRow("Frontera", "Centro", "Tabasco"), 270030001, {"municipio_other"}),
        (MatchRow("Frontera", "Atlantis", "Tabasco"), 270030001, {"municipio_unknown"}),
        (MatchRow("Frontera", "Sentla", "Tabasco"), 270030001, {"municipio_unlike"}),
        (MatchRow("Frontera", *CENTLA, ambito="R"), 270030001, {"ambito_other"}),
    ],
)
def test_candidate_has_the_evidence_of_its_differences_and_no_other(
    index: NameIndex, row: MatchRow, key: int, evidence: set[str]
) -> None:
    keys, gathered = index.candidates(row)
    found = {
        name
        for name, value in gathered[keys.index(key)].items()
        if value and name.startswith(OF_ONE_KIND) and not name.endswith(("_rarity", "_word", "_cost"))
    }
    assert found - {"spelling_only", "added_unknown"} == evidence


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
