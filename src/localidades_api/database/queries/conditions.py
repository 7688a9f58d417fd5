"""SQL for the filters of lists of localities, and for the orders of every list.

The values of filters are parameters, so that statements stay the same. Not every database has a Spanish collation, so
names are compared by bytes: folded, with ñ sorted after n.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, ColumnElement, Double, Integer, Text, bindparam, case, func, or_, select

from localidades_api.catalogue.filters import LocalityFilters, MunicipalitySort, Sort, StateSort
from localidades_api.catalogue.folding import APOSTROPHES, fold
from localidades_api.catalogue.mercator import Box
from localidades_api.database.models import localities, municipalities, states

_columns = localities.c


class _Condition(NamedTuple):
    """The condition of a filter, and the parameters that it takes from the filter's value."""

    sql: ColumnElement[bool]
    read: Callable[[Any], Mapping[str, object]]


def _equals(name: str) -> _Condition:
    return _Condition(_columns[name] == bindparam(name), lambda value: {name: value})


def _any_of(column: ColumnElement[int], parameter: str) -> _Condition:
    return _Condition(
        column == func.any(bindparam(parameter, type_=ARRAY(Integer))),
        lambda keys: {parameter: [int(key) for key in keys.split(",")]},
    )


def _in_states() -> _Condition:
    """Return the condition of estados: by their municipios, which an index has."""
    within = _any_of(municipalities.c.estado_id, "estados")
    found = select(municipalities.c.id).where(municipalities.c.release_id == bindparam("release_id"), within.sql)
    return within._replace(sql=_columns.municipio_id == func.any(func.array(found.scalar_subquery())))


def _bounds(column: str) -> Mapping[str, _Condition]:
    least, most = f"{column}_min", f"{column}_max"
    return {
        least: _Condition(_columns[column] >= bindparam(least), lambda value: {least: value}),
        most: _Condition(_columns[column] <= bindparam(most), lambda value: {most: value}),
    }


def _read_box(bbox: str) -> Mapping[str, object]:
    return Box(*map(float, bbox.split(",")))._asdict()


def _point(x: str, y: str) -> ColumnElement[object]:
    return func.point(bindparam(x, type_=Double), bindparam(y, type_=Double))


_OTHERS: Mapping[str, _Condition] = {
    "municipio_id": _any_of(_columns.municipio_id, "municipios"),
    "estado_id": _in_states(),
    "cvegeo": _any_of(_columns.id, "keys"),
    **_bounds("poblacion"),
    **_bounds("altitud"),
    "bbox": _Condition(
        func.point(_columns.longitud, _columns.latitud).bool_op("<@")(
            func.box(_point("west", "south"), _point("east", "north"))
        ),
        _read_box,
    ),
}
# The index of names answers a search; another filter that is neither here nor a column raises KeyError at import.
_CONDITIONS = {name: _OTHERS.get(name) or _equals(name) for name in LocalityFilters.model_fields if name != "search"}


def filtered_by(filters: LocalityFilters) -> tuple[str, ...]:
    """Return the names of the filters that are conditions."""
    return tuple(name for name in filters.chosen if name in _CONDITIONS)


def conditions(names: tuple[str, ...]) -> list[ColumnElement[bool]]:
    """Return the conditions of these filters, without the one on the release."""
    return [_CONDITIONS[name].sql for name in names]


def values(filters: LocalityFilters) -> dict[str, object]:
    """Return the parameters of the conditions."""
    found: dict[str, object] = {}
    for name in filtered_by(filters):
        found |= _CONDITIONS[name].read(getattr(filters, name))
    return found


_ENYE = "{"  # the character after z: `n{` comes after every other n, and before o
_LETTERS: Mapping[str, str] = {
    _ENYE: " ",
    "Ñ": _ENYE,
    "ñ": _ENYE,
    **{char: fold(char) for char in map(chr, range(0xA0, 0x100)) if char not in "Ññ" and len(fold(char)) == 1},
}


def with_enye(name: ColumnElement[str]) -> ColumnElement[str]:
    """Return a folded name with its ñ; it folds as `folding.fold` does the letters of western Europe."""
    plain = func.lower(func.translate(name, "".join(_LETTERS) + APOSTROPHES, "".join(_LETTERS.values())))
    words = func.btrim(func.regexp_replace(plain, f"[^a-z0-9{_ENYE}]+", " ", "g"))
    return func.replace(words, _ENYE, f"n{_ENYE}")


_HAS_ENYE = or_(_columns.nombre.like("%ñ%"), _columns.nombre.like("%Ñ%"))
_BY_NAME: tuple[ColumnElement[str], ...] = (
    case((_HAS_ENYE, with_enye(_columns.nombre)), else_=_columns.folded).collate("C"),
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
    "-nombre": (*(column.desc() for column in _BY_NAME), _columns.id),
    "poblacion": (_columns.poblacion.nulls_last(), _columns.id),
    "-poblacion": (_columns.poblacion.desc().nulls_last(), _columns.id),
    "relevance": (_HOW_NAMED, _columns.poblacion.desc().nulls_last(), _columns.id),
}


def _by_text(column: ColumnElement[str]) -> tuple[ColumnElement[str], ...]:
    return with_enye(column).collate("C"), column.collate("C")


_STATE_COLUMNS: Mapping[str, tuple[ColumnElement[Any], ...]] = {
    "id": (states.c.id,),
    "clave": (states.c.clave,),
    "nombre": _by_text(states.c.nombre),
    "abreviatura": _by_text(states.c.abreviatura),
}
_MUNICIPALITY_COLUMNS: Mapping[str, tuple[ColumnElement[Any], ...]] = {
    "id": (municipalities.c.id,),
    "clave": (municipalities.c.clave,),
    "nombre": _by_text(municipalities.c.nombre),
    "estado": _by_text(states.c.nombre),
    "localidades": (municipalities.c.localities,),
}
FOUND = bindparam("found", type_=ARRAY(Integer))  # the keys that a search finds, the likeliest first


def state_order(sort: StateSort) -> tuple[ColumnElement[Any], ...]:
    """Return the order of a list of estados."""
    return *_order(_STATE_COLUMNS, sort, states.c.id), states.c.id


def municipality_order(sort: MunicipalitySort) -> tuple[ColumnElement[Any], ...]:
    """Return the order of a list of municipios joined with their estados."""
    return *_order(_MUNICIPALITY_COLUMNS, sort, municipalities.c.id), municipalities.c.id


def _order(
    columns: Mapping[str, tuple[ColumnElement[Any], ...]], sort: str, id_: ColumnElement[int]
) -> Iterator[ColumnElement[Any]]:
    if sort == "relevance":
        yield func.array_position(FOUND, id_)
    else:
        for column in columns[sort.removeprefix("-")]:
            yield (column.desc() if sort.startswith("-") else column).nulls_last()


def at_positions(positions: Sequence[int]) -> tuple[str, dict[str, object]]:
    """Return the condition on localities at these positions, and its parameters; a range becomes one index scan."""
    if isinstance(positions, range):
        return "position BETWEEN :first AND :last", {"first": positions.start, "last": positions.stop - 1}
    return "position = ANY(:positions)", {"positions": list(positions)}


def in_order(positions: Sequence[int]) -> str:
    """Return an ORDER BY that keeps the order of these positions; its parameters are those of `at_positions`."""
    is_ascending = isinstance(positions, range) or list(positions) == sorted(positions)
    return "position" if is_ascending else "array_position(:positions, position)"  # 3 ms longer for a thousand
