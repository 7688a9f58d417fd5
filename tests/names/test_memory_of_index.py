"""An open index stays in memory: a suggestion that waits for the disk takes thirty times as long as others."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from localidades_api.name_indexes.folders import OpenIndex
from tests.support.embedded import only_linux
from tests.support.names import open_index

pytestmark = only_linux


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]


def count_absent(folder: Path) -> int:
    """Count the pages of the files that are not in memory (mincore(2))."""
    absent = 0
    for path in files_of(folder):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            pages = -(-len(mapped) // mmap.PAGESIZE)
            present = (ctypes.c_ubyte * pages)()
            address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
            assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapped)), present) == 0
            absent += sum(not page & 1 for page in present)
    return absent


def forget(folder: Path) -> None:
    """Have the system drop the files from its memory, as it does for other files after a while."""
    for path in files_of(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not count_absent(folder):
        pytest.skip("the file system of the folder for temporary files is in memory")


def test_index_is_read_when_it_is_opened_and_whenever_it_is_asked_to(tmp_path: Path) -> None:
    built = open_index(tmp_path)
    folder = built.layout.folder
    built.close()
    forget(folder)
    index = OpenIndex(folder)
    try:
        assert count_absent(folder) == 0
        forget(folder)
        index.read_ahead()
        assert count_absent(folder) == 0
    finally:
        index.close()
