"""Histories of a primary and its standby, which lags, and takes over."""

import asyncio
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

import asyncpg
from hypothesis.stateful import rule

from tests.model.catalogues import Version
from tests.model.machine import VERSIONS, Histories, serving_client
from tests.model.model import State
from tests.support.servers import IMMEDIATE, KILL, Installation, Server, copy_cluster

_numbers = count(1)


class HistoriesOfReplicas(Histories):
    """Histories of an application that prefers the standby."""

    changes_may_refuse = True  # the standby cancels reads that conflict with what it replays
    can_cut = False  # these servers are killed instead

    def __init__(self, installation: Installation, cluster: Path, folder: Path) -> None:
        super().__init__(folder)
        self._installation, self._template = installation, cluster
        self._is_lagging = False

    def open_database(self) -> str:
        """Start a primary and its standby."""
        cluster = self._template.with_name(f"history-{next(_numbers)}")
        copy_cluster(self._template, cluster)
        self.primary = Server(self._installation, cluster)
        self.resources.callback(self._stop)
        self.run(self._replicate())
        return self.primary.url()

    async def _replicate(self, port: int | None = None) -> None:
        """Start a standby of the primary."""
        await self.primary.start()
        self.standby = await self.primary.copy()
        self.standby.port = port or self.standby.port
        await self.standby.start()
        await self.standby.catch_up(self.primary)

    def _stop(self) -> None:
        """Stop both servers and delete their data."""

        async def stop() -> None:
            for server in (self.standby, self.primary):
                await server.stop(IMMEDIATE)
                shutil.rmtree(server.cluster, ignore_errors=True)

        self.runner.run(stop())

    async def serve(self) -> None:
        """Start the application."""
        hosts = f"127.0.0.1:{self.standby.port},127.0.0.1:{self.primary.port}"
        url = f"postgresql://postgres@{hosts}/localidades?sslmode=disable&target_session_attrs=prefer-standby"
        self.client = await self.service.enter_async_context(serving_client(url, self.cache))

    @rule(version=VERSIONS)
    def import_while_standby_lags(self, version: Version) -> None:
        """Import a catalogue while the standby replays nothing."""
        self.run(self._pause())
        self._is_lagging = True
        self.import_version(version, None)

    async def settle(self, state: State) -> None:
        """Let the standby catch up, after some questions, and wait until the service shows a state."""
        if self._is_lagging:
            self._is_lagging = False
            await asyncio.sleep(0.2)  # readers ask meanwhile
            await self.standby.resume_replay()
        await super().settle(state)

    async def _pause(self) -> None:
        await self.standby.fetch("SELECT pg_wal_replay_pause()")

    @rule()
    def restart_primary(self) -> None:
        """Kill the primary and start it again: reads go to the standby."""

        async def again() -> None:
            await self.primary.stop(KILL)
            await self.primary.start()

        with self.model.changing(self.model.state, may_refuse=True):
            self.run(self.readers.ask_beside(self.client, again()))
            self.run(self.settle(self.model.state))

    @rule()
    def fail_over(self) -> None:
        """Kill the primary, promote its standby, and start another standby in its place."""

        async def take_over() -> None:
            lost = self.primary
            await lost.stop(KILL)
            await self.standby.promote()
            self.primary = self.standby
            await self._await_promotion()
            shutil.rmtree(lost.cluster)
            await self._replicate(lost.port)

        with self.model.changing(self.model.state, may_refuse=True):
            self.run(self.readers.ask_beside(self.client, take_over()))
            self.url = self.primary.url()
            self.run(self.settle(self.model.state))
        self.ask()

    async def _await_promotion(self) -> None:
        while True:
            with suppress(OSError, asyncpg.PostgresError):
                if not (await self.primary.fetch("SELECT pg_is_in_recovery()"))[0][0]:
                    return
            await asyncio.sleep(0.05)
