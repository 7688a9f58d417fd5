"""What an import tells whoever watches it: a terminal, a log, or a test."""

from enum import StrEnum
from typing import Protocol


class Step(StrEnum):
    """The steps of an import, in order; each has a sentence for people."""

    FETCH = "fetching the file"
    READ = "reading rows"
    COPY = "copying rows"
    INDEX = "building indexes"
    COMPARE = "comparing with the current release"
    ATTACH = "attaching the release"
    PUBLISH = "publishing"
    DONE = "published"


class Progress(Protocol):
    """An observer of one import."""

    def begin(self, step: Step) -> None:
        """Take note that `step` begins, and that the one before it is done."""

    def advance(self, amount: int) -> None:
        """Take note of so many further rows (bytes, while fetching) of the present step."""


class Silent:
    """The observer of an import that nobody watches."""

    def begin(self, step: Step) -> None:
        """Ignore it."""

    def advance(self, amount: int) -> None:
        """Ignore it."""
