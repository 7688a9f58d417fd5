"""What an import tells whoever watches it: a terminal, a log, or a test."""

from enum import StrEnum
from typing import Protocol


class Step(StrEnum):
    """A part of something that takes a while; its value is a sentence for people."""

    @property
    def unit(self) -> str:
        """What its amounts are amounts of."""
        return "rows"


class ImportStep(Step):
    """The steps of an import, in order."""

    FETCH = "fetching the file"
    READ = "reading rows"
    COPY = "copying rows"
    INDEX = "building indexes"
    ATTACH = "attaching the release"
    COMPARE = "comparing with the current release"
    PUBLISH = "publishing"
    DONE = "published"

    @property
    def unit(self) -> str:
        """What its amounts are amounts of."""
        return "bytes" if self is ImportStep.FETCH else "rows"


class Counting(Protocol):
    """An observer of one step."""

    def expect(self, amount: int) -> None:
        """Take note of how much there will be of the present step, all told; a better estimate may follow."""

    def advance(self, amount: int) -> None:
        """Take note of so much more of the present step, in its unit."""


class ImportProgress(Counting, Protocol):
    """An observer of one import."""

    def begin(self, step: ImportStep) -> None:
        """Take note that `step` begins, and that the one before it is done."""
