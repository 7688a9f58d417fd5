"""Rules for the source that linters don't check."""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import distribution, packages_distributions
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest
import uvicorn
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def imported_modules(module: ast.Module) -> Iterator[str]:
    """Yield the modules of other packages that a module imports."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # A name of a namespace, such as `opentelemetry`, is a module.
            has_code = find_spec(node.module).origin  # type: ignore[union-attr]  # it is installed
            yield from [node.module] if has_code else (f"{node.module}.{one.name}" for one in node.names)


def distribution_of(module: str) -> str:
    """Return the name of the package on PyPI that has a module."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    origin = Path(spec.origin)
    owners = set(distributions()[module.partition(".")[0]])
    [owner] = owners if len(owners) == 1 else {name for name in owners if origin in files_of(name)}
    return canonicalize_name(owner)


@cache
def distributions() -> Mapping[str, list[str]]:
    """Return the distributions that have each top-level package: reading all of them takes a second."""
    return packages_distributions()


@cache
def files_of(name: str) -> set[Path]:
    return {Path(str(file.locate())) for file in distribution(name).files or ()}


@pytest.mark.parametrize(
    ("project", "modules"),
    [("pyproject.toml", None), ("src/pyproject.toml", {"client.py", "frames.py", "network.py"})],
)
def test_imported_packages_are_declared(project: str, modules: Iterable[str] | None) -> None:
    described = tomllib.loads((ROOT / project).read_text())["project"]
    extras = described.get("optional-dependencies", {}).values()
    declared = {canonicalize_name(Requirement(one).name) for one in chain(described["dependencies"], *extras)}
    sources = modules_of_source()
    imported = {name for path in modules or sources for name in imported_modules(sources[path])}
    others = {name for name in imported if name.partition(".")[0] not in {*sys.stdlib_module_names, "localidades_api"}}
    assert {name for name in others if distribution_of(name) not in declared} == set()
    assert "httpx" in others
