"""Filters as SQL conditions."""

from sqlalchemy import ColumnElement, func

from localidades_api.domain.filters import LocalityFilters
from localidades_api.domain.keys import municipalities_of
from localidades_api.storage.models import localities


def conditions(filters: LocalityFilters) -> list[ColumnElement[bool]]:
    """Return the conditions of the filters, without the one on the release; searches use the index of names."""
    columns = localities.c
    found: list[ColumnElement[bool]] = []
    if filters.municipio_id is not None:
        found.append(columns.municipio_id == filters.municipio_id)
    if filters.estado_id is not None:
        found.append(columns.municipio_id.between(*municipalities_of(filters.estado_id)))
    if filters.clave is not None:
        found.append(columns.clave == filters.clave)
    if filters.ambito is not None:
        found.append(columns.ambito == filters.ambito)
    if filters.cvegeo is not None:
        found.append(columns.id == func.any([int(key) for key in filters.cvegeo.split(",")]))
    if filters.box is not None:
        west, south, east, north = filters.box
        box = func.box(func.point(west, south), func.point(east, north))
        found.append(func.point(columns.longitud, columns.latitud).bool_op("<@")(box))
    return found
