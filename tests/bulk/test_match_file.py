import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from localidades_api.bulk.answers import match_row
from localidades_api.bulk.rows import Answer, Row
from localidades_api.cli.match import AnswerFile, Answering, MatchJob, Tally, match_file
from localidades_api.names.index import NameIndex
from tests.support.interruption import interrupt_within_callback
from tests.support.progress import Silent

ROWS = 3
AT_ONCE = 2
INTERRUPTED = {match_file.__code__.co_filename, AnswerFile.write.__code__.co_filename}


@pytest.fixture(scope="module")
def answer(index: NameIndex) -> Answering:
    """Lend what answers rows from the index of names."""
    return lambda rows: [match_row(row, index) for row in rows]


def job(folder: Path, *, resume: bool = False, force: bool = False) -> MatchJob:
    """Return a job for a file of three rows."""
    source = folder / "places.csv"
    source.write_text("nombre\n" + "".join(f"Lugar {n}\n" for n in range(ROWS)))
    return MatchJob(str(source), str(folder / "answers.csv"), {}, resume, force)


def answered_rows(output: Path) -> int:
    """Return how many rows stand in a file, after its header."""
    return max(output.read_bytes().count(b"\n") - 1, 0) if output.exists() else 0


class InterruptedAtInstruction:
    """Raises SIGINT at an instruction of the modules that read, write and count."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401  # what it returns is itself
        if frame.f_code.co_filename not in INTERRUPTED:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if self._left == 0:
                signal.raise_signal(signal.SIGINT)
        return self._trace


# An interruption between a file's opening and its `with` leaves it to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interruption_at_any_instruction_leaves_whole_rows_that_are_counted(answer: Answering, tmp_path: Path) -> None:
    output = tmp_path / "answers.csv"
    match_file(job(tmp_path), answer, AT_ONCE, Tally(), Silent())
    whole = output.read_bytes()
    assert answered_rows(output) == ROWS
    seen = set()
    for number in count(1):
        output.unlink(missing_ok=True)
        tally = Tally()
        try:
            with InterruptedAtInstruction(number):
                match_file(job(tmp_path), answer, AT_ONCE, tally, Silent())
        except KeyboardInterrupt:
            pass
        else:
            break
        # It may come when a batch has been written, but not yet counted.
        assert answered_rows(output) - tally.rows in {0, min(AT_ONCE, ROWS - tally.rows)}
        assert whole.startswith(output.read_bytes() if output.exists() else b"")
        seen.add(tally.rows)
        match_file(job(tmp_path, resume=True), answer, AT_ONCE, Tally(), Silent())
        assert output.read_bytes() == whole
    assert seen == {0, AT_ONCE, ROWS}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interruption_that_python_drops_ends_the_run_after_its_batch(answer: Answering, tmp_path: Path) -> None:
    def interrupted(rows: Sequence[Row]) -> Sequence[Answer]:
        interrupt_within_callback()
        return answer(rows)

    tally = Tally()
    with pytest.raises(KeyboardInterrupt):
        match_file(job(tmp_path), interrupted, AT_ONCE, tally, Silent())
    assert answered_rows(tmp_path / "answers.csv") == tally.rows == AT_ONCE
