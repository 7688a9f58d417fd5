"""The evidence of a candidate by what differs: no other test sees that two kinds are taken for each other."""

import pytest

from localidades_api.names.certainty import coefficients
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow
from tests.support.names import PLACES

# Evidence that a row has by its words, and that no difference has alone.
LEFT_OUT = ("_rarity", "_word", "_words", "_cost", "spelling_only", "added_unknown", "_first_letter")
OF_ONE_KIND = (
    "article", "order", "spelling", "kind_added", "bracket", "number", "contrast", "added", "missing", "seat",
    "everyday", "former_name", "municipio", "estado", "ambito", "km_", "no_area",
)  # fmt: skip
# name, municipio, estado | the evidence
ROWS = """
ESTACION, Centla, Tabasco | 270030012 | article
EJ. FRANCISCO I. MADERO, Centla, Tabasco | 270030014 | kind_added_other
Pueblo Frontera, Centla, Tabasco | 270030001 | kind_added_settlement
Rancho Frontera, Centla, Tabasco | 270030001 | kind_added_establishment kind_added_to_town
Isla Frontera, Centla, Tabasco | 270030001 | kind_added_weighty kind_added_to_town
Frontera [Rancho], Centla, Tabasco | 270030001 | bracket_establishment_added
MARGEN IZQUIERDA, Centla, Tabasco | 270030010 | bracket_alone
Chilapa 1ra. Sección, Centla, Tabasco | 270030010 | bracket_left_out
Rancho El Colorado, Puerto Vallarta, Jalisco | 140670022 | order
El Coloradoo, Puerto Vallarta, Jalisco | 140670022 | bracket_establishment_left_out spelling
Frontera (Zarco), Centla, Tabasco | 270030001 | bracket_added
Zarco (Frontera), Centla, Tabasco | 270030001 | bracket_added_alone
Chilapa 3ra. Sección, Centla, Tabasco | 270030011 | number_other number_added number_missing
Chilapa Sección, Centla, Tabasco | 270030010 | number_missing bracket_left_out
Frontera Alta, Centla, Tabasco | 270030001 | contrast_added
Frontera T, Centla, Tabasco | 270030001 | added
Frontera Centla, Centla, Tabasco | 270030001 | added_of_area
Puente, Guadalajara, Jalisco | 140390045 | missing
Centro, Centro, Tabasco | 270040001 | seat
GDL, Guadalajara, Jalisco | 140390001 | everyday
San José, Puerto Vallarta, Jalisco | 140670030 | former_name_literally
San Jozé, Puerto Vallarta, Jalisco | 140670030 | former_name spelling
Frontera, Centro, Tabasco | 270030001 | municipio_other
Frontera, Atlantis, Tabasco | 270030001 | municipio_unknown
Frontera, Sentla, Tabasco | 270030001 | municipio_unlike
Frontera, Centla, Tabasco, R | 270030001 | ambito_other
Frontera, Centla | 270030001 | estado_not_given
Seybaplaya, , Tabasco | 270030015 | municipio_not_given
Frontera | 270030001 | municipio_not_given seat_without_municipio estado_not_given no_area_given
"""


def evidence_of(index: NameIndex, row: MatchRow, key: int) -> set[str]:
    keys, gathered = index.candidates(row)
    found = gathered[keys.index(key)]
    assert found.keys() <= coefficients().keys() | {"ambito_other"}
    return {name for name, value in found.items() if value and name.startswith(OF_ONE_KIND)}


@pytest.mark.parametrize("line", ROWS.strip().splitlines())
def test_candidate_has_the_evidence_of_its_differences_and_no_other(index: NameIndex, line: str) -> None:
    given, key, evidence = line.split(" | ")
    nombre, municipio, estado, ambito = [*(cell or None for cell in given.split(", ")), None, None, None][:4]
    row = MatchRow(nombre, municipio, estado, ambito=ambito)
    found = {name for name in evidence_of(index, row, int(key)) if not name.endswith(LEFT_OUT)}
    assert found == set(evidence.split())


@pytest.mark.parametrize(
    ("km", "name"),
    [(0.9, "km_under_1"), (1.1, "km_1_to_3"), (3.1, "km_3_to_8"), (8.1, "km_over_8"), (90.0, "km_over_8")],
)
def test_distance_is_evidence_by_band(index: NameIndex, km: float, name: str) -> None:
    [frontera] = [place for place in PLACES if place.nombre == "Frontera"]
    assert frontera.latitud is not None
    row = MatchRow("Frontera", "Centla", "Tabasco", frontera.latitud + km / 111.2, frontera.longitud)
    assert evidence_of(index, row, frontera.id) == {name}
