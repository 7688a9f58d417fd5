"""Reads the first view of the map: the box around the chosen places, and the largest of them."""

from typing import Any, NamedTuple

from sqlalchemy import Row, func, select, true

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import conditions, filtered_by, values
from localidades_api.database.replica_check import requires_release

_LARGEST = 20
_COLUMNS = localities.c


class Overview(NamedTuple):
    """The box around places, as west, south, east and north in degrees, and the most prominent of them."""

    bounds: tuple[float, float, float, float] | None
    largest: list[Row[Any]]


class MapRepository:
    """Reads what a map begins with; a database that does not answer raises DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, release: Release, filters: LocalityFilters) -> Overview:
        """Return the overview of the places that the filters choose; without coordinates there is none."""
        chosen = [_COLUMNS.release_id == release.id, _COLUMNS.latitud.is_not(None), *conditions(filtered_by(filters))]
        east, north = _COLUMNS.longitud, _COLUMNS.latitud
        box = select(func.min(east), func.min(north), func.max(east), func.max(north)).where(*chosen).subquery()
        largest = (
            select(_COLUMNS.id, _COLUMNS.nombre, _COLUMNS.poblacion, north, east)
            .where(*chosen)
            .order_by(_COLUMNS.prominence, _COLUMNS.id)
            .limit(_LARGEST)
            .subquery()
        )
        statement = (
            select(largest, box)
            .select_from(box.join(largest, true()))
            .order_by(largest.c.poblacion.desc().nulls_last(), largest.c.id)
        )
        rows = await self._database.fetch(statement, values(filters), replica_check=requires_release(release))
        return Overview(tuple(rows[0][-4:]) if rows else None, list(rows))
