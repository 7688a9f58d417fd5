"""The stored indexes of names, read in parts: each is one statement, so that any pooler may be in between."""

from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import name_index
from localidades_api.database.pool import Database

_OF_RELEASE = (name_index.c.release_id == bindparam("release_id"), name_index.c.code == bindparam("code"))
_INDEX = (
    select(name_index.c.name, name_index.c.sha256, func.count().label("parts"))
    .where(*_OF_RELEASE)
    .group_by(name_index.c.name, name_index.c.sha256)
)
_PART = select(name_index.c.bytes).where(*_OF_RELEASE, name_index.c.part == bindparam("part"))


class StoredIndex(NamedTuple):
    """The name of an index, the digest of its bytes, and the number of their parts."""

    name: str
    sha256: str
    parts: int


async def find_index(database: Database, release: Release, code: str) -> StoredIndex | None:
    """Return what a release's index for `code` consists of; None if it has none."""
    rows = await database.fetch_from(release, _INDEX, {"release_id": release.id, "code": code})
    return StoredIndex._make(rows[0]) if rows else None


async def read_part(database: Database, release: Release, code: str, part: int) -> bytes:
    """Return a part of an index; nothing if it is gone, which the digest of the whole shows."""
    parameters = {"release_id": release.id, "code": code, "part": part}
    return b"".join(row.bytes for row in await database.fetch_from(release, _PART, parameters))
