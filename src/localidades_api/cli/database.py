"""The database of a command: opened, migrated, with its releases."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from localidades_api.catalogue.schemas import Release
from localidades_api.cli.console import print_text
from localidades_api.database.embedded_postgres import provide_database
from localidades_api.database.pool import Database
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.errors import ConfigurationError, LocalidadesError
from localidades_api.observability.progress_display import show_progress
from localidades_api.settings import Settings, find_clone, read_settings

_REQUEST_TIMEOUT = 10.0  # seconds, for the several statements of one request

_Result = TypeVar("_Result")


@contextmanager
def ready_database(settings: Settings, *, seed: bool = True) -> Iterator[str]:
    """Yield the address of the database; an embedded one is migrated, and seeded if it is empty.

    A configured database is never migrated here.
    """
    with provide_database(settings) as url:
        if settings.database_url is None:
            _migrate(settings, url, settings.initial_catalogue if seed else None)
        yield url


def run_migrations(*, seed: str | None) -> None:
    """Migrate the database, print a message, and load `seed` or the catalogue in the settings into an empty one."""
    settings = read_settings()
    with provide_database(settings) as url:
        _migrate(settings, url, seed or settings.initial_catalogue, report=_print_migration)


def _print_migration(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    revision = ", ".join(after)
    if before == after:
        print_text(f"The database is up to date, at revision {revision}.")
    elif before:
        print_text(f"Migrated the database from revision {', '.join(before)} to {revision}.")
    else:
        print_text(f"Migrated an empty database to revision {revision}.")


def _migrate(
    settings: Settings,
    url: str,
    seed: str | None,
    *,
    report: Callable[[tuple[str, ...], tuple[str, ...]], None] | None = None,
) -> None:
    from alembic import command  # not needed with a configured database
    from alembic.config import Config
    from alembic.script.revision import ResolutionError
    from alembic.util import CommandError

    migrations = (find_clone() or Path(__file__).parents[1]) / "migrations"
    located = settings.model_copy(update={"database_url": SecretStr(url), "seed": seed})
    config = Config(attributes={"settings": located, "report": report})
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        if isinstance(error.__cause__, LocalidadesError):
            raise error.__cause__ from None
        if not isinstance(error.__cause__, ResolutionError):
            raise ConfigurationError(str(error)) from error
        raise ConfigurationError(
            f"The database is at revision {error.__cause__.argument}, which this version of localidades-api doesn't"
            " know: install the version that migrated it, or use another database."
        ) from error


def on_database(work: Callable[[Database], Awaitable[_Result]], *, writes: bool) -> _Result:
    """Run `work` on the database and return its result; an embedded one is started for that time."""
    settings = read_settings()
    with ready_database(settings, seed=False) as url:
        return asyncio.run(on_database_at(url, settings, work, writes=writes))


async def on_database_at(
    url: str, settings: Settings, work: Callable[[Database], Awaitable[_Result]], *, writes: bool
) -> _Result:
    """Run `work` on the database at an address, and return its result."""
    reading = partial(Database.for_reading, pool_size=1, timeout=settings.database_timeout)
    database = (Database.for_writing if writes else reading)(url)
    try:
        return await work(database)
    finally:
        await database.dispose()


def run_retirement(retirement: Callable[..., Awaitable[list[str]]]) -> list[str]:
    """Retire releases, show progress, and return the names of those that are removed."""

    async def run(database: Database) -> list[str]:
        with show_progress() as progress:
            return await retirement(database, progress=progress, grace=retirement_grace())

    return on_database(run, writes=True)


def retirement_grace() -> float:
    """Return the seconds in which every process notices a retirement and finishes earlier requests."""
    return 2 * read_settings().release_poll + _REQUEST_TIMEOUT


async def list_releases(database: Database) -> tuple[list[Release], Release | None]:
    """Return the releases, oldest first, and the current one."""
    reading = await get_release_snapshot(database)
    return reading.every, reading.current
