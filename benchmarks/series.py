"""Figures of several rounds: the median and its spread."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Series:
    """The figures of the rounds, in their order."""

    rounds: tuple[float, ...]
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: Sequence[float]) -> Self:
        """Summarize."""
        return cls(tuple(rounds), statistics.median(rounds), min(rounds), max(rounds))

    def over(self, other: "Series") -> "Series":
        """Return the ratios of this series to another, round by round: other load slows both in the same round."""
        return Series.of([mine / theirs for mine, theirs in zip(self.rounds, other.rounds, strict=True)])
