"""The index of names of each release, stored with it: a release is complete, and every machine fetches the same index.

It is stored and read in parts, each by one statement, so that any pooler may be in between.

A release has an index for each `code` that can read it. Those of this code and of the one before stay: during a rolling
upgrade, and after a downgrade, both are served (docs/decisions/names.md).
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import bindparam, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import name_index
from localidades_api.database.pool import Database

_PART_SIZE = 1024**2  # bytes
_KEPT = 2  # codes
_LOCK = text("SELECT id FROM releases WHERE id = :release_id AND retired_at IS NULL FOR KEY SHARE")
_REMOVE = text("DELETE FROM name_index WHERE release_id = :release_id AND code = :code")
# The current release comes first, then the newest.
_INCOMPLETE = text(
    """
    SELECT id FROM releases LEFT JOIN current_release ON release_id = id
     WHERE retired_at IS NULL
       AND (SELECT encode(sha256(string_agg(bytes, '' ORDER BY part)), 'hex') = min(sha256)
              FROM name_index WHERE name_index.release_id = id AND code = :code) IS NOT TRUE
     ORDER BY release_id, id DESC
    """
)
_REMOVE_OTHERS = text(
    """
    DELETE FROM name_index WHERE code NOT IN (
        SELECT code FROM name_index GROUP BY code ORDER BY code = :code DESC, max(stored_at) DESC LIMIT :kept)
    """
)
_OF_RELEASE = (name_index.c.release_id == bindparam("release_id"), name_index.c.code == bindparam("code"))
_INDEX = (
    select(name_index.c.name, name_index.c.sha256, func.count().label("parts"))
    .where(*_OF_RELEASE)
    .group_by(name_index.c.name, name_index.c.sha256)
)
_PART = select(name_index.c.bytes).where(*_OF_RELEASE, name_index.c.part == bindparam("part"))


async def store_index(connection: AsyncConnection, release_id: int, code: str, packed: Path) -> None:
    """Store a file with the name of a release's index, instead of another one; not if the release has been retired."""
    of_release = {"release_id": release_id, "code": code}
    if await connection.scalar(_LOCK, of_release) is None:
        return
    await connection.execute(_REMOVE, of_release)
    with packed.open("rb") as file:
        common = {**of_release, "name": packed.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
        file.seek(0)
        for part, content in enumerate(iter(lambda: file.read(_PART_SIZE), b"")):
            await connection.execute(insert(name_index), {**common, "part": part, "bytes": content})


async def list_incomplete(connection: AsyncConnection, code: str) -> list[int]:
    """Return the ids of the releases without an index for `code`, or with a damaged one."""
    return list((await connection.execute(_INCOMPLETE, {"code": code})).scalars())


async def remove_old_indexes(connection: AsyncConnection, code: str) -> None:
    """Remove the indexes of all codes but this one and the one before."""
    await connection.execute(_REMOVE_OTHERS, {"code": code, "kept": _KEPT})


class StoredIndex(NamedTuple):
    """The name of an index, the digest of its bytes, and the number of their parts."""

    name: str
    sha256: str
    parts: int


async def find_index(database: Database, release: Release, code: str) -> StoredIndex | None:
    """Return what a release's index for `code` consists of; None if it has none."""
    rows = await database.fetch_from(release, _INDEX, {"code": code})
    return StoredIndex._make(rows[0]) if rows else None


async def read_part(database: Database, release: Release, code: str, part: int) -> bytes:
    """Return a part of an index; nothing if it is gone, which the digest of the whole shows."""
    rows = await database.fetch_from(release, _PART, {"code": code, "part": part})
    return b"".join(row.bytes for row in rows)
