"""Reads a query of a batch: its types, and the rows that its text and properties may stand for."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import NamedTuple

from pydantic import ValidationError

from localidades_api.api.reconcile.schemas import EntityValue, ReconciliationQuery
from localidades_api.api.reconcile.vocabulary import ALIASES, COMPARED, PROPERTIES, TYPES, known_kind
from localidades_api.catalogue.degrees import Axis, read_degrees
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.messages import describe_fault, describe_place, plain_name
from localidades_api.names.rows import MatchRow

_AXES: Mapping[str, Axis] = {"latitud": "latitud", "longitud": "longitud"}
_MAX_READINGS = 8  # of properties with several values each
_AMBITOS: Mapping[str, str] = {"u": "U", "urban": "U", "urbano": "U", "urbana": "U", "r": "R", "rural": "R"}


class QueryError(Exception):
    """A query that can't be answered; the text says why, without anything unsafe that the client sent."""


class Evidence(NamedTuple):
    """What a query says: the text, the types that it may mean, its properties, and those that can't be compared."""

    text: str
    kinds: Sequence[PlaceKind]
    limit: int
    values: Mapping[str, Sequence[str]]
    unused: Sequence[str]

    def rows(self) -> Iterator[MatchRow]:
        """Yield a row for each choice among the values, a few at most."""
        for choice in islice(product(*self.values.values()), _MAX_READINGS):
            chosen = dict(zip(self.values, choice, strict=True))
            point = {name: float(chosen.pop(name)) for name in _AXES if name in chosen}
            yield MatchRow(self.text or None, **chosen, **point)  # type: ignore[arg-type]  # names of its fields

    def first(self, name: str) -> str | None:
        """Return the first value of a property, or None."""
        return next(iter(self.values.get(name, ())), None)


def read_query(asked: object) -> Evidence:
    """Read a query; raise QueryError if it is wrong."""
    try:
        query = ReconciliationQuery.model_validate(asked)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        if not fault["loc"]:
            raise QueryError('A query is an object, such as {"query": "Guadalajara"}.') from None
        raise QueryError(f"{describe_place(fault['loc'])}: {describe_fault(fault)}") from None
    kinds = _kinds(query)
    values, unused = _read_properties(query, kinds)
    text = query.query.strip()
    if not text and not values.keys() & {"cvegeo", "clave"}:
        raise QueryError("query: Give a name or a key.")
    return Evidence(text, kinds, int(query.limit), values, unused)


def _kinds(query: ReconciliationQuery) -> list[PlaceKind]:
    """Return the types that a query asks for: localidad by default, none where it asks for all of several at once."""
    kinds: list[PlaceKind] = []
    for name in query.types:
        if (kind := known_kind(name)) is None:
            raise QueryError(f"type: {_shown(name)} is unknown; use {', '.join(TYPES)}.")
        kinds.append(kind)
    kinds = list(dict.fromkeys(kinds)) or ["localidad"]
    return kinds if len(kinds) == 1 or query.type_strict != "all" else []


def _read_properties(query: ReconciliationQuery, kinds: Sequence[PlaceKind]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the values of the properties, without blanks, and the properties that can't be compared.

    These are columns that matching does not look at, and those of which no value can be read.
    """
    compared = {name for kind in kinds for name in COMPARED[kind]}
    values: dict[str, list[str]] = {}
    unused = []
    for one in query.properties:
        name = ALIASES.get(one.pid, one.pid)
        if name not in compared:
            if name not in PROPERTIES:
                known = ", ".join(sorted(compared))
                raise QueryError(f"properties: {_shown(one.pid)} is unknown; use {known}.")
            unused.append(one.pid)
            continue
        texts = dict.fromkeys(text for value in one.values for text in _as_texts(value))
        readable = [read for text in texts if (read := _read_value(name, text)) is not None]
        if readable:
            values.setdefault(name, []).extend(readable)
        elif texts:
            unused.append(one.pid)
    for name, other in (("latitud", "longitud"), ("longitud", "latitud")):
        if name in values and other not in values:
            del values[name]
            unused.append(name)
    return values, unused


def _shown(id_: str) -> str:
    return plain_name(id_) if id_ else "an empty id"


def _as_texts(value: str | float | EntityValue) -> list[str]:
    """Return a value as a person would write it; an entity as its key, or its name if the key isn't this catalogue's.

    Each line is a value of its own: PyPI's `reconciler` joins the values of equal names with line breaks. NaN, which
    pandas has for a missing value, is none.
    """
    if isinstance(value, EntityValue):
        value = value.id if value.id.isdecimal() else value.name
    elif isinstance(value, float):
        value = (int(value) if value.is_integer() else value) if math.isfinite(value) else ""
    return [text for line in str(value).splitlines() if (text := line.strip())]


def _read_value(name: str, text: str) -> str | None:
    """Return a value as matching reads it, or None."""
    if name == "ambito":
        return _AMBITOS.get(fold(text))
    if axis := _AXES.get(name):
        with suppress(ValueError):
            return str(read_degrees(text, axis))
        return None
    return text
