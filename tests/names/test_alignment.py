"""What differs between two names, and which difference is the worse one."""

import pytest

from localidades_api.names.candidates.alignment import Comparison, align, align_letters, read_name
from localidades_api.names.files.layout import KEY
from localidades_api.names.index import NameIndex
from localidades_api.names.places import NameKind, PlaceName
from localidades_api.names.reading.text import variants

# What is given | the place's name | the differences: words of both, unless they are the whole names.
DIFFERENCES = """
Sección 2 | Sección | number_added 2/
Sección | Sección 2 | number_missing /2
Sección | Sección 1 | first_number_missing /1
Chilapa 2 | Chilapa 3 | number_other 2/3, number_added 2/, number_missing /3
Chilapa Alta | Chilapa | contrast_added alta/
Chilapa | Chilapa Alta | contrast_missing /alta
Chilapa 2 | Chilapa Sección 2 | section /seccion
Chilapa | Chilapa Sección | kind_missing /seccion
Chilapa Nuebo | Chilapa Nuevo | spelling nuebo/nuevo
Rancho Chilapa | Chilapa | farm_added rancho/
Chilapa | Pueblo Chilapa | settlement_missing /pueblo
Chilapa T | Chilapa | initial_added t/
Chilapa | Chilapa T | initial_missing /t
Chilapa Centla | Chilapa | added_of_area centla/
Centla Chilapa | Chilapa | added centla/
Chilapa Zarco Mora | Chilapa | added zarco/, added mora/
Chilapa | Chilapa Zarco | missing /zarco
La Chilapa | El Chilapa | article la/el
Zarco (Chilapa) | Chilapa | bracket_added_alone, wording
Chilapa | Chilapa [Rancho] | establishment_left_out
Chilapa | Chilapa [Ejido] | bracket_left_out
Zarco | Chilapa (Zarco) | bracket_alone
Chilapa Grande | Grande Chilapa | order
Chila Pa | Chilapa | spacing chila pa/chilapa
Chi Lapaz Zarco | Chilapa Zarco | spacing chi lapaz/chilapa
Za Rto Chilapa | Zarco Chilapa | spacing za rto/zarco
Vibora | Bibora | spelling vibora/bibora
Sn. Zarco | San Zarco | wording
V. Zarco | Venustiano Zarco | abbreviation v/venustiano
E Zarco | Emiliano Zarco | abbreviation e/emiliano
E. Zarco | Ejido Zarco | abbreviation e/ejido
Chil. Zarco | Chilapa Zarco | abbreviation chil/chilapa
Chlp Zarco | Chilapa Zarco | abbreviation chlp/chilapa
Cipa Zarco | Chilapa Zarco | added cipa/, missing /chilapa
Hpa. Zarco | Chilapa Zarco | added hpa/, missing /chilapa
Chil. 2 | Chilapa 2 | abbreviation chil/chilapa
Chilapa (La) | La Chilapa |
Mora12 Zarco | Mora 12 Zarco | spacing mora12 zarco/mora 12 zarco
Zarco 505 | Zarco Cincuenta y Cinco | number_other 505/50, number_added 505/, number_missing /50, number_missing /5
Zarco 12B | Zarco 13B | added 12b/, missing /13b
Chilapa (Chilapa Zarco) | Chilapa Zarco | bracket_added, wording
Chilapa [Rancho] | Chilapa | establishment_bracketed rancho/
Chilapa (Rancho) | Chilapa | establishment_bracketed rancho/
Chilapa [Bombeo de Agua] | Chilapa | establishment_bracketed, wording
Chilapa [Juan Mora] | Chilapa | establishment_bracketed, wording
Chilapa (Procesadora de Carnes) | Chilapa | establishment_bracketed, wording
Chilapa [Ejido] (Restaurante Mora) | Chilapa | establishment_bracketed, wording
Chilapa (Zarco) | Chilapa | bracket_added, wording
Chilapa [Colonia] (Zarco) | Chilapa | bracket_added, wording
Chilapa Centla | Chilapa Mora | added centla/, missing /mora
Chilapa Centla Tabasco | Chilapa | added_of_area centla/, added_of_area tabasco/
Tecolutla Alto | Tecolutla Alta | contrast_other alto/alta, contrast_added alto/, contrast_missing /alta
"""
# The same, for names that are compared letter by letter; `-` where they are not alike.
LETTERS = """
LOSTRESZARCOS | Los Tres Zarcos | spacing lostreszarcos/los tres zarcos
Chilapa Delzarco | Chilapa del Zarco | spacing chilapa delzarco/chilapa del zarco
Sant Amrhtaz | Santa Marthas | letters sant amrhtaz/santa marthas
Sant Aymqhtaz | Santa Marthas | -
Cihlapas 2 | Chilapa 3 | -
Cihlapas 2 | Chilapa | -
Cihlapas Alta | Chilapa | -
CHILAPADOS | Chilapa Dos | spacing chilapados/chilapa dos
CHILAPA2 | Chilapa 2 | spacing chilapa2/chilapa 2
CHILAPA505 | Chilapa 50 5 | -
CHILAPA 505 | Chilapa 50 5 | -
Chilapa Zarco12 | Chilapa Zarco13 | -
ELZARCO | Chilapa (El Zarco) | spacing elzarco/el zarco, bracket_alone
ELZARCO [Rancho] | El Zarco (Chilapa) | establishment_bracketed, spacing elzarco rancho/el zarco, second_name_left_out
"""


def table(text: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split(" |")) for line in text.strip().splitlines()]


def told(given: str, compared: Comparison | None) -> str:
    """Return the differences as the tables have them."""
    if compared is None:
        return "-"
    return ", ".join(
        one.reason if one.given == given or one.reason == "order" else f"{one.reason} {one.given}/{one.found}"
        for one in compared.differences
    )


def compared(index: NameIndex, given: str, nombre: str) -> Comparison:
    """Compare a name with that of a place of Centla, Tabasco, which has no other."""
    main, *others = variants(nombre)
    names = (PlaceName(NameKind.OWN, main, ""), *(PlaceName(NameKind.BRACKET, words, "") for words in others))
    place = index.place(index.layout.find(KEY, "270030001")[0])
    return align(read_name(given), place._replace(nombre=nombre, names=names, former=()))


@pytest.mark.parametrize(("given", "nombre", "found"), table(DIFFERENCES))
def test_names_differ_by_these_words(index: NameIndex, given: str, nombre: str, found: str) -> None:
    assert told(given, compared(index, given, nombre)) == found


@pytest.mark.parametrize(("given", "nombre", "found"), table(LETTERS))
def test_names_may_be_compared_letter_by_letter(index: NameIndex, given: str, nombre: str, found: str) -> None:
    place = index.place(0)._replace(nombre=nombre, names=(), former=())
    assert told(given, align_letters(read_name(given), place)) == found


@pytest.mark.parametrize(
    ("nombre", "best_first"),
    [
        ("Chilapa", ["CHILAPA", "Chila Pa", "Ejido Chilapa", "Rancho Chilapa", "Chilapa Zarco", "Chilapa 2"]),
        ("Chilapa 3", ["Chilapa 3ra.", "Chilapa", "Chilapa 2"]),
        ("Chilapa", ["Chilapa Centla", "Chilapa Zarco", "Chilapa Zarco Mora"]),
        ("Chilapa Zarco", ["Chilapas Zarco", "Chilapaz Zarco", "Zarco"]),
        ("Chilapa Zarco", ["Chil. Zarco", "Chil Zarco", "Cipa Zarco"]),
        ("Chilapa Alta", ["Chilapa", "Chilapa Alto"]),
        ("Chilapa", ["Chilapa Zapotal", "Chilapa Zapotal Grandioso"]),
    ],
)
def test_name_that_is_less_alike_costs_more(index: NameIndex, nombre: str, best_first: list[str]) -> None:
    costs = [compared(index, given, nombre).cost for given in best_first]
    assert costs == sorted(set(costs)), costs


def test_names_that_share_only_a_kind_or_a_number_are_not_compared(index: NameIndex) -> None:
    assert compared(index, "Ejido Zarco 2", "Ejido Chilapa 2").cost > 100
