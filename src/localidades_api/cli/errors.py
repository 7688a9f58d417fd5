"""Turns every error of a command into a sentence on stderr and an exit code."""

import errno
import io
import logging
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from localidades_api.cli.console import buffer_stdout, console, flush_stdout, print_error
from localidades_api.errors import (
    InsufficientMemoryError,
    LocalidadesError,
    OutputError,
    ReaderGoneError,
    UnreadableBodyError,
)

FAILED = 1
USAGE = 2  # also where `verify` can't compare, since its 1 means a difference
UNWRITTEN = 74  # EX_IOERR of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as in shells
READER_GONE = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM
_UNKNOWN_COLUMN = "42703"


def examples(*commands: str) -> str:
    r"""Return the end of a command's help, in a paragraph that is not wrapped: the `\b` says so, and is not shown."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


class Commands(TyperGroup):
    """The whole command line: every error is a sentence, and has an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  # Typer's signature
        """Run a command and end the process with its exit code."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        buffer_stdout()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # the locale may lack a letter of a name
                stream.reconfigure(errors="backslashreplace")
        # Commands report errors themselves; keep the event loop and the connection pool from logging them.
        for library in ("asyncio", "sqlalchemy.pool"):
            logging.getLogger(library).addHandler(logging.NullHandler())
        with _unwinding_at_sigterm() as terminated:
            code = self._run(*args, **{**options, "standalone_mode": False})
            sys.exit(TERMINATED if terminated.is_set() and code == INTERRUPTED else code)

    def _run(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  # as above
        """Return the exit code."""
        try:
            with errors_as_sentences():
                try:
                    return super().main(*args, **options) or 0
                finally:
                    flush_stdout()  # help and completion write too; what they could not write is still there
        except TyperException as error:
            _print_usage_error(error)
            return error.exit_code
        except typer.Exit as ended:
            return ended.exit_code
        except SystemExit as ended:
            # Typer and rich exit with 1 on a closed pipe.
            return READER_GONE if isinstance(ended.__context__, BrokenPipeError) else ended.code


@contextmanager
def _unwinding_at_sigterm() -> Iterator[Event]:
    """Handle SIGTERM like Ctrl-C, so that resources are closed; lend an event that is set when it came."""
    terminated = Event()

    def interrupt(signum: int, frame: FrameType | None) -> None:
        terminated.set()
        handler = signal.getsignal(signal.SIGINT)  # while asyncio runs, one of its own that cancels the task
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signum, frame)

    if current_thread() is not main_thread():
        yield terminated
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield terminated
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def errors_as_sentences(status: int = FAILED) -> Iterator[None]:
    """Print an error as a sentence, and exit with `status` or a more specific code."""
    try:
        yield
    except (typer.Exit, TyperException):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ReaderGoneError as error:
        raise typer.Exit(READER_GONE) from error
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        print_error(_explain(InsufficientMemoryError() if _is_for_want_of_memory(error) else error))
        raise typer.Exit(_status_of(error, status)) from error


def _status_of(error: Exception, status: int) -> int:
    """Return the exit code of an error; `status` is that of those without one of their own."""
    if isinstance(error, OutputError):
        return UNWRITTEN
    return USAGE if isinstance(error, UnreadableBodyError) else status


def _print_usage_error(error: TyperException) -> None:
    """Print a usage error and where to look; without arguments, the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        console.print(error.format_message(), markup=False)
        return
    said = error.format_message().rstrip(".")
    command = context.command_path if context else "localidades-api"
    print_error(f"{said}{' See' if said.endswith('?') else '; see'} `{command} --help`.")


def _explain(error: Exception) -> str:
    if isinstance(error, LocalidadesError):
        return str(error)
    root: BaseException = getattr(error, "orig", None) or error
    root = root.__cause__ or root  # SQLAlchemy's error wraps that of its dialect, which was raised from the driver's
    if (sqlstate := getattr(root, "sqlstate", None)) == _UNKNOWN_COLUMN:
        return "The database's tables are from another version of localidades-api: run `localidades-api migrate`."
    if sqlstate:
        return f"The database reports an error ({sqlstate}): {root}; check its user's rights and its log."
    if isinstance(error, OSError) and error.strerror:
        return f"The system reports an error: {error.strerror}{f', {error.filename}' if error.filename else ''}."
    # Its text may hold an address with a password.
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
    return f"This is a bug in localidades-api ({kind}): please report it."


def _is_for_want_of_memory(error: BaseException | None) -> bool:
    """Return whether a lack of memory led to an error."""
    seen: list[BaseException] = []  # what caused an error may itself have come while that one was handled
    while error and error not in seen:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False
