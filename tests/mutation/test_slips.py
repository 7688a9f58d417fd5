"""Which slips are found, and which tests run for them."""

import os
from pathlib import Path

import pytest

from tests.mutation.coverage_map import CoverageMap, MeasuredModule, owner_of
from tests.mutation.sample import draw, equivalents, slips_of_table
from tests.mutation.selection import nearest_tests
from tests.mutation.slips import Slip, is_python, slips_of
from tests.mutation.trial import Copy
from tests.support.wire import ROOT


def slips(text: str, path: str = "src/localidades_api/a.py") -> list[Slip]:
    """Return the slips of a file, each of which can be parsed."""
    found = list(slips_of(path, text.encode()))
    assert all(is_python(slip.applied(text.encode())) for slip in found)
    return found


def in_function(*lines: str) -> str:
    return "def call(a, b, c) -> bool:\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("return a < b", {"return a <= b"}),
        ("return a >= b != c", {"return a > b != c", "return a >= b == c"}),
        ("return a is not None", {"return a is None"}),
        ("return a not in b", {"return a in b"}),
        ("return (a) and (b)", {"return (a) or (b)"}),
        ("return not a", {"return a"}),
        ("return True", {"return False"}),
        ("return a + 1", {"return a", "return a - 1", "return a + 2"}),
        ("return a[b:3]", {"return a[b:4]"}),
        ("return a * b", {"return a // b"}),
        ("return 'á' + a", set()),
        ("return max(a)", {"return min(a)"}),
        ("return c(a, b)", {"return c(b, a)"}),
        ("return c(a=b, b=c)", {"return c(b=c)", "return c(a=b)"}),
        ("return c(a, *b, b=c)", {"return c(a, *b)"}),
        ("return {a: b}", {"return {}"}),
        ("return {a: b, **c, b: a}", {"return {a: b, **c}"}),
        ("return {a: b, b: c, c: a}", {"return {b: c, c: a}", "return {a: b, c: a}", "return {a: b, b: c}"}),
        ("return a if b else c", {"return a if not (b) else c"}),
        ("a.b = c", {"pass"}),
        ("raise a", {"pass"}),
        ("await a(b)", {"pass"}),
        ("a.append(b)", {"pass"}),
        ("a = b", set()),
        ("a: dict[b, 3] = c", set()),
        ("if a: return", {"if not (a): return", "if a: pass"}),
        ("while a <= 1: b()", {"while a < 1: b()", "while a <= 2: b()", "while a <= 1: pass"}),
        ("with a(b=1): pass", {"with a(): pass", "with a(b=2): pass"}),
        ("for a in b(1): continue", {"for a in b(2): continue", "for a in b(1): pass"}),
        ("'''Return 1 < 2.'''", set()),
        ("_log.error('%s', a < b)", set()),
    ],
)
def test_slips_of_a_line(line: str, changed: set[str]) -> None:
    text = in_function(line).replace("def", "async def")
    assert {slip.after for slip in slips(text)} == changed
    assert {slip.before for slip in slips(text)} <= {line}
    assert {slip.lines[0] for slip in slips(text)} <= {2}


def test_slips_of_statements_of_sql() -> None:
    text = in_function('return f"SELECT 1 FROM a WHERE b <= {a < b + 1} AND c = :c ORDER BY d DESC LIMIT :n + 1"')
    found = {slip.after.partition(" WHERE ")[2] for slip in slips(text)}
    assert found == {
        'b < {a < b + 1} AND c = :c ORDER BY d DESC LIMIT :n + 1"',
        'b <= {a < b} AND c = :c ORDER BY d DESC LIMIT :n + 1"',
        'b <= {a < b + 1} OR c = :c ORDER BY d DESC LIMIT :n + 1"',
        'b <= {a < b + 1} AND c <> :c ORDER BY d DESC LIMIT :n + 1"',
        'b <= {a < b + 1} AND c = :c ORDER BY d ASC LIMIT :n + 1"',
        'b <= {a < b + 1} AND c = :c ORDER BY d DESC LIMIT :n"',
    }


def test_what_no_test_should_notice_is_left_out() -> None:
    text = """
import a
WAIT_TIMEOUT = 30
__all__ = ["a" + b]
if TYPE_CHECKING:
    b = 1
class One(Protocol):
    def call(self, a=1): ...
class Two:
    def __repr__(self): return a + 1
@dataclass(frozen=True)
class Three:
    a: Literal[1, 2]
"""
    assert slips(text) == []


def test_metadata_of_annotations_is_changed() -> None:
    [no_maximum, maximum] = slips("def call(a: Annotated[int, Query(le=100)]) -> dict[1, 2]: ...")
    assert "Query(le=101)" in maximum.after
    assert "Query()" in no_maximum.after
    assert maximum.lines == no_maximum.lines == ()  # they run when the module is imported


def test_statement_of_several_lines_is_removed_whole() -> None:
    [removed, *_] = slips(in_function("a(", "    b,", ")", "return c"))
    assert (removed.before, removed.after, removed.lines) == ("a( b, )", "pass", (2, 3, 4))
    assert "pass\n    return c" in removed.applied(in_function("a(", "    b,", ")", "return c").encode()).decode()


def test_positions_are_those_of_bytes() -> None:
    assert {slip.after for slip in slips(in_function("return 'ñ' in a, 'é' in b"))} == {
        "return 'ñ' not in a, 'é' in b",
        "return 'ñ' in a, 'é' not in b",
    }


def test_entries_of_both_tables_are_up_to_date() -> None:
    """Each change is possible, its tests exist, and a slip that is marked as equivalent is still one of its file."""
    table = list(slips_of_table())
    for slip in table:
        content = (ROOT / slip.path).read_bytes()
        assert slip.applied(content) != content
        assert all((ROOT / test).is_file() for test in slip.tests)
    marked = equivalents()
    known = {slip.identity for slip in table}
    for path in {path for path, _, _ in marked if path.endswith(".py")}:
        known |= {slip.identity for slip in slips_of(path, (ROOT / path).read_bytes())}
    assert marked.keys() <= known
    assert all(marked.values())


def test_sample_is_the_seeds() -> None:
    paths = ["src/localidades_api/http", "deploy"]
    drawn = draw(51, 40, paths)
    assert drawn == draw(51, 40, paths) != draw(52, 40, paths)
    assert len(set(drawn)) == 40
    assert sum(slip.path.startswith("deploy/") for slip in drawn) == 4
    assert {slip.path.split("/")[2] for slip in drawn if slip.path.endswith(".py")} == {"http"}


def test_runs_without_the_plugin_are_not_measured() -> None:
    assert "COVERAGE_PROCESS_START" not in os.environ


@pytest.mark.parametrize(
    ("context", "owner"),
    [
        ("tests/a/test_b.py::test_c|run", ("tests/a/test_b.py::test_c", False)),
        ("tests/a/test_b.py::test_c[x (y)|z\n]|setup", ("tests/a/test_b.py::test_c", True)),
        ("tests/a/test_b.py::test_c[(call)] (call)", ("tests/a/test_b.py::test_c", False)),
        ("tests/a/test_b.py::test_c (setup)", ("tests/a/test_b.py::test_c", True)),
    ],
)
def test_owner_of_a_context(context: str, owner: tuple[str, bool]) -> None:
    assert owner_of(context) == owner


PATH = "src/localidades_api/catalogue/degrees.py"
HERE, THERE = "tests/unit/test_degrees.py", "tests/http/test_other.py"


def measured(lines: dict[str, list[int]], **seconds: float) -> MeasuredModule:
    return MeasuredModule(seconds, {test: {PATH: found} for test, found in lines.items()})


def test_nearest_tests_come_first() -> None:
    module = measured(
        {f"{HERE}::slow": [50, 51], f"{HERE}::quick": [51], f"{HERE}::other": [60], f"{HERE}::long": [51]},
        **{f"{HERE}::slow": 2, f"{HERE}::quick": 1, f"{HERE}::other": 1, f"{HERE}::long": 70},
    )
    others = measured(
        {f"{THERE}::quick": [51], THERE: [51], f"{THERE}::failing": [51]},
        **{f"{THERE}::quick": 0.1, f"{THERE}::shares_a_fixture": 0.1},
    )
    module.lines[f"{HERE}::quick"]["src/localidades_api/asgi.py"] = [1]
    known = CoverageMap({HERE: module, THERE: others})
    [slip, *_] = slips(in_function("return a < b"), PATH)
    moved = Slip(slip.path, 51, slip.before, slip.after, slip.edit, (51, 50))
    # Without a test that would take too long, and without one that fails.
    near = [f"{HERE}::slow", f"{HERE}::quick"]  # which runs another file too
    assert nearest_tests(moved, known, 60) == [*near, f"{THERE}::quick", f"{THERE}::shares_a_fixture"]
    long = CoverageMap({HERE: measured({f"{HERE}::long": [51]}, **{f"{HERE}::long": 70})})
    assert nearest_tests(moved, long, 60) == [f"{HERE}::long"]


def test_tests_of_a_constant_are_those_of_the_functions_beside_it() -> None:
    lines = list(range(1, len((ROOT / PATH).read_text("utf-8").splitlines()) + 1))
    known = CoverageMap({HERE: measured({f"{HERE}::one": lines}, **{f"{HERE}::one": 1})})
    [slip, *_] = slips("A = 1", PATH)
    assert nearest_tests(slip, known, 60) == [f"{HERE}::one"]


def test_golden_files_of_declarations_come_first() -> None:
    golden = "tests/unit/test_declarations.py"
    one = measured({f"{HERE}::one": [51]}, **{f"{HERE}::one": 1})
    known = CoverageMap({HERE: one, golden: measured({}, **{f"{golden}::two": 2})})
    [slip, *_] = slips(in_function("return a < b"), PATH)
    found = Slip(slip.path, 51, slip.before, slip.after, slip.edit, (51,))
    assert nearest_tests(found, known, 60) == [f"{golden}::two", f"{HERE}::one"]


@pytest.mark.tail
def test_slip_in_a_copy_is_found_or_survives() -> None:
    before = (ROOT / PATH).read_bytes()
    copy = Copy(99)
    slip = next(slip for slip in slips_of(PATH, before) if slip.lines and slip.after == "pass")
    assert copy.judge(slip, [HERE]).outcome == "killed"
    assert copy.judge(slip, ["tests/unit/test_folding.py"]).outcome == "survived"
    assert (ROOT / PATH).read_bytes() == (copy.root / PATH).read_bytes() == before
    assert Path(copy.root, ".venv").is_symlink()
