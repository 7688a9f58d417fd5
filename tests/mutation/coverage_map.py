"""Which tests run a line: each test module runs once with coverage, and its lines are kept in build/."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from coverage import CoverageData

from tests.mutation.recorder import CONFIGURATION, RECORD
from tests.support.wire import ROOT

FOLDER = ROOT / "build" / "mutants" / "map"
# The tests of the gate, in one process.
PYTEST = (
    *("-m", "pytest", "-n", "0", "-q", "-m", "not tail"),
    *("-p", "no:anyio", "-p", "no:platformdirs", "-p", "no:cacheprovider"),
)
_TIMEOUT = 1800  # seconds for a module
# A context of this process is `test|run`, one of a process that a test has started is `test (call)`.
_CONTEXT = re.compile(r"(?P<test>[^\[]+?)(?:\[.*)?(?:\||\s\()(?P<phase>run|call|setup|teardown)\)?", re.DOTALL)

Lines = dict[str, list[int]]  # by the path of the file


@dataclass(frozen=True)
class MeasuredModule:
    """The lines that a test module runs."""

    seconds: dict[str, float]  # of each test that passes
    lines: dict[str, Lines]  # that each test runs; those of shared fixtures belong to the module's own path


@dataclass(frozen=True)
class CoverageMap:
    """The test modules by path."""

    modules: Mapping[str, MeasuredModule]

    @cached_property
    def _tests_by_line(self) -> dict[tuple[str, int], set[str]]:
        found: dict[tuple[str, int], set[str]] = defaultdict(set)
        for module in self.modules.values():
            for test, lines in module.lines.items():
                for path, numbers in lines.items():
                    for number in numbers:
                        found[path, number].add(test)
        return found

    def tests_of(self, path: str, numbers: Iterable[int]) -> list[set[str]]:
        """Return the tests that run any of the lines, then those that share a fixture with a test that does."""
        owners = set().union(*(self._tests_by_line.get((path, number), ()) for number in numbers))
        shared = {test for owner in owners if owner in self.modules for test in self.modules[owner].seconds}
        direct = {owner for owner in owners if owner not in self.modules and owner in self.seconds}
        return [direct, shared - direct]

    def share(self, test: str, path: str) -> float:
        """Return how much of what a test runs is in a file."""
        lines = self.modules[test.partition("::")[0]].lines.get(test, {})
        return len(lines.get(path, ())) / (sum(map(len, lines.values())) or 1)

    @cached_property
    def seconds(self) -> dict[str, float]:
        """The seconds that each test takes."""
        return {test: taken for module in self.modules.values() for test, taken in module.seconds.items()}


def read_map(*, workers: int, keep: bool) -> CoverageMap:
    """Return the map of this tree; run the modules again that have changed, or all if the source has.

    With `keep`, run only modules that are not in it.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    state = _state_of_source()
    with ThreadPoolExecutor(workers) as pool:
        modules = sorted(_test_modules(), key=lambda path: path.stat().st_size, reverse=True)
        measured = pool.map(lambda module: _measured(module, state, keep=keep), modules)
        return CoverageMap({str(module.relative_to(ROOT)): one for module, one in zip(modules, measured, strict=True)})


def _test_modules() -> Iterator[Path]:
    for path in (ROOT / "tests").rglob("test_*.py"):
        if not {"faults", "clients", "mutation", "node_modules"} & set(path.relative_to(ROOT).parts):
            yield path


def _state_of_source() -> bytes:
    """Identify everything that decides which lines a test runs, except its own module."""
    state = hashlib.sha256()
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    for path in sorted(path for path in files if not path.name.startswith("test_") and "mutation" not in path.parts):
        if "node_modules" not in path.parts:
            state.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return state.digest()


def _measured(module: Path, state: bytes, *, keep: bool) -> MeasuredModule:
    name = str(module.relative_to(ROOT))
    kept = FOLDER / f"{name.replace('/', '-')}.json"
    key = hashlib.sha256(state + module.read_bytes()).hexdigest()
    if kept.exists():
        content = json.loads(kept.read_bytes())
        if keep or content["key"] == key:
            return MeasuredModule(content["seconds"], content["lines"])
    measured = _measure(name)
    content = {"key": key, "seconds": measured.seconds, "lines": measured.lines}
    kept.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
    return measured


def _measure(name: str) -> MeasuredModule:
    with TemporaryDirectory() as folder:
        data, record = Path(folder, "coverage"), Path(folder, "record.json")
        covered = ("--cov", "--cov-context=test", f"--cov-config={CONFIGURATION}", "--cov-report=")
        words = (sys.executable, *PYTEST, *covered, "-p", "tests.mutation.recorder", "--timeout", "600", name)
        run = subprocess.run(
            words,
            cwd=ROOT,
            env=os.environ | {"COVERAGE_FILE": str(data), RECORD: str(record)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        if not record.exists():
            raise RuntimeError(f"{name} was not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        *_, summary = run.stdout.splitlines()
        print(
            "\n".join([f"{name}: {summary}", *re.findall(r"^(?:FAILED|ERROR) .*", run.stdout, re.MULTILINE)]),
            flush=True,
        )
        return MeasuredModule(json.loads(record.read_text(encoding="utf-8")), _lines_of(data, name))


def _lines_of(file: Path, module: str) -> dict[str, Lines]:
    """Return the lines that each test runs; imports, which have no context, are left out."""
    data = CoverageData(str(file))
    data.read()
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path in data.measured_files():
        if not Path(path).is_relative_to(ROOT):  # a test has copied the package
            continue
        relative = str(Path(path).relative_to(ROOT))
        for line, contexts in data.contexts_by_lineno(path).items():
            for context in filter(None, contexts):
                test, is_shared = owner_of(context)
                found[test][relative].add(line)
                if is_shared:
                    found[module][relative].add(line)
    return {test: {path: sorted(lines) for path, lines in files.items()} for test, files in found.items()}


def owner_of(context: str) -> tuple[str, bool]:
    """Return the test of a context, and whether a fixture ran, which other tests may share."""
    found = _CONTEXT.fullmatch(context)
    assert found is not None, context
    return found["test"], found["phase"] in {"setup", "teardown"}
