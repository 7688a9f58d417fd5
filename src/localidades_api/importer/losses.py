"""What a catalogue lacks that the release before it has: more likely, the file is incomplete, or another one."""

from collections.abc import Sequence

from localidades_api.catalogue.keys import STATE_KEYS
from localidades_api.errors import CatalogueError
from localidades_api.importer.transform import Catalogue
from localidades_api.releases.comparison import Comparison

_MAX_NAMED = 3  # estados in a sentence


def refuse_losses(comparison: Comparison, catalogue: Catalogue) -> None:
    """Refuse a catalogue that lacks an estado, or more than a tenth of the keys, of the release before it."""
    if comparison.previous is not None and (losses := describe_losses(comparison, catalogue)):
        raise CatalogueError(f"{losses} If that is right, pass --allow-shrink.")


def describe_losses(comparison: Comparison, catalogue: Catalogue) -> str | None:
    """Return a sentence if a catalogue lacks much of the release before it or, as the first one, of the country."""
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


def _enumerate(names: Sequence[str]) -> str:
    """Return names as a list in words; of many, the first two, and how many there are besides."""
    shown = [*names] if len(names) <= _MAX_NAMED else [*names[: _MAX_NAMED - 1], f"{len(names) - _MAX_NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
