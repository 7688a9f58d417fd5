"""Reads the queries of a batch and answers them from the index of names."""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import Any, NamedTuple

from pydantic import ValidationError

from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.catalogue.coordinates import is_in_mexico, read_point
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind, format_key, locality_of_ageb, read_written_key
from localidades_api.catalogue.messages import describe_fault, describe_place, plain_name
from localidades_api.catalogue.schemas import Release
from localidades_api.extensions.reconcile.schemas import (
    MAX_CANDIDATES,
    MAX_LISTED,
    EntityValue,
    Feature,
    ReconciliationCandidate,
    ReconciliationQuery,
    ReconciliationResult,
)
from localidades_api.extensions.reconcile.vocabulary import ALIASES, COMPARED, NAMED_TYPES, PROPERTIES, TYPES
from localidades_api.names.index import NameIndex
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reasons import Difference
from localidades_api.names.rows import Candidate, MatchRow
from localidades_api.names.weights import SUGGESTED

_AXES = ("latitud", "longitud")
_MAX_READINGS = 8  # of properties with several values each
_AMBITOS: Mapping[str, str] = {"u": "U", "urban": "U", "urbano": "U", "urbana": "U", "r": "R", "rural": "R"}


class QueryError(Exception):
    """A query that can't be answered; the message says why, without unsafe text from the client."""


class CandidateQuery(NamedTuple):
    """The text and types of a query, its points, the values of its other properties, and those that aren't compared."""

    text: str
    kinds: Sequence[PlaceKind]
    limit: int
    points: Sequence[tuple[float, float] | tuple[None, None]]
    values: Mapping[str, Sequence[str]]
    unused: Sequence[str]

    def rows(self, kind: PlaceKind) -> Iterator[MatchRow]:
        """Yield a row for each reading, which is a combination of values, up to a limit."""
        if kind == "localidad":
            readings = product(self.points or [(None, None)], product(*self.values.values()))
            for (latitud, longitud), choice in islice(readings, _MAX_READINGS):
                chosen = dict(zip(self.values, choice, strict=True))
                yield MatchRow(self.text or None, latitud=latitud, longitud=longitud, **chosen)  # type: ignore[arg-type]  # names of its fields
        else:
            key = next(iter(self.values.get("cvegeo", ())), None)
            estados: Sequence[str | None] = self.values.get("estado", []) if kind == "municipio" else []
            for estado in estados[:_MAX_READINGS] or [None]:
                yield MatchRow(self.text or None, cvegeo=key, kind=kind, estado=estado)


def read_query(content: object) -> CandidateQuery:
    """Read a query; raise QueryError if it is wrong."""
    if not isinstance(content, dict) or len(content) > MAX_LISTED:
        raise QueryError('A query is an object, such as {"query": "Guadalajara"}.')
    try:
        query = ReconciliationQuery.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        raise QueryError(f"{describe_place(fault['loc'])}: {describe_fault(fault)}") from None
    kinds = _kinds(query)
    values, unused = _read_properties(query, kinds)
    coordinates = [values.pop(axis, []) for axis in _AXES]
    points = list(_read_points(*coordinates))
    if not points:
        unused += [axis for axis, given in zip(_AXES, coordinates, strict=True) if given]
    text = query.query.strip()[:MAX_TEXT]
    if not text and not values.keys() & {"cvegeo", "clave"}:
        raise QueryError("query: Give a name or a key.")
    return CandidateQuery(text, kinds, int(query.limit), points, values, unused)


def _kinds(query: ReconciliationQuery) -> list[PlaceKind]:
    """Return the types of a query: localidad by default, none if it requires several at once."""
    kinds: list[PlaceKind] = []
    for name in dict.fromkeys(query.types):
        if name not in TYPES:
            raise QueryError(f"type: {_shown(name)} is unknown; use {', '.join(TYPES)}.")
        kinds += (kind for kind in TYPES if kind == name)
    kinds = kinds or ["localidad"]
    return kinds if len(kinds) == 1 or query.type_strict != "all" else []


def _read_properties(query: ReconciliationQuery, kinds: Sequence[PlaceKind]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the values of the properties, without blanks, and the properties that can't be compared.

    These are columns that matching does not use, and those without a readable value.
    """
    compared = {name for kind in kinds for name in COMPARED[kind]}
    values: dict[str, list[str]] = {}
    unused = []
    for value in query.properties:
        name = ALIASES.get(value.pid, value.pid)
        if name not in compared:
            if name not in PROPERTIES:
                known = ", ".join(sorted(compared))
                raise QueryError(f"properties: {_shown(value.pid)} is unknown; use {known}.")
            unused.append(value.pid)
            continue
        texts = dict.fromkeys(islice((text for value in value.values for text in _as_texts(value)), _MAX_READINGS))
        readable = [read for text in texts if (read := _read_value(name, text)) is not None]
        if readable:
            values.setdefault(name, []).extend(readable)
        elif texts:
            unused.append(value.pid)
    return values, list(dict.fromkeys(unused))


def _read_points(latitudes: Sequence[str], longitudes: Sequence[str]) -> Iterator[tuple[float, float]]:
    """Yield the points in Mexico, of each latitude and longitude."""
    for latitud, longitud in islice(product(latitudes, longitudes), _MAX_READINGS):
        with suppress(ValueError):
            point = read_point(latitud, longitud)
            if is_in_mexico(*point):
                yield point


def _shown(id_: str) -> str:
    return plain_name(id_) if id_ else "an empty id"


def _as_texts(value: str | float | EntityValue) -> list[str]:
    """Return a value as a person would write it; an entity as its key, or as its name if the key is not INEGI's.

    Each line is a separate value: PyPI's `reconciler` joins the values of equal names with line breaks. NaN, the
    missing value of pandas, is left out.
    """
    if isinstance(value, EntityValue):
        value = value.id if value.id.isascii() and value.id.isdecimal() else value.name
    elif isinstance(value, float):
        value = (int(value) if value.is_integer() else value) if math.isfinite(value) else ""
    return [text[:MAX_TEXT] for line in str(value).splitlines() if (text := line.strip())]


def _read_value(name: str, text: str) -> str | None:
    """Return a value as matching reads it, or None if it can't be read."""
    if name == "ambito":
        return _AMBITOS.get(fold(text))
    if name in {"cvegeo", "clave"}:
        key = read_written_key(text)
        return locality_of_ageb(key) or key
    return text


_YIELD_INTERVAL = 0.005  # seconds after which a batch lets other requests of this process through
_Reading = tuple[Sequence[Candidate], int | None]


async def answer_batch(indexes: NameIndexes, release: Release, batch: Mapping[str, object]) -> dict[str, Any]:
    """Return the result of each query; raise SearchUnavailableError without an index of names."""
    results = {}
    async with indexes.using(release) as names:
        until = time.monotonic() + _YIELD_INTERVAL
        for key, content in batch.items():
            answering = _answer(names, content)
            while (result := next(answering)) is None:
                if time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + _YIELD_INTERVAL
            results[key] = result.model_dump(exclude_none=True)
    return results


def _answer(names: NameIndex, content: object) -> Iterator[ReconciliationResult | None]:
    """Yield None before each match of a query, which may have many readings, and then its result."""
    yield None
    try:
        query = read_query(content)
    except QueryError as error:
        yield ReconciliationResult(result=[], error=str(error))
        return
    read: dict[PlaceKind, list[_Reading]] = {kind: [] for kind in query.kinds}
    for kind, readings in read.items():
        for row in query.rows(kind):
            result = names.match(row)
            readings.append((result.candidates, result.id))  # a key is certain if the reading is right
            yield None
    candidates = [one for kind, readings in read.items() for one in _candidates(names, kind, query, readings)]
    candidates.sort(key=lambda one: -one.score)
    literal = [kind for kind, readings in read.items() if any(not one.faults for found, _ in readings for one in found)]
    if len(literal) > 1:
        candidates = [candidate.model_copy(update={"match": False}) for candidate in candidates]  # the type is in doubt
    yield ReconciliationResult(result=candidates[: query.limit])


def _candidates(
    names: NameIndex, kind: PlaceKind, query: CandidateQuery, readings: Sequence[_Reading]
) -> list[ReconciliationCandidate]:
    best: dict[int, Candidate] = {}
    for candidate in (candidate for candidates, _ in readings for candidate in candidates):
        if candidate.id not in best or best[candidate.id].score < candidate.score:
            best[candidate.id] = candidate
    ranked = sorted(best.values(), key=lambda one: -one.score)[:MAX_CANDIDATES] or _suggested(names, kind, query)
    certain = {id_ for _, id_ in readings if id_ is not None}
    leads = len(ranked) == 1 or (len(ranked) > 1 and ranked[0].score > ranked[1].score)
    match = ranked[0].id if leads and certain == {ranked[0].id} else None
    return [_describe(kind, candidate, query, is_match=candidate.id == match) for candidate in ranked]


def _suggested(names: NameIndex, kind: PlaceKind, query: CandidateQuery) -> list[Candidate]:
    """Return suggestions for a text that nothing matches."""
    found = names.suggest(query.text, kinds=[kind], limit=MAX_CANDIDATES)
    return [
        Candidate(one.id, one.label, round(100 * probability, 2), ())
        for one, probability in zip(found, SUGGESTED, strict=False)
    ]


def _describe(kind: PlaceKind, one: Candidate, query: CandidateQuery, *, is_match: bool) -> ReconciliationCandidate:
    return ReconciliationCandidate(
        id=format_key(kind, one.id),
        name=one.label,
        score=one.score,
        match=is_match,
        type=[NAMED_TYPES[kind]],
        features=[*_features(one.faults), *(Feature(id=name, value=False) for name in query.unused)],
    )


def _features(faults: Iterable[Difference]) -> list[Feature]:
    """Return a feature for each code of the faults: ids are unique within a candidate."""
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
