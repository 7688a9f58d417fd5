"""Opens the text of a catalogue: a plain file, or a member of a zip, which may be hostile."""

import io
import os
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from localidades_api.errors import CatalogueError

MAX_TEXT_BYTES = 2 * 1024**3  # 3 million rows are 0.6 GB
MAX_RATIO = 200  # of unpacked to packed size; INEGI's are below 20
MAX_MEMBERS = 1000  # of a zip; INEGI's have six
_SMALL = 64 * 1024**2  # bytes that a member may have at any ratio
_MAX_READ = 1024**2  # bytes at once; zipfile reads the directory of a zip in one call


def open_text(source: Path | IO[bytes], stack: ExitStack) -> tuple[str, IO[bytes], int]:
    """Open the file, or the member of a zip that holds the table; return its name and size in bytes too.

    A file that is already open stays open.
    """
    raw = io.FileIO(source) if isinstance(source, Path) else io.FileIO(source.fileno(), closefd=False)
    file = stack.enter_context(_Frugal(raw))
    size = os.fstat(file.fileno()).st_size
    # A truncated zip has lost its directory, but not its signature.
    if not zipfile.is_zipfile(file) and not _begins_as_zip(file):
        file.seek(0)
        return source.name if isinstance(source, Path) else "", file, size
    archive = stack.enter_context(zipfile.ZipFile(file))
    member = _choose_member(archive, size)
    return member.filename, stack.enter_context(archive.open(member)), member.file_size


class _Frugal(io.BufferedReader):
    """A file that returns no more than a megabyte at once.

    `zipfile` reads a directory of any declared length in one call, and makes an object of each entry.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read; raise CatalogueError if that is more than a megabyte."""
        everything = size is None or size < 0
        content = super().read(_MAX_READ + 1 if everything else min(size or 0, _MAX_READ + 1))
        if len(content) > _MAX_READ:
            raise CatalogueError("The zip's directory is too large: this is not a catalogue.")
        return content


def _begins_as_zip(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(4) == b"PK\x03\x04"


def _choose_member(archive: zipfile.ZipFile, size: int) -> zipfile.ZipInfo:
    """Choose the table of localities; the one in UTF-8 if both encodings are there.

    The member is read in place and never extracted, because its name may be any path.
    """
    if len(archive.infolist()) > MAX_MEMBERS:
        raise CatalogueError(f"The zip has more than {MAX_MEMBERS} files: this is not a catalogue.")
    tables = [info for info in archive.infolist() if info.filename.lower().endswith((".csv", ".txt"))]
    tables.sort(key=lambda info: ("_utf" not in info.filename.lower(), -info.file_size))
    if not tables:
        raise CatalogueError("The zip has no csv or txt file: use INEGI's own zip.")
    if tables[0].file_size > MAX_TEXT_BYTES:
        raise CatalogueError(f"The zip unpacks to more than {MAX_TEXT_BYTES // 1024**3} GB: this is not a catalogue.")
    packed = min(tables[0].compress_size, size)
    if tables[0].file_size > max(_SMALL, MAX_RATIO * packed):
        raise CatalogueError(f"The zip unpacks to more than {MAX_RATIO} times its size: this is not a catalogue.")
    if tables[0].compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise CatalogueError("The zip uses an uncommon compression method: compress it again with deflate.")
    return tables[0]
