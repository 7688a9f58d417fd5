"""The commands for releases: list, publish and retire."""

from typing import Annotated

import typer

from localidades_api.cli.console import print_json, print_table, print_text
from localidades_api.cli.errors import errors_as_sentences
from localidades_api.cli.help import end_of_help

releases = typer.Typer()

_MAX_REASON = 200


def _reason(given: str) -> str:
    """Return a reason; raise BadParameter for one that would not fit on a line."""
    reason = given.strip()
    if not reason.isprintable() or len(reason) > _MAX_REASON:
        raise typer.BadParameter(f"a reason is a line of up to {_MAX_REASON} characters")
    return reason


Reason = Annotated[
    str | None,
    typer.Option(
        help=f"Why, for the log and the page of releases, which anyone may read; up to {_MAX_REASON} characters.",
        parser=_reason,
    ),
]


def _complete_name(incomplete: str) -> list[str]:
    """Complete the names of releases except the current one; nothing if the database does not answer."""
    from localidades_api.cli.tasks import run_releases  # noqa: PLC0415  # other completions don't need it
    from localidades_api.settings import read_settings  # noqa: PLC0415  # as above

    try:
        if read_settings().database_url is None:
            return []  # the Tab key must not start a private Postgres
        every, current = run_releases()
    except Exception:  # noqa: BLE001  # completion can't show an error
        return []
    return [release.name for release in every if release != current and release.name.startswith(incomplete)]


@releases.callback(invoke_without_command=True, epilog=end_of_help("releases"))
def list_(
    context: typer.Context,
    *,
    log: Annotated[
        bool, typer.Option("--log", help="List the publications instead, newest first: when, by whom, and why.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a single JSON document to stdout.")] = False,
) -> None:
    """List the releases, oldest first; the current one has a star."""
    if context.invoked_subcommand is not None:
        return
    with errors_as_sentences():
        from localidades_api.cli.tasks import releases_as_object, run_releases, tabulate  # noqa: PLC0415  # see `cli`

        if log:
            _print_log(as_json=as_json)
            return
        every, current = run_releases()
        if as_json:
            print_json(releases_as_object(every, current))
        else:
            print_table(tabulate(every, current))


def _print_log(*, as_json: bool) -> None:
    from localidades_api.cli.tasks import run_log, tabulate_log  # noqa: PLC0415  # see `cli`

    publications = run_log()
    if as_json:
        print_json({"publications": [one.model_dump(mode="json") for one in publications]})
    else:
        print_table(tabulate_log(publications))


@releases.command(epilog=end_of_help("releases publish"))
def publish(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a release, as `localidades-api releases` lists it.", autocompletion=_complete_name
        ),
    ],
    *,
    reason: Reason = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a single JSON document to stdout.")] = False,
) -> None:
    """Make a release the current one, for example to go back after a bad import. Nothing is removed."""
    with errors_as_sentences():
        from localidades_api.cli.tasks import run_publication  # noqa: PLC0415  # see `cli`

        previous = run_publication(name, reason)
        if as_json:
            print_json({"release": name, "previous": previous})
        elif previous == name:
            print_text(f"Release {name} is already the current one.")
        else:
            print_text(f"Release {name} is now the current one; before, it was {previous or 'none'}.")


@releases.command(epilog=end_of_help("releases retire"))
def retire(
    name: Annotated[
        str, typer.Argument(help="Name of a release that is not the current one.", autocompletion=_complete_name)
    ],
) -> None:
    """Remove an old release for good while the service reads the others, and finish any interrupted retirement."""
    with errors_as_sentences():
        from localidades_api.cli.tasks import run_retirement  # noqa: PLC0415  # see `cli`

        for gone in run_retirement(name):
            print_text(f"Release {gone} is retired.")
