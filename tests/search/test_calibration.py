"""The benchmark that says how often a score is right."""

from benchmarks.calibration import Scores, calibrate, range_names, share
from localidades_api.search.index import NameIndex
from localidades_api.search.rows import MatchRow
from tests.support.wire import ROOT


def counts(scores: Scores) -> tuple[int, int, int, int, int]:
    return scores.count, scores.withdrawn, scores.right, scores.certain, scores.certain_right


def test_rows_are_counted_by_their_score(index: NameIndex) -> None:
    cases = [
        (MatchRow("Frontera", "Centla", "Tabasco"), 270030001),
        (MatchRow("Frontera", "Centla", "Tabasco"), 270030099),  # certain and wrong
        (MatchRow("El Colorado", "Puerto Vallarta", "Jalisco"), 140670020),  # a homonym: right, not certain
        (MatchRow("FRONTERRA", "Centla", "Tabasco"), 270030001),
        (MatchRow("Qwrtz", "Centla", "Tabasco"), None),
    ]
    found = {scores.name: counts(scores) for scores in calibrate(index, cases) if scores.count}
    assert found == {
        "100": (3, 0, 2, 2, 1),
        "90 to below 95": (1, 0, 1, 1, 1),
        "no place (`none`)": (1, 1, 0, 0, 0),
    }


def test_share_is_100_percent_only_if_it_is_all() -> None:
    assert [share(99_999, 100_000), share(7, 7), share(0, 0)] == ["99.9 %", "100.0 %", ""]


def test_tables_of_the_reference_have_the_benchmarks_ranges() -> None:
    page = (ROOT / "docs" / "reference" / "matching.md").read_text(encoding="utf-8")
    lines = page.partition("## How often a score is right")[2].splitlines()
    shown = [line.split("|")[1].strip() for line in lines if line.startswith("|") and "---" not in line]
    assert shown == ["score", *range_names()] * 3
