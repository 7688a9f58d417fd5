"""The command line: serve, migrate, import, releases, roles, verify, openapi.

What a command works with is loaded when it runs: help and a shell's completion answer without it.
"""

import os
import signal
import sys
from contextlib import ExitStack
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
from localidades_api.cli.releases import releases

app = typer.Typer(
    cls=Commands,
    help="INEGI's catalogue of the localities of Mexico as a fast, read-only HTTP service.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Frames and colours on a terminal only, whatever GITHUB_ACTIONS makes of a pipe.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    pretty_exceptions_enable=False,  # an error is a sentence
)

_Source = Annotated[
    str, typer.Argument(help="A zip, csv or txt of INEGI: a path or an http(s) address; or the word demo.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else, to stdout.")]


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # the signature of an option's callback
    if wanted:
        print_text(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


@app.command(
    help="Serve the catalogue over HTTP.\n\n"
    "Without DATABASE_URL it starts a private Postgres, makes its tables and loads a catalogue; that database is"
    " kept for the next time.",
    epilog=end_of_help("serve"),
)
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer requests.")] = 1,
) -> None:
    """Serve the catalogue over HTTP."""
    signal.signal(signal.SIGTERM, _end)
    with errors_as_sentences():
        from localidades_api.cli.database import ready_database  # noqa: PLC0415  # see above
        from localidades_api.cli.tasks import print_where_to_look  # noqa: PLC0415  # see above
        from localidades_api.server.process import run_server  # noqa: PLC0415  # see above
        from localidades_api.server.sockets import listen  # noqa: PLC0415  # see above
        from localidades_api.settings import read_settings  # noqa: PLC0415  # see above

        settings = read_settings()
        with ExitStack() as stack:
            listeners = stack.enter_context(listen(host, port, workers=workers))
            shared = [stack.enter_context(listen(host, one))[0] for one in filter(None, [settings.management_port])]
            url = stack.enter_context(ready_database(settings, watch=True))
            # Worker processes read their settings from the environment, and so does this one where it is the only one.
            os.environ["DATABASE_URL"] = url
            print_where_to_look(url, settings, listeners[0].getsockname())
            run_server([[listener, *shared] for listener in listeners], read_settings())


@app.command(
    help="Bring the database's tables to this version, and load a catalogue where there is none.\n\n"
    "The catalogue is that of LOCALIDADES_SEED, which is the demo unless it is set. In a clone `alembic upgrade"
    " head` does the same.",
    epilog=end_of_help("migrate"),
)
def migrate(
    *,
    no_seed: Annotated[bool, typer.Option("--no-seed", help="Load no catalogue.")] = False,
) -> None:
    """Bring the database's tables to this version, and load a catalogue where there is none."""
    with errors_as_sentences():
        from localidades_api.cli.database import run_migrations  # noqa: PLC0415  # see above

        run_migrations(print_text, seed=not no_seed)


@app.command("import", epilog=end_of_help("import"))
def import_(
    source: _Source,
    release: Annotated[
        str | None,
        typer.Option(help="Name of the release, as 2018-09; else it is taken from the file's name."),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do all of it, report, and take it back.")] = False,
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Accept a catalogue that has lost more than a tenth.")
    ] = False,
    keep_demo: Annotated[
        bool, typer.Option("--keep-demo", help="Leave the demo where it is; else a real catalogue retires it.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Import a catalogue and publish it as the current release, while the service keeps answering."""
    os.nice(19)  # on a machine that both share, requests come first
    with errors_as_sentences():
        from localidades_api.cli.tasks import report_as_object, run_import  # noqa: PLC0415  # see above

        report = run_import(source, release=release, dry_run=dry_run, allow_shrink=allow_shrink, keep_demo=keep_demo)
        if as_json:
            print_json(report_as_object(report, dry_run=dry_run))
        else:
            print_report(report, dry_run=dry_run)


app.add_typer(releases, name="releases")


@app.command(epilog=end_of_help("roles"))
def roles(
    reader: Annotated[str, typer.Option(help="Role that can only read, to serve with.")] = "localidades_reader",
    importer: Annotated[
        str, typer.Option(help="Role that owns the tables, to import and migrate with.")
    ] = "localidades_importer",
) -> None:
    """Make the database's two roles, or bring them up to date; DATABASE_URL names who may, and no password is set."""
    with errors_as_sentences():
        from localidades_api.cli.tasks import describe_roles, run_roles  # noqa: PLC0415  # see above

        print_text(describe_roles(run_roles(reader=reader, importer=importer), reader, importer))


@app.command(epilog=end_of_help("verify"))
def verify(
    source: _Source,
    url: Annotated[str, typer.Option(help="Root of the service, ours or another of the same contract.")] = (
        "http://127.0.0.1:8000"
    ),
    release: Annotated[str | None, typer.Option(help="Name of the release to check; else the current one.")] = None,
    *,
    as_json: _Json = False,
) -> None:
    """Hold what a running service lists to a file of INEGI, record by record; no database is needed."""
    with errors_as_sentences(status=USAGE):
        from localidades_api.verification import verify_service  # noqa: PLC0415  # see above
        from localidades_api.verification.report import as_object, describe  # noqa: PLC0415  # see above

        with watch_import() as progress:
            verification = verify_service(source, url, progress, release=release)
        if as_json:
            # On one line: for catalogues with little in common it is 100 MB, and indenting them takes half a minute.
            print_json(as_object(verification))
        else:
            print_text("\n".join(describe(verification)))
        raise typer.Exit(0 if verification.agrees else 1)


@app.command(epilog=end_of_help("openapi"))
def openapi() -> None:
    """Print the OpenAPI document, as JSON."""
    with errors_as_sentences():
        from localidades_api.app import create_app  # noqa: PLC0415  # see above
        from localidades_api.settings import read_settings  # noqa: PLC0415  # see above

        print_json(create_app(read_settings()).openapi(), indent=2)


def _end(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # the signature of a handler
    """Unwind on SIGTERM, so that what was opened is closed."""
    raise SystemExit(0)
