"""Finds the records of a list that are out of order; the order is clave, then id."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

_MIN_LOOSE = 10
_LOOSE_SHARE = 0.1

Key = TypeVar("Key", str, tuple[str, int])


def judge_order(keys: Sequence[tuple[str, int]], *, official: bool) -> tuple[list[int], bool]:
    """Return the positions that are out of order, and whether ties on clave go by id.

    If a tenth of the tied records are out of order, the service does not order ties, and the positions are those that
    are out of order by clave alone. The same holds for ids that are not `official`, which imply no order.
    """
    by_clave = positions_astray([clave for clave, _ in keys])
    astray = positions_astray(keys)
    loose = len(astray) - len(by_clave)
    if not official:
        return by_clave, loose == 0
    tied = sum(count for count in Counter(clave for clave, _ in keys).values() if count > 1)
    if loose >= max(_MIN_LOOSE, _LOOSE_SHARE * tied):
        return by_clave, False
    return astray, True


def positions_astray(keys: Sequence[Key]) -> list[int]:
    """Return the fewest positions without which the keys ascend (a longest ascending subsequence, by patience)."""
    tops: list[Key] = []
    held: list[int] = []  # positions of the keys in `tops`
    before: list[int] = []  # for each position, the one before it in its subsequence
    for position, key in enumerate(keys):
        pile = bisect_right(tops, key)
        before.append(held[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [key]
        held[pile : pile + 1] = [position]
    kept: set[int] = set()
    at = held[-1] if held else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return [position for position in range(len(keys)) if position not in kept]
