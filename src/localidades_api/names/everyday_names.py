"""Reads the everyday names that no rule produces from `everyday_names.tsv`: the key, the name, and why."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files


def read_everyday() -> Mapping[int, Sequence[str]]:
    """Return the everyday names of places by their key."""
    names: dict[int, list[str]] = defaultdict(list)
    text = (files("localidades_api.names") / "everyday_names.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        cvegeo, name, _ = line.split("\t")
        names[int(cvegeo)].append(name)
    return names
