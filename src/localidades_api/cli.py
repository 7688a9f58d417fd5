"""The command line: serve, import, releases, openapi."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from pydantic import SecretStr
from rich.table import Table

from localidades_api import __version__
from localidades_api.console import console, output, print_report, watch_import
from localidades_api.database import Database
from localidades_api.embedded import provide_database
from localidades_api.errors import LocalidadesError, UnavailableError
from localidades_api.importer import ImportReport, import_catalogue
from localidades_api.repository import CatalogueRepository
from localidades_api.schemas import Release
from localidades_api.settings import Settings, read_settings

app = typer.Typer(
    help="INEGI's catalogue of the localities of Mexico as a fast, read-only HTTP service.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # a local may be an address with a password
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # the signature of an option's callback
    if wanted:
        output.print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer requests.")] = 1,
) -> None:
    """Serve the catalogue over HTTP.

    Without DATABASE_URL it starts a private Postgres, makes its tables and loads a catalogue; that database is kept
    for the next time.
    """
    # The web framework takes a while to load, and only these two commands need it.
    from localidades_api.server import listen, run_server  # noqa: PLC0415

    signal.signal(signal.SIGTERM, _end)
    with _errors_as_sentences():
        settings = read_settings()
        with listen(host, port) as listener, _ready_database(settings) as url:
            # Worker processes read their settings from the environment, as this one did.
            os.environ["DATABASE_URL"] = url
            _print_where_to_look(url, settings, listener.getsockname())
            run_server(listener, workers)


@app.command("import")
def import_(
    source: Annotated[str, typer.Argument(help="A zip, csv or txt of INEGI: a path or an http(s) address.")],
    release: Annotated[
        str | None,
        typer.Option(help="Name of the release, as 2018-09; else it is taken from the file's name."),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do all of it, report, and take it back.")] = False,
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Accept a catalogue that has lost more than a tenth.")
    ] = False,
) -> None:
    """Import a catalogue and publish it as the current release, while the service keeps answering."""

    async def run(url: str) -> ImportReport:
        database = Database.for_writing(url)
        try:
            with watch_import() as progress:
                return await import_catalogue(
                    database, source, progress, release=release, dry_run=dry_run, allow_shrink=allow_shrink
                )
        finally:
            await database.dispose()

    os.nice(10)  # on a machine that both share, requests come first
    with _errors_as_sentences(), _ready_database(read_settings(), seed=False) as url:
        print_report(asyncio.run(run(url)), dry_run=dry_run)


@app.command()
def releases() -> None:
    """List the releases, oldest first; the current one has a star."""
    with _errors_as_sentences():
        settings = read_settings()
        with _ready_database(settings, seed=False) as url:
            every, current = asyncio.run(_read_releases(url, settings))
    table = Table("", "release", "published", "localities", "municipios", "source", box=None, pad_edge=False)
    for release in every:
        table.add_row(
            "*" if release == current else "",
            release.name,
            f"{release.published_at:%Y-%m-%d %H:%M} UTC",
            f"{release.localities:,}",
            f"{release.municipalities:,}",
            "generated" if release.is_demo else release.source,
        )
    output.print(table)


@app.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    from localidades_api.app import create_app  # noqa: PLC0415  # as above

    with _errors_as_sentences():
        output.print(json.dumps(create_app(read_settings()).openapi(), ensure_ascii=False, indent=2), markup=False)


@contextmanager
def _errors_as_sentences() -> Iterator[None]:
    """Say what was wrong in a sentence and end with 1; a Ctrl-C ends with 130, as shells expect."""
    try:
        yield
    except LocalidadesError as error:
        console.print(
            f"[red]error:[/] {error}" if console.is_terminal else f"error: {error}",
            markup=console.is_terminal,
        )
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _end(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # the signature of a handler
    """Unwind on SIGTERM, so that what was opened is closed."""
    raise SystemExit(0)


@contextmanager
def _ready_database(settings: Settings, *, seed: bool = True) -> Iterator[str]:
    """Lend the address of the database; an embedded one is brought to today's schema, and seeded if need be.

    A database of the user's is never migrated unasked.
    """
    with provide_database(settings) as url:
        if settings.database_url is None:
            _migrate(settings.model_copy(update={"database_url": SecretStr(url)}), seed=seed)
        yield url


def _migrate(settings: Settings, *, seed: bool) -> None:
    from alembic import command  # noqa: PLC0415  # as above
    from alembic.config import Config  # noqa: PLC0415  # as above

    inside, beside = Path(__file__).parent / "migrations", Path(__file__).parents[2] / "migrations"
    config = Config(attributes={"settings": settings, "seed": seed})
    config.set_main_option("script_location", str(inside if inside.is_dir() else beside).replace("%", "%%"))
    command.upgrade(config, "head")


async def _read_releases(url: str, settings: Settings) -> tuple[list[Release], Release | None]:
    database = Database.for_reading(url, pool_size=1, timeout=settings.database_timeout)
    try:
        return await CatalogueRepository(database).list_releases()
    finally:
        await database.dispose()


def _print_where_to_look(url: str, settings: Settings, address: tuple[str, int]) -> None:
    try:
        _, current = asyncio.run(_read_releases(url, settings))
        shown = current.name if current else "none: import a catalogue, or run `alembic upgrade head`"
        if current and current.is_demo:
            shown = "demo: its municipios and localities are invented; load INEGI's file with `localidades-api import`"
    except UnavailableError as error:
        shown = f"unknown: {error}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    root = f"http://{host}:{address[1]}"
    console.print(
        f"localidades-api {__version__}\n"
        f"  release  {shown}\n"
        f"  list     {root}/api/census/localidades/\n"
        f"  browse   {root}/api/census/localidades/?format=api\n"
        f"  docs     {root}/docs",
        markup=False,
    )
