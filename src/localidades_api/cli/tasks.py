"""The work of the commands on the database, and the output of its results."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from rich.table import Table

from localidades_api import __version__
from localidades_api.catalogue.schemas import CHANGE_KINDS, Publication, PublishedRelease, Release
from localidades_api.cli.console import console, watch_import
from localidades_api.cli.database import ready_database
from localidades_api.database.pool import Database
from localidades_api.database.queries import ReleasesRepository
from localidades_api.database.roles import grant_roles
from localidades_api.errors import LocalidadesError, UnavailableError
from localidades_api.importer import ImportReport, import_catalogue
from localidades_api.releases.publish import publish_release
from localidades_api.releases.retire import finish_retirements, retire_release
from localidades_api.settings import Settings, read_settings

_REQUEST_TIMEOUT = 10.0  # seconds, for the several statements of one request


def run_import(
    source: str, *, release: str | None, dry_run: bool, allow_shrink: bool, keep_demo: bool, reason: str | None
) -> ImportReport:
    """Import a catalogue, remove withdrawn releases, and show progress."""
    settings = read_settings()

    async def run(url: str) -> ImportReport:
        database = Database.for_writing(url)
        try:
            with watch_import() as progress:
                report = await import_catalogue(
                    database,
                    source,
                    progress,
                    release=release,
                    dry_run=dry_run,
                    allow_shrink=allow_shrink,
                    keep_demo=keep_demo,
                    reason=reason,
                )
                if not dry_run:
                    with _published_all_the_same():
                        await finish_retirements(database, progress, grace=_grace(settings))
                return report
        finally:
            await database.dispose()

    with ready_database(settings, seed=False) as url:
        return asyncio.run(run(url))


@contextmanager
def _published_all_the_same() -> Iterator[None]:
    """Report errors and interruptions after a publication without failing the import."""
    try:
        yield
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # the next import or retirement continues
        reason = str(error) if isinstance(error, LocalidadesError) else type(error).__name__
        if isinstance(error, asyncio.CancelledError):
            reason = "interrupted"
        console.print(
            f"The retired release is not removed yet; the next import or retirement removes it: {reason}", markup=False
        )


def _grace(settings: Settings) -> float:
    """Return the seconds within which every process has noticed a withdrawal and finished earlier requests."""
    return 2 * settings.release_poll + _REQUEST_TIMEOUT


def report_as_object(report: ImportReport, *, dry_run: bool) -> dict[str, object]:
    """Return the whole report of an import, with every rejected row, as an object for JSON."""
    comparison = report.comparison
    changes = {name: getattr(comparison, name) for name in CHANGE_KINDS}
    return {
        "release": report.release,
        "published": not dry_run,
        "seconds": round(report.seconds, 3),
        "totals": {
            "estados": report.states,
            "municipios": report.municipalities,
            "localidades": report.localities,
        },
        "compared_with": comparison.previous,
        "changes": None if comparison.previous is None else changes,
        "zeros_restored": report.zeros_restored,
        "losses": report.losses,
        "demo_retired": report.demo_retired,
        "withdrawn": report.withdrawn,
        "rejected": [{"line": line, "reason": reason} for line, reason in report.rejected],
    }


def run_releases() -> tuple[list[Release], Release | None]:
    """Return the releases, oldest first, and the current one."""
    settings = read_settings()
    with ready_database(settings, seed=False) as url:
        return asyncio.run(_read_releases(url, settings))


async def _read_releases(url: str, settings: Settings) -> tuple[list[Release], Release | None]:
    database = Database.for_reading(url, pool_size=1, timeout=settings.database_timeout)
    try:
        await database.check_sessions()
        reading = await ReleasesRepository(database).list_releases()
        return reading.every, reading.current
    finally:
        await database.dispose()


def run_log() -> list[Publication]:
    """Return the log of publications, newest first."""
    settings = read_settings()

    async def run(url: str) -> list[Publication]:
        database = Database.for_reading(url, pool_size=1, timeout=settings.database_timeout)
        try:
            return await ReleasesRepository(database).list_publications()
        finally:
            await database.dispose()

    with ready_database(settings, seed=False) as url:
        return asyncio.run(run(url))


def run_publication(name: str, reason: str | None = None) -> str | None:
    """Make a release the current one, log why, and return the name of the previous one."""

    async def run(url: str) -> str | None:
        database = Database.for_writing(url)
        try:
            return await publish_release(database, name, reason=reason or None)
        finally:
            await database.dispose()

    with ready_database(read_settings(), seed=False) as url:
        return asyncio.run(run(url))


def run_retirement(name: str) -> list[str]:
    """Retire a release, show progress, and return the names of the removed releases."""
    settings = read_settings()

    async def run(url: str) -> list[str]:
        database = Database.for_writing(url)
        try:
            with watch_import() as progress:
                return await retire_release(database, name, progress, grace=_grace(settings))
        finally:
            await database.dispose()

    with ready_database(settings, seed=False) as url:
        return asyncio.run(run(url))


def run_roles(*, reader: str, importer: str) -> str:
    """Create or update the two roles; return the name of the database."""
    settings = read_settings()

    async def run(url: str) -> str:
        database = Database.for_writing(url)
        try:
            return await grant_roles(database, reader=reader, importer=importer, deadline=settings.database_timeout)
        finally:
            await database.dispose()

    with ready_database(settings, seed=False) as url:
        return asyncio.run(run(url))


def describe_roles(database: str, reader: str, importer: str) -> str:
    """Describe the roles, and how to set their passwords."""
    return (
        f"In database {database}\n"
        f"  {reader} can only read the catalogue: serve with it\n"
        f"  {importer} owns the tables: migrate, import and retire with it\n"
        "Neither role has a password yet. Set one in psql, which sends only its hash and keeps it out of the history:\n"
        f"  \\password {reader}\n"
        f"  \\password {importer}"
    )


def releases_as_object(releases: list[Release], current: Release | None) -> dict[str, object]:
    """Return releases as an object for JSON, each as in the list of the service."""
    return {"releases": [PublishedRelease.of(release, current).model_dump(mode="json") for release in releases]}


def tabulate(releases: list[Release], current: Release | None) -> Table:
    """Return releases as a table; the current one has a star."""
    table = Table("", "release", "published", "localities", "municipios", "source", box=None, pad_edge=False)
    for release in releases:
        table.add_row(
            "*" if release == current else "",
            release.name,
            f"{release.published_at:%Y-%m-%d %H:%M} UTC",
            f"{release.localities:,}",
            f"{release.municipalities:,}",
            "generated" if release.is_demo else release.source,
        )
    return table


def tabulate_log(publications: list[Publication]) -> Table:
    """Return the log of publications as a table."""
    table = Table("published", "release", "before", "by", "role", "reason", box=None, pad_edge=False)
    for one in publications:
        table.add_row(
            f"{one.published_at:%Y-%m-%d %H:%M:%S} UTC",
            one.release,
            one.previous or "",
            one.account,
            one.role,
            one.reason or ("import" if one.action == "import" else ""),
        )
    return table


def print_where_to_look(url: str, settings: Settings, address: tuple[str, int]) -> None:
    """Print the served release and the first addresses to visit."""
    try:
        _, current = asyncio.run(_read_releases(url, settings))
        shown = current.name if current else "none yet: load one with `localidades-api import`"
        if current and current.is_demo:
            shown = "demo: its municipios and localities are invented; load INEGI's file with `localidades-api import`"
    except UnavailableError as error:
        shown = f"unknown: {error}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    root = f"http://{host}:{address[1]}"
    port = settings.management_port
    probes = f"\n  probes   http://{host}:{port}/readyz" if port else ""
    data = "" if settings.database_url else f"\n  data     {settings.data_dir.resolve()}"
    console.print(
        f"localidades-api {__version__}\n"
        f"  release  {shown}\n"
        f"  list     {root}/api/census/localidades/\n"
        f"  site     {root}/\n"
        f"  docs     {root}/docs{probes}{data}",
        markup=False,
    )
