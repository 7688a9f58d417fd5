"""Reports every error of a command as one sentence on stderr and an exit code."""

import io
import logging
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from localidades_api.cli.console import buffer_stdout, flush_stdout, print_error
from localidades_api.errors import (
    AlreadyPublishedError,
    InsufficientMemoryError,
    LocalidadesError,
    OutputError,
    ReaderGoneError,
    UnreadableBodyError,
)
from localidades_api.observability.progress_display import console

FAILED = 1
USAGE = 2
ALREADY_PUBLISHED = 3
OUTPUT_ERROR = 74  # EX_IOERR in sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
READER_GONE = 141  # 128 + SIGPIPE
_UNKNOWN_COLUMN = "42703"


def examples(*commands: str) -> str:
    r"""Return examples for the end of a command's help; `\b` keeps click from wrapping the paragraph."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


class Commands(TyperGroup):
    """The root of the command line, which reports the errors of all commands."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  # Typer's signature
        """Run a command and end the process with its exit code."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        buffer_stdout()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # the locale may not have every letter of a name
                stream.reconfigure(errors="backslashreplace")
        # Commands report errors themselves; keep the event loop and the connection pool from logging them.
        for library in ("asyncio", "sqlalchemy.pool"):
            logging.getLogger(library).addHandler(logging.NullHandler())
        signals = [signal.SIGINT]

        def interrupt(number: int, frame: FrameType | None) -> None:
            """Act as at Ctrl-C, so that resources are closed."""
            signals.append(signal.Signals(number))
            handler = signal.getsignal(signal.SIGINT)  # while asyncio runs, its handler, which cancels the task
            if not callable(handler):  # a script's background ignores Ctrl-C
                raise KeyboardInterrupt
            handler(number, frame)

        if current_thread() is main_thread():  # no other can handle signals
            signal.signal(signal.SIGTERM, interrupt)
        code = self._run(*args, **{**options, "standalone_mode": False})
        sys.exit(128 + signals[-1] if code == INTERRUPTED else code)

    def _run(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  # Typer's
        try:
            with errors_as_sentences():
                try:
                    return super().main(*args, **options) or 0
                finally:
                    flush_stdout()  # help and completion don't flush what they write
        except TyperException as error:
            _print_usage_error(error)
            return error.exit_code
        except typer.Exit as ended:
            return ended.exit_code
        except SystemExit as ended:
            # Typer and rich exit with 1 on a closed pipe.
            return READER_GONE if isinstance(ended.__context__, BrokenPipeError) else ended.code


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Print an error as one sentence and exit with the code of its kind."""
    try:
        yield
    except (typer.Exit, TyperException):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ReaderGoneError as error:
        raise typer.Exit(READER_GONE) from error
    except AlreadyPublishedError as error:
        console.print(str(error), markup=False)  # nothing failed
        raise typer.Exit(ALREADY_PUBLISHED) from error
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        print_error(_explain(InsufficientMemoryError() if isinstance(error, MemoryError) else error))
        raise typer.Exit(_exit_code(error)) from error


def _exit_code(error: Exception) -> int:
    if isinstance(error, OutputError):
        return OUTPUT_ERROR
    return USAGE if isinstance(error, UnreadableBodyError) else FAILED


def _print_usage_error(error: TyperException) -> None:
    """Print a usage error and how to see the help; without arguments, print the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        console.print(error.format_message(), markup=False)
        return
    message = error.format_message().rstrip(".")
    command = context.command_path if context else "localidades-api"
    print_error(f"{message}{' See' if message.endswith('?') else '; see'} `{command} --help`.")


def _explain(error: Exception) -> str:
    if isinstance(error, LocalidadesError):
        return str(error)
    root: BaseException = getattr(error, "orig", None) or error
    root = root.__cause__ or root  # SQLAlchemy wraps its dialect's error, whose cause is the driver's
    if (sqlstate := getattr(root, "sqlstate", None)) == _UNKNOWN_COLUMN:
        return "The database's tables are from another version of localidades-api: run `localidades-api migrate`."
    if sqlstate:
        return f"The database reports an error ({sqlstate}): {root}; check its user's rights and its log."
    if isinstance(error, OSError) and error.strerror:
        return f"The system reports an error: {error.strerror}{f', {error.filename}' if error.filename else ''}."
    # The error's own text may contain an address with a password.
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
    return f"This is a bug in localidades-api ({kind}): please report it."
