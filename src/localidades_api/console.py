"""What an import shows a person: a moving bar on a terminal, plain lines elsewhere, and a report at its end."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from localidades_api.importer import ImportReport
from localidades_api.importer.progress import Progress as Watcher
from localidades_api.importer.progress import Step

_SHOWN_REJECTIONS = 20
_COUNTED = frozenset({Step.READ, Step.COPY})

# Progress and reports are for people: they go to stderr, and leave stdout to what a program may read.
console = Console(stderr=True, highlight=False, soft_wrap=True)
# What another program reads is not cut at the width of a terminal that is not there.
output = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


@contextmanager
def watch_import() -> Iterator[Watcher]:
    """Lend an observer that shows an import as it goes."""
    if not console.is_terminal:
        yield _Lines()
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        yield _Bar(progress)


class _Counter:
    """The amount and rate of the present step."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self.amount = 0
        self.began = 0.0

    def begin(self, step: Step) -> None:
        self.step, self.amount, self.began = step, 0, time.perf_counter()

    def advance(self, amount: int) -> None:
        self.amount += amount

    def __str__(self) -> str:
        rate = self.amount / max(time.perf_counter() - self.began, 1e-6)
        if self.step is Step.FETCH:
            return f"{self.amount / 1e6:,.1f} MB ({rate / 1e6:,.1f} MB/s)"
        return f"{self.amount:,} rows ({rate:,.0f}/s)"


class _Lines:
    """A line when a step begins, and one with its rows and rate when it ends."""

    def __init__(self) -> None:
        self._counter = _Counter()

    def begin(self, step: Step) -> None:
        if self._counter.amount:
            console.print(f"  {self._counter}", markup=False)
        self._counter.begin(step)
        console.print(step.value, markup=False)

    def advance(self, amount: int) -> None:
        self._counter.advance(amount)


class _Bar:
    """A line of the terminal that moves."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._counter = _Counter()
        self._task: TaskID = progress.add_task("", total=None, amount="")

    def begin(self, step: Step) -> None:
        self._counter.begin(step)
        self._progress.update(self._task, description=step.value, amount="")

    def advance(self, amount: int) -> None:
        self._counter.advance(amount)
        self._progress.update(self._task, amount=str(self._counter))


def print_report(report: ImportReport, *, dry_run: bool = False) -> None:
    """Print what an import did, and the first rows that it rejected."""
    comparison = report.comparison
    verb = "would publish" if dry_run else "published"
    lines = [
        f"{verb} release {report.release} in {report.seconds:.1f} s: {report.localities:,} localities"
        f" in {report.municipalities:,} municipios, {report.states} estados",
    ]
    if comparison.previous is not None:
        lines.append(
            f"compared with {comparison.previous}: {comparison.added:,} added, {comparison.removed:,} removed,"
            f" {comparison.renamed:,} renamed, {comparison.relocated:,} relocated"
        )
    lines.append(f"{len(report.rejected):,} rows rejected, {report.withdrawn:,} withdrawn localities left out")
    lines += [f"  line {line}: {reason}" for line, reason in report.rejected[:_SHOWN_REJECTIONS]]
    if len(report.rejected) > _SHOWN_REJECTIONS:
        lines.append(f"  and {len(report.rejected) - _SHOWN_REJECTIONS:,} more")
    console.print("\n".join(lines), markup=False)
