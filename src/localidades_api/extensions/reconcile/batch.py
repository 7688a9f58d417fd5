"""Reads the queries of a batch and answers them from the index of names."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, ValidationError

from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.catalogue.coordinates import is_in_mexico, read_point
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind, format_key, locality_of_ageb, read_written_key
from localidades_api.catalogue.messages import describe_fault, describe_place, plain_name, with_message
from localidades_api.catalogue.schemas import Release
from localidades_api.extensions.reconcile.vocabulary import ALIASES, COMPARED, PROPERTIES, TYPES
from localidades_api.names.index import NameIndex
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.rows import Candidate, MatchResult, MatchRow
from localidades_api.names.weights import SUGGESTED

MAX_LISTED = 100  # members of a query, properties, values of a property, types
_MAX_CANDIDATES = 5
_MAX_READINGS = 8  # of properties with several values each
_YIELD_INTERVAL = 0.005  # seconds after which a batch lets other requests of this process through
_AXES = ("latitud", "longitud")
_AMBITOS: Mapping[str, str] = {"u": "U", "urban": "U", "urbano": "U", "urbana": "U", "r": "R", "rural": "R"}


class _Entity(BaseModel):
    """The value of a property that is an entity, reconciled before."""

    id: StrictStr
    name: StrictStr = ""


_Value = StrictStr | StrictInt | StrictFloat | _Entity


class _Property(BaseModel):
    """A property of the entity that is sought; any of several values may be right."""

    pid: StrictStr
    v: Annotated[
        _Value | Annotated[list[_Value], Field(max_length=MAX_LISTED)],
        with_message(f"Give a text, a number, an object with an `id`, or a list of at most {MAX_LISTED} of these."),
    ]


class _Query(BaseModel):
    """A query, as a client sends it."""

    model_config = ConfigDict(extra="forbid")

    query: StrictStr = ""
    type: Annotated[
        StrictStr | Annotated[list[StrictStr], Field(max_length=MAX_LISTED)] | None,
        with_message("Give the id of a type, or a list of them."),
    ] = None
    limit: float = Field(default=_MAX_CANDIDATES, ge=1, le=100)
    properties: list[_Property] = Field(default=[], max_length=MAX_LISTED)
    type_strict: Literal["any", "should", "all"] = "should"


class QueryError(Exception):
    """A query that can't be answered; the message says why, without unsafe text from the client."""


class CandidateQuery(NamedTuple):
    """The text of a query, its readings by type, which are rows, and the properties that aren't compared."""

    text: str
    rows: Mapping[PlaceKind, Sequence[MatchRow]]
    unused: Sequence[str]
    limit: int


def read_query(content: object) -> CandidateQuery:
    """Read a query; raise QueryError if it is wrong."""
    if not isinstance(content, dict) or len(content) > MAX_LISTED:
        raise QueryError('A query is an object, such as {"query": "Guadalajara"}.')
    try:
        query = _Query.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        raise QueryError(f"{describe_place(fault['loc'])}: {describe_fault(fault)}") from None
    kinds = _read_types(query)
    values, unused = _read_properties(query, kinds)
    degrees = [values.pop(axis, []) for axis in _AXES]
    points = list(_read_points(*degrees))
    if not points:
        unused += [axis for axis, texts in zip(_AXES, degrees, strict=True) if texts]
    text = query.query.strip()[:MAX_TEXT]
    if not text and not values.keys() & {"cvegeo", "clave"}:
        raise QueryError("query: Give a name or a key.")
    rows = {kind: list(_read_rows(kind, text, points, values)) for kind in kinds}
    return CandidateQuery(text, rows, unused, int(query.limit))


def _read_types(query: _Query) -> Sequence[PlaceKind]:
    """Return the types of a query: localidad by default, none if it requires several at once."""
    ids = [query.type] if isinstance(query.type, str) else query.type or []
    for id_ in ids:
        if id_ not in TYPES:
            raise QueryError(f"type: {_shown(id_)} is unknown; use {', '.join(TYPES)}.")
    kinds = [kind for id_ in dict.fromkeys(ids) for kind in TYPES if kind == id_] or ["localidad"]
    return kinds if len(kinds) == 1 or query.type_strict != "all" else []


def _read_properties(query: _Query, kinds: Sequence[PlaceKind]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the values of the properties, without blanks, and the properties that can't be compared.

    These are columns that matching does not use, and those without a readable value.
    """
    compared = {name for kind in kinds for name in COMPARED[kind]}
    values: dict[str, list[str]] = {}
    unused = []
    for listed in query.properties:
        name = ALIASES.get(listed.pid, listed.pid)
        if name not in compared:
            if name not in PROPERTIES:
                known = ", ".join(sorted(compared))
                raise QueryError(f"properties: {_shown(listed.pid)} is unknown; use {known}.")
            unused.append(listed.pid)
            continue
        each = listed.v if isinstance(listed.v, list) else [listed.v]
        texts = dict.fromkeys(islice((text for value in each for text in _as_texts(value)), _MAX_READINGS))
        readable = [read for text in texts if (read := _read_value(name, text)) is not None]
        if readable:
            values.setdefault(name, []).extend(readable)
        elif texts:
            unused.append(listed.pid)
    return values, list(dict.fromkeys(unused))


def _read_points(latitudes: Sequence[str], longitudes: Sequence[str]) -> Iterator[tuple[float, float]]:
    """Yield the points in Mexico, of each latitude and longitude."""
    for latitud, longitud in islice(product(latitudes, longitudes), _MAX_READINGS):
        with suppress(ValueError):
            point = read_point(latitud, longitud)
            if is_in_mexico(*point):
                yield point


def _read_rows(
    kind: PlaceKind, text: str, points: Sequence[tuple[float, float]], values: Mapping[str, Sequence[str]]
) -> Iterator[MatchRow]:
    """Yield a row for each combination of values, up to a limit."""
    chosen = {name: values[name] for name in COMPARED[kind] if name in values}
    located = [dict(zip(_AXES, point, strict=True)) for point in points if kind == "localidad"]
    for point, texts in islice(product(located or [{}], product(*chosen.values())), _MAX_READINGS):
        columns: dict[str, Any] = {**point, **dict(zip(chosen, texts, strict=True))}
        yield MatchRow(text or None, kind=kind, **columns)


def _shown(id_: str) -> str:
    return plain_name(id_) if id_ else "an empty id"


def _as_texts(value: str | float | _Entity) -> list[str]:
    """Return a value as a person would write it; an entity as its key, or as its name if the key is not INEGI's.

    Each line is a separate value: PyPI's `reconciler` joins the values of equal names with line breaks. NaN, the
    missing value of pandas, is left out.
    """
    if isinstance(value, _Entity):
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


async def answer_batch(indexes: NameIndexes, release: Release, batch: Mapping[str, object]) -> dict[str, Any]:
    """Return the result of each query; raise SearchUnavailableError without an index of names."""
    until = time.monotonic() + _YIELD_INTERVAL

    async def match(row: MatchRow) -> MatchResult:
        nonlocal until
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + _YIELD_INTERVAL
        return names.match(row)

    async with indexes.using(release) as names:
        return {name: await _answer(names, match, content) for name, content in batch.items()}


async def _answer(
    names: NameIndex, match: Callable[[MatchRow], Awaitable[MatchResult]], content: object
) -> dict[str, Any]:
    try:
        query = read_query(content)
    except QueryError as error:
        return {"result": [], "error": str(error)}
    candidates: list[dict[str, Any]] = []
    literal = 0  # types that have a candidate without a difference
    for kind, rows in query.rows.items():
        readings = [await match(row) for row in rows]
        literal += any(not candidate.faults for reading in readings for candidate in reading.candidates)
        candidates += _find_candidates(names, kind, query, readings)
    candidates.sort(key=itemgetter("score"), reverse=True)
    if literal > 1:  # the type is in doubt
        candidates = [{**candidate, "match": False} for candidate in candidates]
    return {"result": candidates[: query.limit]}


def _find_candidates(
    names: NameIndex, kind: PlaceKind, query: CandidateQuery, readings: Sequence[MatchResult]
) -> Iterator[dict[str, Any]]:
    """Yield the candidates of one type, the likeliest first; one is a match if all readings are certain of it."""
    best: dict[int, Candidate] = {}
    for candidate in (candidate for reading in readings for candidate in reading.candidates):
        if candidate.id not in best or best[candidate.id].score < candidate.score:
            best[candidate.id] = candidate
    ranked = sorted(best.values(), key=lambda candidate: -candidate.score)[:_MAX_CANDIDATES]
    ranked = ranked or _suggest(names, kind, query.text)
    certain = {reading.id for reading in readings if reading.id is not None}
    leads = len(ranked) == 1 or (len(ranked) > 1 and ranked[0].score > ranked[1].score)
    match = ranked[0].id if leads and certain == {ranked[0].id} else None
    for candidate in ranked:
        penalties: dict[str, float] = {}  # ids of features are unique
        for fault in candidate.faults:
            penalties[fault.code] = round(penalties.get(fault.code, 0.0) + fault.penalty, 2)
        features: list[dict[str, object]] = [{"id": code, "value": penalty} for code, penalty in penalties.items()]
        yield {
            "id": format_key(kind, candidate.id),
            "name": candidate.label,
            "score": candidate.score,
            "match": candidate.id == match,
            "type": [TYPES[kind].identify()],
            "features": features + [{"id": name, "value": False} for name in query.unused],
        }


def _suggest(names: NameIndex, kind: PlaceKind, text: str) -> list[Candidate]:
    """Return suggestions for a text that nothing matches."""
    places = names.suggest(text, kinds=[kind], limit=_MAX_CANDIDATES)
    return [
        Candidate(place.id, place.label, round(100 * probability, 2), ())
        for place, probability in zip(places, SUGGESTED, strict=False)
    ]
