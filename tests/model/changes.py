"""Changes of a database, made as the commands make them, and what it contains afterwards."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
from sqlalchemy.exc import DBAPIError

from localidades_api.errors import ImportRunningError, LocalidadesError
from tests.model.catalogues import Version, digests, files
from tests.model.cutting import Cut, cutting
from tests.model.model import State
from tests.support.application import import_into
from tests.support.postgres import run_sql
from tests.support.waiting import PATIENCE

GRACE = 0.4  # seconds that a retirement leaves to readers; services here poll more often
_CONTENTS = """
    SELECT id, name, sha256, retired_at IS NOT NULL AS is_marked,
           EXISTS (SELECT FROM current_release WHERE release_id = id) AS is_current
      FROM releases
     ORDER BY id
"""
_INDEXES = "SELECT DISTINCT release_id FROM name_index ORDER BY 1"
_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^localities_r[0-9]+$'"


async def import_version(folder: Path, version: Version, url: str) -> None:
    """Import a catalogue as a release."""
    await import_into(url, files(folder)[version.catalogue], release=version.release, allow_shrink=True)


async def contents(folder: Path, url: str) -> tuple[State, list[str]]:
    """Return what readers find in the database, and the names of half removed releases."""
    rows = await run_sql(url, _CONTENTS)
    versions = {row["name"]: Version(row["name"], digests(folder)[row["sha256"]]) for row in rows}
    readable = tuple(versions[row["name"]] for row in rows if not row["is_marked"])
    current = next((versions[row["name"]] for row in rows if row["is_current"]), None)
    return State(current, readable), [row["name"] for row in rows if row["is_marked"]]


async def assert_clean(url: str) -> None:
    """Check that each release has its index, and that nothing of removed releases and of killed imports is left."""
    ids = [row["id"] for row in await run_sql(url, _CONTENTS)]
    tables = [row["relname"] for row in await run_sql(url, _TABLES)]
    assert sorted(tables) == sorted(f"localities_r{number}" for number in ids)
    assert [row["release_id"] for row in await run_sql(url, _INDEXES)] == ids


async def attempt(change: Callable[[], Awaitable[object]]) -> Exception | None:
    """Make a change and return its refusal; wait for the lock of a command that was killed a moment ago."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await change()
            except ImportRunningError:
                await asyncio.sleep(0.05)
            except (LocalidadesError, DBAPIError, asyncpg.PostgresError, OSError) as error:
                return error
            else:
                return None


@asynccontextmanager
async def through(url: str, cut: Cut | None) -> AsyncIterator[str]:
    """Lend the URL for a command, which may be cut."""
    if cut is None:
        yield url
        return
    async with cutting(url, cut) as address:
        yield address
