"""The package is laid out as the linter checks it, and as CONTRIBUTING says."""

import re
import tomllib

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
