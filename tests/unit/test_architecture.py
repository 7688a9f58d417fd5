"""The package is laid out as the linter checks it, and as CONTRIBUTING says; so are the tests."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest
import uvicorn

from tests.support.wire import ROOT

TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "localidades_api"
MAX_ENTRIES = 18
MAX_FUNCTION_LINES = 40
MAX_MODULE_LINES = 250


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


@pytest.mark.parametrize(
    "line",
    [
        "import uvicorn.server",
        "import uvicorn.server as server",
        "from uvicorn.server import ServerState",
        "from uvicorn import server",
    ],
)
def test_import_of_what_uvicorn_does_not_document_is_found(line: str) -> None:
    assert list(undocumented_imports(ast.parse(line)))
    assert not list(undocumented_imports(ast.parse("import uvicorn\nfrom uvicorn import Config, Server")))


def test_functions_fit_on_a_screen() -> None:
    lengths = {
        f"{path}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, module in modules_of_source().items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def test_modules_are_short_but_for_the_tree_of_errors() -> None:
    lengths = {path: module.body[-1].end_lineno or 0 for path, module in modules_of_source().items()}
    assert {path for path, length in lengths.items() if length > MAX_MODULE_LINES} == {"errors.py"}


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for path, module in modules_of_source().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


# -- The tests


@cache
def modules_of_tests() -> dict[str, ast.Module]:
    """Return every module of the tests by its dotted name."""
    folders = [folder for folder in TESTS.iterdir() if (folder / "__init__.py").exists()]
    paths = [*TESTS.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_bytes()) for path in paths}


def functions_of(module: ast.Module) -> dict[str, str]:
    """Return the helpers of a module, by name, each with what it does: fixtures and tests are none."""
    return {
        node.name: ast.dump(ast.Module(node.body[1:] if ast.get_docstring(node) else node.body, []))
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("test_")
        and not any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def test_no_test_module_imports_from_another() -> None:
    imported = {
        (name, node.module)
        for name, module in modules_of_tests().items()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and re.match(r"tests\.(.*\.)?(test_\w+|conftest)$", node.module or "")
    }
    assert imported == set()


def test_what_tests_share_stands_in_one_place() -> None:
    functions = {name: functions_of(module) for name, module in modules_of_tests().items()}
    shared = {function for name, found in functions.items() if name.startswith("tests.support.") for function in found}
    again = {
        (name, function)
        for name, found in functions.items()
        if not name.startswith("tests.support.")
        for function in found.keys() & shared
    }
    assert again == set(), "a helper of this name is in tests/support"
    homes = defaultdict(list)
    for name, found in functions.items():
        for function, body in found.items():
            homes[body].append((name, function))
    assert [places for places in homes.values() if len(places) > 1] == [], "the same helper twice: tests/support"


def test_order_of_the_files_names_what_there_is() -> None:
    conftest = modules_of_tests()["tests.conftest"].body
    constants = {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in conftest if isinstance(node, ast.Assign)
    }
    paths = set(TESTS.glob("*/test_*.py"))
    assert set(constants["SLOWEST"]) <= {path.stem for path in paths}
    assert set(constants["COSTLIEST"]) == {path.parent.name for path in paths} - {"faults"}
