"""Draws slips of the source and of the table, without those that are known to change no behaviour."""

import random
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import sqrt
from pathlib import Path

from tests.mutation.slips import Edit, Slip, is_python, slips_of
from tests.support.wire import ROOT

HERE = Path(__file__).parent
_SHARE_OF_TABLE = 0.1  # of a sample
_LATELY = 14  # days


def draw(seed: int, count: int, paths: list[str]) -> list[Slip]:
    """Return `count` different slips of the files and folders, or all if there are fewer; the seed decides which.

    A file that changed in many commits of the last two weeks is drawn more often.
    """
    source = [slip for path in _python_files() if _is_below(path, paths) for slip in slips_of(path, _read(path))]
    table = [slip for slip in slips_of_table() if _is_below(slip.path, paths)]
    chance = random.Random(seed)  # noqa: S311  # nothing is kept secret
    drawn = chance.sample(table, min(len(table), round(count * _SHARE_OF_TABLE)))
    weights = _weights()
    # The largest of `random() ** (1 / weight)`: a weighted sample without repetition (Efraimidis and Spirakis).
    keyed = [(chance.random() ** (1 / weights[slip.path]), place) for place, slip in enumerate(source)]
    ordered = (source[place] for _, place in sorted(keyed, reverse=True))
    valid = (slip for slip in ordered if is_python(slip.applied(_read(slip.path))))
    return [*drawn, *islice(valid, count - len(drawn))]


def slips_of_table() -> Iterator[Slip]:
    """Yield the slips of `slips.toml`."""
    for entry in tomllib.loads((HERE / "slips.toml").read_text(encoding="utf-8"))["slip"]:
        path, content = entry["file"], _read(entry["file"])
        start = content.index(entry["before"].encode())
        edit = Edit(start, start + len(entry["before"].encode()), entry["after"])
        before, after = (" ".join(entry[name].split()) for name in ("before", "after"))
        yield Slip(path, content.count(b"\n", 0, start) + 1, before, after, edit, (), tuple(entry["tests"]))


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reason for each slip that is marked as equivalent, by its identity."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8")).get("equivalent", [])
    return {(one["file"], one["before"], one["after"]): one["reason"] for one in entries}


def _python_files() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src" / "localidades_api").rglob("*.py"))


def _is_below(path: str, paths: list[str]) -> bool:
    return not paths or any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in paths)


def _read(path: str) -> bytes:
    return (ROOT / path).read_bytes()


def _weights() -> dict[str, float]:
    """Return the weight of each file: the square root of its commits of the last weeks, and one."""
    words = ("git", "log", f"--since={_LATELY} days ago", "--format=", "--name-only", "--", "src")
    changed = Counter(subprocess.check_output(words, cwd=ROOT, text=True).split())
    return {path: sqrt(1 + changed[path]) for path in _python_files()}
