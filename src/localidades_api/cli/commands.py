"""The commands and their options.

Commands import what they need when they run, which keeps help and completion fast.
"""

import atexit
import gc
import os
import signal
import sys
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn

import typer
from pydantic import ValidationError

from localidades_api import __version__
from localidades_api.bulk.options import MatchOptions
from localidades_api.catalogue.columns import MATCHED_BY_DEFAULT
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.messages import describe_fault
from localidades_api.catalogue.schemas import MatchableRow
from localidades_api.cli.console import print_json, print_text
from localidades_api.cli.exit_codes import Commands, examples
from localidades_api.cli.mcp import mcp
from localidades_api.cli.outlines import outlines
from localidades_api.cli.releases import Json, Reason, releases
from localidades_api.names.weights import SURE

_EXIT_CODES = """\b
Exit codes:
    0  done
    1  failed, and the error says why
    2  wrong command, option or argument; match: the file can't be read
    3  import: this very file is already published; nothing has changed
   74  the output can't be written; an import is still published
  130  interrupted (Ctrl-C)
  141  the program that reads the output has exited, as `| head` does
  143  ended by SIGTERM; serve: 0"""

app = typer.Typer(
    cls=Commands,
    help="INEGI's catalogue of the localities of Mexico as a fast, read-only HTTP service.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Only a terminal gets frames and colours; with GITHUB_ACTIONS set, rich would use them in a pipe too.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    pretty_exceptions_enable=False,  # `Commands` reports errors
)

_SERVICE = "http://127.0.0.1:8000"  # as `serve` listens

_Source = Annotated[
    str, typer.Argument(help="INEGI's zip, csv or txt file, as a path or an http(s) address; - for stdin; or `demo`.")
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # the signature of a callback
    if wanted:
        print_text(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[  # noqa: ARG001  # the callback handles it
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    # Code is never garbage: traversing it in collections took a third of the time to start and to exit.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)


@app.command(
    help="Serve the catalogue over HTTP.\n\n"
    "Without DATABASE_URL it starts a private Postgres, creates its tables and loads the demo. The next start"
    " uses the same database.",
    epilog=examples(
        "localidades-api serve",
        "localidades-api serve --host 0.0.0.0 --port 80 --workers 2",
        "DATABASE_URL=postgresql://user@host/name localidades-api serve",
    ),
)
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of worker processes.")] = 1,
    application: Annotated[
        str, typer.Option("--app", help="Application to serve, as MODULE:ATTRIBUTE: this one with additions of yours.")
    ] = "localidades_api.asgi:app",
    root_path: Annotated[
        str, typer.Option(help="Path, such as /geo, that a proxy in front removes from the addresses it passes on.")
    ] = "",
    *,
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart when a Python file of this folder changes: for development.")
    ] = False,
) -> None:
    """Serve the catalogue over HTTP."""
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    from localidades_api.cli.serve import run_service
    from localidades_api.server.run import ServerOptions

    run_service(host, port, ServerOptions(application, workers, root_path.rstrip("/"), reload=reload))


def _exit_on_sigterm(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # the signature of a handler
    """Raise SystemExit, so that resources are closed."""
    raise SystemExit(0)


@app.command(
    help="Migrate the database to this version, and load a catalogue if it has none and one is named.\n\n"
    "LOCALIDADES_SEED can name the catalogue too. If neither does, only the private Postgres gets the demo. In a clone"
    " of the repository, `alembic upgrade head` does the same.",
    epilog=examples(
        "DATABASE_URL=postgresql://user@host/name localidades-api migrate",
        "localidades-api migrate --seed catun_localidad_2026-11.zip",
    ),
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
    """Migrate the database to this version, and load a catalogue if it has none and one is named."""
    from localidades_api.cli.database import run_migrations

    run_migrations(seed=seed)


@app.command(
    "import",
    epilog=examples(
        "localidades-api import catun_localidad_2026-11.zip",
        "localidades-api import catun_localidad.zip --release 2026-11 --dry-run",
        "localidades-api import https://example.org/catun.zip --release 2026-11",
        "localidades-api import demo --json | jq .totals",
    ),
)
def import_(  # an argument for each option
    source: _Source,
    release: Annotated[
        str | None, typer.Option(help="Name of the release, such as 2018-09; by default taken from the file's name.")
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run the whole import, report, and roll back.")] = False,
    allow_shrink: Annotated[
        bool,
        typer.Option("--allow-shrink", help="Accept a catalogue that lacks over 10% of the localities or an estado."),
    ] = False,
    allow_renames: Annotated[
        bool, typer.Option("--allow-renames", help="Accept a catalogue that renames over 10% of the localities.")
    ] = False,
    allow_broken_letters: Annotated[
        bool, typer.Option("--allow-broken-letters", help="Accept names that look as if read in the wrong encoding.")
    ] = False,
    keep_demo: Annotated[
        bool, typer.Option("--keep-demo", help="Keep the demo; by default a real catalogue retires it.")
    ] = False,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Import a catalogue and publish it as the current release, while the service keeps running."""
    os.nice(19)  # leave the CPU to a service on the same machine
    from localidades_api.cli.import_catalogue import print_report, report_as_object, run_import
    from localidades_api.importer.run import ImportOptions

    options = ImportOptions(
        release=release,
        dry_run=dry_run,
        allow_shrink=allow_shrink,
        allow_renames=allow_renames,
        allow_broken_letters=allow_broken_letters,
        keep_demo=keep_demo,
        reason=reason or None,
    )
    report = run_import(source, options)
    if as_json:
        print_json(report_as_object(report, dry_run=dry_run))
    else:
        print_report(report, dry_run=dry_run)


app.add_typer(releases, name="releases")
app.add_typer(outlines, name="outlines")


def _option(name: str) -> Any:  # noqa: ANN401  # as typer's
    """Return the option of a field of MatchOptions, which describes and checks it."""
    return typer.Option(help=MatchOptions.model_fields[name].description)


def _column(name: str, otherwise: str = "") -> Any:  # noqa: ANN401  # as typer's
    """Return the option with the header of a column, which is described as the member of a row."""
    meaning = MatchableRow.model_fields[name].description
    return typer.Option(metavar="COLUMN", help=f"Header of the column, if it isn't recognized{otherwise}. {meaning}")


@app.command(
    epilog=examples(
        "localidades-api match places.csv --url https://example.org",
        "localidades-api match places.xlsx --catalogue catun_localidad.zip",
        "localidades-api match places.csv --nombre 'Lugar de origen'",
        "localidades-api match places.xlsx --output found.xlsx",
        "localidades-api match - < places.csv > found.csv",
        "localidades-api match places.csv --fields nombre,latitud,longitud",
    )
)
def match(  # noqa: PLR0913  # an argument for each option
    file: Annotated[
        str,
        typer.Argument(
            help="Rows as CSV, NDJSON, JSON or an Excel workbook (.csv, .tsv, .txt, .ndjson, .jsonl, .json, .xlsx);"
            " - for CSV on stdin. A pipe is read as CSV."
        ),
    ],
    output: Annotated[
        str | None, typer.Option(help="File for the rows and their answers; - for stdout. [default: FILE.matched.csv]")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help=f"Root address of the running service that answers. [default: {_SERVICE}]")
    ] = None,
    release: Annotated[str | None, typer.Option(help="Name of its release; by default the current one.")] = None,
    catalogue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="INEGI's zip, csv or txt to use instead of a service, or `demo`; again for earlier releases,"
            " the newest first, whose names are then found too.",
        ),
    ] = None,
    sure: Annotated[float, _option("sure")] = SURE,
    *,
    sheet: Annotated[str | None, _option("sheet")] = None,
    header_row: Annotated[int | None, _option("header_row")] = None,
    lang: Annotated[Literal["en", "es"], _option("lang")] = "en",
    fields: Annotated[str, _option("fields")] = ",".join(MATCHED_BY_DEFAULT),
    kind: Annotated[PlaceKind | None, _option("kind")] = None,
    nombre: Annotated[str | None, _column("nombre")] = None,
    municipio: Annotated[str | None, _column("municipio", ", or the municipio of all rows that give none")] = None,
    cve_mun: Annotated[str | None, _column("cve_mun")] = None,
    estado: Annotated[str | None, _column("estado", ", or the estado of all rows that give none")] = None,
    latitud: Annotated[str | None, _column("latitud")] = None,
    longitud: Annotated[str | None, _column("longitud")] = None,
    cvegeo: Annotated[str | None, _column("cvegeo")] = None,
    clave: Annotated[str | None, _column("clave")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Match each row of a file to a place, and write the place's key beside the row."""
    os.nice(19)  # leave the CPU to a service on the same machine
    from localidades_api.cli.match import MatchJob, run_match

    if catalogue and not url is release is None:
        raise typer.BadParameter("--catalogue reads files only: leave out --url and --release")
    try:
        options = MatchOptions(
            sure=sure, sheet=sheet, header_row=header_row, lang=lang, fields=fields, kind=kind, nombre=nombre,
            municipio=municipio, cve_mun=cve_mun, estado=estado, latitud=latitud, longitud=longitud, cvegeo=cvegeo,
            clave=clave,
        )  # fmt: skip
    except ValidationError as error:
        [fault, *_] = error.errors()
        raise typer.BadParameter(
            describe_fault(fault), param_hint=f"'--{fault['loc'][0]}'".replace("_", "-")
        ) from error
    run_match(MatchJob(file, output, options, force), catalogue or [], url or _SERVICE, release)


app.command(epilog=examples("localidades-api mcp", "localidades-api mcp --url https://example.org"))(mcp)


@app.command(epilog=examples("localidades-api openapi > openapi.json", "localidades-api openapi | jq '.paths | keys'"))
def openapi() -> None:
    """Print the OpenAPI document as JSON."""
    from localidades_api.app import create_app

    print_json(create_app().openapi(), indent=2)
