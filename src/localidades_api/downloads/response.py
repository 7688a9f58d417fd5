"""Downloads of a release or a part of it, in chunks, so that memory stays small and no connection is held.

Each chunk is a statement of its own over rows that never change, so a client that reads slowly still gets one
release. If a chunk fails or is incomplete, the transfer stops before its last byte, which every HTTP client
notices.
"""

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus

from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type

from localidades_api.downloads.file_types import FILE_TYPES, FileType
from localidades_api.downloads.ranges import CODINGS, ByteRange, ChunkLayout, Chunks, Write
from localidades_api.errors import UnavailableError
from localidades_api.http.negotiation import choose_coding
from localidades_api.http.paths import WITH_BODY
from localidades_api.http.transfers import Transfer, Transfers

_log = logging.getLogger(__name__)

_MAX_LAYOUTS = 64  # remembered, of a few kilobytes at most

for _type in FILE_TYPES.values():
    if not _type.compressed:
        # Chunk by chunk: otherwise brotli buffers up to 30 MB of a stream, to save a thousandth of its size.
        add_compress_type(_type.media_type.partition(";")[0], streaming=True)


class Downloads:
    """Starts downloads, and remembers where the chunks of files begin."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._layouts: LRUCache[str, ChunkLayout] = LRUCache(_MAX_LAYOUTS)

    async def start(self, scope: Scope, write: Write, headers: Mapping[str, str], file_type: FileType) -> "Download":
        """Fetch the first chunk and return the response: an error until then still gets a response of its own.

        If the headers say that the file has parts, the response is the one that is asked for. Raises TransfersFullError
        and RangeNotSatisfiableError.
        """
        transfer = self._transfers.begin()
        try:
            has_parts = "Accept-Ranges" in headers and scope.get(WITH_BODY, True)
            asked = ByteRange.of(Headers(scope=scope), headers["ETag"]) if has_parts else None
            if asked is None:
                status, chunks = HTTPStatus.OK, write(0)
            else:
                layout = await self._lay_out(scope, write, headers["ETag"])
                start, stop = asked.within(layout.size)
                part = {
                    "Content-Range": f"bytes {start}-{stop - 1}/{layout.size}",
                    "Content-Length": str(stop - start),
                }
                headers = {**headers, **part}
                status, chunks = HTTPStatus.PARTIAL_CONTENT, layout.write(write, start, stop)
            return Download(await anext(chunks, b""), chunks, headers, file_type, transfer, status)
        except BaseException:
            transfer.end()
            raise

    async def _lay_out(self, scope: Scope, write: Write, etag: str) -> ChunkLayout:
        """Return where the chunks of a file begin; the first time, the whole of it is written to find out."""
        key = f"{etag} {scope['path']}?{scope['query_string'].decode('latin-1')}"
        if (layout := self._layouts.get(key)) is None:
            layout = self._layouts[key] = await ChunkLayout.of(write(0))
        return layout


class Download(Response):
    """A streamed file, compressed as the client accepts it (zstd, br, gzip).

    Its ETag is weak where the same records may be other bytes: in every encoding, and in most formats.

    The call never raises: an exception would keep its frames, and with them a compressor of some megabytes, until the
    garbage collector runs, which is seldom.
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
        # The middleware adds Accept-Encoding to Vary for what it may compress.
        vary = {"Vary": "Accept-Encoding"} if file_type.compressed or status == HTTPStatus.PARTIAL_CONTENT else {}
        self.init_headers(
            {**headers, **vary, "Content-Type": file_type.media_type, "X-Content-Type-Options": "nosniff"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file; a HEAD reads only the first chunk, which has been fetched."""
        async with self._transfer.sending(scope):
            try:
                await CompressMiddleware(self._send_chunks)(_with_one_coding(scope), receive, send)
            finally:
                await self._rest.aclose()

    async def _send_chunks(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send chunk by chunk, until the client disconnects or the database fails, or the disk."""
        gone = asyncio.create_task(_hang_up(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            chunk: bytes | None = self._first
            self._first = b""
            while chunk is not None and not gone.done():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await anext(self._rest, None) if scope.get(WITH_BODY, True) else None
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except UnavailableError as error:  # the server closes the connection, because the last chunk is missing
            _log.error("A download failed: %s (%r)", error, error.__cause__)
            error.__traceback__ = None  # or it keeps this frame
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
