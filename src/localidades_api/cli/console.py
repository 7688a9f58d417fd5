"""Prints results to stdout, and reports and errors to stderr."""

import errno
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from localidades_api.errors import OutputError, ReaderGoneError
from localidades_api.observability.progress_display import console, redirect_to_devnull

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
