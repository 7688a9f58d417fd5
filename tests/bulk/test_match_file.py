import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest
from pydantic_core import to_json

from localidades_api.bulk.formats import XLSX, MediaType
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.options import MatchOptions
from localidades_api.cli.match import IndexMatcher, MatchJob, match_file
from localidades_api.errors import OutputError
from localidades_api.names.index import NameIndex
from localidades_api.observability.progress import StepProgress
from tests.support.bulk import CSV, rows_in
from tests.support.machine import interrupt_within_callback

ROWS = 3
BATCH_SIZE = 2


OPTIONS = MatchOptions()


@pytest.fixture(scope="module")
def matcher(index: NameIndex) -> IndexMatcher:
    return IndexMatcher(index, OPTIONS)


def job(folder: Path) -> MatchJob:
    """Return a job for a file of three rows."""
    source = folder / "places.csv"
    source.write_text("nombre\n" + "".join(f"Lugar {n}\n" for n in range(ROWS)))
    return MatchJob(str(source), str(folder / "answers.csv"), OPTIONS)


@contextmanager
def interrupted_at(number: int) -> Iterator[None]:
    """Raise SIGINT at an instruction of the module that reads, writes and counts."""
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401  # what it returns is itself
        nonlocal left
        if frame.f_code.co_filename != match_file.__code__.co_filename:
            return None
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if event == "opcode" and left == 0:
            signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


# A file interrupted between its opening and its `with` is closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interruption_at_any_instruction_leaves_a_complete_file_or_none(matcher: IndexMatcher, tmp_path: Path) -> None:
    output = tmp_path / "answers.csv"
    assert match_file(job(tmp_path), matcher, StepProgress(), BATCH_SIZE)[0].total() == ROWS
    whole = output.read_bytes()
    assert whole.count(b"\n") == 1 + ROWS
    was_written = []
    for number in count(1, 3):  # two of three are like their neighbours
        output.unlink(missing_ok=True)
        try:
            with interrupted_at(number):
                match_file(job(tmp_path), matcher, StepProgress(), BATCH_SIZE)
        except KeyboardInterrupt:
            pass
        else:
            break
        was_written.append(output.exists())
        assert not output.exists() or output.read_bytes() == whole
        assert {path.name for path in tmp_path.iterdir()} <= {"places.csv", "answers.csv"}
    assert set(was_written) == {False, True}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interruption_dropped_by_python_ends_the_run_after_its_batch(index: NameIndex, tmp_path: Path) -> None:
    batches = []

    class Interrupted(IndexMatcher):
        def answer(self, rows: Sequence[Row]) -> list[Answer]:
            batches.append(rows)
            interrupt_within_callback()
            return super().answer(rows)

    with pytest.raises(KeyboardInterrupt):
        match_file(job(tmp_path), Interrupted(index, OPTIONS), StepProgress(), BATCH_SIZE)
    assert len(batches) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["places.csv"]


def test_output_created_meanwhile_is_not_overwritten(index: NameIndex, tmp_path: Path) -> None:
    output = tmp_path / "answers.csv"

    class Meanwhile(IndexMatcher):
        def answer(self, rows: Sequence[Row]) -> list[Answer]:
            output.write_text("other")
            return super().answer(rows)

    with pytest.raises(OutputError, match="was created by another program: choose another --output"):
        match_file(job(tmp_path), Meanwhile(index, OPTIONS), StepProgress(), BATCH_SIZE)
    assert output.read_text() == "other"
    assert {path.name for path in tmp_path.iterdir()} == {"places.csv", "answers.csv"}


@pytest.mark.parametrize(("name", "media_type"), [("answers.csv", CSV), ("answers.xlsx", XLSX)])
def test_objects_of_several_batches_are_answered_once_each(
    matcher: IndexMatcher, tmp_path: Path, name: str, media_type: MediaType
) -> None:
    rows = [{"nombre": f"Lugar {n}", "nota": "x" * 200} for n in range(100)]  # a batch has more than is read at once
    source, output = tmp_path / "places.ndjson", tmp_path / name
    source.write_bytes(b"".join(to_json(row) + b"\n" for row in rows))
    assert match_file(MatchJob(str(source), str(output), OPTIONS), matcher, StepProgress(), 60)[0].total() == len(rows)
    written = [cast("list[str]", row.sent)[0] for row in rows_in(output.read_bytes(), media_type)]
    assert written == [row["nombre"] for row in rows]
