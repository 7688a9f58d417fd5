"""The interface by which long-running work reports progress to an observer, such as a terminal."""

from enum import StrEnum


class Step(StrEnum):
    """A step of long-running work; its value is the text that is shown."""


class ImportStep(Step):
    """The steps of an import, in order."""

    FETCH = "fetching the file"
    READ = "reading rows"
    COPY = "copying rows"
    INDEX = "building indexes"
    ATTACH = "attaching the release"
    NAMES = "indexing names"
    COMPARE = "comparing with the current release"
    PUBLISH = "publishing"
    DONE = "published"


class StepProgress:
    """An observer of work in steps; this one ignores everything."""

    def begin(self, step: Step) -> None:
        """Note that `step` begins, and that the one before it is done."""

    def expect(self, amount: int) -> None:
        """Note the total of the current step; a better estimate may follow."""

    def advance(self, amount: int) -> None:
        """Note that this much more of the current step is done."""
