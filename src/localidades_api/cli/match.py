"""Matches the rows of a file to places, with INEGI's file or a running service (`match_service`)."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from secrets import token_hex
from shutil import copyfileobj, copymode
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, TypeAlias

import typer

from localidades_api.bulk.answer_columns import in_language, match_columns
from localidades_api.bulk.answers import answer_sample, match_row
from localidades_api.bulk.columns import name_columns
from localidades_api.bulk.formats import XLSX, MediaType, reader
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.options import MatchOptions
from localidades_api.bulk.readers import TableReader
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.bulk.writers import writer
from localidades_api.catalogue.filters import split_fields
from localidades_api.cli.console import writing
from localidades_api.errors import OutputError
from localidades_api.files.archive import describe_file
from localidades_api.importer.source import interruptible
from localidades_api.names.index import NameIndex
from localidades_api.observability.progress import Step, StepProgress
from localidades_api.observability.progress_display import console, show_progress

if TYPE_CHECKING:
    from localidades_api.cli.match_service import ServiceMatcher

_STDIO = "-"
_FORMATS: Mapping[str, MediaType] = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".txt": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".xlsx": XLSX,
}
_BATCH = 500  # rows; progress is updated and interruptions are checked after each batch
_OUTCOMES = ("exact", "sure", "ambiguous", "none", "problem")
_DECIDED = ("chosen", "accepted", "rejected")  # in a file that comes back


# -- The files


@dataclass(frozen=True, slots=True)
class MatchJob:
    """A file to match, and where its answers go: paths, or `-`."""

    source: str
    chosen_output: str | None
    options: MatchOptions
    force: bool = False

    def check(self) -> None:
        """Raise typer.BadParameter for paths that would fail, or replace a file, at the end."""
        if not _is_stream(self.source):
            self._check_source(Path(self.source))
        if self.output != _STDIO:
            self._check_output(Path(self.output))

    def _check_source(self, source: Path) -> None:
        if not source.is_file():
            raise typer.BadParameter(f"there is no file {self.source or 'without a name'}")
        if source.suffix.lower() not in _FORMATS:
            hint = f": it is {describe_file(source) or 'text, so name it .csv'}"
            raise typer.BadParameter(f"the name of {source} must end in one of {', '.join(_FORMATS)}{hint}")

    def _check_output(self, output: Path) -> None:
        if not output.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {output.parent}")
        if output.exists():
            if not output.is_file():
                raise typer.BadParameter(f"{output} is not a regular file: use --output - and redirect stdout")
            if self.source != _STDIO and output.samefile(self.source):
                raise typer.BadParameter("the file and --output are the same")
            if not self.force:
                raise typer.BadParameter(f"{output} exists: add --force to replace it")
        if output.suffix.lower() not in _FORMATS:
            raise typer.BadParameter(f"the name of {output} must end in one of {', '.join(_FORMATS)}")

    @property
    def output(self) -> str:
        """The path of the output, by default named after the source, such as `places.matched.csv`."""
        if self.chosen_output or _is_stream(self.source):
            return self.chosen_output or _STDIO
        path = Path(self.source)
        suffix = ".ndjson" if path.suffix.lower() == ".json" else path.suffix
        return str(path.with_name(f"{path.stem}.matched{suffix}"))

    @property
    def media_type(self) -> MediaType:
        """The media type of the source."""
        return "text/csv" if _is_stream(self.source) else _FORMATS[Path(self.source).suffix.lower()]

    @property
    def answer_type(self) -> MediaType:
        """The media type of the output."""
        if self.output != _STDIO:
            return _FORMATS[Path(self.output).suffix.lower()]
        return "application/x-ndjson" if self.media_type == "application/json" else self.media_type


def _is_stream(source: str) -> bool:
    """Return whether a source is stdin or a pipe, such as a shell's `<(...)`, which is read as CSV."""
    return source == _STDIO or Path(source).is_fifo()


# -- The output


@contextmanager
def _open_output(job: MatchJob) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that writes to the output. A file gets its name at the end, once it is complete."""
    if job.output == _STDIO:
        yield _write_to_stdout
        return
    output = Path(job.output).resolve()
    draft = output.with_name(f".{output.name}.{token_hex(4)}.part")
    with ExitStack() as stack:
        stack.callback(draft.unlink, missing_ok=True)
        with _reporting_errors(job):
            file = stack.enter_context(draft.open("xb", buffering=0))

        def write(rows: bytes) -> None:
            rest = memoryview(rows)
            with _reporting_errors(job):
                while rest:
                    rest = rest[file.write(rest) :]

        yield write
        with _reporting_errors(job):
            os.fsync(file.fileno())  # before the rename, so that the output is complete even after a power failure
            if output.exists():
                if not job.force:
                    raise OutputError(f"{job.output} was created by another program: choose another --output.")
                copymode(output, draft)
            draft.replace(output)


def _write_to_stdout(rows: bytes) -> None:
    with writing():
        sys.stdout.buffer.write(rows)


@contextmanager
def _reporting_errors(job: MatchJob) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{job.output} can't be written ({error.strerror}).") from error


# -- The rows


class IndexMatcher:
    """Answers rows from an index of names."""

    def __init__(self, index: NameIndex, options: MatchOptions) -> None:
        self._index = index
        self._sure, self._fields = options.sure, split_fields(options.fields)
        self.areas = index.areas

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows."""
        return [match_row(row, self._index, self._sure, self._fields) for row in rows]

    def answer_sample(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers by which the columns of a table are found, whatever the options are."""
        return answer_sample(self._index, rows)


Matcher: TypeAlias = "IndexMatcher | ServiceMatcher"


class MatchStep(Step):
    """The steps of matching a file."""

    OPEN = "opening the index of names"
    MATCH = "matching rows"


def match_file(
    job: MatchJob, matcher: Matcher, progress: StepProgress, batch_size: int = _BATCH
) -> tuple[Counter[str], list[str]]:
    """Match every row, in batches; return the number of rows with each outcome, and notes on the sheet of a workbook.

    Raises UnreadableBodyError, OutputError and the errors of the matcher, and then leaves no file.
    """
    outcomes: Counter[str] = Counter()
    options = job.options
    with interruptible() as raise_if_interrupted, _open_source(job.source) as file:
        reading = options.match_reading(matcher.areas)._replace(answer=matcher.answer_sample)
        rows = reader(job.media_type, file, reading)
        for _ in rows.check():
            raise_if_interrupted()
        if isinstance(rows, TableReader) and not isinstance(matcher, IndexMatcher):
            matcher.check_areas(reading.roles.areas, name_columns(rows.assignment, rows.layout.columns or []).values())
        progress.expect(rows.count)
        target = writer(job.answer_type, rows, in_language(match_columns(split_fields(options.fields)), options.lang))
        start = target.begin()
        coming = iter(rows)
        with _open_output(job) as write:
            while batch := list(islice(coming, batch_size)):
                answers = matcher.answer(batch)
                outcomes.update(answer["outcome"] for answer in answers)
                write(start + b"".join(map(target.write, batch, answers)))
                start = b""
                progress.advance(len(batch))
                raise_if_interrupted()
            write(start + target.end())
    notes: list[str] = []
    if isinstance(rows, XlsxReader):
        header = f"header in row {rows.header_row}" if rows.header_row else "without a header"
        notes.append(f"read the sheet “{rows.sheet.name}”, {header}")
        if rows.note is not None and job.answer_type == XLSX:
            notes.append(rows.note)
    return outcomes, notes


@contextmanager
def _open_source(source: str) -> Iterator[IO[bytes]]:
    """Open a source; copy it to a temporary file first if it can be read only once."""
    with ExitStack() as stack:
        file: IO[bytes] = sys.stdin.buffer if source == _STDIO else stack.enter_context(Path(source).open("rb"))
        if not file.seekable():
            pipe, file = file, stack.enter_context(TemporaryFile())
            copyfileobj(pipe, file)
            file.seek(0)
        yield file


# -- The command


def run_match(job: MatchJob, catalogue: Sequence[str], url: str, release: str | None) -> None:
    """Match the rows of a file with a catalogue and earlier releases, or else by a service; print a summary."""
    job.check()
    with show_progress() as progress, ExitStack() as stack:
        matcher: Matcher
        if catalogue:
            from localidades_api.offline import Catalogue

            progress.begin(MatchStep.OPEN)
            opened = stack.enter_context(Catalogue.open(*catalogue, progress=progress))
            matcher = IndexMatcher(opened.names, job.options)
        else:
            from localidades_api.cli.match_service import ServiceMatcher

            matcher = stack.enter_context(ServiceMatcher(url, release, job.options))
        progress.begin(MatchStep.MATCH)
        began = time.perf_counter()
        outcomes, notes = match_file(job, matcher, progress)
    seconds, rows = time.perf_counter() - began, outcomes.total()
    lines = [
        f"matched {rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 1e-6):,.0f}/s)",
        ", ".join(f"{outcomes[code]:,} {code}" for code in (*_OUTCOMES, *filter(outcomes.get, _DECIDED))),
        *notes,
        *([] if job.output == _STDIO else [job.output]),
    ]
    console.print("\n  ".join(lines), markup=False)
