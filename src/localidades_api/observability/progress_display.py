"""Shows the progress of long-running work on stderr: a bar on a terminal, a line for each step elsewhere."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from localidades_api.observability.progress import Step, StepProgress


class StderrConsole(Console):
    """A console on stderr that goes quiet if stderr can't be written, so that the command continues."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401  # rich's signature
        """Print, or go quiet."""
        try:
            super().print(*objects, **options)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Go quiet; rich would exit."""
        self.quiet = True
        redirect_to_devnull(sys.stderr)


console = StderrConsole(stderr=True, highlight=False, soft_wrap=True)


def redirect_to_devnull(stream: IO[str] | None) -> None:
    """Point a broken stream at /dev/null, so that the interpreter can flush it at exit."""
    if stream is not None:
        with suppress(OSError), open(os.devnull, "wb") as devnull:  # noqa: PTH123  # a device
            os.dup2(devnull.fileno(), stream.fileno())


@contextmanager
def show_progress() -> Iterator[StepProgress]:
    """Show progress on stderr: a bar on a terminal, a line for each step elsewhere."""
    # FORCE_COLOR makes rich treat a file as a terminal. Colours are fine there, but a bar is not.
    if console.is_interactive and console.file.isatty():
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn()
        progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, expand=True)
        try:
            yield _ProgressBar(progress)
        finally:
            progress.stop()
    else:
        yield _ProgressLines()


class _ProgressBar(StepProgress):
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def begin(self, step: Step) -> None:
        self._progress.start()  # now, so that nothing is shown for work that needed no step
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(step.value, total=None)

    def expect(self, amount: int) -> None:
        self._progress.update(self._task, total=amount)

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)


class _ProgressLines(StepProgress):
    def begin(self, step: Step) -> None:
        console.print(step.value, markup=False)
