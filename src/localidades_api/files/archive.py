"""Opens the text of a catalogue: a plain or compressed file, a workbook, or a member of a zip; any may be hostile."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple, cast

from localidades_api.errors import CatalogueError
from localidades_api.files.kinds import OTHER_ZIP, START, ZIP, describe_kind, describe_zip
from localidades_api.files.workbook import is_workbook

MAX_TEXT_BYTES = 2 * 1024**3  # 3 million rows are 0.6 GB
_GIGABYTES = MAX_TEXT_BYTES // 1024**3
_MAX_RATIO = 200  # of unpacked to packed size; INEGI's are below 20
_MAX_MEMBERS = 1000  # of a zip; INEGI's have six
# Errors of zipfile for a damaged zip; that of Unicode is for a name that is not in UTF-8 and says so.
DAMAGED_ZIP = (*(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error), *(EOFError, RuntimeError, UnicodeDecodeError))
_SMALL = 64 * 1024**2  # bytes that members may have at any ratio
_MAX_READ = 1024**2  # bytes at once; zipfile reads the directory of a zip in one call


class Text(NamedTuple):
    """The text of a catalogue, and the member of a zip that it is from."""

    member: str
    file: IO[bytes]


def open_text(source: Path | IO[bytes], stack: ExitStack) -> Text:
    """Open the file, or the member that holds the table.

    A file that is already open stays open.
    """
    file = stack.enter_context(limit_reads(source))
    # A truncated zip has lost its directory, but not its signature.
    if not zipfile.is_zipfile(file) and not _begins_with(file, ZIP):
        text: IO[bytes] = file
        if _begins_with(file, b"\x1f\x8b"):
            text = cast("IO[bytes]", stack.enter_context(_Unpacked(file)))
        _refuse_other_kinds(text)
        return Text(source.name if isinstance(source, Path) else "", text)
    archive = stack.enter_context(zipfile.ZipFile(file))
    members = archive.infolist()
    if is_workbook(archive):
        raise CatalogueError("The file is an Excel workbook: save its sheet as CSV (UTF-8), or use INEGI's own zip.")
    if len(members) <= _MAX_MEMBERS:
        members = [_choose_member(archive)]
    if excess := find_excess(members, os.fstat(file.fileno()).st_size):
        raise CatalogueError(f"The zip {excess}: this is not a catalogue.")
    [member] = members
    table = stack.enter_context(archive.open(member))
    _refuse_other_kinds(table)
    return Text(member.filename, table)


def describe_file(path: Path) -> str | None:
    """Return a file's type and what to do, as the text after "The file is"; None if it may be text."""
    with limit_reads(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return describe_zip(archive)
        except (*DAMAGED_ZIP, CatalogueError):
            file.seek(0)
            return describe_kind(file.read(START))


class _Unpacked(gzip.GzipFile):
    """The text of a gzip stream, whose uncompressed size is unknown."""

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        super().__init__(fileobj=file)

    def read(self, size: int | None = -1) -> bytes:
        """Read; raise CatalogueError beyond the bytes that a text may have."""
        return self._bounded(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Read what is there; raises as `read` does."""
        return self._bounded(super().read1(size))

    def _bounded(self, content: bytes) -> bytes:
        if self.tell() > MAX_TEXT_BYTES:
            raise CatalogueError(f"The file unpacks to more than {_GIGABYTES} GB: this is not a catalogue.")
        return content


def _refuse_other_kinds(file: IO[bytes]) -> None:
    file.seek(0)
    if kind := describe_kind(file.read(START)):
        raise CatalogueError(f"The file is {kind}; or use INEGI's own zip.")
    file.seek(0)


def limit_reads(source: Path | IO[bytes]) -> io.BufferedReader:
    """Open a file for `zipfile`, or an open file again, with a limit of a megabyte on each read."""
    return _LimitedReader(io.FileIO(source) if isinstance(source, Path) else io.FileIO(source.fileno(), closefd=False))


class _LimitedReader(io.BufferedReader):
    """A file with a limit of a megabyte on each read, and positions that are in it.

    `zipfile` reads a directory of any declared length in one call, and makes an object of each entry.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read; raise CatalogueError if that is more than a megabyte."""
        everything = size is None or size < 0
        content = super().read(_MAX_READ + 1 if everything else min(size or 0, _MAX_READ + 1))
        if len(content) > _MAX_READ:
            raise CatalogueError("The zip's directory is too large: this is not a catalogue.")
        return content

    def seek(self, target: int, whence: int = os.SEEK_SET, /) -> int:
        """Seek; raise BadZipFile for a position before the file, which a damaged directory has."""
        if target < 0 and whence == os.SEEK_SET:
            raise zipfile.BadZipFile("a member before the file")
        return super().seek(target, whence)


def is_folder(info: zipfile.ZipInfo) -> bool:
    """Return whether a member is a folder; before Python 3.12, `is_dir` of one without a name is an IndexError."""
    return info.filename.endswith("/")


def _begins_with(file: IO[bytes], magic: bytes) -> bool:
    file.seek(0)
    return file.read(len(magic)) == magic


def _choose_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Choose the table of localities; the one in UTF-8 if both encodings are there.

    The member is read in place and never extracted, because its name may be any path.
    """
    tables = [info for info in archive.infolist() if info.filename.lower().endswith((".csv", ".txt"))]
    tables.sort(key=lambda info: ("_utf" not in info.filename.lower(), -info.file_size))
    if not tables:
        if (kind := describe_zip(archive)) != OTHER_ZIP:
            raise CatalogueError(f"The file is {kind}; or use INEGI's own zip.")
        files = [info.filename for info in archive.infolist() if not is_folder(info)]
        endings = {Path(name).suffix.lower() for name in files}
        has = f" (it has {', '.join(sorted(endings - {''}))})" if endings - {""} else ""
        raise CatalogueError(f"The zip has no csv or txt file{has}: use INEGI's own zip.")
    return tables[0]


def find_excess(members: Sequence[zipfile.ZipInfo], size: int, limit: int = MAX_TEXT_BYTES) -> str | None:
    """Return how members of a zip of `size` bytes are too much to unpack, as the text after "The zip", or None.

    Raises BadZipFile for a rare compression, which takes memory before it has given a byte.
    """
    if any(info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} for info in members):
        raise zipfile.BadZipFile("uncommon compression method: use deflate")
    unpacked = sum(info.file_size for info in members)
    packed = min(sum(info.compress_size for info in members), size)
    if len(members) > _MAX_MEMBERS:
        return f"has more than {_MAX_MEMBERS} files"
    if unpacked > limit:
        return f"unpacks to more than {limit // 1024**3} GB"
    return f"unpacks to more than {_MAX_RATIO} times its size" if unpacked > max(_SMALL, _MAX_RATIO * packed) else None
