"""Which of many similar places are judged."""

from types import SimpleNamespace
from typing import Any

from localidades_api.names import match, weights

SHOWN = match.MAX_CANDIDATES + 1


def ranked(*places: tuple[str, float]) -> list[Any]:
    """Return places as they are ranked: names, and what their differences cost."""
    return [(SimpleNamespace(nombre=name), SimpleNamespace(cost=cost)) for name, cost in places]


def names(pairs: Any) -> list[str]:  # noqa: ANN401  # as `ranked` has them
    return [place.nombre for place, _ in pairs]


def test_places_that_cost_hardly_more_are_judged_too() -> None:
    first = [(f"Lugar {at}", 1.0) for at in range(SHOWN)]
    close, far = 1.0 + weights.CLOSE_COST, 1.0 + weights.CLOSE_COST * 1.01
    nearly = [("Nuevo", close), ("Lugar 3", close), ("Otro", close), ("Lejos", far)]
    kept, left = match._split_judged(ranked(*first, *nearly))
    assert names(kept) == [*(name for name, _ in first), "Nuevo", "Otro"]
    assert names(left) == ["Lejos"]


def test_not_all_places_that_cost_the_same_are_judged() -> None:
    many = ranked(*((f"Lugar {at}", 1.0) for at in range(match._JUDGED + 5)))
    kept, others = match._split_judged(many)
    assert (len(kept), len(others)) == (match._JUDGED, 5)


def test_few_places_are_all_judged() -> None:
    kept, others = match._split_judged(ranked(("Uno", 1.0), ("Dos", 99.0)))
    assert (names(kept), names(others)) == (["Uno", "Dos"], [])
