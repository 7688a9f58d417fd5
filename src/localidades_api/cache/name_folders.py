"""The folders of indexes of names: opened, locked while they are used or being built, and removed."""

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from localidades_api.observability.faults import FAULTS
from localidades_api.search.index import NameIndex
from localidades_api.search.layout import IndexUnreadableError

_MAX_UNUSED = 7 * 86_400.0  # seconds
_RECHECK_INTERVAL = 0.1  # seconds


class OpenIndex:
    """An open index, and the lock on its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            os.utime(self._descriptor)
            self.names = NameIndex(folder)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._users = 0
        self._is_closing = self._is_to_go = False

    @contextmanager
    def used(self) -> Iterator[NameIndex]:
        """Keep it open, even if it is told to close meanwhile."""
        self._users += 1
        try:
            yield self.names
        finally:
            self._users -= 1
            if self._is_closing:
                self.close(remove=self._is_to_go)

    def close(self, *, remove: bool = False) -> None:
        """Close it once nobody uses it; `remove` its folder unless another process has it open."""
        self._is_closing, self._is_to_go = True, remove
        if self._users:
            return
        self.names.close()
        if remove and _try_lock(self._descriptor):
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._descriptor)


def _try_lock(descriptor: int) -> bool:
    """Lock a folder, unless another process has it locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def index_root() -> Path:
    """Return the folder of this user's indexes; raise OSError if somebody else owns it."""
    root = Path(tempfile.gettempdir()) / f"localidades-api-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to another user.")
    return root


def try_open(folder: Path) -> OpenIndex | None:
    """Open an index, or return None if there is none that can be read."""
    try:
        return OpenIndex(folder)
    except FileNotFoundError:
        return None
    except IndexUnreadableError as error:
        FAULTS.report(error, "Building an index of names again: %s", error, traceback=False)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def remove_unfinished(folder: Path) -> None:
    """Remove what a build of this index left when it was killed."""
    for left in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(left, ignore_errors=True)


def remove_unused(root: Path) -> None:
    """Remove what no process has used for long: indexes of other versions and databases, builds that were killed."""
    for folder in [one for one in root.iterdir() if one.is_dir()]:
        with suppress(FileNotFoundError):  # another process was faster
            if folder.stat().st_mtime < time.time() - _MAX_UNUSED:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                if _try_lock(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Wait until no other process holds a lock, and take it; who comes later sees what has been built meanwhile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        while not _try_lock(descriptor):  # noqa: ASYNC110  # no event tells of another process
            await asyncio.sleep(_RECHECK_INTERVAL)
        yield
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  # one call of the system, in a coroutine
    finally:
        os.close(descriptor)
