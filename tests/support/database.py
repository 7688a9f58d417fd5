"""Reads the contents of a database directly, not through the service."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.releases import get_release_snapshot
from tests.support.catalogue import Place
from tests.support.service_address import database_timeout
from tests.support.waiting import eventually_async

# Make every read of a locality fail with an error that the service doesn't foresee (22012, division by zero).
BREAK_LOCALITIES = (
    "ALTER TABLE localities RENAME TO localities_beneath",
    "CREATE VIEW localities AS SELECT * FROM localities_beneath WHERE 1 / (id - id) = 1",
)

WHO_WAIT = (  # the processes that wait for a lock in this database
    "SELECT array_agg(DISTINCT pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
    " WHERE datname = current_database() AND NOT granted"
)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def photograph(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the whole contents of a database: every relation, constraint and row."""
    async with connected(url) as connection:
        names = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND NOT relispartition ORDER BY 1"
        )
        queries = {
            "relations": "SELECT relname::text, relkind, relispartition, pg_get_expr(relpartbound, oid) FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
            "constraints": "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid), convalidated"
            " FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
            **{name: f'SELECT row.* FROM "{name}" AS row ORDER BY row::text' for (name,) in names},  # noqa: S608  # our names
        }
        return {name: [tuple(row) for row in await connection.fetch(query)] for name, query in queries.items()}


async def read_release(url: str, name: str | None = None) -> tuple[Release, list[tuple[Any, ...]]]:
    """Walk all pages of a release, or of the current one, as the service does."""
    database = Database.for_reading(url, pool_size=1, timeout=database_timeout(url))
    try:
        repository = CatalogueRepository(database)
        every, current = (await get_release_snapshot(database))[:2]
        release = current if name is None else next(release for release in every if release.name == name)
        assert release is not None
        pages = await repository.list_pages(release, 1, release.total_pages)
        return release, [tuple(record.values()) for page in pages for record in json.loads(f"[{page}]")]
    finally:
        await database.dispose()


def rows_of(places: Iterable[Place]) -> list[tuple[Any, ...]]:
    """Return these places as rows of the list, in its order."""
    ordered = sorted(places, key=lambda place: (place.cvegeo[5:], place.cvegeo))
    return [(int(p.cvegeo), int(p.cvegeo[:5]), p.cvegeo[5:], p.nombre) for p in ordered]


async def assert_nothing_left(url: str, before: dict[str, list[tuple[Any, ...]]]) -> None:
    """Check that a database is unchanged and that a dead import's lock is released."""
    async with connected(url) as connection:
        query = "SELECT count(*) = 0 FROM pg_locks JOIN pg_database ON database = pg_database.oid"
        query += " WHERE datname = current_database() AND locktype = 'advisory'"
        await eventually_async(lambda: connection.fetchval(query))
    assert await photograph(url) == before
