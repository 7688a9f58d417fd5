"""The index of names of each release: built once on a machine, and shared by its processes.

An index is a folder in the system's folder for temporary files. Its name is a digest of what it was made from: the
release, those before it, and the code. So a process finds what another one has built, and a new release changes no
index. Processes hold a shared lock on the index that they have open, and list those that they can reach; at a start and
when a release comes or goes, what no service has listed is removed (docs/decisions/names.md).
"""

import asyncio
import hashlib
import logging
import math
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import already_waited
from localidades_api.errors import SearchUnavailableError, UnavailableError
from localidades_api.name_indexes.build import OUTDATED, build, digest_of_code, fingerprint
from localidades_api.name_indexes.folders import (
    OpenIndex,
    index_root,
    locked,
    remove_unfinished,
    remove_unreachable,
    try_open,
)
from localidades_api.names.index import NameIndex
from localidades_api.observability.faults import FAULTS
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.single_flight import SingleFlight

_log = logging.getLogger(__name__)

_MAX_OPEN = 3  # indexes per process: of the served release, and of others that requests name
MAX_IN_THREAD = 20_000  # places; the index of more is built by a process of its own
_LIST_INTERVAL = 86_400.0  # seconds after which a list of indexes is renewed
_TIDY_INTERVAL = 10.0  # seconds after which an index that was still open is looked at again
_READ_INTERVAL = 60.0  # seconds; reading what is in memory takes nine milliseconds of a thread
_RETRY_INTERVAL = 30.0  # seconds after a build that failed: another would take as much of the processor


class OutdatedIndexError(Exception):
    """The releases, or the code, have changed since an index was asked for: another is needed."""


class NameIndexes:
    """The indexes that this process has open.

    Requests wait `timeout` seconds at most for one to be opened, or built from a small catalogue. None waits for that
    of a whole catalogue, which takes half a minute: such requests would fill the places of others.
    """

    def __init__(self, url: str, releases: ReleaseTracker, timeout: float) -> None:
        self._url = url
        self._releases = releases
        self._timeout = timeout
        self._open: dict[Release, OpenIndex] = {}  # the one that was opened last is at the end
        self._opening: SingleFlight[str, None] = SingleFlight()
        self._building: set[str] = set()  # of whole catalogues, which takes longer than a request can wait
        self._failed_at: dict[str, float] = {}
        # What has listed the same indexes: another version of the code, or another address, may have others.
        self._service = hashlib.blake2b(f"{digest_of_code()} {url}".encode(), digest_size=12).hexdigest()
        self._tidied: tuple[object, ...] = ()
        self._tidy_again_at = math.inf

    async def get(self, release: Release) -> NameIndex:
        """Return a release's index for use at once; raise SearchUnavailableError if it can't be had in time."""
        return (await self._ready(release)).names

    @asynccontextmanager
    async def using(self, release: Release) -> AsyncIterator[NameIndex]:
        """Keep a release's index open for as long as it takes; raises as `get` does."""
        with (await self._ready(release)).used() as index:
            yield index

    async def _ready(self, release: Release) -> OpenIndex:
        if release not in self._open:
            if fingerprint(release, self._releases.every) in self._building:
                raise SearchUnavailableError
            try:
                async with asyncio.timeout(self._timeout - already_waited.get()):
                    await self.prepare(release)
            except (TimeoutError, OutdatedIndexError) as error:
                raise SearchUnavailableError from error
        if not (found := self._open.get(release)):  # it had to give way to others
            raise SearchUnavailableError
        return found

    def held(self, release: Release) -> NameIndex | None:
        """Return a release's index if it is open."""
        found = self._open.get(release)
        return found.names if found else None

    def is_ready(self, release: Release) -> bool:
        """Return whether a release's index is open and made from the releases that there are now."""
        found = self._open.get(release)
        return found is not None and found.folder.name == fingerprint(release, self._releases.every)

    def is_awaited(self, release: Release) -> bool:
        """Return whether a release's index is not open yet, and has not failed to be built."""
        return release not in self._open and fingerprint(release, self._releases.every) not in self._failed_at

    async def tidy(self) -> None:
        """Close the indexes of releases that are gone, and remove those that no service on this machine can reach."""
        every, now = self._releases.every, time.monotonic()
        state = (*every, self._releases.served, self._releases.searched, now // _LIST_INTERVAL)
        if state != self._tidied or now >= self._tidy_again_at:
            self._tidied, self._tidy_again_at = state, now + _TIDY_INTERVAL
            self._close_surplus(every)
            with suppress(OSError):  # the next build says why
                if await self._remove_unreachable(every):
                    self._tidy_again_at = math.inf

    async def _remove_unreachable(self, every: Collection[Release]) -> bool:
        names = [fingerprint(one, every) for one in every]
        return await asyncio.to_thread(remove_unreachable, index_root(), self._service, names)

    async def prepare(self, release: Release) -> None:
        """Open a release's index, after building it if need be.

        Raises SearchUnavailableError or DatabaseUnavailableError if it can't be built, and OutdatedIndexError if a
        release has come or gone that `releases` has not noticed yet.
        """
        every = self._releases.every
        name = fingerprint(release, every)
        if time.monotonic() < self._failed_at.get(name, -_RETRY_INTERVAL) + _RETRY_INTERVAL:
            raise SearchUnavailableError
        await self._opening.run(name, lambda: self._open_index(release, every, name))

    async def _open_index(self, release: Release, every: Collection[Release], name: str) -> None:
        """Open an index, or build it; a failure is noted before another task can try again."""
        try:
            await self._find_index(release, every, name)
        except (UnavailableError, OutdatedIndexError):
            raise
        except Exception as error:
            self._failed_at[name] = time.monotonic()
            is_foreseen = isinstance(error, OSError | RuntimeError)  # no space, no memory
            message = "Can't index the names of release %s: %s"
            FAULTS.report(error, message, release.name, error, traceback=not is_foreseen)
            raise SearchUnavailableError from error

    async def _find_index(self, release: Release, every: Collection[Release], name: str) -> None:
        folder = index_root() / name
        # Some twenty milliseconds of work, for which the event loop does not wait.
        if not (found := await asyncio.to_thread(try_open, folder)):
            if release.localities > MAX_IN_THREAD:
                self._building.add(name)
            try:
                found = await self._build_index(release, every, folder)
            finally:
                self._building.discard(name)
        if previous := self._open.pop(release, None):
            previous.close()
            self._tidied = ()
        self._open[release] = found
        self._close_surplus(every)

    async def _build_index(self, release: Release, every: Collection[Release], folder: Path) -> OpenIndex:
        """Build an index and open it, or wait for the process that builds it."""
        async with locked(folder.with_suffix(".lock")):
            if found := await asyncio.to_thread(try_open, folder):
                return found
            remove_unfinished(folder)
            await self._remove_unreachable(every)
            began = time.monotonic()
            if release.localities <= MAX_IN_THREAD:
                await build(self._url, release, every, folder)
            else:
                await _run_builder(self._url, release, folder)
            _log.info("Indexed the names of release %s in %.1f s.", release.name, time.monotonic() - began)
            return await asyncio.to_thread(OpenIndex, folder)

    def _close_surplus(self, every: Collection[Release]) -> None:
        """Close what is more than may be open, and the indexes of releases that are gone."""
        surplus = list(self._open)[:-_MAX_OPEN]
        for release in [one for one in self._open if one in surplus or one not in every]:
            if release not in {self._releases.served, self._releases.searched}:
                self._open.pop(release).close()

    async def keep_in_memory(self) -> None:
        """Read what is open once a minute: after a long silence, the system has given its memory to others."""
        while True:
            for index in list(self._open.values()):
                await asyncio.to_thread(index.read_ahead)
            await asyncio.sleep(_READ_INTERVAL)

    async def close(self) -> None:
        """Close every index; their folders stay for the next start."""
        await self._opening.close()
        while self._open:
            self._open.popitem()[1].close()


async def _run_builder(url: str, release: Release, folder: Path) -> None:
    """Build an index in another process; raise OutdatedIndexError, or RuntimeError with what it said if it fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "localidades_api.name_indexes.build", release.name, str(folder)),
        env={**os.environ, "DATABASE_URL": url},
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        _, said = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode == OUTDATED:
        raise OutdatedIndexError
    if process.returncode:
        raise RuntimeError((said.decode(errors="replace").strip().splitlines() or ["It was killed."])[-1])
