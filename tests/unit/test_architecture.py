"""The package is laid out as the linter checks it, and as CONTRIBUTING says; so are the tests."""

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache

from tests.support.wire import ROOT

TESTS = ROOT / "tests"
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


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
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
