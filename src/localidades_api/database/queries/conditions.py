"""Filters as SQL conditions, whose statements stay the same whatever the values are."""

from collections.abc import Mapping

from sqlalchemy import ARRAY, ColumnElement, Double, Integer, bindparam, func

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import municipalities_of
from localidades_api.database.models import localities

_columns = localities.c


def _point(x: str, y: str) -> ColumnElement[object]:
    return func.point(bindparam(x, type_=Double), bindparam(y, type_=Double))


_CONDITIONS: Mapping[str, ColumnElement[bool]] = {
    "municipio_id": _columns.municipio_id == bindparam("municipio_id"),
    "estado_id": _columns.municipio_id.between(bindparam("first_municipio"), bindparam("last_municipio")),
    "clave": _columns.clave == bindparam("clave"),
    "ambito": _columns.ambito == bindparam("ambito"),
    "cvegeo": _columns.id == func.any(bindparam("keys", type_=ARRAY(Integer))),
    "bbox": func.point(_columns.longitud, _columns.latitud).bool_op("<@")(
        func.box(_point("west", "south"), _point("east", "north"))
    ),
}


def filtered_by(filters: LocalityFilters) -> tuple[str, ...]:
    """Return the names of the filters that are conditions; searches use the index of names."""
    return tuple(name for name in filters.chosen if name in _CONDITIONS)


def conditions(names: tuple[str, ...]) -> list[ColumnElement[bool]]:
    """Return the conditions of these filters, without the one on the release."""
    return [_CONDITIONS[name] for name in names]


def values(filters: LocalityFilters) -> dict[str, object]:
    """Return the parameters of the conditions."""
    found: dict[str, object] = {}
    if filters.municipio_id is not None:
        found["municipio_id"] = filters.municipio_id
    if filters.estado_id is not None:
        found["first_municipio"], found["last_municipio"] = municipalities_of(filters.estado_id)
    if filters.clave is not None:
        found["clave"] = filters.clave
    if filters.ambito is not None:
        found["ambito"] = filters.ambito
    if filters.cvegeo is not None:
        found["keys"] = [int(key) for key in filters.cvegeo.split(",")]
    if filters.box is not None:
        found |= filters.box._asdict()
    return found
