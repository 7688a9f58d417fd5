"""The words that differ between two names."""

import pytest

from localidades_api.html.word_diff import Pieces, word_diff


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
