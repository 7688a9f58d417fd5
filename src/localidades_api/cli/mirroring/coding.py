"""Writes a file and its compressed copies as the bytes arrive."""

import hashlib
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd

    def _zstd() -> "_Compressor":
        compressor = zstd.ZstdCompressor(level=_ZSTD_LEVEL)
        return _Compressor(compressor.compress, compressor.flush)
else:
    import zstandard

    def _zstd() -> "_Compressor":
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj()
        return _Compressor(compressor.compress, compressor.flush)


# Levels after which twice the time saves less than a hundredth of a page.
_ZSTD_LEVEL = 9
_BROTLI_QUALITY = 6
_GZIP_LEVEL = 6
_GZIP = 31  # zlib's number for a window of 32 kB within gzip's header, whose time it leaves at 0


class _Compressor(NamedTuple):
    compress: Callable[[bytes], bytes]
    flush: Callable[[], bytes]


def _brotli() -> _Compressor:
    compressor: Any = brotli.Compressor(quality=_BROTLI_QUALITY)
    return _Compressor(compressor.process, compressor.finish)


def _gzip() -> _Compressor:
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP)
    return _Compressor(compressor.compress, compressor.flush)


_COMPRESSORS: Mapping[str, Callable[[], _Compressor]] = {".br": _brotli, ".zst": _zstd, ".gz": _gzip}


class Written(NamedTuple):
    """A file as the manifest lists it; the path is relative to the release's folder."""

    path: str
    bytes: int
    sha256: str


class _File:
    def __init__(self, folder: Path, path: str, compressor: _Compressor | None) -> None:
        self._path = path
        self._compressor = compressor
        self._digest = hashlib.sha256()
        self._bytes = 0
        self._file: BinaryIO = (folder / path).open("wb", buffering=0)

    def write(self, data: bytes) -> None:
        self._put(self._compressor.compress(data) if self._compressor else data)

    def _put(self, data: bytes) -> None:
        if data:
            self._file.write(data)
            self._digest.update(data)
            self._bytes += len(data)

    def finish(self) -> Written:
        if self._compressor:
            self._put(self._compressor.flush())
        return Written(self._path, self._bytes, self._digest.hexdigest())

    def close(self) -> None:
        self._file.close()


class CodedFile:
    """A file with a copy for each content coding, or without copies."""

    def __init__(self, folder: Path, path: str, *, coded: bool) -> None:
        self._files = [_File(folder, path, None)]
        if coded:
            self._files += [_File(folder, path + suffix, make()) for suffix, make in _COMPRESSORS.items()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def write(self, data: bytes) -> None:
        """Append to the file and to its copies."""
        for file in self._files:
            file.write(data)

    def finish(self) -> list[Written]:
        """End the copies, and return what was written."""
        return [file.finish() for file in self._files]
