"""The command `match`, which finds the keys of the places in a file."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from localidades_api.cli.errors import errors_as_sentences
from localidades_api.names.certainty import MAX_SURE, MIN_SURE, SURE

if TYPE_CHECKING:
    from localidades_api.cli.matching.job import MatchJob


def _column(what: str) -> object:
    return typer.Option(metavar="COLUMN", help=f"Header of the column with {what}, if it is not recognized.")


def match(  # noqa: PLR0913  # an option for each column
    file: Annotated[
        str,
        typer.Argument(
            help="Rows as CSV, NDJSON or JSON (.csv, .tsv, .txt, .ndjson, .jsonl, .json); - is CSV on stdin."
            " A pipe is CSV, too."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(help="File to write the rows to, with their answers; - is stdout. [default: FILE.matched.csv]"),
    ] = None,
    release: Annotated[str | None, typer.Option(help="Name of the release; by default the current one.")] = None,
    url: Annotated[
        str | None, typer.Option(help="Root address of a running service to use in place of the database.")
    ] = None,
    sure: Annotated[
        float,
        typer.Option(
            min=MIN_SURE, max=MAX_SURE, help="Probability from which a row is certain: more for fewer mistakes."
        ),
    ] = SURE,
    *,
    nombre: Annotated[str | None, _column("the name of the place")] = None,
    municipio: Annotated[str | None, _column("the name or key of its municipio")] = None,
    estado: Annotated[str | None, _column("the name or key of its estado")] = None,
    latitud: Annotated[str | None, _column("degrees north")] = None,
    longitud: Annotated[str | None, _column("degrees east")] = None,
    cvegeo: Annotated[str | None, _column("the key of nine digits")] = None,
    clave: Annotated[str | None, _column("the key within the municipio")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the output of an interrupted run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Find the key of the place that each row of a file means, and write it beside the row."""
    os.nice(19)  # requests come first on a machine that both share
    columns = {
        "nombre": nombre, "municipio": municipio, "estado": estado, "latitud": latitud, "longitud": longitud,
        "cvegeo": cvegeo, "clave": clave,
    }  # fmt: skip
    with errors_as_sentences():
        # Importing these takes longer than printing help.
        from localidades_api.cli.matching.job import MatchJob, check, check_source, default_output  # noqa: PLC0415

        named = {role: header for role, header in columns.items() if header is not None}
        check_source(file)
        job = MatchJob(file, output or default_output(file), named, resume, force, sure)
        check(job)
        _run(job, release, url)


def _run(job: "MatchJob", release: str | None, url: str | None) -> None:
    # Importing these takes longer than reporting a mistake.
    from localidades_api.cli.matching.run import run_match, run_remote_match  # noqa: PLC0415

    if url is None:
        run_match(job, release)
    else:
        run_remote_match(job, url, release)
