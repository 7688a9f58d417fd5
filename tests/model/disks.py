"""Histories of a database whose disk is full at times."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.model.catalogues import Version
from tests.model.machine import VERSIONS, Histories, serving_client
from tests.support.servers import IMMEDIATE, Installation, Server, copy_cluster, make_private

_MEGABYTES = 160  # a cluster has 60, and twice 16 of WAL
_PAGE = 4096  # bytes
_numbers = count(1)


class HistoriesOfDisk(Histories):
    """Histories of an application whose database is alone on a small file system in memory."""

    can_cut = False

    def __init__(self, installation: Installation, cluster: Path, folder: Path) -> None:
        super().__init__(folder)
        self._installation, self._template = installation, cluster
        self._ballast: Path | None = None

    def open_database(self) -> str:
        """Mount a file system, and start a server on it."""
        disk = self._template.with_name(f"disk-{next(_numbers)}")
        make_private(disk, self._installation.account)
        self.resources.enter_context(mounted(disk, self._installation))
        cluster = disk / "data"
        copy_cluster(self._template, cluster)
        settings = {"max_wal_size": "32MB", "min_wal_size": "32MB"}
        self.server = Server(self._installation, cluster, settings)
        self.resources.callback(lambda: self.runner.run(self.server.stop(IMMEDIATE)))
        self.run(self.server.start())
        return self.server.url()

    async def serve(self) -> None:
        """Start the application."""
        self.client = await self.service.enter_async_context(serving_client(self.url, self.cache))

    @rule(version=VERSIONS, pages=st.integers(0, 150))
    def import_on_full_disk(self, version: Version, pages: int) -> None:
        """Import a catalogue while the disk has little space; Postgres stops if none is left for its WAL."""
        disk = self.server.cluster.parent
        self._ballast = disk / "ballast"
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - pages * _PAGE)
        self.changes_may_refuse = True
        try:
            self.import_version(version, None)
        finally:
            self.changes_may_refuse = False

    async def repair(self) -> bool:
        """Make space, and start Postgres again if it has stopped."""
        if self._ballast is None:
            return False
        self._ballast.unlink()
        self._ballast = None
        await asyncio.sleep(0.2)  # it may be stopping
        await self.server.start()
        return True


@contextmanager
def mounted(folder: Path, installation: Installation) -> Iterator[None]:
    """Mount a small file system in memory, which the server's account owns."""
    uid, gid = installation.account or (os.getuid(), os.getgid())
    options = f"size={_MEGABYTES}m,mode=700,uid={uid},gid={gid}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "localidades", str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield
    finally:
        unmount = ["umount", "--lazy", str(folder)]
        subprocess.run(unmount, check=True)
