"""What all processes of one test run share."""

import os
from pathlib import Path

_FOLDER, _PROCESS = "TEST_RUN_FOLDER", "TEST_RUN_PROCESS"


def share(folder: Path) -> None:
    """Tell the processes that this one will start which folder the run has; this process ends last."""
    os.environ[_FOLDER] = str(folder)
    os.environ[_PROCESS] = str(os.getpid())


def run_folder() -> Path:
    """Return the run's folder, which Postgres's user can reach, and which is gone after the run."""
    return Path(os.environ[_FOLDER])


def run_process() -> int:
    """Return the process that ends last."""
    return int(os.environ[_PROCESS])
