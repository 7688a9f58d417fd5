"""Searches of the list: every place that fits, in the order of the list."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.names.build import build_index
from localidades_api.names.find import searched
from localidades_api.names.index import NameIndex
from tests.support.names import PLACES

IN_ORDER = sorted((place.id for place in PLACES), key=lambda id_: (id_ % 10_000, id_))


def found(index: NameIndex, search: str, **filters: int | str) -> list[int]:
    positions = index.find(searched(search), LocalityFilters.model_validate(filters))
    return [id_ for id_, _ in index.at(positions)]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        # words of names and areas, unfinished and in any order; one at least is of a name
        ("rosario", [202080002, 202090002]),
        ("san juan mixtepec rosario", [202080002, 202090002]),
        ("rosa oax", [202080002, 202090002]),
        ("oaxaca", [200670001]),
        ("jal tla", [140980001]),
        ("juntas guadalajara jalisco", [140390044]),
        # abbreviations, numbers, articles
        ("fco i madero tab", [270030014]),
        ("sta maria huatulco", [204130001, 204130078, 204130080]),  # the second is called Huatulco
        ("sta cruz huatul", [204130080]),
        ("chilapa primera secc", [270030010]),
        ("chilapa 2a", [270030011]),
        ("puente del arcediano", [140390045]),
        ("n° 5", [270030018]),
        ("el colorado", [140670020, 140670021, 140670022]),
        # the seat by its municipio's name, everyday and former names
        ("tlaquepaque", [140980001]),
        ("san pedro tlaquepaque jal", [140980001, 140980002]),  # Santa Anita
        ("gdl", [140390001]),
        ("mojonera compostela", [140670031]),
        # keys, labels
        ("140390001", [140390001]),
        ("90070001", [90070001]),
        ("180040112", [140670031]),
        ("20208", [202080001, 202080002]),
        ("05", [50380001, 50380002]),
        ("Guadalajara, Centro, Tabasco", [270040052]),
        ("El Colorado (0021), Puerto Vallarta, Jalisco", [140670021]),
        # only areas were named
        ("cdmx", [90070001]),
        # letters wrong, spaces missing
        ("guadalajra", [140390001, 270040052]),
        ("guadalajra tavasco", [270040052]),
        ("puertovallarta", [140670001]),
        ("villahermoza", [270040001]),
        ("roasrio", [202080002, 202090002]),
        ("villahermoz tab", [270040001]),
        # nothing
        ("guadalajara oaxaca", []),
        ("99999", []),
        ("999999999", []),
        ("...", []),
        ("xyzzyxyz", []),
    ],
)
def test_text_finds_every_place_that_it_fits(index: NameIndex, text: str, keys: list[int]) -> None:
    assert found(index, text) == keys


def test_places_come_in_the_order_of_the_list(index: NameIndex) -> None:
    assert [id_ for id_, _ in index.at(range(1, len(PLACES) + 1))] == IN_ORDER
    assert found(index, "a") == [id_ for id_ in IN_ORDER if id_ in set(found(index, "a"))]


def test_letters_are_taken_for_wrong_only_where_no_place_has_the_words(index: NameIndex) -> None:
    """Whatever the other filters select: or a name that was typed right would find others where it isn't."""
    assert found(index, "guadalajara", municipio_id=14067) == []
    assert found(index, "ixtapa", municipio_id=9007) == []  # Iztapalapa begins so, with a letter wrong
    assert found(index, "guadalajra", estado_id=27) == [270040052]


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ({"estado_id": 27}, [270040052]),
        ({"municipio_id": 14039}, [140390001]),
        ({"estado_id": 27, "municipio_id": 14039}, []),
        ({"clave": "0001"}, [140390001]),
        ({"ambito": "U"}, [140390001]),
        ({"ambito": "R"}, [270040052]),
        ({"cvegeo": "140390001,270040001"}, [140390001]),
    ],
)
def test_other_filters_narrow_a_search(index: NameIndex, filters: dict[str, int | str], keys: list[int]) -> None:
    assert found(index, "guadalajara", **filters) == keys


@given(text=st.text(max_size=100) | st.text(st.sampled_from("aelosn 125.,'\"()[]*:&|!"), max_size=60))
def test_any_text_finds_places_once_in_order(index: NameIndex, text: str) -> None:
    keys = found(index, text or "a")
    assert keys == [id_ for id_ in IN_ORDER if id_ in set(keys)]


def test_index_of_no_place_finds_nothing(tmp_path: Path) -> None:
    build_index(tmp_path / "names", [])
    empty = NameIndex(tmp_path / "names")
    assert [found(empty, text) for text in ("a", "140390001", "14", "guadalajra jal")] == [[], [], [], []]
    empty.close()
