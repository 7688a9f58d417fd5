"""Refuses a catalogue that is published already, lacks or renames much of the last release, or has broken letters."""

import re
from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.catalogue.keys import STATE_KEYS
from localidades_api.errors import AlreadyPublishedError, CatalogueError
from localidades_api.importer.transform import CatalogueRecords
from localidades_api.releases.comparison import Comparison


async def refuse_published(connection: AsyncConnection, name: str, sha256: str) -> None:
    """Raise AlreadyPublishedError if the file is already published, or CatalogueError if its name is taken."""
    published = await connection.execute(
        text(
            """
            SELECT name, sha256, retired_at, EXISTS (SELECT FROM current_release WHERE release_id = id) AS is_current
              FROM releases
             WHERE name = :name OR sha256 = :sha256
             ORDER BY name = :name DESC
             LIMIT 1
            """
        ),
        {"name": name, "sha256": sha256},
    )
    taken = published.one_or_none()
    if taken is None:
        return
    if taken.retired_at is not None:
        raise CatalogueError(
            f"Release {taken.name} is half removed: finish with `localidades-api releases retire {taken.name}`."
        )
    if taken.sha256 != sha256:
        raise CatalogueError(
            f"Release {name} is already published from another file: choose another name with --release."
        )
    remedy = (
        "there is nothing to do."
        if taken.is_current
        else (f"make it the current one with `localidades-api releases publish {taken.name}`.")
    )
    raise AlreadyPublishedError(taken.name, remedy)


_MAX_NAMED = 3  # estados in a message
# Two letters for one: UTF-8 that was read as windows-1252 (`MÃ©xico`), as a code page of DOS or as Mac Roman; or the
# substitute for a letter that an encoding lacks. INEGI's names have none of these.
BROKEN_LETTER = re.compile(r"[ÂÃ├√][^\x00-\x7f]|[?\ufffd]")


def refuse_losses(comparison: Comparison, catalogue: CatalogueRecords) -> None:
    """Raise CatalogueError if a catalogue lacks an estado, or over a tenth of the keys, of the previous release."""
    if comparison.previous is not None and (losses := describe_losses(comparison, catalogue)):
        raise CatalogueError(f"{losses} If that is right, pass --allow-shrink.")


def describe_losses(comparison: Comparison, catalogue: CatalogueRecords) -> str | None:
    """Return a message if a catalogue lacks much of the previous release or, as the first one, of the country."""
    states = [state.nombre for _, state in sorted(catalogue.states.items())]
    has = f"only {_enumerate(states)}" if len(states) <= _MAX_NAMED else f"{len(states)} estados"
    if comparison.previous is None:
        whole = len(STATE_KEYS)
        return f"The file has {has}; Mexico has {whole} estados." if len(states) < whole else None
    before = len(catalogue.localities) + comparison.removed - comparison.added
    share = f"{comparison.removed:,} of the {before:,} localities of release {comparison.previous}"
    if comparison.lost_states:
        return f"The file has {has}: it lacks {_enumerate(comparison.lost_states)}, and {share}."
    return f"The file lacks {share}, over 10%." if comparison.removed * 10 > before else None


def refuse_renames(comparison: Comparison, catalogue: CatalogueRecords) -> None:
    """Raise CatalogueError if over a tenth of the keys that the previous release has too have another name."""
    shared = len(catalogue.localities) - comparison.added
    if comparison.renamed * 10 > shared:
        raise CatalogueError(
            f"The file renames {comparison.renamed:,} of the {shared:,} localities that release {comparison.previous}"
            " has too, over 10%: its names are probably damaged, or beside the wrong keys. Download it again. If the"
            " names are right, pass --allow-renames."
        )


def refuse_broken_letters(catalogue: CatalogueRecords) -> None:
    """Raise CatalogueError if over a hundredth of the names were read or written in the wrong encoding."""
    names = [
        *(state.nombre for state in catalogue.states.values()),
        *(municipality.nombre for municipality in catalogue.municipalities.values()),
        *(locality.nombre for locality in catalogue.localities),
    ]
    if len(broken := list(filter(BROKEN_LETTER.search, names))) * 100 > len(names):
        raise CatalogueError(
            f"{len(broken):,} of the {len(names):,} names in the file have broken letters, such as {broken[0]!r}: a"
            " program has read or saved the file in the wrong encoding. Download it again, and import it as it is. If"
            " the names are right, pass --allow-broken-letters."
        )


def _enumerate(names: Sequence[str]) -> str:
    shown = [*names] if len(names) <= _MAX_NAMED else [*names[: _MAX_NAMED - 1], f"{len(names) - _MAX_NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
