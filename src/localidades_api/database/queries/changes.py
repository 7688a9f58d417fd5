"""The changes between two releases."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.catalogue.schemas import CHANGE_KINDS, Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.packed import pack, unpack
from localidades_api.database.queries.places import has_localities
from localidades_api.errors import NotFoundError

_UPDATABLE = [name for name in ATTRIBUTES if name not in POINT]
_COLUMNS = ", ".join(["id", "municipio_id", "clave", "nombre", *POINT, *_UPDATABLE])


def _row(alias: str, columns: Sequence[str]) -> str:
    return "(" + ", ".join(f"{alias}.{name}" for name in columns) + ")"


# Each kind of change has a column, because several can apply to one locality.
_COMPARED = f"""
    (SELECT id, old.id IS NULL AS added, new.id IS NULL AS removed,
            new.nombre <> old.nombre AS renamed,
            new.id = old.id
            AND {_row("new", POINT)} IS DISTINCT FROM {_row("old", POINT)} AS relocated,
            new.id = old.id
            AND {_row("new", _UPDATABLE)} IS DISTINCT FROM {_row("old", _UPDATABLE)} AS updated
       FROM (SELECT {_COLUMNS} FROM localities WHERE release_id = :old) AS old
       FULL JOIN (SELECT {_COLUMNS} FROM localities WHERE release_id = :new) AS new USING (id)) AS compared
"""
_COUNTS = text(f"SELECT {', '.join(f'count(*) FILTER (WHERE {kind})' for kind in CHANGE_KINDS)} FROM {_COMPARED}")
# An aggregate for each kind: a row for each change, from a lateral join, takes three times as long.
_BY_KIND = ", ".join(
    f"coalesce({pack(str(number), 'id', order='id')} FILTER (WHERE {kind}), '') AS {kind}"
    for number, kind in enumerate(CHANGE_KINDS)
)
_CHANGES = text(
    f"""
    SELECT {" || ".join(CHANGE_KINDS)} AS changes,
           NOT EXISTS (SELECT FROM unnest(ARRAY[CAST(:old AS integer), CAST(:new AS integer)]) AS asked (id)
                        WHERE NOT EXISTS (SELECT FROM releases AS r WHERE r.id = asked.id AND r.retired_at IS NULL))
           AS are_published
      FROM (SELECT {_BY_KIND} FROM {_COMPARED}) AS packed
    """
)
_RECORDS = text(
    f"""
    SELECT release_id, {_COLUMNS}, lpad(id::text, 9, '0') AS cvegeo
      FROM localities
     WHERE release_id IN (:old, :new) AND id = ANY(:ids)
       AND {has_localities(":old")} AND {has_localities(":new")}
    """
)


async def count_changes(connection: AsyncConnection, old_id: int, new_id: int) -> Mapping[str, int]:
    """Count the changes between two releases, by kind, inside the transaction of an import."""
    counts = (await connection.execute(_COUNTS, {"old": old_id, "new": new_id})).one()
    return dict(zip(map(str, CHANGE_KINDS), counts, strict=True))


async def find_changes(database: Database, old: Release, new: Release) -> "array[int]":
    """Return every change, by kind, then id: the number of its kind and its key in turn."""
    rows = await database.fetch_from((old, new), _CHANGES, {"old": old.id, "new": new.id})
    if not rows[0].are_published:  # the rows of one may be gone, and every locality would count as added
        raise NotFoundError("There is no such release.")
    return unpack(rows[0].changes)


async def list_localities_of_both(
    database: Database, old: Release, new: Release, ids: Sequence[int]
) -> dict[tuple[int, int], Row[Any]]:
    """Return the localities with these keys in both releases, by release and key."""
    parameters = {"old": old.id, "new": new.id, "ids": list(ids)}
    rows = await database.fetch_from((old, new), _RECORDS, parameters)
    return {(row.release_id, row.id): row for row in rows}
