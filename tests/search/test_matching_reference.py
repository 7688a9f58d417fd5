"""docs/reference/matching.md has the thresholds of the code, and each of its examples costs what it says."""

import re
from typing import get_args

import pytest

from localidades_api.search.differences import compare, read_name
from localidades_api.search.index import NameIndex
from localidades_api.search.match import EXACT_MARGIN, NONE_BELOW, SURE_MARGIN, SURE_SCORE
from localidades_api.search.rows import FaultCode, Outcome
from tests.support.names import PLACES
from tests.support.wire import ROOT

PAGE = (ROOT / "docs" / "reference" / "matching.md").read_text(encoding="utf-8")
EXAMPLE = r"^\| `(\w+)` \| .+ \| `([^`]+)` → `([^`]+)`: ([\d.]+) \| ([\d.]+)(?: (?:to|or) ([\d.]+))? \|$"
EXAMPLES = re.findall(EXAMPLE, PAGE, re.MULTILINE)
OF_OTHER_COLUMNS = {
    "municipio", "estado", "distance", "ambito", "former_key", "unknown_key", "withdrawn_key", "key", "name",
}  # fmt: skip


def test_every_outcome_is_explained_with_its_thresholds() -> None:
    section = PAGE.partition("## Outcomes")[2].partition("\n## ")[0]
    cells = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))
    assert set(cells) == {*get_args(Outcome), "problem"}
    assert f"a margin of at least {EXACT_MARGIN:g}." in cells["exact"]
    assert f"a score of at least {SURE_SCORE:g} and a margin of at least {SURE_MARGIN:g}." in cells["sure"]
    assert f"at least {NONE_BELOW:g}." in cells["ambiguous"]
    assert f"below {NONE_BELOW:g}," in cells["none"]


def test_every_fault_of_a_name_has_an_example() -> None:
    assert {code for code, *_ in EXAMPLES} == set(get_args(FaultCode)) - OF_OTHER_COLUMNS


@pytest.mark.parametrize(("code", "given", "found", "penalty", "least", "most"), EXAMPLES)
def test_example_costs_what_the_page_says(
    index: NameIndex, code: str, given: str, found: str, penalty: str, least: str, most: str
) -> None:
    keys = {place.id for place in PLACES if place.nombre == found}
    places = [place for place in map(index.place, range(index.layout.rows)) if place.id in keys]
    faults = [fault for place in places for fault in compare(read_name(given), place).faults]
    assert (code, float(penalty)) in [(fault.code, fault.penalty) for fault in faults]
    assert float(least) <= float(penalty) <= float(most or least)
