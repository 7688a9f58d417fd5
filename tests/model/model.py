"""The states that readers may find: one, or several while the database changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.model.catalogues import Version


class State(NamedTuple):
    """The contents of a database, as its readers see them."""

    current: Version | None = None
    releases: tuple[Version, ...] = ()  # in the order of their imports

    def find(self, release: str) -> Version | None:
        """Return the version with the name of a release."""
        return next((one for one in self.releases if one.release == release), None)

    def published(self, version: Version) -> "State":
        """Return this state with a version as the current one."""
        return State(version, self.releases if version in self.releases else (*self.releases, version))

    def without(self, *retired: Version) -> "State":
        """Return this state without some versions."""
        return State(self.current, tuple(one for one in self.releases if one not in retired))

    def with_newest(self, keep: int) -> "State":
        """Return this state without its oldest releases; the current one stays."""
        oldest = self.releases[: max(0, len(self.releases) - keep)]
        return self.without(*(one for one in oldest if one != self.current))


class Epoch(NamedTuple):
    """The states that readers may find, in lists and searches alike."""

    states: tuple[State, ...]
    may_refuse: bool = False


class Model:
    """The epochs of a history."""

    def __init__(self) -> None:
        self.state = State()
        self.epochs = [Epoch((self.state,))]

    @contextmanager
    def changing(self, *possible: State, may_refuse: bool = False) -> Iterator[None]:
        """Allow readers to find the present state or another one, until `settle`."""
        states = tuple(dict.fromkeys((self.state, *possible)))
        self.epochs.append(Epoch(states, may_refuse))
        yield
        assert len(self.epochs[-1].states) == 1, "the history has not settled"

    def settle(self, state: State) -> None:
        """Note the state that every later reader finds."""
        self.state = state
        self.epochs.append(Epoch((state,)))

    def since(self, epoch: int) -> "Moment":
        """Return what was possible since an epoch."""
        return Moment(self.epochs[epoch:])


class Moment:
    """Everything that a reader may find who asked during some epochs."""

    def __init__(self, epochs: list[Epoch]) -> None:
        self._states = [state for epoch in epochs for state in epoch.states]
        self.may_refuse = any(epoch.may_refuse for epoch in epochs)

    def answering(self, release: str | None) -> set[Version | None]:
        """Return the versions that may answer a request for a release, or for the current one; None is a refusal."""
        if release is not None:
            return {state.find(release) for state in self._states}
        return {state.current for state in self._states}

    def readable(self) -> frozenset[Version]:
        """Return the versions that may be there."""
        return frozenset[Version]().union(*(state.releases for state in self._states))

    def lists(self) -> set[State]:
        """Return the states that the list of releases may show."""
        return set(self._states)
