"""Names, opens, locks and removes the folders of indexes: a lock is held while one is open or being built."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex

import platformdirs

from localidades_api.errors import ConfigurationError
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import IndexUnreadableError
from localidades_api.observability.faults import FAULTS
from localidades_api.settings import find_clone

# Add 1 when a change outside the folder `names` changes what an index holds: of folding, of keys, of the rows that are
# read from a file or the database, or of the records of `offline`.
SCHEMA = 1
_CODE = Path(__file__).parents[2] / "names"
_MAX_LIST_AGE = 7 * 86_400.0  # seconds: a service that was stopped for less finds its indexes again
_RECHECK_INTERVAL = 0.1  # seconds
_PIECE = 1024**2  # bytes to read at a time


def digest(*texts: str) -> str:
    """Return the name of a folder or a list that depends on texts."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=12).hexdigest()


@cache
def digest_of_builder() -> str:
    """Return a digest of what decides the content of an index: `names`, tantivy, and `SCHEMA` for everything else."""
    hashed = hashlib.blake2b(f"{SCHEMA} {version('tantivy')}".encode(), digest_size=12)
    for file in sorted(_CODE.iterdir()):
        if file.suffix in {".py", ".tsv"}:
            hashed.update(f"\n{file.name}\n".encode() + file.read_bytes())
    return hashed.hexdigest()


class OpenIndex:
    """An open index and the lock on its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            self.names = NameIndex(folder)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._users = 0
        self._is_closing = False
        self.read_ahead()

    def read_ahead(self) -> None:
        """Read every file, so that it is in memory: otherwise suggestions wait for the disk."""
        piece = bytearray(_PIECE)
        with suppress(OSError):  # the folder has been removed
            for path in self.folder.rglob("*"):
                if path.is_file():
                    with path.open("rb", buffering=0) as file:
                        while file.readinto(piece):
                            pass

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
            os.close(self._descriptor)


def _try_lock(descriptor: int) -> bool:
    """Lock a folder; return False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def index_root(cache_dir: Path | None) -> Path:
    """Return the folder of this user's indexes in a cache folder, after making it.

    By default that is the clone's own folder, that of the user, or the system's temporary one, whichever can be
    written. In a configured folder that its group may write, the group shares the indexes of the owner once these
    exist: systemd runs the service and imports as two users. Raises OSError if the folder can't be written or belongs
    to another user.
    """
    if cache_dir is not None:
        owner = _owner_that_shares(cache_dir)
        if owner == os.getuid() or (owner is not None and (cache_dir / f"names-{owner}").exists()):
            return _make_root(cache_dir, owner, mode=0o770)
        return _make_root(cache_dir, os.getuid())
    for folder in _default_cache_dirs():
        with suppress(OSError):
            return _make_root(folder, os.getuid())
    return _make_root(Path(tempfile.gettempdir()) / f"localidades-api-{os.getuid()}", os.getuid())


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


def _owner_that_shares(cache_dir: Path) -> int | None:
    """Return the owner of a folder that its group may write, and others may not."""
    with suppress(FileNotFoundError):
        status = cache_dir.stat()
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) == stat.S_IWGRP:
            return status.st_uid
    return None


def _default_cache_dirs() -> Iterator[Path]:
    if (clone := find_clone()) is not None:
        yield clone / ".data"
    with suppress(RuntimeError):  # the user has no home
        yield platformdirs.user_cache_path("localidades-api")


def _make_root(cache_dir: Path, owner: int, *, mode: int = 0o700) -> Path:
    root = cache_dir / f"names-{owner}"
    root.mkdir(mode=mode, parents=True, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != owner:
        raise PermissionError(f"{root} belongs to another user.")
    if not os.access(root, os.W_OK | os.X_OK):
        raise PermissionError(f"{root} can't be written.")
    return root


def try_open(folder: Path) -> OpenIndex | None:
    """Open an index; return None if it is missing or unreadable."""
    try:
        return OpenIndex(folder)
    except FileNotFoundError:
        return None
    except IndexUnreadableError as error:
        FAULTS.report(error, "Building an index of names again: %s", error, traceback=False)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def remove_unfinished(folder: Path) -> None:
    """Remove the files of builds of this index that were killed."""
    for left in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(left, ignore_errors=True)


def remove_unreachable(root: Path, service: str, names: Collection[str]) -> bool:
    """List the indexes that a service can reach, and remove those that no service on this machine can reach.

    Return whether all of these are gone: an index that is open stays.
    Each service has its own list, which it renews every day. An index is listed before it is built.
    """
    folders = [one for one in root.iterdir() if one.is_dir()]  # before the lists are read
    _write_list(root / f"{service}.list", names)
    reachable = listed_names(root).union(names)
    for folder in folders:
        name = folder.name.removeprefix(".").partition("-")[0]
        if name not in reachable:
            _remove_unlocked(folder, folder if folder.name == name else root / f"{name}.lock")
    return all(one.name in reachable or not one.exists() for one in folders if not one.name.startswith("."))


def listed_names(root: Path) -> set[str]:
    """Return the names of the indexes that services on this machine can reach; remove the lists of former services."""
    names: set[str] = set()
    for listed in root.glob("*.list"):
        with suppress(FileNotFoundError):  # another process was faster
            if listed.stat().st_mtime < time.time() - _MAX_LIST_AGE:
                listed.unlink()
            else:
                names.update(listed.read_text().split())
    return names


def _write_list(path: Path, names: Collection[str]) -> None:
    written = path.with_suffix(f".{token_hex(8)}")  # other tasks and processes may write it at the same moment
    written.write_text("\n".join(sorted(names)))
    written.replace(path)


def _remove_unlocked(folder: Path, lock: Path) -> None:
    """Remove an index that no process has open, or an unfinished one that no process is building."""
    with suppress(FileNotFoundError):  # another process was faster
        descriptor = os.open(lock, os.O_RDONLY | (os.O_DIRECTORY if lock == folder else os.O_CREAT), 0o660)
        try:
            if _try_lock(descriptor):
                shutil.rmtree(folder, ignore_errors=True)
                if lock != folder:
                    lock.unlink()
        finally:
            os.close(descriptor)


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Wait until no other process holds a lock, and take it; the index may have been built in the meantime."""
    with _lock_file(path) as descriptor:
        while not _try_lock(descriptor):  # noqa: ASYNC110  # other processes send no event
            await asyncio.sleep(_RECHECK_INTERVAL)
        yield


@contextmanager
def locked_by_thread(path: Path) -> Iterator[None]:
    """Do as `locked` does, outside an event loop."""
    with _lock_file(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    """Lend the descriptor of a file that is removed once what it locks has been built."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o660)
    try:
        yield descriptor
        with suppress(FileNotFoundError):
            path.unlink()
    finally:
        os.close(descriptor)
