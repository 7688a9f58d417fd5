"""The command line: serve, migrate, import, releases, roles, verify, match, export, openapi, mcp.

A command imports what it needs when it runs, so that help and completion are fast.
"""

import atexit
import gc
import logging.config
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from types import FrameType
from typing import Annotated, NoReturn

import typer

from localidades_api import __version__
from localidades_api.cli.console import (
    print_json,
    print_report,
    print_text,
    watch_import,
)
from localidades_api.cli.errors import USAGE, Commands, errors_as_sentences
from localidades_api.cli.help import end_of_help
from localidades_api.cli.match import match
from localidades_api.cli.mcp import mcp
from localidades_api.cli.releases import Reason, releases

app = typer.Typer(
    cls=Commands,
    help="INEGI's catalogue of the localities of Mexico as a fast, read-only HTTP service.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Frames and colours on a terminal only; with GITHUB_ACTIONS rich would use them in a pipe too.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    pretty_exceptions_enable=False,  # an error is a sentence
)

_Source = Annotated[
    str,
    typer.Argument(help="INEGI's zip, csv, txt or xlsx file, as a path or an http(s) address; - is stdin; or `demo`."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print a single JSON document to stdout.")]


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # the signature of an option's callback
    if wanted:
        print_text(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[  # noqa: ARG001  # its callback has acted on it
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    # Loaded code is never garbage: collections that traversed it took a third of the time to start and to exit.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)


@app.command(
    help="Serve the catalogue over HTTP.\n\n"
    "Without DATABASE_URL it starts a private Postgres, creates its tables and loads the demo. The next start"
    " uses the same database.",
    epilog=end_of_help("serve"),
)
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of worker processes.")] = 1,
) -> None:
    """Serve the catalogue over HTTP."""
    signal.signal(signal.SIGTERM, _end)
    with errors_as_sentences():
        from localidades_api.cli.database import ready_database  # noqa: PLC0415  # see above
        from localidades_api.cli.tasks import print_where_to_look  # noqa: PLC0415  # see above
        from localidades_api.observability.logging import log_config  # noqa: PLC0415  # see above
        from localidades_api.server.run import run_server  # noqa: PLC0415  # see above
        from localidades_api.server.sockets import listen  # noqa: PLC0415  # see above
        from localidades_api.settings import read_settings  # noqa: PLC0415  # see above

        settings = read_settings()

        def listen_on_all(stack: ExitStack) -> list[socket]:
            ports = {"--port": port}
            if settings.management_port:
                ports["LOCALIDADES_MANAGEMENT_PORT"] = settings.management_port
            return [stack.enter_context(listen(host, number, setting=setting)) for setting, number in ports.items()]

        # A port that is in use is refused at once. While a first start loads the demo, clients are refused, too: they
        # would wait for an answer until the end.
        with ExitStack() as stack:
            listen_on_all(stack)
        with ExitStack() as stack:
            url = stack.enter_context(ready_database(settings, watch=True))
            sockets = listen_on_all(stack)
            # Worker processes read their settings from the environment, and so does this one without workers.
            os.environ["DATABASE_URL"] = url
            logging.config.dictConfig(log_config(settings.log_format, settings.log_level))
            print_where_to_look(url, settings, sockets[0].getsockname())
            run_server(sockets, settings, workers=workers)


@app.command(
    help="Migrate the database to this version, and load a catalogue if one is named and it has none.\n\n"
    "LOCALIDADES_SEED names the catalogue too. If none is named, only the private Postgres gets the demo. In a clone"
    " of the repository, `alembic upgrade head` does the same.",
    epilog=end_of_help("migrate"),
)
def migrate(
    *,
    seed: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE", help="Catalogue to load if the database has none: a path, an http(s) address, or `demo`."
        ),
    ] = None,
) -> None:
    """Migrate the database to this version, and load a catalogue if one is named and it has none."""
    with errors_as_sentences():
        from localidades_api.cli.database import run_migrations  # noqa: PLC0415  # see above

        run_migrations(print_text, seed=seed)


@app.command("import", epilog=end_of_help("import"))
def import_(
    source: _Source,
    release: Annotated[
        str | None,
        typer.Option(help="Name of the release, such as 2018-09; by default it is taken from the file's name."),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run the whole import, report, and roll it back.")] = False,
    allow_shrink: Annotated[
        bool,
        typer.Option("--allow-shrink", help="Accept a catalogue that lacks over 10% of the localities or an estado."),
    ] = False,
    keep_demo: Annotated[
        bool, typer.Option("--keep-demo", help="Keep the demo; by default a real catalogue retires it.")
    ] = False,
    reason: Reason = None,
    as_json: _Json = False,
) -> None:
    """Import a catalogue and publish it as the current release, while the service keeps answering."""
    os.nice(19)  # requests come first on a machine that both share
    with errors_as_sentences():
        from localidades_api.cli.tasks import report_as_object, run_import  # noqa: PLC0415  # see above

        report = run_import(
            source,
            release=release,
            dry_run=dry_run,
            allow_shrink=allow_shrink,
            keep_demo=keep_demo,
            reason=reason or None,
        )
        if as_json:
            print_json(report_as_object(report, dry_run=dry_run))
        else:
            print_report(report, dry_run=dry_run)


app.add_typer(releases, name="releases")


@app.command(epilog=end_of_help("roles"))
def roles(
    reader: Annotated[str, typer.Option(help="Read-only role, for serving.")] = "localidades_reader",
    importer: Annotated[
        str, typer.Option(help="Role that owns the tables, for imports and migrations.")
    ] = "localidades_importer",
) -> None:
    """Create or update the database's two roles, without passwords, as a superuser or an owner with CREATEROLE."""
    with errors_as_sentences():
        from localidades_api.cli.tasks import describe_roles, run_roles  # noqa: PLC0415  # see above

        print_text(describe_roles(run_roles(reader=reader, importer=importer), reader, importer))


@app.command(epilog=end_of_help("verify"))
def verify(
    source: _Source,
    url: Annotated[str, typer.Option(help="Root address of the service, this one or any other with the same API.")] = (
        "http://127.0.0.1:8000"
    ),
    release: Annotated[
        str | None, typer.Option(help="Name of the release to check; by default the current one.")
    ] = None,
    *,
    as_json: _Json = False,
) -> None:
    """Compare what a running service lists with INEGI's file, record by record. This needs no database."""
    with errors_as_sentences(status=USAGE):
        from localidades_api.cli.verification import verify_service  # noqa: PLC0415  # see above
        from localidades_api.cli.verification.report import as_object, describe  # noqa: PLC0415  # see above

        with watch_import() as progress:
            verification = verify_service(source, url, progress, release=release)
        if as_json:
            # On one line: a report of two unrelated catalogues is 100 MB, and indenting it takes half a minute.
            print_json(as_object(verification))
        else:
            print_text("\n".join(describe(verification)))
        raise typer.Exit(0 if verification.agrees else 1)


app.command(epilog=end_of_help("match"))(match)


@app.command(epilog=end_of_help("export"))
def export(
    folder: Annotated[Path, typer.Argument(help="Folder to create.")],
    release: Annotated[str | None, typer.Option(help="Name of the release; by default the current one.")] = None,
    *,
    no_records: Annotated[
        bool, typer.Option("--no-records", help="Leave out the files of single localities, nine tenths of all files.")
    ] = False,
) -> None:
    """Write a release as files that any web server or object store serves as they are."""
    os.nice(19)  # requests come first on a machine that both share
    with errors_as_sentences():
        from localidades_api.cli.export import run_export  # noqa: PLC0415  # see above

        run_export(folder, release, with_records=not no_records)


app.command(epilog=end_of_help("mcp"))(mcp)


@app.command(epilog=end_of_help("openapi"))
def openapi() -> None:
    """Print the OpenAPI document as JSON."""
    with errors_as_sentences():
        from localidades_api.app import create_app  # noqa: PLC0415  # see above
        from localidades_api.settings import read_settings  # noqa: PLC0415  # see above

        print_json(create_app(read_settings()).openapi(), indent=2)


def _end(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # the signature of a handler
    """Unwind on SIGTERM, so that resources are closed."""
    raise SystemExit(0)
