"""The changes between two releases."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.catalogue.schemas import CHANGE_KINDS, Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import has_localities
from localidades_api.errors import NotFoundError

_UPDATABLE = [name for name in ATTRIBUTES if name not in POINT]
_COLUMNS = ", ".join(["id", "municipio_id", "clave", "nombre", *POINT, *_UPDATABLE])
_NUMBERED = ", ".join(f"({number}, {kind})" for number, kind in enumerate(CHANGE_KINDS))


def _row(alias: str, columns: Sequence[str]) -> str:
    return "(" + ", ".join(f"{alias}.{name}" for name in columns) + ")"


# Each kind of change is a column of its own, because several can apply to one locality.
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
_CHANGES = text(
    f"""
    SELECT string_agg(int4send(kind) || int4send(id), ''::bytea ORDER BY kind, id) AS changes,
           NOT EXISTS (SELECT FROM unnest(ARRAY[CAST(:old AS integer), CAST(:new AS integer)]) AS asked (id)
                        WHERE NOT EXISTS (SELECT FROM releases AS r WHERE r.id = asked.id AND r.retired_at IS NULL))
           AS stand
      FROM {_COMPARED}
     CROSS JOIN LATERAL (VALUES {_NUMBERED}) AS kinds (kind, applies)
     WHERE applies
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
    """Count the changes between two releases, by kind; runs inside the transaction of an import."""
    counts = (await connection.execute(_COUNTS, {"old": old_id, "new": new_id})).one()
    return dict(zip(map(str, CHANGE_KINDS), counts, strict=True))


class ChangesRepository:
    """Compares releases; a database that does not answer raises DatabaseUnavailableError.

    `comparing` is a pool for comparisons alone, which may take longer than other statements.
    """

    def __init__(self, database: Database, comparing: Database) -> None:
        self._database = database
        self._comparing = comparing

    async def find_changes(self, old: Release, new: Release) -> bytes:
        """Return every change, by kind, then id: each a pair of big-endian integers of four bytes."""
        rows = await self._comparing.fetch_from((old, new), _CHANGES, {"old": old.id, "new": new.id})
        if not rows[0].stand:  # its rows may be gone, and then every locality would count as added
            raise NotFoundError("There is no such release.")
        return bytes(rows[0].changes or b"")

    async def list_records(self, old: Release, new: Release, ids: Sequence[int]) -> dict[tuple[int, int], Row[Any]]:
        """Return the localities with these keys in both releases, by release and key."""
        parameters = {"old": old.id, "new": new.id, "ids": list(ids)}
        rows = await self._database.fetch_from((old, new), _RECORDS, parameters)
        return {(row.release_id, row.id): row for row in rows}
