"""The SELECT of counts: the localities that filters choose, by area, ambito or size."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import ARRAY, ColumnElement, Integer, Row, Select, bindparam, func, literal_column, select

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import conditions, filtered_by, values

Group = Literal["municipio", "estado", "ambito", "tamano"]

# The least inhabitants of each class, as INEGI publishes localities by size (tamaño de localidad), and of none.
SIZES = (0, 1, 250, 500, 1000, 2500, 5000, 10_000, 15_000, 30_000, 50_000, 100_000, 250_000, 500_000, 1_000_000)


async def list_counts(
    database: Database, release: Release, by: Group, filters: LocalityFilters, among: Sequence[int] | None = None
) -> Sequence[Row[Any]]:
    """Return the number and the known population of localities in each group that has any, by its key.

    `among` are the positions that a search found with all filters. The key of a size is the least inhabitants of its
    class; that of localities without the value is None, and comes last. An area has its `nombre` and its `estado`.
    """
    if among is None:
        return await database.fetch_from(release, _count(by, filtered_by(filters)), values(filters))
    return await database.fetch_from(release, _count(by, None), {"among": list(among)})


@lru_cache
def _count(by: Group, names: tuple[str, ...] | None) -> Select[Any]:
    of_release = localities.c.release_id == bindparam("release_id")
    among = localities.c.position == func.any(bindparam("among", type_=ARRAY(Integer)))
    chosen = [among] if names is None else conditions(names)
    key = _key(by).label("key")
    columns = func.count().label("localidades"), func.sum(localities.c.poblacion).label("poblacion")
    counted = select(key, *columns).where(of_release, *chosen).group_by(key).subquery()
    statement = select(counted).order_by(counted.c.key.nulls_last())
    if by == "municipio":
        municipio, estado = municipalities.c, states.c
        return statement.add_columns(municipio.nombre, estado.nombre.label("estado")).join(
            municipalities.join(states),
            (municipio.id == counted.c.key) & (municipio.release_id == bindparam("release_id")),
        )
    if by == "estado":
        return statement.add_columns(states.c.nombre, states.c.nombre.label("estado")).join(
            states, (states.c.id == counted.c.key) & (states.c.release_id == bindparam("release_id"))
        )
    return statement


def _key(by: Group) -> ColumnElement[Any]:
    if by == "ambito":
        return localities.c.ambito
    if by == "tamano":
        sizes = f"ARRAY[{', '.join(map(str, SIZES))}]"
        return literal_column(f"({sizes})[width_bucket(localities.poblacion, {sizes})]")
    return localities.c.municipio_id if by == "municipio" else localities.c.municipio_id.op("/")(KEYS_OF_A_STATE)
