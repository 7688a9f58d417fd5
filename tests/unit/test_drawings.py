"""Drawings of estados."""

from localidades_api.database.queries.tiles import StateCell
from localidades_api.html.svg import STATES, draw_states


def test_cell_belongs_to_the_estado_with_most_places_in_it() -> None:
    below = STATES.columns  # the cell below the first
    cells = [(1, 0, 5, 10), (2, 0, 6, 10), (1, below, 6, 1), (2, below, 6, 1), (2, 1, 1, 1)]
    drawn = draw_states(StateCell(*cell) for cell in cells)
    assert {id_: shape.path for id_, shape in drawn.items()} == {2: "m0 0h2", 1: "m0 1h1"}


def test_estados_are_shaded_by_fifths_of_their_density() -> None:
    cells = [StateCell(id_, id_, 1, 10 * id_) for id_ in range(1, 11)]
    cells += [StateCell(1, 20, 1, None), StateCell(10, None, 3, 1000), StateCell(5, 21, 1, 10_000)]
    assert {id_: shape.shade for id_, shape in draw_states(cells).items()} == {
        1: 0, 2: 0, 3: 1, 4: 1, 6: 2, 7: 2, 8: 3, 9: 3, 10: 4, 5: 4
    }  # fmt: skip


def test_estado_without_a_cell_is_not_drawn() -> None:
    assert draw_states([StateCell(1, None, 3, 5)]) == {}
