"""Parts of files (RFC 9110 §14), so that a download that broke off can be resumed.

Only files that are written in the same bytes every time have parts, and only where they are not compressed.
"""

import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from itertools import accumulate
from typing import NamedTuple, Self

from starlette.datastructures import Headers

from localidades_api.downloads.file_types import FileType
from localidades_api.errors import RangeNotSatisfiableError
from localidades_api.http.negotiation import choose_coding

CODINGS = ("zstd", "br", "gzip")  # of downloads, the best first
Chunks = AsyncGenerator[bytes, None]
Write = Callable[[int], Chunks]  # writes a file, from the chunk of this number to the end

_RANGE = re.compile(r"(?i:bytes)[ \t]*=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*")


def range_headers(headers: Headers, etag: str, file_type: FileType) -> Mapping[str, str]:
    """Return the ETag of a file and whether it has parts; without parts the ETag is weak."""
    if file_type.is_reproducible and choose_coding(headers.getlist("accept-encoding"), CODINGS) is None:
        return {"ETag": etag, "Accept-Ranges": "bytes"}
    return {"ETag": f"W/{etag}"}


class ByteRange(NamedTuple):
    """A range of bytes as it was asked for: from `first` to `last`, or the `last` bytes if there is no `first`."""

    first: int | None
    last: int | None

    @classmethod
    def of(cls, headers: Headers, etag: str) -> Self | None:
        """Return the one range that is asked for.

        It is None for several ranges, for what is no range, and if the client's part is of another file (If-Range): the
        response is then the whole file. A date is no proof that it is the same file.
        """
        asked = _RANGE.fullmatch(", ".join(headers.getlist("range")).strip())
        if asked is None or headers.get("if-range", etag).strip() != etag:
            return None
        first, last = (int(digits) if digits else None for digits in asked.groups())
        if (first is None and last is None) or (first is not None and last is not None and last < first):
            return None
        return cls(first, last)

    def within(self, size: int) -> tuple[int, int]:
        """Return where the range starts and stops in a file of so many bytes; raise RangeNotSatisfiableError."""
        if self.first is None:
            start, stop = max(size - (self.last or 0), 0), size
        else:
            start, stop = self.first, size if self.last is None else min(self.last + 1, size)
        if start >= stop:
            raise RangeNotSatisfiableError(size)
        return start, stop


class ChunkLayout:
    """Where the chunks of a file begin."""

    def __init__(self, sizes: list[int]) -> None:
        self._begins = list(accumulate(sizes, initial=0))
        self.size = self._begins[-1]

    @classmethod
    async def of(cls, chunks: Chunks) -> Self:
        """Write a file to nowhere."""
        async with aclosing(chunks):
            return cls([len(chunk) async for chunk in chunks])

    async def write(self, write: Write, start: int, stop: int) -> Chunks:
        """Write the part of a file from `start` to `stop`, beginning with the chunk that has its first byte."""
        number = bisect_right(self._begins, start) - 1
        position = self._begins[number]
        async with aclosing(write(number)) as chunks:
            async for chunk in chunks:
                yield chunk[max(start - position, 0) : stop - position]
                position += len(chunk)
                if position >= stop:
                    return
