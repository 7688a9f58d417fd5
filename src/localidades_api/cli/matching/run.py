"""Finds the places of a file's rows in the database that `serve` uses, or asks a service."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from localidades_api.bulk.answers import match_row
from localidades_api.bulk.rows import Answer, Row
from localidades_api.caches.names import NameIndexes
from localidades_api.catalogue.schemas import Release
from localidades_api.cli.console import console, watch_import
from localidades_api.cli.database import ready_database
from localidades_api.cli.matching.job import STDIO, MatchJob
from localidades_api.cli.matching.match_file import Tally, match_file
from localidades_api.cli.matching.remote import RemoteMatcher
from localidades_api.cli.service import Service
from localidades_api.database.pool import Database
from localidades_api.database.queries import ReleasesRepository
from localidades_api.errors import AnswerFileError
from localidades_api.names.index import NameIndex
from localidades_api.observability.progress import MatchStep
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.settings import read_settings

_BATCH_SIZE = 500  # rows: an interruption loses the work for this many at most
_REMOTE_BATCH_SIZE = 1000  # rows of a request, which takes half a second
_INDEX_TIMEOUT = 600.0  # seconds; a whole catalogue takes ten
_OUTCOMES = ("exact", "sure", "ambiguous", "none", "problem")


def run_match(job: MatchJob, release: str | None) -> None:
    """Match the rows of a file, and print a summary, or how to resume if it ends early."""

    async def run(database: str) -> None:
        with watch_import() as progress:
            progress.begin(MatchStep.OPEN)
            async with _open_index(database, release) as (served, index):
                progress.begin(MatchStep.MATCH)

                # Nothing of it awaits: all that the rows need is in the index.
                def answer(rows: Sequence[Row]) -> list[Answer]:
                    return [match_row(row, index, job.sure) for row in rows]

                with _reporting(job, lambda: ("--release", served.name)) as tally:
                    match_file(job, answer, _BATCH_SIZE, tally, progress)

    with ready_database(read_settings()) as url:
        asyncio.run(run(url))


def run_remote_match(job: MatchJob, url: str, release: str | None) -> None:
    """Do the same by asking a running service."""
    with watch_import() as progress, RemoteMatcher(Service.parse(url, release), job.sure) as service:
        progress.begin(MatchStep.MATCH)
        with _reporting(job, service.describe) as tally:
            match_file(job, service.answer, _REMOTE_BATCH_SIZE, tally, progress)


@asynccontextmanager
async def _open_index(url: str, name: str | None) -> AsyncIterator[tuple[Release, NameIndex]]:
    """Lend the index of a release, or of the current one, built if need be; the database may go away meanwhile."""
    database = Database.for_reading(url, pool_size=1, timeout=read_settings().database_timeout)
    releases = ReleaseTracker(ReleasesRepository(database))
    indexes = NameIndexes(url, releases, _INDEX_TIMEOUT)
    try:
        release = await releases.current() if name is None else await releases.named(name)
        async with indexes.using(release) as index:
            yield release, index
    finally:
        await indexes.close()
        await database.dispose()


@contextmanager
def _reporting(job: MatchJob, pinned: Callable[[], Sequence[str]]) -> Iterator[Tally]:
    """Count rows, and say in the end what was done, or what was done so far and how to resume.

    `pinned` returns the options that match the rest like the rows before.
    """
    tally, began = Tally(), time.perf_counter()
    try:
        yield tally
    except BaseException as error:
        if job.output != STDIO and tally.rows and not isinstance(error, AnswerFileError):
            console.print(
                f"{tally.rows:,} rows are answered in {job.output}; to go on: {job.command(*pinned())}", markup=False
            )
        raise
    seconds = time.perf_counter() - began
    done = tally.outcomes.total()
    lines = [f"matched {done:,} rows in {seconds:.1f} s ({done / max(seconds, 1e-6):,.0f}/s)"]
    if tally.earlier:
        lines[0] += f", {tally.earlier:,} were answered before"
    lines.append("  " + ", ".join(f"{tally.outcomes[outcome]:,} {outcome}" for outcome in _OUTCOMES))
    if job.output != STDIO:
        lines.append(f"  {job.output}")
    console.print("\n".join(lines), markup=False)
