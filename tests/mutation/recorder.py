"""A plugin of pytest that measures the processes of tests too, and records how long each test takes."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

CONFIGURATION = Path(__file__).with_name("coverage.toml")
RECORD = "TEST_RECORD"  # the variable that names the file to write

# Processes that tests start measure themselves. Not this one, which pytest-cov does.
os.environ["COVERAGE_PROCESS_START"] = str(CONFIGURATION)

_seconds: dict[str, float] = defaultdict(float)
_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the duration of a phase; its parameters are one test."""
    test = report.nodeid.partition("[")[0]
    _seconds[test] += report.duration
    if report.failed:
        _failed.add(test)


def pytest_sessionfinish() -> None:
    """Write the seconds of each test that passed with all its parameters."""
    passed = {test: round(seconds, 3) for test, seconds in _seconds.items() if test not in _failed}
    Path(os.environ[RECORD]).write_text(json.dumps(passed), encoding="utf-8")
