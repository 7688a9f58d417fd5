"""Sends a download: whole, compressed, or a range of bytes.

Only text has ranges, uncompressed: its bytes depend on the release and this software alone, which the ETag covers. That
of other files depends on the library that wrote them.
"""

import asyncio
import logging
import os
import re
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from tempfile import TemporaryFile
from typing import NamedTuple, Self

from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type

from localidades_api.catalogue.schemas import Release
from localidades_api.downloads.formats import FILE_TYPES, FileType
from localidades_api.errors import RangeNotSatisfiableError, UnavailableError
from localidades_api.http.negotiation import choose_coding
from localidades_api.http.paths import WITH_BODY
from localidades_api.http.representation import Representation
from localidades_api.http.transfers import Transfer, Transfers

CODINGS = ("zstd", "br", "gzip")  # for downloads, best first
Chunks = AsyncGenerator[bytes, None]
Write = Callable[[], Chunks]

_RANGE = re.compile(r"(?i:bytes)[ \t]*=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*")


def represent_file(
    asked: Headers, release: Release, name: str, file_type: FileType, *, is_pinned: bool
) -> Representation:
    """Choose the representation of a file; it has Accept-Ranges, or a weak ETag if ranges are not possible."""
    is_plain = file_type.is_compressed or choose_coding(asked.getlist("accept-encoding"), CODINGS) is None
    has_ranges = (file_type.is_reproducible) and is_plain
    return Representation.of(
        asked,
        release,
        name,
        vary=["Accept-Encoding"],
        is_pinned=is_pinned,
        is_weak=not has_ranges,
        more={"Accept-Ranges": "bytes"} if has_ranges else {},
    )


class ByteRange(NamedTuple):
    """A requested range of bytes: from `first` to `last`, or the final `last` bytes if `first` is None."""

    first: int | None
    last: int | None

    @classmethod
    def of(cls, headers: Headers, etag: str) -> Self | None:
        """Return the requested range, or None if the response has to be the whole file.

        That is the case for several ranges, an invalid range, and an If-Range that is not the ETag of this file. A date
        in If-Range does not prove that the file is the same.
        """
        matched = _RANGE.fullmatch(", ".join(headers.getlist("range")).strip())
        if matched is None or headers.get("if-range", etag).strip() != etag:
            return None
        first, last = (int(digits) if digits else None for digits in matched.groups())
        if (first is None and last is None) or (first is not None and last is not None and last < first):
            return None
        return cls(first, last)

    def within(self, size: int) -> tuple[int, int]:
        """Return the start and the stop of the range in a file of this size; raise RangeNotSatisfiableError."""
        if self.first is None:
            start, stop = max(size - (self.last or 0), 0), size
        else:
            start, stop = self.first, size if self.last is None else min(self.last + 1, size)
        if start >= stop:
            raise RangeNotSatisfiableError(size)
        return start, stop


class KeptFile:
    """A whole file on the disk, without a name: its space is free again when nothing reads it, or the process ends.

    Clients that resume a download, or read a file in parts, ask for many ranges of it.
    """

    def __init__(self) -> None:
        self.size = 0
        self._file = TemporaryFile()  # noqa: SIM115  # closed with the object
        weakref.finalize(self, self._file.close)

    @classmethod
    async def of(cls, chunks: Chunks) -> Self:
        """Write the chunks of a file; raise UnavailableError if the disk is full."""
        try:
            kept = cls()
            async with aclosing(chunks):
                async for chunk in chunks:
                    kept.size += await asyncio.to_thread(kept._file.write, chunk)
            await asyncio.to_thread(kept._file.flush)
        except OSError as error:
            raise UnavailableError("The service can't write the file: its disk is full, or fails.") from error
        return kept

    async def read(self, start: int, stop: int) -> Chunks:
        """Read the bytes of the file from `start` to `stop`."""
        while start < stop:
            block = await asyncio.to_thread(os.pread, self._file.fileno(), min(_BLOCK, stop - start), start)
            yield block
            start += len(block)


_log = logging.getLogger(__name__)

_MAX_KEPT = 2  # files, each of up to 180 MB
_BLOCK = 256 * 1024  # bytes that are read at once

for _type in FILE_TYPES.values():
    if not _type.is_compressed:
        # Chunk by chunk: otherwise brotli buffers up to 30 MB of a stream to save a thousandth of its size.
        add_compress_type(_type.media_type.partition(";")[0], streaming=True)


class Downloads:
    """Starts downloads, and keeps the files that are read in parts."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._kept: LRUCache[str, KeptFile] = LRUCache(_MAX_KEPT)
        self._keeping = asyncio.Lock()

    async def start(
        self, scope: Scope, write: Write, headers: Mapping[str, str], file_type: FileType, name: str, records: int
    ) -> "Download":
        """Fetch the first chunk and return the response, so that an error until then can still be answered.

        `name` is that of the file without its ending. With Accept-Ranges among the headers, the response can be a
        range. Raises TransfersFullError and RangeNotSatisfiableError.
        """
        disposition = f'attachment; filename="{name}{file_type.ending}"'
        headers = {**headers, "Content-Disposition": disposition, "Catalogue-Records": str(records)}
        transfer = self._transfers.begin()
        try:
            with_body = scope.get(WITH_BODY, True)
            accepts_ranges = "Accept-Ranges" in headers and with_body
            requested = ByteRange.of(Headers(scope=scope), headers["ETag"]) if accepts_ranges else None
            if requested is None:
                if file_type.is_measured and not with_body:
                    headers = {**headers, "Content-Length": str((await self._keep(scope, write, headers)).size)}
                status, chunks = HTTPStatus.OK, write()
            else:
                file = await self._keep(scope, write, headers)
                start, stop = requested.within(file.size)
                part = {"Content-Range": f"bytes {start}-{stop - 1}/{file.size}", "Content-Length": str(stop - start)}
                headers = {**headers, **part}
                status, chunks = HTTPStatus.PARTIAL_CONTENT, file.read(start, stop)
            return Download(await anext(chunks, b""), chunks, headers, file_type, transfer, status)
        except BaseException:
            transfer.end()
            raise

    async def _keep(self, scope: Scope, write: Write, headers: Mapping[str, str]) -> KeptFile:
        """Return a file, which the first request for a part of it writes."""
        key = f"{headers['ETag']} {scope['path']}?{scope['query_string'].decode('latin-1')}"
        async with self._keeping:
            if (kept := self._kept.get(key)) is None:
                kept = self._kept[key] = await KeptFile.of(write())
        return kept


class Download(Response):
    """A streamed file, compressed as the client accepts it (zstd, br, gzip).

    The ETag is weak where the same records can be other bytes: in every coding, and in most formats. The call never
    raises, because an exception would keep its frames, and a compressor of some megabytes, until the garbage collector
    runs.
    """

    def __init__(
        self,
        first: bytes,
        rest: Chunks,
        headers: Mapping[str, str],
        file_type: FileType,
        transfer: Transfer,
        status: int,
    ) -> None:
        self.status_code = status
        self._first = first
        self._rest = rest
        self._transfer = transfer
        self.background = None
        self.init_headers({**headers, "Content-Type": file_type.media_type, "X-Content-Type-Options": "nosniff"})
        if not file_type.is_compressed and status == HTTPStatus.OK:  # the middleware adds it
            del self.headers["Vary"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file; a HEAD reads only the first chunk, which has been fetched."""
        async with self._transfer.sending(scope):
            try:
                await CompressMiddleware(self._send_chunks)(_with_one_coding(scope), receive, send)
            finally:
                await self._rest.aclose()

    async def _send_chunks(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send chunk by chunk, until the client disconnects, or the database or the disk fails."""
        gone = asyncio.create_task(_hang_up(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            chunk: bytes | None = self._first
            self._first = b""
            while chunk is not None and not gone.done():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await anext(self._rest, None) if scope.get(WITH_BODY, True) else None
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        except UnavailableError as error:  # without a last chunk, the server closes the connection
            _log.error("A download failed: %s (%r)", error, error.__cause__)
            error.__traceback__ = None  # otherwise it keeps this frame
        finally:
            gone.cancel()


def _with_one_coding(scope: Scope) -> Scope:
    """Return the scope with the one content coding that the client prefers, since the middleware ignores weights."""
    coding = choose_coding(Headers(scope=scope).getlist("accept-encoding"), CODINGS) or "identity"
    others = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
    return {**scope, "headers": [*others, (b"accept-encoding", coding.encode())]}


async def _hang_up(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
