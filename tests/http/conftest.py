"""What is collected of the tests over HTTP."""

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tail's file that takes each process of a run nine seconds to collect, where no tail runs."""
    is_left_out = collection_path.name == "test_schemathesis.py" and config.option.markexpr == "not tail"
    return is_left_out or None
