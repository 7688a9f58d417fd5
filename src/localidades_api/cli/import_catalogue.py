"""Imports a catalogue, and prints what changed."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from localidades_api.catalogue.schemas import CHANGE_KINDS
from localidades_api.cli.database import on_database, retirement_grace
from localidades_api.database.pool import Database
from localidades_api.errors import LocalidadesError
from localidades_api.importer.run import ImportOptions, ImportReport, import_catalogue
from localidades_api.observability.progress_display import console, show_progress
from localidades_api.releases.retire import finish_retirements

_MAX_SHOWN_REJECTIONS = 20


def run_import(source: str, options: ImportOptions) -> ImportReport:
    """Import a catalogue, remove withdrawn releases, and show progress."""

    async def run(database: Database) -> ImportReport:
        with show_progress() as progress:
            report = await import_catalogue(database, source, progress, options)
            if not options.dry_run:
                with _published_despite_errors():
                    await finish_retirements(database, progress, grace=retirement_grace())
            return report

    return on_database(run, writes=True)


def report_as_object(report: ImportReport, *, dry_run: bool) -> dict[str, object]:
    """Return the whole report of an import, with every rejected row, as an object for JSON."""
    comparison = report.comparison
    changes = {name: getattr(comparison, name) for name in CHANGE_KINDS}
    return {
        "release": report.release,
        "published": not dry_run,
        "seconds": round(report.seconds, 3),
        "totals": {"estados": report.states, "municipios": report.municipalities, "localidades": report.localities},
        "compared_with": comparison.previous,
        "changes": None if comparison.previous is None else changes,
        "losses": report.losses,
        "demo_retired": report.demo_retired,
        "withdrawn": report.withdrawn,
        "rejected": [rejected._asdict() for rejected in report.rejected],
    }


@contextmanager
def _published_despite_errors() -> Iterator[None]:
    """Report errors and interruptions after the publication, without failing the import."""
    try:
        yield
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # the next import or retirement finishes it
        reason = str(error) if isinstance(error, LocalidadesError) else type(error).__name__
        if isinstance(error, asyncio.CancelledError):
            reason = "interrupted"
        console.print(
            f"The retired release is not removed yet; the next import or retirement removes it: {reason}", markup=False
        )


def print_report(report: ImportReport, *, dry_run: bool = False) -> None:
    """Print the result of an import, and the first rejected rows."""
    comparison = report.comparison
    verb = "would publish" if dry_run else "published"
    lines = [
        f"{verb} release {report.release} in {report.seconds:.1f} s: {report.localities:,} localities"
        f" in {report.municipalities:,} municipios, {report.states} estados"
    ]
    if comparison.previous is not None:
        lines.append(
            f"compared with {comparison.previous}: {comparison.added:,} added, {comparison.removed:,} removed,"
            f" {comparison.renamed:,} renamed, {comparison.relocated:,} relocated,"
            f" {comparison.updated:,} updated"
        )
    if report.losses:
        lines.append(report.losses)
    if report.demo_retired:
        lines.append(
            f"the demo {'would be' if dry_run else 'is'} retired because its places are invented; --keep-demo keeps it"
        )
    lines.append(f"{len(report.rejected):,} rows rejected, {report.withdrawn:,} withdrawn localities left out")
    lines += [f"  line {line}: {reason}" for line, reason in report.rejected[:_MAX_SHOWN_REJECTIONS]]
    if len(report.rejected) > _MAX_SHOWN_REJECTIONS:
        lines.append(f"  and {len(report.rejected) - _MAX_SHOWN_REJECTIONS:,} more")
    console.print("\n".join(lines), markup=False)
