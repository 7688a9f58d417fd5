"""Matches the rows of a file to places, with INEGI's file or a running service (`match_service`)."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from secrets import token_hex
from shutil import copyfileobj, copymode
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Protocol

import typer

from localidades_api.bulk.answer_columns import in_language, match_columns
from localidades_api.bulk.answers import answer_sample, match_row
from localidades_api.bulk.formats import XLSX, MediaType, match_roles, reader
from localidades_api.bulk.input_rows import Answer, Row, name_columns
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
from localidades_api.names.reading.areas import AreaBook
from localidades_api.observability.progress import Counting, Step
from localidades_api.observability.progress_display import console, show_progress

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
        _check_source(self.source)
        if self.output != _STDIO:
            _check_output(self, Path(self.output))

    @property
    def output(self) -> str:
        """The path of the output, by default named after the source."""
        return self.chosen_output or _default_output(self.source)

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


def _default_output(source: str) -> str:
    """Return the default output for a source, such as `places.matched.csv` for `places.csv`."""
    if _is_stream(source):
        return _STDIO
    path = Path(source)
    suffix = ".ndjson" if path.suffix.lower() == ".json" else path.suffix
    return str(path.with_name(f"{path.stem}.matched{suffix}"))


def _check_source(source: str) -> None:
    """Raise typer.BadParameter unless the source is a file of a known format."""
    if _is_stream(source):
        return
    path = Path(source)
    if not source:
        raise typer.BadParameter("the path of the file is empty")
    if path.is_dir():
        raise typer.BadParameter(f"{source} is a folder: give a file in it")
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {source}")
    if path.suffix.lower() not in _FORMATS:
        hint = f": it is {describe_file(path) or 'text, so name it .csv'}"
        raise typer.BadParameter(f"the name of {source} must end in one of {', '.join(_FORMATS)}{hint}")


def _check_output(job: MatchJob, output: Path) -> None:
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    if output.exists():
        if not output.is_file():
            raise typer.BadParameter(f"{output} is not a regular file: use --output - and redirect stdout")
        if job.source != _STDIO and output.samefile(job.source):
            raise typer.BadParameter("the file and --output are the same")
        if not job.force:
            raise typer.BadParameter(f"{output} exists: add --force to replace it")
    if output.suffix.lower() not in _FORMATS:
        raise typer.BadParameter(f"the name of {output} must end in one of {', '.join(_FORMATS)}")


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
    """Translate OSError to OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{job.output} can't be written ({error.strerror}).") from error


# -- The rows


class Matcher(Protocol):
    """What answers rows."""

    @property
    def areas(self) -> AreaBook | None:
        """The areas of its release, if they are at hand."""

    def check_areas(self, areas: Mapping[str, str], headers: Collection[str]) -> None:
        """Raise UnreadableBodyError for a municipio of all rows that is neither in the release nor a header."""

    def answer(self, rows: Sequence[Row]) -> Sequence[Answer]:
        """Return the answers to rows."""

    def answer_sample(self, rows: Sequence[Row]) -> Sequence[Answer]:
        """Return the answers by which the columns of a table are found, whatever the options are."""


class IndexMatcher:
    """Answers rows from an index of names."""

    def __init__(self, index: NameIndex, options: MatchOptions) -> None:
        self._index = index
        self._sure, self._fields = options.sure, split_fields(options.fields)
        self.areas = index.areas

    def check_areas(self, areas: Mapping[str, str], headers: Collection[str]) -> None:
        """See `Matcher`: the roles of the columns have been read with the areas."""

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """See `Matcher`."""
        return [match_row(row, self._index, self._sure, self._fields) for row in rows]

    def answer_sample(self, rows: Sequence[Row]) -> list[Answer]:
        """See `Matcher`."""
        return answer_sample(self._index, rows)


class MatchStep(Step):
    """The steps of matching a file."""

    OPEN = "opening the index of names"
    MATCH = "matching rows"


class MatchSummary(NamedTuple):
    """The number of rows with each outcome, which sheet of a workbook was read, and a note on where the answers are."""

    outcomes: Counter[str]
    sheet: str | None
    note: str | None


def match_file(job: MatchJob, matcher: Matcher, counting: Counting, batch_size: int = _BATCH) -> MatchSummary:
    """Match every row, in batches, and count the outcomes.

    Raises UnreadableBodyError, OutputError and the errors of the matcher, and then leaves no file.
    """
    outcomes: Counter[str] = Counter()
    options = job.options
    with interruptible() as raise_if_interrupted, _open_source(job.source) as file:
        roles, named = match_roles(options, matcher.areas)
        rows = reader(job.media_type, file, roles, named, options.sheet, options.header_row, matcher.answer_sample)
        for _ in rows.check():
            raise_if_interrupted()
        if isinstance(rows, TableReader):
            matcher.check_areas(roles.areas, name_columns(rows.assignment, rows.layout.columns or []).values())
        counting.expect(rows.count)
        target = writer(job.answer_type, rows, in_language(match_columns(split_fields(options.fields)), options.lang))
        start = target.begin()
        coming = iter(rows)
        with _open_output(job) as write:
            while batch := list(islice(coming, batch_size)):
                answers = matcher.answer(batch)
                outcomes.update(answer["outcome"] for answer in answers)
                write(start + b"".join(map(target.write, batch, answers)))
                start = b""
                counting.advance(len(batch))
                raise_if_interrupted()
            write(start + target.end())
    if not isinstance(rows, XlsxReader):
        return MatchSummary(outcomes, None, None)
    return MatchSummary(outcomes, _describe_sheet(rows), rows.note if job.answer_type == XLSX else None)


def _describe_sheet(rows: XlsxReader) -> str:
    header = f"header in row {rows.header_row}" if rows.header_row else "without a header"
    return f"“{rows.sheet.name}”, {header}"


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
            from localidades_api.offline import Catalogue  # noqa: PLC0415  # half of the time to start

            progress.begin(MatchStep.OPEN)
            opened = stack.enter_context(Catalogue.open(*catalogue, progress=progress))
            matcher = IndexMatcher(opened.names, job.options)
        else:
            from localidades_api.cli.match_service import ServiceMatcher  # noqa: PLC0415  # it imports httpx

            matcher = stack.enter_context(ServiceMatcher(url, release, job.options))
        progress.begin(MatchStep.MATCH)
        began = time.perf_counter()
        summary = match_file(job, matcher, progress)
    _print_summary(job, summary, time.perf_counter() - began)


def _print_summary(job: MatchJob, summary: MatchSummary, seconds: float) -> None:
    rows = summary.outcomes.total()
    lines = [
        f"matched {rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 1e-6):,.0f}/s)",
        "  " + ", ".join(f"{summary.outcomes[outcome]:,} {outcome}" for outcome in _OUTCOMES),
    ]
    if summary.sheet is not None:
        lines.append(f"  read the sheet {summary.sheet}")
    if summary.note is not None:
        lines.append(f"  {summary.note}")
    if job.output != _STDIO:
        lines.append(f"  {job.output}")
    console.print("\n".join(lines), markup=False)
