"""The command that writes a release as files."""

import os
from pathlib import Path
from typing import Annotated

import typer

from localidades_api.cli.errors import errors_as_sentences


def mirror(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the mirror: a new one, or one that holds a mirror already.")
    ],
    release: Annotated[str | None, typer.Option(help="Name of the release; by default the current one.")] = None,
    url: Annotated[
        str | None, typer.Option(help="Root address of a running service to read from; by default the database.")
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="Root address of a service to which nginx sends what files can't answer.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=64, help="Number of processes that write. [default: one for each core]")
    ] = None,
) -> None:
    """Write a release as compressed files that nginx serves in place of the service, and the nginx configuration."""
    os.nice(19)  # requests come first on a machine that both share
    with errors_as_sentences():
        # What takes longer to import than help takes to print.
        from localidades_api.cli.mirroring import MirrorJob, run_mirror  # noqa: PLC0415
        from localidades_api.cli.service import Service  # noqa: PLC0415

        parsed = Service.parse(origin, None, "--origin").address if origin else None
        run_mirror(MirrorJob(folder, release, url, parsed, processes or _cores()))


def _cores() -> int:
    """Return how many cores this process may use; macOS tells only how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
