"""Matches the rows of a file with the names in the database that `serve` uses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.cli.database import ready_database
from localidades_api.cli.match import MatchJob, MatchStep, answer_from, match_and_report
from localidades_api.database.pool import Database
from localidades_api.names.index import NameIndex
from localidades_api.observability.progress_display import show_progress
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.settings import read_settings

_INDEX_TIMEOUT = 60.0  # seconds; fetching the index of a whole catalogue takes one


def run_match(job: MatchJob, release: str | None) -> None:
    """Match the rows of a file with the names in the database."""

    async def run(database: str) -> None:
        with show_progress() as progress:
            progress.begin(MatchStep.OPEN)
            async with _open_index(database, release) as index:
                # This blocks the event loop, where nothing else runs: the index has everything that rows need.
                match_and_report(job, answer_from(index, job), progress, areas=index.areas)

    with ready_database(read_settings()) as url:
        asyncio.run(run(url))


@asynccontextmanager
async def _open_index(url: str, name: str | None) -> AsyncIterator[NameIndex]:
    """Open the index of a release (None is the current one), or fetch it; afterwards no database is needed."""
    settings = read_settings()
    database = Database.for_reading(url, pool_size=1, timeout=settings.database_timeout)
    releases = ReleaseTracker(database)
    indexes = NameIndexes(database, releases, _INDEX_TIMEOUT, settings.cache_dir)
    try:
        release = await releases.current() if name is None else await releases.named(name)
        async with indexes.using(release) as index:
            yield index
    finally:
        await indexes.close()
        await database.dispose()
