"""Downloads of a release or a part of it, in chunks, so that memory stays small and no connection is held.

Each chunk is a statement of its own over rows that never change, so a client may take as long as it likes and still
gets one release. If a chunk fails or is incomplete, the transfer stops before its last byte, which every HTTP client
notices.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus

from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type

from localidades_api.downloads.file_types import FILE_TYPES, FileType
from localidades_api.downloads.ranges import CODINGS, ByteRange, ChunkLayout, Chunks, Write
from localidades_api.errors import DownloadsFullError, UnavailableError
from localidades_api.http.clients import TRANSPORT, bytes_unread, client_of
from localidades_api.http.negotiation import choose_coding
from localidades_api.http.paths import WITH_BODY

_log = logging.getLogger(__name__)

_WINDOW = 5.0  # seconds over which a client's rate is measured; no client is slow before the first has passed
_MAX_LAYOUTS = 64  # remembered, of a few kilobytes at most
_FAIR_SHARE_TIMEOUT = 120.0  # seconds after which a client with more downloads than others can lose one


for _type in FILE_TYPES.values():
    if not _type.compressed:
        # Chunk by chunk: otherwise brotli buffers up to 30 MB of a stream, to save a thousandth of its size.
        add_compress_type(_type.media_type.partition(";")[0], streaming=True)


class Transfer:
    """A download under way: its client, and the rate at which the client reads."""

    def __init__(self, scope: Scope) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = scope.get(TRANSPORT)
        self._read: int | None = 0  # when the last window ended; None where the kernel's part of it is not known
        self.client = client_of(scope)
        self.began = self._loop.time()
        self.sent = 0  # bytes, compressed
        self.rate = math.inf  # bytes a second over the last window; infinite while the client waits for us
        self._next_window = self._loop.call_later(_WINDOW, self._measure)

    def _measure(self) -> None:
        unread = bytes_unread(self._transport) if self._transport else 0
        read = self.sent - unread if unread else None
        self.rate = math.inf if read is None or self._read is None else (read - self._read) / _WINDOW
        self._read = read
        self._next_window = self._loop.call_later(_WINDOW, self._measure)

    def end(self) -> None:
        """Stop measuring."""
        self._next_window.cancel()

    def abort(self) -> None:
        """Close the connection at once, rather than wait for a client that may never read the rest."""
        if self._transport:
            self._transport.abort()


class Transfers:
    """The downloads under way, at most `most`.

    A client may read as slowly as it likes until another client needs its slot. Then the new download replaces one that
    is read more slowly than `min_rate` bytes a second, or one that has lasted for minutes and whose client has more
    downloads than the new client.
    """

    def __init__(self, most: int, min_rate: int) -> None:
        self._most = most
        self._min_rate = min_rate
        self._under_way: set[Transfer] = set()
        self._layouts: LRUCache[str, ChunkLayout] = LRUCache(_MAX_LAYOUTS)

    async def start(self, scope: Scope, write: Write, headers: Mapping[str, str], file_type: FileType) -> "Download":
        """Fetch the first chunk and return the response: an error until then still gets a response of its own.

        If the headers say that the file has parts, the response is the one that is asked for. Raises DownloadsFullError
        if no slot is free, and RangeNotSatisfiableError.
        """
        if len(self._under_way) >= self._most:
            self._make_room(client_of(scope))
        transfer = Transfer(scope)
        self._under_way.add(transfer)
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
            return Download(await anext(chunks, b""), chunks, headers, file_type, transfer, self._end, status)
        except BaseException:
            self._end(transfer)
            raise

    async def _lay_out(self, scope: Scope, write: Write, etag: str) -> ChunkLayout:
        """Return where the chunks of a file begin; the first time, the whole of it is written to find out."""
        key = f"{etag} {scope['path']}?{scope['query_string'].decode('latin-1')}"
        if (layout := self._layouts.get(key)) is None:
            layout = self._layouts[key] = await ChunkLayout.of(write(0))
        return layout

    def _make_room(self, client: bytes | str) -> None:
        """End a slow transfer, or else an unfair one: the slowest of the client that has the most."""
        shares = Counter(transfer.client for transfer in self._under_way)
        long_ago = asyncio.get_running_loop().time() - _FAIR_SHARE_TIMEOUT
        waited_for = [transfer for transfer in self._under_way if transfer.rate < math.inf]
        slow = [transfer for transfer in waited_for if transfer.rate < self._min_rate]
        unfair = [
            transfer
            for transfer in waited_for
            if transfer.began <= long_ago and shares[transfer.client] > shares[client] + 1
        ]
        if not (candidates := slow or unfair):
            raise DownloadsFullError
        ended = min(candidates, key=lambda transfer: (-shares[transfer.client], transfer.rate))
        _log.info("Cut off a download to make room for another: its client read %.0f bytes a second.", ended.rate)
        self._end(ended)
        ended.abort()

    def _end(self, transfer: Transfer) -> None:
        transfer.end()
        self._under_way.discard(transfer)


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
        end: Callable[[Transfer], None],
        status: int,
    ) -> None:
        self.status_code = status
        self._first = first
        self._rest = rest
        self._transfer = transfer
        self._end = end
        self.background = None
        # The middleware adds Accept-Encoding to Vary for what it may compress.
        vary = {"Vary": "Accept-Encoding"} if file_type.compressed or status == HTTPStatus.PARTIAL_CONTENT else {}
        self.init_headers(
            {**headers, **vary, "Content-Type": file_type.media_type, "X-Content-Type-Options": "nosniff"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file; a HEAD reads only the first chunk, which has been fetched."""

        async def send_counted(message: Message) -> None:
            await send(message)
            self._transfer.sent += len(message.get("body", b""))

        try:
            await CompressMiddleware(self._send_chunks)(_with_one_coding(scope), receive, send_counted)
        finally:
            await self._rest.aclose()
            self._end(self._transfer)

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
