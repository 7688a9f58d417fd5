"""Rules for the source that linters don't check."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import uvicorn

from tests.support.wire import ROOT

PACKAGE = ROOT / "src" / "localidades_api"


@cache
def modules_of_source() -> dict[str, ast.Module]:
    """Return every module of the package by its relative path."""
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_bytes()) for path in PACKAGE.rglob("*.py")}


def undocumented_imports(module: ast.Module) -> Iterator[str]:
    """Yield the undocumented names that a module imports from uvicorn, also for annotations."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("uvicorn."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "uvicorn":
            names = [one.name for one in node.names]
            yield from (name for name in names if node.module != "uvicorn" or name not in uvicorn.__all__)


def test_uvicorn_internals_are_imported_by_two_modules_only() -> None:
    importing = {path for path, module in modules_of_source().items() if list(undocumented_imports(module))}
    assert importing == {"server/protocol.py", "server/run.py"}


def test_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for path, module in modules_of_source().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
