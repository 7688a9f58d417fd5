"""Golden files, in tests/golden if no other folder is named.

To renew a golden file, delete it and run its test twice: the first run writes it and fails.
"""

import json
from difflib import unified_diff
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, content: bytes, folder: Path = GOLDEN) -> None:
    """Compare bytes with a golden file; show the lines that differ."""
    path = folder / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        pytest.fail(f"{path} was written: look at it")
    if (expected := path.read_bytes()) != content:
        before, now = (text.decode(errors="backslashreplace").splitlines() for text in (expected, content))
        pytest.fail("\n".join(unified_diff(before, now, name, "now", n=2, lineterm="")) or "The line breaks differ.")


def assert_golden_json(name: str, value: object) -> None:
    """Compare a JSON value with a golden file."""
    assert_golden(name, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())
