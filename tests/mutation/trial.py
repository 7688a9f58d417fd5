"""Applies slips to copies of the tree, and runs tests there."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tests.mutation.coverage_map import PYTEST
from tests.mutation.slips import Slip
from tests.support.wire import ROOT

FOLDER = ROOT / "build" / "mutants"
_TEST_TIMEOUT = 90  # seconds for a test, which hangs then
_TIMEOUT = 240  # seconds for all tests of a slip; on a busy machine, those that are left are not run
_GRACE = 30  # seconds to stop servers
_ENVIRONMENTS = (".venv", "build/uv", "tests/browser/node_modules", "tests/validator/node_modules")
_PLUGINS = ("-p", "no:pytest_cov", "-p", "tests.mutation.ordering")
_MARK = "MUTANT"  # a variable of all processes of a trial

Outcome = Literal["killed", "survived", "equivalent", "not run"]


@dataclass(frozen=True)
class Verdict:
    """The result of trying a slip."""

    slip: Slip
    outcome: Outcome
    reason: str  # the test that failed, or why it is equivalent


class Copy:
    """A copy of the working tree, with its environments, for one trial at a time."""

    def __init__(self, number: int) -> None:
        """Copy the files that git tracks or would track."""
        self.root = FOLDER / str(number)
        shutil.rmtree(self.root, ignore_errors=True)
        cloning = ("git", "clone", "--quiet", "--shared", str(ROOT), str(self.root))
        subprocess.run(cloning, check=True)
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        tracked = set(subprocess.check_output(listed, cwd=ROOT, text=True).split("\0")) - {""}
        for name in tracked:
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
            else:
                (self.root / name).unlink(missing_ok=True)
        for name in _ENVIRONMENTS:
            if (ROOT / name).exists():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                (self.root / name).symlink_to(ROOT / name)

    def judge(self, slip: Slip, tests: Sequence[str]) -> Verdict:
        """Make a slip, run the tests until one fails, and undo the slip."""
        file = self.root / slip.path
        content = file.read_bytes()
        try:
            self._write(file, slip.applied(content))
            return Verdict(slip, *self.run(tests, with_tail=bool(slip.tests)))
        finally:
            self._write(file, content)

    def _write(self, file: Path, content: bytes) -> None:
        file.write_bytes(content)
        # Compiled code is recognized by the second of the change and the size, which two slips may share.
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)

    def run(self, tests: Sequence[str], *, with_tail: bool) -> tuple[Outcome, str]:
        """Run tests until one fails; return its name as the reason."""
        mark = str(self.root)
        # The package is installed as editable from the working tree; this copy comes first.
        env = os.environ | {_MARK: mark, "PYTHONPATH": str(self.root / "src")}
        words = (str(ROOT / ".venv" / "bin" / "python"), *PYTEST, "-x", "--timeout", str(_TEST_TIMEOUT), *_PLUGINS)
        process = subprocess.Popen(
            (*words, *(("-m", "") if with_tail else ()), *tests),
            cwd=self.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output = self._output(process)
        finally:
            _kill_marked(mark)
        if failed := re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE):
            return "killed", failed[1]
        if process.returncode == pytest.ExitCode.OK:
            return "survived", ""
        if process.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            return "not run", ""
        if re.search(r"^\d+ passed", output, re.MULTILINE):
            return "survived", "not all tests were run: they take too long"
        return "killed", f"exit code {process.returncode}: {output.strip()[-200:]}"

    def _output(self, process: subprocess.Popen[str]) -> str:
        for seconds, number in ((_TIMEOUT, signal.SIGINT), (_GRACE, signal.SIGKILL)):
            try:
                return process.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        return process.communicate()[0]


def _kill_marked(mark: str) -> None:
    """Kill the processes that a trial has left, such as servers in other sessions."""
    wanted = f"{_MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
