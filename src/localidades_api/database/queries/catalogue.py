"""The repository of the catalogue: pages of the list, and localities, municipios and estados by key."""

from array import array
from collections.abc import AsyncIterator, Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ARRAY, Integer, Row, Select, TextClause, bindparam, column, func, select, text
from sqlalchemy.dialects.postgresql import BYTEA, aggregate_order_by

from localidades_api.catalogue.columns import LISTED, RECORD
from localidades_api.catalogue.filters import (
    DEFAULT_AREA_SORT,
    DEFAULT_SORT,
    LocalityFilters,
    MunicipalitySort,
    Sort,
    StateSort,
)
from localidades_api.catalogue.pagination import PAGE_SIZE, positions
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import (
    FOUND,
    ORDERS,
    at_positions,
    conditions,
    filtered_by,
    in_order,
    municipality_order,
    state_order,
    values,
)
from localidades_api.database.queries.downloads import json_object, select_list
from localidades_api.database.queries.packed import unpack
from localidades_api.database.queries.places import PARENTS
from localidades_api.database.queries.withdrawn import COMPARABLE

_LOCALITY = json_object(LISTED)
_PAGES = text(
    f"""
    SELECT string_agg({_LOCALITY}, ',' ORDER BY position)
      FROM localities AS l
     WHERE release_id = :release_id AND position BETWEEN :first AND :last
     GROUP BY (position - 1) / {PAGE_SIZE}
     ORDER BY (position - 1) / {PAGE_SIZE}
    """
)

_STATES = select(states.c.id, states.c.clave, states.c.nombre, states.c.abreviatura)
_MUNICIPALITIES = select(
    municipalities.c.id,
    municipalities.c.estado_id,
    municipalities.c.clave,
    municipalities.c.nombre,
    municipalities.c.localities.label("localidades"),
).join_from(municipalities, states)
_MUNICIPALITIES_WITH_STATES = _MUNICIPALITIES.add_columns(
    states.c.clave.label("estado_clave"),
    states.c.nombre.label("estado_nombre"),
    states.c.nombre.label("estado"),
    states.c.abreviatura.label("estado_abreviatura"),
)

_AREA_COLUMNS = {
    "municipio_clave": "m.clave",
    "municipio_nombre": "m.nombre",
    "municipio_localidades": "m.localities",
    "estado_id": "s.id",
    "estado_clave": "s.clave",
    "estado_nombre": "s.nombre",
    "estado_abreviatura": "s.abreviatura",
}
_DETAILS = f"""
    SELECT {select_list(RECORD)}, {", ".join(f"{sql} AS {name}" for name, sql in _AREA_COLUMNS.items())}
      FROM localities AS l {PARENTS}
     WHERE l.release_id = :release_id AND
"""
# Without these columns, SQLAlchemy would derive them from each result.
_DETAIL = text(f"{_DETAILS} l.id = :id").columns(*map(column, (*RECORD, *_AREA_COLUMNS)))
_DETAILS_AMONG = text(f"{_DETAILS} l.id = ANY(:ids) ORDER BY l.prominence LIMIT :limit")

_HISTORY = text(
    f"""
    SELECT r.name AS release, l.nombre, l.poblacion
      FROM releases AS r JOIN localities AS l ON l.release_id = r.id
     WHERE l.id = :id AND {COMPARABLE}
     ORDER BY r.id
    """
)
_HOMONYMS = text(
    """
    SELECT l.id, l.clave, l.nombre
      FROM localities AS own JOIN localities AS l USING (release_id, folded, municipio_id)
     WHERE release_id = :release_id AND own.id = :id AND l.id <> :id
     ORDER BY l.id
     LIMIT :limit
    """
)


@lru_cache
def _find(filters: tuple[str, ...], sort: Sort) -> Select[bytes | None]:
    """Select the positions that these filters choose; building the statement takes longer than running it."""
    return _in_order(sort).where(*conditions(filters))


@lru_cache
def _sort_among(sort: Sort) -> Select[bytes | None]:
    return _in_order(sort).where(localities.c.position == func.any(bindparam("among", type_=ARRAY(Integer))))


def _in_order(sort: Sort) -> Select[bytes | None]:
    position = func.int4send(localities.c.position, type_=BYTEA)
    found = func.string_agg(position, aggregate_order_by(text("''::bytea"), *ORDERS[sort]), type_=BYTEA)
    return select(found).where(localities.c.release_id == bindparam("release_id"))


@lru_cache
def _list(record: str, chosen: str, order: str) -> TextClause:
    return text(
        f"""
        SELECT coalesce(string_agg({record}, ',' ORDER BY {order}), '')
          FROM localities AS l
         WHERE release_id = :release_id AND {chosen}
        """
    )


class CatalogueRepository:
    """Reads the records of a release."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def list_pages(self, release: Release, first: int, last: int) -> list[str]:
        """Return the results of a range of pages, each as the JSON text of its localities, without the brackets.

        A page is a range of positions, so the last page costs as much as the first (docs/decisions/pages.md).
        """
        parameters = {"first": positions(first)[0], "last": positions(last)[1]}
        return [row[0] for row in await self.database.fetch_from(release, _PAGES, parameters)]

    async def find_positions(
        self, release: Release, filters: LocalityFilters, sort: Sort = DEFAULT_SORT, among: Sequence[int] | None = None
    ) -> "array[int]":
        """Return the positions of the localities that match, in order.

        `among` are the positions that a search found with all filters, which are only sorted; its text is folded.
        """
        if among is None:
            statement, parameters = _find(filtered_by(filters), sort), values(filters)
        else:
            statement, parameters = _sort_among(sort), {"among": list(among)}
        if sort == "relevance":
            parameters["searched"] = filters.search or ""
        rows = await self.database.fetch_from(release, statement, parameters)
        return unpack(rows[0][0])

    async def list_at_positions(self, release: Release, at: Sequence[int], fields: Sequence[str] = ()) -> str:
        """Return the localities at these positions as JSON text, without the brackets.

        `fields` are their columns, by default those of the list.
        """
        chosen, parameters = at_positions(at)
        record = json_object(fields) if fields else _LOCALITY
        rows = await self.database.fetch_from(release, _list(record, chosen, in_order(at)), parameters)
        return str(rows[0][0])

    async def list_states(
        self, release: Release, sort: StateSort = DEFAULT_AREA_SORT, found: Sequence[int] | None = None
    ) -> Sequence[Row[Any]]:
        """Return every estado in order, or those that a search has found, the likeliest first."""
        statement = _STATES.where(states.c.release_id == release.id).order_by(*state_order(sort))
        if found is not None:
            statement = statement.where(states.c.id == func.any(FOUND))
        return await self.database.fetch_from(release, statement, {"found": found or []})

    async def list_municipalities(
        self,
        release: Release,
        estado_id: int | None,
        sort: MunicipalitySort = DEFAULT_AREA_SORT,
        found: Sequence[int] | None = None,
    ) -> Sequence[Row[Any]]:
        """Return every municipio in order, or those of one estado, or those that a search has found."""
        statement = _MUNICIPALITIES.where(municipalities.c.release_id == release.id).order_by(*municipality_order(sort))
        if estado_id is not None:
            statement = statement.where(municipalities.c.estado_id == estado_id)
        if found is not None:
            statement = statement.where(municipalities.c.id == func.any(FOUND))
        return await self.database.fetch_from(release, statement, {"found": found or []})

    async def get_state(self, release: Release, id_: int) -> Row[Any] | None:
        """Return an estado, or None."""
        statement = _STATES.where(states.c.release_id == release.id, states.c.id == id_)
        rows = await self.database.fetch_from(release, statement)
        return rows[0] if rows else None

    async def get_municipality(self, release: Release, id_: int) -> Row[Any] | None:
        """Return a municipio with its estado, or None."""
        return (await self.list_municipalities_by_key(release, [id_])).get(id_)

    async def get_locality(self, release: Release, id_: int) -> Row[Any] | None:
        """Return a locality with its municipio and its estado, or None."""
        rows = await self.database.fetch_from(release, _DETAIL, {"id": id_})
        return rows[0] if rows else None

    async def list_largest_among(self, release: Release, ids: Collection[int], limit: int) -> Sequence[Row[Any]]:
        """Return the localities that have one of these keys, the largest first, with the columns of `get_locality`."""
        return await self.database.fetch_from(release, _DETAILS_AMONG, {"ids": list(ids), "limit": limit})

    async def list_municipalities_by_key(self, release: Release, ids: Collection[int]) -> dict[int, Row[Any]]:
        """Return these municipios with their estados, by key."""
        statement = _MUNICIPALITIES_WITH_STATES.where(
            municipalities.c.release_id == release.id, municipalities.c.id == func.any(list(ids))
        )
        return {row.id: row for row in await self.database.fetch_from(release, statement)}

    async def list_history(self, release: Release, id_: int) -> Sequence[Row[Any]]:
        """Return the name and population of a locality in each release, oldest first, including this one."""
        parameters = {"id": id_, "is_demo": release.is_demo}
        return await self.database.fetch_from(release, _HISTORY, parameters)

    async def list_homonyms(self, release: Release, id_: int, limit: int) -> Sequence[Row[Any]]:
        """Return the keys, claves and names of the other localities of the municipio with a locality's folded name."""
        return await self.database.fetch_from(release, _HOMONYMS, {"id": id_, "limit": limit})


_BATCH = 20_000  # localities per statement, 2 MB

_LOCALITIES = text(
    """
    SELECT id, municipio_id, clave, nombre, ambito, poblacion, latitud, longitud, altitud, viviendas
      FROM localities
     WHERE release_id = :release_id AND position > :first AND position <= :last
    """
)


async def list_localities(database: Database, release: Release) -> AsyncIterator[Sequence[Row[Any]]]:
    """Yield the localities of a release in batches, for its index of names."""
    for first in range(0, release.localities, _BATCH):
        yield await database.fetch_from(release, _LOCALITIES, {"first": first, "last": first + _BATCH})
