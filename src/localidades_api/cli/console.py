"""Prints results to stdout, and reports and errors to stderr."""

import errno
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from localidades_api.errors import OutputError, ReaderGoneError
from localidades_api.observability.progress_display import console, redirect_to_devnull

if TYPE_CHECKING:  # importing these takes longer than most commands
    from localidades_api.importer.run import ImportReport

_MAX_SHOWN_REJECTIONS = 20
_PIPE_WIDTH = 200  # columns; without a terminal, rich would truncate tables at 80


def buffer_stdout() -> None:
    """Buffer stdout even if PYTHONUNBUFFERED is set, as it is in containers.

    A closed pipe or a full disk may accept part of a write. An unbuffered stream ignores that; a buffered one writes
    the rest, which raises the error. `writing` flushes the buffer.
    """
    if sys.stdout is not None and isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115  # stays open


@contextmanager
def writing() -> Iterator[None]:
    """Translate errors while writing to stdout: ReaderGoneError for a closed pipe, OutputError for any other."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))  # noqa: TRY301  # the error that a write would raise
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        redirect_to_devnull(sys.stdout)
        raise ReaderGoneError("The program that reads the output has exited.") from error
    except OSError as error:
        redirect_to_devnull(sys.stdout)
        raise OutputError(f"The output can't be written ({error.strerror}): send it somewhere else.") from error


def flush_stdout() -> None:
    """Flush stdout, unless it is closed."""
    if sys.stdout is not None:
        with writing():
            pass


def print_text(text: str) -> None:
    """Write text to stdout as it is, without markup."""
    with writing():
        sys.stdout.write(f"{text}\n")


def print_json(document: object, *, indent: int | None = None) -> None:
    """Write a JSON document to stdout, as UTF-8 in any locale (RFC 8259 §8.1)."""
    with writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(json.dumps(document, ensure_ascii=False, indent=indent).encode() + b"\n")


def print_table(table: Table) -> None:
    """Write a table to stdout."""
    width = None if sys.stdout is not None and sys.stdout.isatty() else _PIPE_WIDTH
    with writing():
        Console(highlight=False, width=width).print(table)


def print_error(message: str) -> None:
    """Write an error message to stderr, on one line and with control characters escaped."""
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(message.split()))
    console.print(Text.assemble(("error:", "red"), f" {plain}"))


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
        lines.append("the keys had lost their leading zeros, as in a spreadsheet; they were restored")
    if report.losses:
        lines.append(report.losses)
    if report.demo_retired:
        lines.append(
            f"the demo {'would be' if dry_run else 'is'} retired because its places are invented; --keep-demo keeps it"
        )
    if report.kept:
        lines.append(f"the downloaded file is kept as {report.kept}")
    lines.append(f"{len(report.rejected):,} rows rejected, {report.withdrawn:,} withdrawn localities left out")
    lines += [f"  {position}: {reason}" for position, reason in report.rejected[:_MAX_SHOWN_REJECTIONS]]
    if len(report.rejected) > _MAX_SHOWN_REJECTIONS:
        lines.append(f"  and {len(report.rejected) - _MAX_SHOWN_REJECTIONS:,} more")
    console.print("\n".join(lines), markup=False)
