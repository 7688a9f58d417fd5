"""The folder that all processes of a test run share."""

import os
from pathlib import Path

_FOLDER, _PROCESS = "TEST_RUN_FOLDER", "TEST_RUN_PROCESS"


def share(folder: Path) -> None:
    """Set the run's folder for this process and its children. Call it in the process that ends last."""
    os.environ[_FOLDER] = str(folder)
    os.environ[_PROCESS] = str(os.getpid())


def run_folder() -> Path:
    """Return the run's folder, which Postgres's user can reach and which is removed after the run."""
    return Path(os.environ[_FOLDER])


def cache_folder() -> Path:
    """Return the run's folder for the indexes of names, in which any user may have one."""
    folder = run_folder() / "cache"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    return folder


def run_process() -> int:
    """Return the process id of the test run."""
    return int(os.environ[_PROCESS])
