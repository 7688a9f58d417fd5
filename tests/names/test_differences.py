import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from localidades_api.names import weights
from localidades_api.names.differences import _likeness, compare, compare_letters, read_name
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import KEY
from localidades_api.names.places import NameKind, PlaceName
from localidades_api.names.text import variants


def faults(index: NameIndex, given: str, nombre: str) -> list[tuple[str, str, str, float]]:
    """Return the faults of a place of Centla, Tabasco, that has no other name, for a name that was given."""
    main, *others = variants(nombre)
    names = (PlaceName(NameKind.OWN, main, ""), *(PlaceName(NameKind.BRACKET, words, "") for words in others))
    place = index.place(index.layout.find(KEY, "270030001")[0])
    place = place._replace(nombre=nombre, names=names, former=())
    return [(one.difference, one.given, one.found, one.penalty) for one in compare(read_name(given), place).faults]


@pytest.mark.parametrize(
    ("given", "nombre", "found"),
    [
        ("Sección 2", "Sección", [("number_added", "2", "", 18.0)]),
        ("Sección", "Sección 2", [("number_missing", "", "2", 14.0)]),
        ("Sección", "Sección 1", [("first_number_missing", "", "1", 11.0)]),
        (
            "Chilapa 2",
            "Chilapa 3",
            [("number_other", "2", "3", 40.0), ("number_added", "2", "", 18.0), ("number_missing", "", "3", 14.0)],
        ),
        ("Chilapa Alta", "Chilapa", [("contrast_added", "alta", "", 16.0)]),
        ("Chilapa", "Chilapa Alta", [("contrast_missing", "", "alta", 16.0)]),
        ("Chilapa 2", "Chilapa Sección 2", [("section", "", "seccion", 0.5)]),
        ("Chilapa", "Chilapa Sección", [("kind_missing", "", "seccion", 6.0)]),
        ("Chilapa Sección", "Chilapa", [("kind_added", "seccion", "", 6.0)]),
        ("Chilapa Nuebo", "Chilapa Nuevo", [("spelling", "nuebo", "nuevo", 2.4)]),
        ("Rancho Chilapa", "Chilapa", [("kind_added", "rancho", "", 4.0)]),
        ("Chilapa", "Pueblo Chilapa", [("kind_missing", "", "pueblo", 1.5)]),
        ("Ejido Chilapa", "Chilapa", [("kind_added", "ejido", "", 2.5)]),
        ("Chilapa T", "Chilapa", [("initial_added", "t", "", 3.0)]),
        ("Chilapa", "Chilapa T", [("initial_missing", "", "t", 3.0)]),
        ("Chilapa Centla", "Chilapa", [("added_of_area", "centla", "", 1.0)]),
        ("Centla Chilapa", "Chilapa", [("added", "centla", "", 16.15)]),
        ("Chilapa Zarco", "Chilapa", [("added", "zarco", "", 15.17)]),
        ("Chilapa Zarco Mora", "Chilapa", [("added", "zarco", "", 12.88), ("added", "mora", "", 6.5)]),
        ("Chilapa", "Chilapa Zarco", [("missing", "", "zarco", 15.17)]),
        ("La Chilapa", "El Chilapa", [("article", "la", "el", 2.0)]),
        (
            "Zarco (Chilapa)",
            "Chilapa",
            [
                ("bracket_added_alone", "Zarco (Chilapa)", "chilapa", 8.0),
                ("wording", "Zarco (Chilapa)", "Chilapa", 1.0),
            ],
        ),
        ("Chilapa", "Chilapa [Rancho]", [("bracket_establishment_left_out", "Chilapa", "Chilapa [Rancho]", 4.0)]),
        ("Chilapa", "Chilapa [Ejido]", [("bracket_left_out", "Chilapa", "Chilapa [Ejido]", 2.0)]),
        ("Zarco", "Chilapa (Zarco)", [("bracket_alone", "Zarco", "Chilapa (Zarco)", 6.0)]),
        ("Chilapa Grande", "Grande Chilapa", [("order", "chilapa grande", "grande chilapa", 1.0)]),
        ("Chila Pa", "Chilapa", [("spacing", "chila pa", "chilapa", 1.0)]),
        ("Chi Lapaz Zarco", "Chilapa Zarco", [("spacing", "chi lapaz", "chilapa", 8.5)]),
        ("Za Rto Chilapa", "Zarco Chilapa", [("spacing", "za rto", "zarco", 13.0)]),  # as unlike as they may be
        ("Chilapaz Zarco", "Chilapa Zarco", [("spelling", "chilapaz", "chilapa", 7.5)]),
        ("Chilapas Zarco", "Chilapa Zarco", [("spelling", "chilapas", "chilapa", 3.0)]),
        ("Vibora", "Bibora", [("spelling", "vibora", "bibora", 2.4)]),
        ("Sn. Zarco", "San Zarco", [("wording", "Sn. Zarco", "San Zarco", 1.0)]),
        ("Chilapa Chilapa", "Chilapa", [("added", "chilapa", "", 17.0)]),
        ("V. Zarco", "Venustiano Zarco", [("abbreviation", "v", "venustiano", 4.0)]),
        ("E Zarco", "Emiliano Zarco", [("abbreviation", "e", "emiliano", 4.0)]),
        ("E. Zarco", "Ejido Zarco", [("kind_missing", "", "ejido", 2.5)]),
        ("Chil. Zarco", "Chilapa Zarco", [("abbreviation", "chil", "chilapa", 4.0)]),
        ("Chlp Zarco", "Chilapa Zarco", [("abbreviation", "chlp", "chilapa", 4.0)]),
        ("Clpa. Zarco", "Chilapa Zarco", [("abbreviation", "clpa", "chilapa", 4.0)]),
        ("Chil Zarco", "Chilapa Zarco", [("abbreviation", "chil", "chilapa", 10.0)]),
        ("Cipa Zarco", "Chilapa Zarco", [("added", "cipa", "", 13.33), ("missing", "", "chilapa", 18.83)]),
        ("Hpa. Zarco", "Chilapa Zarco", [("added", "hpa", "", 11.5), ("missing", "", "chilapa", 18.83)]),
        ("Chil. 2", "Chilapa 2", [("abbreviation", "chil", "chilapa", 4.0)]),
        ("Jylapa", "Gilapa", [("spelling", "jylapa", "gilapa", 2.4)]),
        ("Chilapa (La)", "La Chilapa", []),
        ("Mora12 Zarco", "Mora 12 Zarco", [("spacing", "mora12 zarco", "mora 12 zarco", 1.0)]),
        (
            "Zarco 505",
            "Zarco Cincuenta y Cinco",
            [
                ("number_other", "505", "50", 40.0),
                ("number_added", "505", "", 18.0),
                ("number_missing", "", "50", 14.0),
                ("number_missing", "", "5", 14.0),
            ],
        ),
        ("Zarco 12B", "Zarco 13B", [("added", "12b", "", 14.25), ("missing", "", "13b", 14.25)]),
        ("Zarco Km1", "Zarco Km12", [("added", "km1", "", 13.33), ("missing", "", "km12", 15.78)]),
        (
            "Chilapa (Chilapa Zarco)",
            "Chilapa Zarco",
            [
                ("bracket_added", "Chilapa (Chilapa Zarco)", "chilapa zarco", 3.0),
                ("wording", "Chilapa (Chilapa Zarco)", "Chilapa Zarco", 1.0),
            ],
        ),
        *(
            (
                given,
                "Chilapa",
                [("bracket_establishment_added", given, "Chilapa", 3.0), ("wording", given, "Chilapa", 1.0)],
            )
            for given in (
                "Chilapa [Rancho]",
                "Chilapa (Rancho)",
                "Chilapa [Bombeo de Agua]",
                "Chilapa [Juan Mora]",
                "Chilapa (Procesadora de Carnes)",
                "Chilapa [Ejido] (Restaurante Mora)",
            )
        ),
        ("Chilapa [Ejido]", "Chilapa", [("kind_added", "ejido", "", 2.5)]),
        *(
            (given, "Chilapa", [("bracket_added", given, "Chilapa", 3.0), ("wording", given, "Chilapa", 1.0)])
            for given in ("Chilapa (Zarco)", "Chilapa (El Zarco de Mora)", "Chilapa [Colonia] (Zarco)")
        ),
        (
            "Chilapa Centla",
            "Chilapa Mora",
            [("added", "centla", "", 16.15), ("missing", "", "mora", 12.77)],
        ),
        ("Mora Centla Chilapa", "Chilapa", [("added", "mora", "", 11.18), ("added", "centla", "", 8.76)]),
        (
            "Chilapa Centla Tabasco",
            "Chilapa",
            [("added_of_area", "centla", "", 1.0), ("added_of_area", "tabasco", "", 1.0)],
        ),
    ],
)
def test_difference_between_two_names_has_a_kind_words_and_a_penalty(
    index: NameIndex, given: str, nombre: str, found: list[tuple[str, str, str, float]]
) -> None:
    assert faults(index, given, nombre) == found


@pytest.mark.parametrize(
    ("given", "nombre", "found"),
    [
        ("LOSTRESZARCOS", "Los Tres Zarcos", [("spacing", "lostreszarcos", "los tres zarcos", 1.0)]),
        ("Chilapa Delzarco", "Chilapa del Zarco", [("spacing", "chilapa delzarco", "chilapa del zarco", 1.0)]),
        ("Sant Amrhtaz", "Santa Marthas", [("letters", "sant amrhtaz", "santa marthas", 16.0)]),
        ("Sant Aymqhtaz", "Santa Marthas", None),
        ("Cihlapas 2", "Chilapa 3", None),
        ("Cihlapas 2", "Chilapa", None),
        ("Cihlapas Alta", "Chilapa", None),
        ("CHILAPADOS", "Chilapa Dos", [("spacing", "chilapados", "chilapa dos", 1.0)]),
        ("CHILAPA2", "Chilapa 2", [("spacing", "chilapa2", "chilapa 2", 1.0)]),
        ("CHILAPA 505", "Chilapa 50 5", None),
        ("CHILAPA505", "Chilapa 50 5", None),
        ("Chilapa Zarco12", "Chilapa Zarco13", None),
        (
            "ELZARCO",
            "Chilapa (El Zarco)",
            [("spacing", "elzarco", "el zarco", 1.0), ("bracket_alone", "ELZARCO", "Chilapa (El Zarco)", 6.0)],
        ),
        (
            "ELZARCO [Rancho]",
            "El Zarco (Chilapa)",
            [
                ("bracket_establishment_added", "ELZARCO [Rancho]", "ELZARCO", 3.0),
                ("spacing", "elzarco rancho", "el zarco", 1.0),
                ("bracket_left_out", "ELZARCO [Rancho]", "El Zarco (Chilapa)", 2.0),
            ],
        ),
    ],
)
def test_names_may_be_compared_letter_by_letter(
    index: NameIndex, given: str, nombre: str, found: list[tuple[str, str, str, float]] | None
) -> None:
    place = index.place(0)._replace(nombre=nombre, names=(), former=())
    difference = compare_letters(read_name(given), place)
    assert (difference and [(one.difference, one.given, one.found, one.penalty) for one in difference.faults]) == found


def test_other_names_of_a_place_are_compared_letter_by_letter_too(index: NameIndex) -> None:
    names = (PlaceName(NameKind.OWN, ("zarco",), ""), PlaceName(NameKind.FORMER, ("chilapa", "mora"), "Chilapa Mora"))
    place = index.place(0)._replace(nombre="Zarco", names=names, former=())
    found = compare_letters(read_name("CHILAPAMORA"), place)
    assert found is not None
    assert [(one.difference, one.found) for one in found.faults] == [
        ("spacing", "chilapa mora"),
        ("former_name", "Zarco"),
    ]
    assert found.cost == 4.0


def test_names_that_share_only_a_kind_or_a_number_are_not_compared(index: NameIndex) -> None:
    assert faults(index, "Ejido Zarco 2", "Ejido Chilapa 2") == []
    assert compare(read_name("Ejido Zarco 2"), index.place(0)).cost > 100


SPELLING = st.text("aeiszqukch", min_size=1, max_size=7)


@given(SPELLING, SPELLING)
def test_likeness_is_that_of_the_letters_or_more_if_the_words_are_alike(one: str, other: str) -> None:
    letters = OSA.normalized_similarity(one, other) - (weights.OTHER_FIRST_LETTER if one[0] != other[0] else 0)
    if letters >= weights.MIN_SOUND_LIKENESS:
        assert _likeness(one, other) >= letters
    else:
        assert _likeness(one, other) == letters
