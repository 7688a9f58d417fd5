"""Which localities a list has, and in which order, in SQL.

The statements of filters stay the same whatever the values are. Not every database has a Spanish collation, so names
are compared by bytes: as they are folded, with ñ sorted after n.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, ColumnElement, Double, Integer, Text, bindparam, case, func, or_

from localidades_api.catalogue.filters import LocalityFilters, Sort
from localidades_api.catalogue.folding import APOSTROPHES, fold
from localidades_api.catalogue.keys import municipalities_of
from localidades_api.catalogue.mercator import Box
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities

_columns = localities.c


class _Condition(NamedTuple):
    """The condition of a filter, and the parameters that it takes from the filter's value."""

    sql: ColumnElement[bool]
    read: Callable[[Any], Mapping[str, object]]


def _equals(column: ColumnElement[Any], name: str) -> _Condition:
    return _Condition(column == bindparam(name), lambda value: {name: value})


def _read_state(estado_id: int) -> Mapping[str, object]:
    first, last = municipalities_of(estado_id)
    return {"first_municipio": first, "last_municipio": last}


def _read_keys(keys: str) -> Mapping[str, object]:
    return {"keys": [int(key) for key in keys.split(",")]}


def _read_box(bbox: str) -> Mapping[str, object]:
    return Box(*map(float, bbox.split(",")))._asdict()


def _point(x: str, y: str) -> ColumnElement[object]:
    return func.point(bindparam(x, type_=Double), bindparam(y, type_=Double))


_CONDITIONS: Mapping[str, _Condition] = {
    "municipio_id": _equals(_columns.municipio_id, "municipio_id"),
    "estado_id": _Condition(
        _columns.municipio_id.between(bindparam("first_municipio"), bindparam("last_municipio")), _read_state
    ),
    "clave": _equals(_columns.clave, "clave"),
    "ambito": _equals(_columns.ambito, "ambito"),
    "cvegeo": _Condition(_columns.id == func.any(bindparam("keys", type_=ARRAY(Integer))), _read_keys),
    "bbox": _Condition(
        func.point(_columns.longitud, _columns.latitud).bool_op("<@")(
            func.box(_point("west", "south"), _point("east", "north"))
        ),
        _read_box,
    ),
}


def filtered_by(filters: LocalityFilters) -> tuple[str, ...]:
    """Return the names of the filters that are conditions; searches use the index of names."""
    return tuple(name for name in filters.chosen if name in _CONDITIONS)


def conditions(names: tuple[str, ...]) -> list[ColumnElement[bool]]:
    """Return the conditions of these filters, without the one on the release."""
    return [_CONDITIONS[name].sql for name in names]


def values(filters: LocalityFilters) -> dict[str, object]:
    """Return the parameters of the conditions."""
    found: dict[str, object] = {}
    for name in filters.chosen:
        if condition := _CONDITIONS.get(name):
            found |= condition.read(getattr(filters, name))
    return found


_ENYE = "{"  # the character after z: `n{` comes after every other n, and before o
_LETTERS: Mapping[str, str] = {
    _ENYE: " ",
    "Ñ": _ENYE,
    "ñ": _ENYE,
    **{one: fold(one) for one in map(chr, range(0xA0, 0x100)) if one not in "Ññ" and len(fold(one)) == 1},
}


def _with_enye() -> ColumnElement[str]:
    """Return the folded name with its ñ: what `folding.fold` does, for the letters of western Europe."""
    plain = func.lower(func.translate(_columns.nombre, "".join(_LETTERS) + APOSTROPHES, "".join(_LETTERS.values())))
    words = func.btrim(func.regexp_replace(plain, f"[^a-z0-9{_ENYE}]+", " ", "g"))
    return func.replace(words, _ENYE, f"n{_ENYE}")


_HAS_ENYE = or_(_columns.nombre.like("%ñ%"), _columns.nombre.like("%Ñ%"))
_BY_NAME: tuple[ColumnElement[str], ...] = (
    case((_HAS_ENYE, _with_enye()), else_=_columns.folded).collate("C"),
    _columns.nombre.collate("C"),
)
_SEARCHED = bindparam("searched", type_=Text)  # folded, as the names are: letters, digits and single blanks
_HOW_NAMED = case(
    # `guadalajara jalisco` names Guadalajara, too.
    (or_(_columns.folded == _SEARCHED, _SEARCHED.like(_columns.folded + " %")), 0),
    (_columns.folded.startswith(_SEARCHED), 1),
    else_=2,
)
ORDERS: Mapping[Sort, tuple[ColumnElement[Any], ...]] = {
    "clave": (_columns.position,),
    "-clave": (_columns.clave.desc(), _columns.id),
    "nombre": (*_BY_NAME, _columns.id),
    "-nombre": (*(one.desc() for one in _BY_NAME), _columns.id),
    "poblacion": (_columns.poblacion.nulls_last(), _columns.id),
    "-poblacion": (_columns.poblacion.desc().nulls_last(), _columns.id),
    "relevance": (_HOW_NAMED, _columns.poblacion.desc().nulls_last(), _columns.id),
}


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
