"""The output of commands: results on stdout; progress, reports and errors on stderr."""

import errno
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from localidades_api.errors import OutputError, ReaderGoneError

if TYPE_CHECKING:  # importing it takes longer than most commands do
    from localidades_api.importer import ImportReport
    from localidades_api.observability.progress import Step, StepProgress

_MAX_SHOWN_REJECTIONS = 20
_PIPE_WIDTH = 200  # columns; without a terminal rich would cut tables at 80


class _Remarks(Console):
    """The console of stderr: output that can't be written is dropped, and the command goes on."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401  # rich's signature
        try:
            super().print(*objects, **options)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _forsake(sys.stderr)


console = _Remarks(stderr=True, highlight=False, soft_wrap=True)


def _forsake(stream: IO[str] | None) -> None:
    """Redirect a broken stream to /dev/null, so that the interpreter can flush it at exit."""
    if stream is not None:
        with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123  # a device
            os.dup2(nowhere.fileno(), stream.fileno())


def buffer_stdout() -> None:
    """Buffer stdout where PYTHONUNBUFFERED is set, as in containers.

    A pipe whose reader leaves and a disk that fills up take a part of what is written, and only a buffer goes on until
    that is an error. `writing` flushes it.
    """
    if sys.stdout is not None and isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115  # for good


@contextmanager
def writing() -> Iterator[None]:
    """Turn errors of writing to stdout into OutputError, or ReaderGoneError for a closed pipe."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))  # noqa: TRY301  # as a write would
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _forsake(sys.stdout)
        raise ReaderGoneError("The reader of the output has gone.") from error
    except OSError as error:
        _forsake(sys.stdout)
        raise OutputError(f"The output can't be written ({error.strerror}): send it somewhere else.") from error


def flush_stdout() -> None:
    """Write what is still held back, if there is a stdout."""
    if sys.stdout is not None:
        with writing():
            pass


def print_text(text: str) -> None:
    """Write text to stdout, unchanged."""
    with writing():
        sys.stdout.write(f"{text}\n")


def print_json(document: object, *, indent: int | None = None) -> None:
    """Write one JSON document to stdout, in UTF-8 whatever the locale (RFC 8259 §8.1)."""
    with writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(json.dumps(document, ensure_ascii=False, indent=indent).encode() + b"\n")


def print_table(table: Table) -> None:
    """Write a table to stdout."""
    width = None if sys.stdout is not None and sys.stdout.isatty() else _PIPE_WIDTH
    with writing():
        Console(highlight=False, width=width).print(table)


def print_error(sentence: str) -> None:
    """Write a sentence to stderr, on one line and without control characters."""
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(sentence.split()))
    console.print(Text.assemble(("error:", "red"), f" {plain}"))


@contextmanager
def watch_import() -> "Iterator[StepProgress]":
    """Lend an observer that shows progress: a bar on a terminal, else plain lines."""
    # With FORCE_COLOR rich acts as on a terminal; that is fine for colours in a file, but not for a bar.
    if console.is_interactive and console.file.isatty():
        with Progress(console=console, transient=True, expand=True) as progress:
            yield _ProgressBar(progress)
    else:
        yield _ProgressLines()


class _ProgressBar:
    """A progress bar on a terminal, with the time of a step, or how far it is once it counts."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def begin(self, step: "Step") -> None:
        bar = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=None))
        counted = (DownloadColumn(),) if step.unit == "bytes" else (MofNCompleteColumn(), TextColumn(step.unit))
        self._counting = (*bar, *counted, TimeRemainingColumn(compact=True))
        self._progress.columns = (*bar, TimeElapsedColumn())
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(step.value, total=None)

    def expect(self, amount: int) -> None:
        self._progress.update(self._task, total=amount)

    def advance(self, amount: int) -> None:
        self._progress.columns = self._counting
        self._progress.advance(self._task, amount)


class _ProgressLines:
    """A line when a step begins, and one with its amount and rate when it ends."""

    def __init__(self) -> None:
        self._unit, self._amount, self._began = "", 0, 0.0

    def begin(self, step: "Step") -> None:
        if self._amount:
            rate = self._amount / max(time.perf_counter() - self._began, 1e-6)
            console.print(f"  {self._amount:,} {self._unit} ({rate:,.0f}/s)", markup=False)
        console.print(step.value, markup=False)
        self._unit, self._amount, self._began = step.unit, 0, time.perf_counter()

    def expect(self, amount: int) -> None:
        """Ignore it: the line is printed when the step ends."""

    def advance(self, amount: int) -> None:
        self._amount += amount


def print_report(report: "ImportReport", *, dry_run: bool = False) -> None:
    """Print the result of an import, and the first rejected rows."""
    comparison = report.comparison
    verb = "would publish" if dry_run else "published"
    lines = [
        f"{verb} release {report.release} in {report.seconds:.1f} s: {report.localities:,} localities"
        f" in {report.municipalities:,} municipios, {report.states} estados",
    ]
    if comparison.previous is not None:
        lines.append(
            f"compared with {comparison.previous}: {comparison.added:,} added, {comparison.removed:,} removed,"
            f" {comparison.renamed:,} renamed, {comparison.relocated:,} relocated,"
            f" {comparison.updated:,} updated"
        )
    if report.zeros_restored:
        lines.append("the keys had lost the zeros at their beginning, as in a spreadsheet: they were put back")
    if report.losses:
        lines.append(report.losses)
    if report.demo_retired:
        lines.append(
            f"the demo {'would be' if dry_run else 'is'} retired because its places are invented; --keep-demo keeps it"
        )
    lines.append(f"{len(report.rejected):,} rows rejected, {report.withdrawn:,} withdrawn localities left out")
    lines += [f"  line {line}: {reason}" for line, reason in report.rejected[:_MAX_SHOWN_REJECTIONS]]
    if len(report.rejected) > _MAX_SHOWN_REJECTIONS:
        lines.append(f"  and {len(report.rejected) - _MAX_SHOWN_REJECTIONS:,} more")
    console.print("\n".join(lines), markup=False)
