"""The folders of indexes on this machine: names, packs, unpacks and opens them, and keeps the last used ones."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, BinaryIO, Literal

import platformdirs

from localidades_api.errors import ConfigurationError
from localidades_api.names.files.layout import FORMAT, IndexUnreadableError
from localidades_api.names.files.writer import new_folder
from localidades_api.names.index import NameIndex
from localidades_api.observability.faults import FAULTS
from localidades_api.settings import find_clone

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import zstandard as zstd

# Code that can read an index: `FORMAT`, the byte order, and the minor version of tantivy, whose files change with it.
CODE = f"{FORMAT} {sys.byteorder} tantivy {'.'.join(version('tantivy').split('.')[:2])}"
_LOCK = ".lock"
_KEPT = 6  # folders of 60 MB; a process maps three at most
_RECHECK_INTERVAL = 0.1  # seconds
_PIECE = 1024**2  # bytes to read at a time


def digest(*texts: str) -> str:
    """Return the name of an index that depends on texts."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=12).hexdigest()


@contextmanager
def explained_system_errors() -> Iterator[None]:
    """Turn an OSError into a ConfigurationError that names the folder and the user."""
    try:
        yield
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.strerror else str(error).rstrip(".")
        raise ConfigurationError(
            f"The folder of indexes can't be used by user {os.getuid()} ({why}): set LOCALIDADES_CACHE_DIR to another"
            " one."
        ) from error


class OpenIndex:
    """An open index; its files stay mapped even if the folder is removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = NameIndex(folder)
        self._users = 0
        self._is_closing = False
        with suppress(OSError):  # the folder has been removed
            os.utime(folder)
            for path in filter(Path.is_file, folder.rglob("*")):
                with path.open("rb") as file:  # so that it is in memory: otherwise suggestions wait for the disk
                    deque(iter(partial(file.read, _PIECE), b""), maxlen=0)

    @contextmanager
    def used(self) -> Iterator[NameIndex]:
        """Keep it open even if `close` is called in the meantime."""
        self._users += 1
        try:
            yield self.names
        finally:
            self._users -= 1
            if self._is_closing:
                self.close()

    def close(self) -> None:
        """Close it as soon as nobody uses it."""
        self._is_closing = True
        if not self._users:
            self.names.close()


def index_root(cache_dir: Path | None, kind: Literal["names", "catalogues"]) -> Path:
    """Return the folder of this user's indexes in a cache folder, after making it: of releases, or of files.

    By default that is the clone's own folder, that of the user, or the system's temporary one, whichever can be
    written. Raises OSError if the folder can't be written or belongs to another user.
    """
    name = f"{kind}-{os.getuid()}"
    if cache_dir is not None:
        return _make_root(cache_dir / name)
    for folder in _default_cache_dirs():
        with suppress(OSError):
            return _make_root(folder / name)
    return _make_root(Path(tempfile.gettempdir()) / f"localidades-api-{os.getuid()}" / name)


def _default_cache_dirs() -> Iterator[Path]:
    if (clone := find_clone()) is not None:
        yield clone / ".data"
    with suppress(RuntimeError):  # the user has no home
        yield platformdirs.user_cache_path("localidades-api")


def _make_root(root: Path) -> Path:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to another user.")
    if not os.access(root, os.W_OK | os.X_OK):
        raise PermissionError(f"{root} can't be written.")
    return root


def try_open(folder: Path) -> OpenIndex | None:
    """Open an index; return None if it is missing or unreadable."""
    if not folder.exists():
        return None
    try:
        return OpenIndex(folder)
    except IndexUnreadableError as error:
        FAULTS.report(error, "Replacing an index of names: %s", error, traceback=False)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def remove_unused(root: Path) -> None:
    """Remove what was left unfinished, and all indexes but those that were used last; `root` must be locked.

    One that is open elsewhere may go: it stays mapped, and the next start fetches it again.
    """
    folders = [path for path in root.iterdir() if path.name != _LOCK]
    finished = sorted((path for path in folders if path.name[0] != "."), key=lambda path: path.stat().st_mtime)
    for folder in {*folders}.difference(finished[-_KEPT:]):
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def locked(root: Path) -> AsyncIterator[None]:
    """Wait until no other process writes into a folder of indexes, and keep others from it."""
    with (root / _LOCK).open("w") as file:
        while not _try_lock(file):  # noqa: ASYNC110  # other processes send no event
            await asyncio.sleep(_RECHECK_INTERVAL)
        yield


@contextmanager
def locked_by_thread(root: Path) -> Iterator[None]:
    """Do as `locked` does, outside an event loop."""
    with (root / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _try_lock(file: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def pack(folder: Path, target: Path) -> None:
    """Write an index into one file, a tar that is compressed."""
    with zstd.open(target, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        archive.add(folder, arcname="")


def unpack(packed: BinaryIO, folder: Path) -> None:
    """Write the folder that was packed; other processes see all of it or nothing."""
    with (
        new_folder(folder) as working,
        zstd.open(packed, "rb") as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        archive.extractall(working, filter="data")
