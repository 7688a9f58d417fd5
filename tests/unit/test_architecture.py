"""The package is laid out as the linter checks it, and as CONTRIBUTING says."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import uvicorn

from tests.support.wire import ROOT

PACKAGE = ROOT / "src" / "localidades_api"
MAX_ENTRIES = 18


def layers() -> list[str]:
    """Return the layers of the linter's contract, highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert contract["exhaustive"]
    return list(contract["layers"])


def entries() -> set[str]:
    """Return what a listing of the package shows."""
    return {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}


def test_table_of_contributing_has_the_layers_that_the_linter_checks() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| layer |")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == layers()


def test_listing_of_the_package_shows_the_layers_and_nothing_else() -> None:
    modules = {name.removesuffix(".py") for name in entries()} - {"__init__"}
    assert modules == set(layers())
    assert len(entries()) <= MAX_ENTRIES


# -- The source


@cache
def modules_of_source() -> dict[str, ast.Module]:
    """Return every module of the package by its path in it."""
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_bytes()) for path in PACKAGE.rglob("*.py")}


def undocumented_imports(module: ast.Module) -> Iterator[str]:
    """Give what a module imports of uvicorn that uvicorn does not document, for annotations too."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("uvicorn."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "uvicorn":
            names = [one.name for one in node.names]
            yield from (name for name in names if node.module != "uvicorn" or name not in uvicorn.__all__)


def test_one_module_imports_what_uvicorn_does_not_document() -> None:
    importing = {path for path, module in modules_of_source().items() if list(undocumented_imports(module))}
    assert importing == {"http/uvicorn_internals.py"}


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for path, module in modules_of_source().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
