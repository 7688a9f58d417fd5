"""Golden files, in tests/golden if no other folder is named. `--regen` writes those that differ."""

from difflib import unified_diff
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


class Golden:
    """Whether golden files are written; tests/conftest.py reads the option."""

    regenerates = False


def assert_golden(name: str, content: bytes, folder: Path = GOLDEN) -> None:
    """Compare bytes with a golden file and show the lines that differ; with --regen, write them instead."""
    path = folder / name
    expected = path.read_bytes() if path.exists() else b""
    if content == expected:
        return
    if Golden.regenerates:
        path.write_bytes(content)
        return
    before, now = (text.decode(errors="backslashreplace").splitlines() for text in (expected, content))
    difference = "\n".join(unified_diff(before, now, name, "now", n=2, lineterm="")) or "The line breaks differ."
    pytest.fail(f"{difference}\nIf this is right, run the test with --regen.")
