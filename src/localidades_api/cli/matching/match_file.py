"""Matches the rows of a file, and resumes an interrupted run."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO

from localidades_api.bulk.readers import reader
from localidades_api.bulk.rows import ROLES, Answer, Row
from localidades_api.bulk.writers import AnswerWriter, writer
from localidades_api.cli.matching.answer_file import AnswerFile, AnswerStream
from localidades_api.cli.matching.job import STDIO, MatchJob
from localidades_api.errors import AnswerFileError
from localidades_api.importer.source import interruptible
from localidades_api.observability.progress import Counting

_NDJSON_START = b'{"sent":'

Answering = Callable[[Sequence[Row]], Sequence[Answer]]


@dataclass(slots=True)
class Tally:
    """The rows that are done: those that an earlier run had answered, and the others by outcome."""

    earlier: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """The rows that stand in the output."""
        return self.earlier + self.outcomes.total()


def match_file(job: MatchJob, answer: Answering, at_once: int, tally: Tally, counting: Counting) -> None:
    """Answer every row, `at_once` at a time, and count them in `tally`.

    Raises UnreadableBodyError, AnswerFileError, OutputError, and what `answer` does. Rows in `tally` have been written.
    """
    is_csv = job.media_type == "text/csv"
    with (
        interruptible() as raise_if_interrupted,
        _open_source(job.source) as file,
        closing(_open_output(job)) as output,
    ):
        rows = reader(job.media_type, file, ROLES, job.named)
        for _ in rows.check():
            raise_if_interrupted()
        target = writer("text/csv" if is_csv else "application/x-ndjson", rows)
        coming = iter(rows)
        batch = list(islice(coming, at_once))
        tally.earlier, unwritten = _begin(job, target, output, is_csv=is_csv)
        read = 0
        while batch:
            read += len(batch)
            fresh = [row for row in batch if row.number > tally.earlier]
            answers = answer(fresh) if fresh else ()
            outcomes = tally.outcomes + Counter(one["outcome"] for one in answers)
            output.write(unwritten + b"".join(map(target.write, fresh, answers)))
            tally.outcomes, unwritten = outcomes, b""  # Ctrl-C finds a batch counted or not, never a part of it
            counting.advance(len(batch))
            _estimate(file, read, counting)
            raise_if_interrupted()
            batch = list(islice(coming, at_once))
        output.write(unwritten)
        if read < tally.earlier:
            raise AnswerFileError(f"{job.output} has more rows than {job.source}: it is the answer to another file.")


def _begin(
    job: MatchJob, target: AnswerWriter, output: AnswerFile | AnswerStream, *, is_csv: bool
) -> tuple[int, bytes]:
    """Return how many rows an earlier run has answered, and what is still to be written before the next."""
    start = target.begin()
    if not (job.resume and isinstance(output, AnswerFile) and Path(job.output).exists()):
        return 0, start
    if not output.may_begin_with(start or _NDJSON_START):
        raise AnswerFileError(
            f"{job.output} is not the answer to {job.source} with these columns: choose another --output."
        )
    records = output.resume(is_csv=is_csv)
    return max(records - is_csv, 0), b"" if records else start


def _estimate(file: IO[bytes], read: int, counting: Counting) -> None:
    """Estimate the number of rows from the bytes that have been read."""
    if at := file.tell():
        counting.expect(max(read, round(read * os.fstat(file.fileno()).st_size / at)))


@contextmanager
def _open_source(source: str) -> Iterator[IO[bytes]]:
    """Open a source; what can be read only once is copied to a temporary file first."""
    with ExitStack() as stack:
        file: IO[bytes] = sys.stdin.buffer if source == STDIO else stack.enter_context(Path(source).open("rb"))
        if not file.seekable():
            pipe, file = file, stack.enter_context(TemporaryFile())
            copyfileobj(pipe, file)
            file.seek(0)
        yield file


def _open_output(job: MatchJob) -> AnswerFile | AnswerStream:
    return AnswerStream() if job.output == STDIO else AnswerFile(Path(job.output), replace=job.force)
