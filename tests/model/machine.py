"""Histories: random changes of the releases in a database while a service is read."""

import asyncio
import shutil
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from localidades_api.caches.index_folders import index_root, locked_by_thread
from localidades_api.errors import AlreadyPublishedError, LocalidadesError
from localidades_api.settings import Settings
from tests.model.catalogues import COUNT, Version
from tests.model.changes import GRACE, assert_clean, attempt, contents, import_version, through
from tests.model.cutting import Cut
from tests.model.model import Model, State
from tests.model.readers import NAMES, RELEASES, Readers
from tests.support.application import client_of, publish_again, retire, retire_all_but, running_app
from tests.support.postgres import new_database, run_sql
from tests.support.waiting import eventually_async

RELEASE_POLL = 0.05  # seconds
_LATE = 0.3  # seconds for which an index is late
_QUESTIONS = 6  # after each change
CUTS = st.none() | st.builds(Cut, st.integers(1, 160), is_delivered=st.booleans())
_NAMES = st.sampled_from(NAMES)
VERSIONS = st.builds(Version, _NAMES, st.integers(0, COUNT - 1))
_KILL_READS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'localidades-api' AND datname = current_database()"
)


class Histories(RuleBasedStateMachine):
    """The changes, faults and checks of every history.

    Every rule is possible at any time: what a cut leaves is up to chance, and hypothesis wants the same rules again.
    """

    client: httpx.AsyncClient

    def __init__(self, server: str, migrated: str, folder: Path) -> None:
        super().__init__()
        self._server, self._migrated = server, migrated
        self.resources = ExitStack()
        self.runner = self.resources.enter_context(asyncio.Runner())
        self._folder = folder
        self.cache = folder / f"cache-{id(self)}"
        self.model = Model()
        self.half_removed: list[str] = []
        self.service = AsyncExitStack()
        self._held = ExitStack()

    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        """Start the service on a database without a release; readers draw from a seed."""
        self.readers = Readers(self.model, seed)
        self.url = self.resources.enter_context(new_database(self._server, self._migrated))
        self.run(self.serve())

    @abstractmethod
    async def serve(self) -> None:
        """Start the service and set `client`."""

    def teardown(self) -> None:
        """Finish what is half removed, check that nothing is left, and stop."""
        try:
            if hasattr(self, "client"):  # it has started
                self.run(self._finish())
        finally:
            self.run(self.service.aclose())
            self.resources.close()
            shutil.rmtree(self.cache, ignore_errors=True)

    # Changes

    @rule(version=VERSIONS, cut=CUTS)
    def import_version(self, version: Version, cut: Cut | None) -> None:
        """Import a catalogue, perhaps as one of a release that is there."""
        taken = self.model.state.find(version.release)
        is_there = any(one.catalogue == version.catalogue for one in self.model.state.releases)
        expected = None if taken or is_there or self.half_removed else self.model.state.published(version)
        self.change(lambda url: import_version(self._folder, version, url), expected, cut)

    @rule(version=VERSIONS)
    def import_while_index_is_late(self, version: Version) -> None:
        """Import a catalogue while no index can be fetched; the release before is listed and searched."""
        with ExitStack() as self._held:
            self._held.enter_context(locked_by_thread(index_root(self.cache, "names")))
            self.import_version(version, None)

    @rule(release=_NAMES, cut=CUTS)
    def publish(self, release: str, cut: Cut | None) -> None:
        """Make a release the current one, perhaps one that isn't there."""
        version = self.model.state.find(release)
        expected = self.model.state.published(version) if version else None
        self.change(lambda url: publish_again(url, release), expected, cut)

    @rule(release=_NAMES, cut=CUTS)
    def retire(self, release: str, cut: Cut | None) -> None:
        """Remove a release, perhaps the current one, or one that isn't there."""
        version = self.model.state.find(release)
        can_be_removed = version and version != self.model.state.current
        expected = self.model.state.without(version) if version and can_be_removed else None
        if release in self.half_removed:
            expected = self.model.state
        self.change(lambda url: retire(url, release, grace=GRACE), expected, cut)

    @rule(keep=st.integers(1, 3), cut=CUTS)
    def retire_all_but(self, keep: int, cut: Cut | None) -> None:
        """Remove the oldest releases, and those that an earlier run has left half removed."""
        expected = self.model.state.with_newest(keep)
        self.change(lambda url: retire_all_but(url, keep, grace=GRACE), expected, cut)

    # Faults

    @rule()
    def lose_indexes(self) -> None:
        """Delete the files of the indexes, which a service has open."""
        shutil.rmtree(index_root(self.cache, "names"), ignore_errors=True)
        self.ask()

    @rule()
    def restart(self) -> None:
        """Restart the service."""
        with self.model.changing(self.model.state, may_refuse=True):
            self.run(self.restart_service())
            self.run(self.settle(self.model.state))
        self.ask()

    @rule()
    def end_connections(self) -> None:
        """End the connections of the service, as a restart of the database does."""

        async def end() -> None:
            await run_sql(self.url, _KILL_READS)

        with self.model.changing(self.model.state, may_refuse=True):
            self.run(self.readers.ask_beside(self.client, end()))
            self.run(self.settle(self.model.state))

    async def restart_service(self) -> None:
        """Stop the service and start it again."""
        await self.service.aclose()
        await self.serve()

    async def answers(self, target: str) -> list[httpx.Response]:
        """Return an answer of each process of the service."""
        return [await self.client.get(target)]

    # Parts of every change

    def run(self, work: Awaitable[None]) -> None:
        """Run something in the event loop of this history."""

        async def working() -> None:
            await work

        self.runner.run(working())

    def ask(self) -> None:
        """Ask questions while nothing changes."""
        self.run(self.readers.ask(self.client, _QUESTIONS))

    def change(self, make: Callable[[str], Awaitable[object]], expected: State | None, cut: Cut | None) -> None:
        """Make a change while readers ask; it must be refused if no state is expected.

        A cut may come before or after the transaction, but not in between.
        """
        possible = [] if expected is None else [expected]
        with self.model.changing(*possible):
            self.run(self.readers.ask_beside(self.client, self._change(make, expected, cut)))
        self.ask()

    async def _change(self, make: Callable[[str], Awaitable[object]], expected: State | None, cut: Cut | None) -> None:
        before = self.model.state
        async with through(self.url, cut) as url:
            error = await attempt(lambda: make(url))
        if cut and cut.has_happened:  # the last statement may still be running
            await eventually_async(self._is_over)
        found, self.half_removed = await contents(self._folder, self.url)
        if cut and cut.has_happened:
            assert found in {before, expected}, (found, before, expected)
        elif expected is None:
            assert isinstance(error, LocalidadesError), error
            assert found == before
        else:
            assert error is None or isinstance(error, AlreadyPublishedError), error
            assert found == expected
        await self.settle(found)

    async def _is_over(self) -> bool:
        """Return whether the server has noticed that a command's connection was cut."""
        query = "SELECT count(*) = 0 FROM pg_locks JOIN pg_database ON pg_database.oid = database"
        query += " WHERE datname = current_database() AND locktype = 'advisory'"
        return bool((await run_sql(self.url, query))[0][0])

    async def settle(self, state: State) -> None:
        """Wait until the service shows a state; readers ask meanwhile."""
        names = {version.release for version in state.releases}

        def is_right(answer: httpx.Response) -> bool:
            if state.current is None:
                return answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
            if answer.status_code != httpx.codes.OK:
                return False
            shown = {record["release"] for record in answer.json()["results"]}
            return bool(shown == names and answer.headers["catalogue-release"] == state.current.release)

        async def are_right() -> bool:
            with suppress(httpx.TransportError):  # a worker that was killed
                return all(map(is_right, await self.answers(RELEASES)))
            return False

        asyncio.get_running_loop().call_later(_LATE, self._held.close)
        await eventually_async(are_right)
        self.model.settle(state)

    async def _finish(self) -> None:
        for release in self.half_removed:
            assert await attempt(lambda: retire(self.url, release, grace=GRACE)) is None  # noqa: B023  # at once
        await assert_clean(self.url)


class HistoriesOfApplication(Histories):
    """Histories of an application in this process."""

    async def serve(self) -> None:
        """Start the application."""
        caches = {"cache_dir": self.cache, "page_cache_bytes": Settings.model_fields["page_cache_bytes"].default}
        app = running_app(self.url, release_poll=RELEASE_POLL, wants_names=False, **caches)
        self.client = await self.service.enter_async_context(client_of(await self.service.enter_async_context(app)))
