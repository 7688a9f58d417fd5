"""The commands for releases: list, publish and retire."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from localidades_api.cli.console import print_json, print_table, print_text
from localidades_api.cli.exit_codes import examples

if TYPE_CHECKING:
    from localidades_api.catalogue.schemas import Release

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
Json = Annotated[bool, typer.Option("--json", help="Print a single JSON document to stdout.")]


@releases.callback(
    invoke_without_command=True,
    epilog=examples("localidades-api releases", "localidades-api releases --json | jq -r '.releases[].release'"),
)
def list_(context: typer.Context, *, as_json: Json = False) -> None:
    """List the releases, oldest first; the current one has a star."""
    if context.invoked_subcommand is not None:
        return
    from localidades_api.catalogue.schemas import PublishedRelease
    from localidades_api.cli.database import list_releases, on_database

    every, current = on_database(list_releases, writes=False)
    if as_json:
        print_json({"releases": [PublishedRelease.of(release, current).model_dump(mode="json") for release in every]})
    else:
        print_table(_tabulate(every, current))


def _tabulate(every: "list[Release]", current: "Release | None") -> Table:
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
    return table


@releases.command(
    epilog=examples(
        "localidades-api releases publish 2018-09", "localidades-api releases publish 2018-09 --json | jq -r .previous"
    )
)
def publish(
    name: Annotated[str, typer.Argument(help="Name of a release, as `localidades-api releases` lists it.")],
    *,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Make a release the current one, for example to go back after a bad import. Nothing is removed."""
    from localidades_api.cli.database import on_database
    from localidades_api.releases.publish import publish_release

    previous = on_database(partial(publish_release, name=name, reason=reason or None), writes=True)
    if as_json:
        print_json({"release": name, "previous": previous})
    elif previous == name:
        print_text(f"Release {name} is already the current one.")
    else:
        print_text(f"Release {name} is now the current one; before, it was {previous or 'none'}.")


@releases.command(
    epilog=examples("localidades-api releases retire 2018-09", "localidades-api releases retire --keep 12")
)
def retire(
    name: Annotated[str | None, typer.Argument(help="Name of a release that is not the current one.")] = None,
    *,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Instead of a name: retire all but this many, those imported last; the current one and the demo stay.",
        ),
    ] = None,
) -> None:
    """Remove old releases for good while the service reads the others, and finish any interrupted retirement."""
    from localidades_api.cli.database import run_retirement
    from localidades_api.releases.retire import retire_oldest, retire_release

    if name is not None and keep is None:
        retired = run_retirement(partial(retire_release, name=name))
    elif name is None and keep is not None:
        retired = run_retirement(partial(retire_oldest, keep=keep))
    else:
        raise typer.BadParameter("give either the name of a release or --keep")
    for gone in retired:
        print_text(f"Release {gone} is retired.")
    if not retired:
        print_text(f"No release is retired: none but the current one is older than the {keep} newest.")
