"""An observer of imports, and commands that are killed while they wait for something."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from localidades_api.observability.progress import Step, StepProgress
from tests.support.waiting import PATIENCE
from tests.support.wire import Process, environment, start_command


class Observer(StepProgress):
    """Calls a function when a step begins, and keeps the amounts that it is told of."""

    def __init__(self, observe: Callable[[Step], None] = lambda _: None) -> None:
        self._observe = observe
        self._step: Step | None = None
        self.expected: dict[Step | None, int] = {}
        self.amounts: dict[Step | None, list[int]] = defaultdict(list)

    def begin(self, step: Step) -> None:
        self._step = step
        self._observe(step)

    def expect(self, amount: int) -> None:
        self.expected[self._step] = amount

    def advance(self, amount: int) -> None:
        self.amounts[self._step].append(amount)


@contextmanager
def started(url: str, *arguments: str, command: Sequence[str] | None = None, **settings: str) -> Iterator[Process]:
    """Start a command on a database, by default one of ours; kill it (-9) at the end of the block."""
    process = start_command(*arguments, env=environment(url, **settings), command=command)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
