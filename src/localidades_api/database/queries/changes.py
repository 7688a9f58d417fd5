"""The changes between two releases."""

from array import array
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.columns import ATTRIBUTES, LISTED, POINT, RECORD
from localidades_api.catalogue.schemas import CHANGE_KINDS, Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.downloads import select_list
from localidades_api.database.queries.packed import pack, unpack
from localidades_api.database.queries.places import PARENTS, has_localities
from localidades_api.errors import NotFoundError

_UPDATABLE = [name for name in ATTRIBUTES if name not in POINT]
_COMPARABLE = (*LISTED, *POINT, *_UPDATABLE)
_COLUMNS = ", ".join(_COMPARABLE)
_RECORD = (*_COMPARABLE, *(name for name in RECORD if name not in _COMPARABLE))


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
# An aggregate for each kind: a row for each change, from a lateral join, takes three times as long.
_BY_KIND = ", ".join(
    f"coalesce({pack(str(number), 'id', order='id')} FILTER (WHERE {kind}), '') AS {kind}"
    for number, kind in enumerate(CHANGE_KINDS)
)
_PACKED = f"(SELECT {_BY_KIND} FROM {_COMPARED}) AS packed"
_ALL = f"{' || '.join(CHANGE_KINDS)} AS changes"
_COUNTS = ", ".join(f"octet_length({kind}) / 8" for kind in CHANGE_KINDS)  # two integers for each change
_COMPARISON = text(f"SELECT {_ALL}, {_COUNTS} FROM {_PACKED}")
_PUBLISHED = "ARRAY(SELECT r.id FROM releases AS r WHERE r.id IN (:old, :new) AND r.retired_at IS NULL) AS published"
_CHANGES = text(f"SELECT {_ALL}, {_PUBLISHED} FROM {_PACKED}")
_STORED = text(
    f"""
    SELECT (SELECT changes FROM comparisons WHERE release_id = :new AND changes_since = :old) AS changes, {_PUBLISHED}
    """
)
_RECORDS = text(
    f"""
    SELECT l.release_id, {select_list(_RECORD)}, m.nombre AS municipio, s.nombre AS estado
      FROM localities AS l {PARENTS}
     WHERE l.release_id IN (:old, :new) AND l.id = ANY(:ids)
       AND {has_localities(":old")} AND {has_localities(":new")}
    """
)


async def compare_releases(connection: AsyncConnection, old_id: int, new_id: int) -> tuple[bytes, dict[str, int]]:
    """Return the changes between two releases, packed, and their counts by kind, in the transaction of an import."""
    changes, *counts = (await connection.execute(_COMPARISON, {"old": old_id, "new": new_id})).one()
    return changes, dict(zip(map(str, CHANGE_KINDS), counts, strict=True))


async def get_stored_changes(database: Database, old: Release, new: Release) -> "array[int] | None":
    """Return the changes as `find_changes` does, or None if no import has stored them."""
    changes = await _read(database, old, new, _STORED)
    return None if changes is None else unpack(changes)


async def find_changes(database: Database, old: Release, new: Release) -> "array[int]":
    """Compare two releases; return every change, by kind, then id: the number of its kind and its key in turn."""
    return unpack(await _read(database, old, new, _CHANGES))


async def _read(database: Database, old: Release, new: Release, statement: TextClause) -> bytes | None:
    rows = await database.fetch_from((old, new), statement, {"old": old.id, "new": new.id})
    if not {old.id, new.id} <= set(rows[0].published):  # the rows of one may be gone, and all would count as added
        raise NotFoundError("There is no such release.")
    changes: bytes | None = rows[0].changes
    return changes


async def list_localities_of_both(
    database: Database, old: Release, new: Release, ids: Sequence[int]
) -> dict[tuple[int, int], Row[Any]]:
    """Return the localities with these keys in both releases, with their areas' names, by release and key."""
    parameters = {"old": old.id, "new": new.id, "ids": list(ids)}
    rows = await database.fetch_from((old, new), _RECORDS, parameters)
    return {(row.release_id, row.id): row for row in rows}
