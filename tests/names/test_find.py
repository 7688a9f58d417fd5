"""Searches of the list: every place that fits, in its order; `test_golden` has what texts find."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.names.index import NameIndex
from localidades_api.names.suggestions.find import searched
from tests.support.names import PLACES

IN_ORDER = sorted((place.id for place in PLACES), key=lambda id_: (id_ % 10_000, id_))


def found(index: NameIndex, search: str) -> list[int]:
    return [id_ for id_, _ in index.at(index.find(searched(search), LocalityFilters()))]


def test_positions_are_those_of_the_list(index: NameIndex) -> None:
    assert [id_ for id_, _ in index.at(range(1, len(PLACES) + 1))] == IN_ORDER


@given(text=st.text(max_size=100) | st.text(st.sampled_from("aelosn 125.,'\"()[]*:&|!"), max_size=60))
def test_any_text_finds_places_once_in_order(index: NameIndex, text: str) -> None:
    keys = found(index, text or "a")
    assert keys == [id_ for id_ in IN_ORDER if id_ in set(keys)]


def test_index_of_no_place_finds_nothing(index_of: Callable[..., NameIndex]) -> None:
    empty = index_of()
    assert [found(empty, text) for text in ("a", "140390001", "14", "guadalajra jal")] == [[], [], [], []]
