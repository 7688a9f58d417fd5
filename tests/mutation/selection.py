"""Which tests may notice a slip, nearest first."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from tests.mutation.coverage_map import CoverageMap
from tests.mutation.slips import Slip, function_lines
from tests.support.wire import ROOT

# Compares all declarations of the code with golden files, in two seconds. They run at import, so in no test.
_DECLARATIONS = "tests/unit/test_declarations.py"


def nearest_tests(slip: Slip, known: CoverageMap, seconds: float) -> list[str]:
    """Return the tests that run the slip's line, in the order in which to run them, as many as take `seconds`."""
    if slip.tests:
        return list(slip.tests)
    if slip.lines:
        direct, shared = known.tests_of(slip.path, slip.lines[:1])
        if not direct and not shared:
            direct, shared = known.tests_of(slip.path, slip.lines)
    else:
        direct, shared = _tests_of_import(slip.path, known)
    ordered = [*_nearest(direct, slip.path, known), *_nearest(shared, slip.path, known)]
    declarations = [test for test in known.seconds if test.startswith(f"{_DECLARATIONS}::")]
    return _within(seconds, [*declarations, *(test for test in ordered if test not in declarations)], known)


def _tests_of_import(path: str, known: CoverageMap) -> list[set[str]]:
    """Return the tests of the functions in a file; for one without functions, of those in the files that import it."""
    found = known.tests_of(path, function_lines((ROOT / path).read_bytes()))
    if any(found):
        return found
    parts = [known.tests_of(file, function_lines((ROOT / file).read_bytes())) for file in _importers(path)]
    direct, shared = (set().union(*sets) for sets in zip(*parts, strict=True)) if parts else (set(), set())
    return [direct, shared - direct]


def _importers(path: str) -> list[str]:
    module = ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")
    return [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "src" / "localidades_api").rglob("*.py"))
        if module in _imported(file)
    ]


def _imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def _nearest(tests: Iterable[str], path: str, known: CoverageMap) -> list[str]:
    words = _words(Path(path).with_suffix("").parts[2:])

    def key(test: str) -> tuple[int, float, float, str]:
        module = Path(test.partition("::")[0]).with_suffix("")
        named_alike = len(words & _words(module.parts[1:]))
        return -named_alike, -round(known.share(test, path), 2), known.seconds[test], test

    return sorted(tests, key=key)


def _words(parts: Iterable[str]) -> set[str]:
    """Return the words of a path, in the singular."""
    return {word.removesuffix("s") for part in parts for word in re.findall(r"[a-z]+", part)} - {"test", "py"}


def _within(seconds: float, tests: list[str], known: CoverageMap) -> list[str]:
    """Leave out tests for which no time is left, but for the first."""
    chosen: list[str] = []
    for test in tests:
        if known.seconds[test] <= seconds or not chosen:
            chosen.append(test)
            seconds -= known.seconds[test]
    return chosen
