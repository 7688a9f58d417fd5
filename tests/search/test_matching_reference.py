"""docs/reference/matching.md has the outcomes, thresholds, faults and penalties of the code."""

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
OUTCOMES, FAULTS = (PAGE.partition(heading)[2].partition("\n## ")[0] for heading in ("## Outcomes", "## Score and"))
EXAMPLE = r"^\| `(\w+)` \| .+ \| `([^`]+)` → `([^`]+)`: ([\d.]+) \| ([\d.]+)(?: (?:to|or) ([\d.]+))? \|$"
EXAMPLES = re.findall(EXAMPLE, FAULTS, re.MULTILINE)


def test_every_fault_is_explained_and_no_other() -> None:
    assert sorted(re.findall(r"^\| `(\w+)`", FAULTS, re.MULTILINE)) == sorted(get_args(FaultCode))


def test_every_outcome_is_explained_with_its_thresholds() -> None:
    cells = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", OUTCOMES, re.MULTILINE))
    assert set(cells) == {*get_args(Outcome), "problem"}
    assert f"a margin of at least {EXACT_MARGIN:g}." in cells["exact"]
    assert f"a score of at least {SURE_SCORE:g} and a margin of at least {SURE_MARGIN:g}." in cells["sure"]
    assert f"at least {NONE_BELOW:g}." in cells["ambiguous"]
    assert f"below {NONE_BELOW:g}," in cells["none"]


def test_faults_of_names_have_an_example() -> None:
    of_other_columns = {
        "municipio",
        "estado",
        "distance",
        "ambito",
        "former_key",
        "unknown_key",
        "withdrawn_key",
        "key",
        "name",
    }
    assert {code for code, *_ in EXAMPLES} == set(get_args(FaultCode)) - of_other_columns


@pytest.mark.parametrize(("code", "given", "found", "penalty", "least", "most"), EXAMPLES)
def test_example_costs_what_the_page_says(
    index: NameIndex, code: str, given: str, found: str, penalty: str, least: str, most: str
) -> None:
    keys = {place.id for place in PLACES if place.nombre == found}
    places = [place for place in map(index.place, range(index.layout.rows)) if place.id in keys]
    faults = [fault for place in places for fault in compare(read_name(given), place).faults]
    assert (code, float(penalty)) in [(fault.code, fault.penalty) for fault in faults]
    assert float(least) <= float(penalty) <= float(most or least)
