"""Localities by their place in the list of a release."""

from collections.abc import Sequence

from localidades_api.catalogue.schemas import Release


def at_positions(release: Release, places: Sequence[int]) -> tuple[str, dict[str, object]]:
    """Return the condition on localities at these positions, and its parameters; a range becomes one index scan."""
    if isinstance(places, range):
        bounds = {"first": places.start, "last": places.stop - 1}
        return "position BETWEEN :first AND :last", {"release_id": release.id, **bounds}
    return "position = ANY(:positions)", {"release_id": release.id, "positions": list(places)}


def in_order(places: Sequence[int]) -> str:
    """Return what sorts localities as these positions are; the parameters are those of `at_positions`."""
    is_ascending = isinstance(places, range) or list(places) == sorted(places)
    return "position" if is_ascending else "array_position(:positions, position)"  # a thousand of them: 3 ms more
