"""Turns evidence into probabilities and decides when a match is certain.

The candidates of a row compete with each other and with "none of them": each has log-odds, the sum of its evidence
times the coefficients in `coefficients.tsv`, and its probability is its share of all odds, with 1 for none (a
conditional logit with an outside option). A scale then corrects the probability of the first candidate, so that it says
how often first candidates were right in rows that the fit had not seen. `python -m benchmarks.fit_certainty` fits and
checks both.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from localidades_api.names.rows import MAX_CANDIDATES, Candidate, MatchResult, Outcome
from localidades_api.names.weights import AMBITO_COEFFICIENT, BY_KEY, FAR_COEFFICIENT, SURE, UNLIKELY

_UNFITTED = {"ambito_other": AMBITO_COEFFICIENT, "far_but_named": FAR_COEFFICIENT}
_MAX_LOG_ODDS = 50.0
_LEAST_SHARE = 1e-4  # the least probability of "none of them", which odds are divided by
_COEFFICIENTS = Path(__file__).with_name("coefficients.tsv")


@cache
def coefficients() -> Mapping[str, float]:
    """Return what each kind of evidence adds to the log-odds of a place, and the two figures of the scale."""
    lines = (line.split("\t") for line in _COEFFICIENTS.read_text(encoding="utf-8").splitlines()[1:])
    return {name: float(value) for name, value, *_ in lines}


@cache
def _weights() -> Mapping[str, float]:
    return {**coefficients(), **_UNFITTED}


def shares(log_odds: Sequence[float]) -> list[float]:
    """Return the probability of each candidate: its share of all odds, with 1 for "none of them"."""
    odds = [math.exp(min(_MAX_LOG_ODDS, value)) for value in log_odds]
    whole = 1 + sum(odds)
    return [value / whole for value in odds]


def probabilities(evidence: Sequence[Mapping[str, float]]) -> list[float]:
    """Return the probability of each candidate of a row; what is missing from 1 is that of none of them."""
    weights = _weights()
    found = shares([sum([weights.get(name, 0.0) * value for name, value in values.items()]) for values in evidence])
    best = max(found, default=0.0)
    if found.count(best) != 1:  # homonyms with the same evidence stay level
        return found
    first = max([_scaled(best), *sorted(found)[:-1]])
    rest = min(1.0, (1 - first) / (1 - best)) if best < 1 else 1.0
    return [first if share == best else share * rest for share in found]


def probabilities_by_key(penalties: Sequence[float]) -> list[float]:
    """Return the probability of each place that has or had the key of a row, by their penalties, the least first."""
    level = penalties.count(penalties[0])
    rest = (1 - BY_KEY) / max(1, len(penalties) - level)
    return [BY_KEY / level] * level + [rest] * (len(penalties) - level)


def weigh_readings(results: Sequence[MatchResult], sure: float) -> MatchResult:
    """Return the result of a line that can be read in several ways: their candidates compete by their odds."""
    odds: dict[int, float] = {}
    candidates: dict[int, Candidate] = {}
    outcomes: dict[int, Outcome] = {}
    for result in results:
        none = max(1 - sum(candidate.score for candidate in result.candidates) / 100, _LEAST_SHARE)
        for candidate in result.candidates:
            if (share := candidate.score / 100 / none) > odds.get(candidate.id, 0.0):
                odds[candidate.id], candidates[candidate.id], outcomes[candidate.id] = share, candidate, result.outcome
    whole = 1 + sum(odds.values())
    ranked = sorted(odds, key=lambda id_: -odds[id_])
    shown = tuple(candidates[id_]._replace(score=score(odds[id_] / whole)) for id_ in ranked[:MAX_CANDIDATES])
    first = outcomes[ranked[0]] if odds[ranked[0]] / whole >= sure else "ambiguous"
    return MatchResult(first, shown, results[0].withdrawn)


def score(share: float) -> float:
    """Return a probability as a score."""
    return round(100 * max(0.0, share), 2)


def _scaled(probability: float) -> float:
    bounded = min(max(probability, 1e-6), 1 - 1e-6)
    weights = coefficients()
    logit = weights["scale_shift"] + weights["scale_slope"] * math.log(bounded / (1 - bounded))
    return 1 / (1 + math.exp(-logit))


def outcome(probability: float, *, is_doubtful: bool, is_literal: bool, sure: float = SURE) -> Outcome:
    """Return the outcome of a row by the probability of its first candidate."""
    if probability < UNLIKELY:
        return "none"
    if is_doubtful or round(probability, 4) < sure:  # as a score shows it
        return "ambiguous"
    return "exact" if is_literal else "sure"
