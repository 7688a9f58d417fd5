"""Answers a batch of reconciliation queries from the index of names."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from localidades_api.api.reconcile.evidence import Evidence, QueryError, read_query
from localidades_api.api.reconcile.schemas import (
    MAX_CANDIDATES,
    Feature,
    ReconciliationCandidate,
    ReconciliationResult,
)
from localidades_api.api.reconcile.vocabulary import named_type
from localidades_api.api.services import Services
from localidades_api.catalogue.keys import PlaceKind, written
from localidades_api.catalogue.schemas import Release
from localidades_api.names.index import NameIndex
from localidades_api.names.match_areas import match_municipality, match_state
from localidades_api.names.rows import Candidate, MatchRow, NameFault

_YIELD_INTERVAL = 0.005  # seconds that a batch keeps other requests of this process waiting
_MAX_SUGGESTED_SCORE = 50.0  # of what is like the text, and was not matched
_Reading = tuple[Sequence[Candidate], int | None]


async def answer_batch(services: Services, release: Release, batch: Mapping[str, object]) -> dict[str, Any]:
    """Return the result of each query; raise SearchUnavailableError if there is no index of names."""
    results = {}
    async with services.names.using(release) as names:
        until = time.monotonic() + _YIELD_INTERVAL
        for key, asked in batch.items():
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + _YIELD_INTERVAL
            results[key] = _answer(names, asked).model_dump(exclude_none=True)
    return results


def _answer(names: NameIndex, asked: object) -> ReconciliationResult:
    try:
        evidence = read_query(asked)
    except QueryError as error:
        return ReconciliationResult(result=[], error=str(error))
    read = {kind: list(_read(names, kind, evidence)) for kind in evidence.kinds}
    candidates = [one for kind, readings in read.items() for one in _candidates(names, kind, evidence, readings)]
    candidates.sort(key=lambda one: -one.score)
    literal = [kind for kind, readings in read.items() if any(not one.faults for found, _ in readings for one in found)]
    if len(literal) > 1:
        candidates = [one.model_copy(update={"match": False}) for one in candidates]  # which type is meant is open
    return ReconciliationResult(result=candidates[: evidence.limit])


def _candidates(
    names: NameIndex, kind: PlaceKind, evidence: Evidence, readings: Sequence[_Reading]
) -> list[ReconciliationCandidate]:
    best: dict[int, Candidate] = {}
    for one in (one for candidates, _ in readings for one in candidates):
        if one.id not in best or best[one.id].score < one.score:
            best[one.id] = one
    ranked = sorted(best.values(), key=lambda one: -one.score)[:MAX_CANDIDATES] or _suggested(names, kind, evidence)
    certain = {id_ for _, id_ in readings if id_ is not None}
    leads = len(ranked) == 1 or (len(ranked) > 1 and ranked[0].score > ranked[1].score)
    match = ranked[0].id if leads and certain == {ranked[0].id} else None
    return [_describe(kind, one, evidence, is_match=one.id == match) for one in ranked]


def _read(names: NameIndex, kind: PlaceKind, evidence: Evidence) -> Iterator[_Reading]:
    """Yield what each reading of a query finds, and the key that is certain if that reading is right."""
    if kind == "localidad":
        for row in evidence.rows() if evidence.values else [MatchRow(evidence.text)]:
            result = names.match(row)
            yield result.candidates, result.id
        return
    text = evidence.first("cvegeo") or evidence.text
    if kind == "estado":
        result = match_state(names.areas, text)
        yield result.candidates, result.id
        return
    estados: Sequence[str | None] = evidence.values.get("estado") or [None]
    for estado in estados:
        result = match_municipality(names.areas, text, estado)
        yield result.candidates, result.id


def _suggested(names: NameIndex, kind: PlaceKind, evidence: Evidence) -> list[Candidate]:
    """Return what is like a text that nothing matches."""
    found = names.suggest(evidence.text, kinds=[kind], limit=MAX_CANDIDATES)
    points = [max(0.0, min(one.score, 100.0)) / 100 * _MAX_SUGGESTED_SCORE for one in found]
    return [Candidate(one.id, one.label, round(score, 2), ()) for one, score in zip(found, points, strict=True)]


def _describe(kind: PlaceKind, one: Candidate, evidence: Evidence, *, is_match: bool) -> ReconciliationCandidate:
    return ReconciliationCandidate(
        id=written(kind, one.id),
        name=one.label,
        score=one.score,
        match=is_match,
        type=[named_type(kind)],
        features=[*_features(one.faults), *(Feature(id=name, value=False) for name in evidence.unused)],
    )


def _features(faults: Iterable[NameFault]) -> list[Feature]:
    """Return a feature for each kind of fault: their ids are unique within a candidate."""
    features: dict[str, Feature] = {}
    for fault in faults:
        before = features.get(fault.code) or Feature(id=fault.code, value=0.0)
        features[fault.code] = Feature(
            id=fault.code,
            value=round(fault.penalty + before.value, 2),
            given=_joined(before.given, fault.given),
            found=_joined(before.found, fault.found),
        )
    return list(features.values())


def _joined(*words: str | None) -> str | None:
    return ", ".join(word for word in words if word) or None
