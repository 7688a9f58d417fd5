"""The commands for the extension `outlines`: import and remove."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from localidades_api.catalogue.keys import format_key
from localidades_api.cli.console import print_json, print_text
from localidades_api.cli.exit_codes import examples
from localidades_api.cli.releases import Json

if TYPE_CHECKING:
    from localidades_api.database.pool import Database
    from localidades_api.extensions.outlines.importing import OutlineReport

outlines = typer.Typer(no_args_is_help=True, help="Import and remove outlines of municipios.")
_SHOWN = 10  # keys or files


@outlines.command(
    "import",
    epilog=examples(
        "localidades-api outlines import 'https://gaia.inegi.org.mx/wscatgeo/v2/geo/mgem/{estado}' --edition 2025",
        "localidades-api outlines import mg_2025_integrado.zip --edition 2025 --dry-run",
    ),
)
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="INEGI's Marco Geoestadístico as a zip or its shapefile `…mun.shp`; or GeoJSON of wscatgeo, one file"
            " or a zip of them. A path or an http(s) address, in which {estado} stands for 01 to 32."
        ),
    ],
    edition: Annotated[str, typer.Option(help="Name of the edition, such as 2025.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, report, and change nothing.")] = False,
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Accept outlines that lack over 10% of the municipios or an estado.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Import the outlines of municipios, which replace those of the edition before, while the service keeps running."""
    os.nice(19)  # leave the CPU to a service on the same machine
    from localidades_api.cli.database import on_database
    from localidades_api.extensions.outlines.importing import import_outlines
    from localidades_api.observability.progress_display import show_progress

    async def run(database: "Database") -> "OutlineReport":
        with show_progress() as progress:
            return await import_outlines(
                database, source, edition, progress, dry_run=dry_run, allow_shrink=allow_shrink
            )

    report = on_database(run, writes=True)
    if as_json:
        print_json({**report._asdict(), "imported": not dry_run})
    else:
        print_text("\n".join(_describe(report, dry_run=dry_run)))


def _describe(report: "OutlineReport", *, dry_run: bool) -> Iterator[str]:
    if report.is_new:
        verb = "Would import" if dry_run else "Imported"
        yield f"{verb} edition {report.edition} in {report.seconds:.1f} s: {report.municipios:,} municipios."
    else:
        yield f"Edition {report.edition} has these very outlines already: nothing has changed."
    for what, found in (
        ("Municipios most of whose localities lie outside their outline", report.misplaced),
        ("Municipios of the current release without an outline", report.without_outline),
        ("Outlines that are not in the current release", report.not_in_release),
        ("Files that were not read", report.unread),
    ):
        if found:
            shown = [area if isinstance(area, str) else format_key("municipio", area) for area in found[:_SHOWN]]
            yield f"{what} ({len(found):,}): {', '.join([*shown, *['…'] * (len(found) > _SHOWN)])}"


@outlines.command(epilog=examples("localidades-api outlines remove"))
def remove() -> None:
    """Remove the outlines. What needs them answers 404, all else as before."""
    from localidades_api.cli.database import on_database
    from localidades_api.extensions.outlines.importing import remove_outlines

    name = on_database(remove_outlines, writes=True)
    print_text(f"Edition {name} is removed." if name else "There are no outlines.")
