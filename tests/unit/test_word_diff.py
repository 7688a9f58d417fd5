"""The words that differ between two names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.html.word_diff import Pieces, word_diff

NAMES = st.lists(st.sampled_from(["El", "la", "Ejido", "San", "José", "(Norte)", "  ", "1"]), max_size=6).map(" ".join)


@given(before=NAMES, after=NAMES)
def test_pieces_are_the_whole_names_and_agree_where_they_do_not_differ(before: str, after: str) -> None:
    both = word_diff(before, after)
    assert tuple("".join(text for text, _ in pieces) for pieces in both) == (before, after)
    one, other = ("".join(text for text, differs in pieces if not differs).split() for pieces in both)
    assert one == other


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("San José", "San José", ([("San José", False)], [("San José", False)])),
        ("San José", "San Juan", ([("San ", False), ("José", True)], [("San ", False), ("Juan", True)])),
        ("Ejido", "Ejido Norte", ([("Ejido", False)], [("Ejido ", False), ("Norte", True)])),
        ("", "Norte", ([], [("Norte", True)])),
        (
            "Dos Ríos",
            "Río Seco",
            ([("Dos", True), (" ", False), ("Ríos", True)], [("Río", True), (" ", False), ("Seco", True)]),
        ),
    ],
)
def test_words_that_differ_are_found(before: str, after: str, pieces: tuple[Pieces, Pieces]) -> None:
    assert word_diff(before, after) == pieces
