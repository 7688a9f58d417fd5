"""Files of a release or a part of it: written in chunks, so that memory stays small and no connection is held.

Each chunk is a statement of its own over rows that never change: a reader may take as long as it likes, and what was
sent is of one release. A chunk that can't be had, or is not whole, ends the transfer before its last byte, which every
HTTP client notices.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type

from localidades_api.domain.schemas import Release
from localidades_api.errors import DatabaseUnavailableError, DownloadsFullError
from localidades_api.http.clients import TRANSPORT, bytes_unread, client_of
from localidades_api.http.paths import WITH_BODY
from localidades_api.storage.repository import RecordsRepository
from localidades_api.storage.repository.exports import COLUMNS, LineFormat

Chunks = AsyncGenerator[bytes, None]

_log = logging.getLogger(__name__)

_CHUNK = 4000  # records: a statement of some 20 ms, a megabyte
_WINDOW = 5.0  # seconds over which a client's rate is measured; before the first have passed nobody is slow
_FAIR_SHARE_TIMEOUT = 120.0  # seconds that a client which has more downloads than others can be sure of one


class FileType(NamedTuple):
    """What a format is called on the wire and on a disk."""

    media_type: str
    extension: str


FILE_TYPES: Mapping[str, FileType] = {
    "csv": FileType("text/csv; charset=utf-8; header=present", "csv"),
    "excel": FileType("text/csv; charset=utf-8; header=present", "csv"),
    "ndjson": FileType("application/x-ndjson", "ndjson"),
    "geojson": FileType("application/geo+json", "geojson"),
    "parquet": FileType("application/vnd.apache.parquet", "parquet"),
}
NDJSON = FILE_TYPES["ndjson"].media_type
_COMPRESSED = [FILE_TYPES[name].media_type for name in ("csv", "ndjson", "geojson")]
for _media_type in _COMPRESSED:
    # Compressed chunk by chunk: brotli holds back up to 30 MB of a stream otherwise, to send it a thousandth smaller.
    add_compress_type(_media_type.partition(";")[0], streaming=True)


class Transfer:
    """A file that is being sent: whose it is, and at what rate it is read."""

    def __init__(self, scope: Scope) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = scope.get(TRANSPORT)
        self._read: int | None = 0  # when the last window ended; None where the kernel's part of it is not known
        self.client = client_of(scope)
        self.began = self._loop.time()
        self.sent = 0  # bytes, compressed
        self.rate = math.inf  # bytes a second over the last window; infinite while the client waits for the file
        self._next_window = self._loop.call_later(_WINDOW, self._measure)

    def _measure(self) -> None:
        unread = bytes_unread(self._transport) if self._transport else 0
        read = self.sent - unread if unread else None
        self.rate = math.inf if read is None or self._read is None else (read - self._read) / _WINDOW
        self._read = read
        self._next_window = self._loop.call_later(_WINDOW, self._measure)

    def end(self) -> None:
        """Measure no more."""
        self._next_window.cancel()

    def abort(self) -> None:
        """Cut the connection off, so that nothing waits for a client that may never read the rest."""
        if self._transport:
            self._transport.abort()


class Transfers:
    """The files that are being sent, and the bound to them.

    A client may read as slowly as it likes, unless all are taken and one more is asked for. Then that one gets the
    place of a client that reads more slowly than `min_rate` bytes a second; or, of a file that has been under way for
    minutes, the place of a client that has more of them than the one who asks.
    """

    def __init__(self, most: int, min_rate: int) -> None:
        self._most = most
        self._min_rate = min_rate
        self._under_way: set[Transfer] = set()

    async def start(self, scope: Scope, chunks: Chunks, headers: Mapping[str, str], file_type: FileType) -> "Download":
        """Return a file whose first chunk has been fetched: an error in it is still an answer of its own.

        Raises DownloadsFullError where enough are being sent.
        """
        if len(self._under_way) >= self._most:
            self._make_room(client_of(scope))
        transfer = Transfer(scope)
        self._under_way.add(transfer)
        try:
            return Download(await anext(chunks, b""), chunks, headers, file_type, transfer, self._end)
        except BaseException:
            self._end(transfer)
            raise

    def _make_room(self, client: bytes | str) -> None:
        """End the transfer that others can best do without, the slowest of whoever has most of them."""
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
    """A streamed file, compressed as the client takes it (zstd, br, gzip).

    Its ETag is weak: one release gives the same records in every encoding, but not the same bytes.

    However a transfer ends, it returns: an exception would keep the frames that it passed, and with them a compressor
    of some megabytes, until the garbage collector comes, and that is late (`app`).
    """

    def __init__(
        self,
        first: bytes,
        rest: Chunks,
        headers: Mapping[str, str],
        file_type: FileType,
        transfer: Transfer,
        end: Callable[[Transfer], None],
    ) -> None:
        self._first = first
        self._rest = rest
        self._transfer = transfer
        self._end = end
        self.background = None
        # The middleware names Accept-Encoding itself for what it may compress, and would do so twice.
        vary = {} if file_type.media_type in _COMPRESSED else {"Vary": "Accept-Encoding"}
        self.init_headers(
            {**headers, **vary, "Content-Type": file_type.media_type, "X-Content-Type-Options": "nosniff"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; for a HEAD no more is read than the first chunk, which is at hand."""

        async def send_counted(message: Message) -> None:
            await send(message)
            self._transfer.sent += len(message.get("body", b""))

        try:
            await CompressMiddleware(self._send_chunks)(scope, receive, send_counted)
        finally:
            await self._rest.aclose()
            self._end(self._transfer)

    async def _send_chunks(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send chunk by chunk, until the client has gone or the database has failed."""
        gone = asyncio.create_task(_hang_up(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            chunk: bytes | None = self._first
            self._first = b""
            while chunk is not None and not gone.done():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await anext(self._rest, None) if scope.get(WITH_BODY, True) else None
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except DatabaseUnavailableError as error:  # the server closes the connection: the last chunk is missing
            _log.error("A download failed: %s (%r)", error, error.__cause__)
            error.__traceback__ = None  # or it keeps this frame
        finally:
            gone.cancel()


async def _hang_up(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def has_parquet() -> bool:
    """Tell whether the extra that Parquet needs is installed."""
    return find_spec("pyarrow") is not None


async def write_lines(
    records: RecordsRepository, release: Release, places: Sequence[int], format_: LineFormat
) -> Chunks:
    """Write a text format, record by record; raise DatabaseUnavailableError where a chunk is not whole.

    What stands before the first record goes with it, so that nothing is sent before the database has answered.
    """
    head, between, tail = _FRAMES[format_]
    before = head % len(places) if format_ == "geojson" else head
    for start in range(0, len(places), _CHUNK):
        wanted = places[start : start + _CHUNK]
        count, lines = await records.list_lines(release, wanted, format_)
        if count != len(wanted):
            raise DatabaseUnavailableError(f"The database returned {count} of {len(wanted)} records of a download.")
        yield before + lines
        before = between
    yield tail if places else before + tail


_HEADER = ",".join(COLUMNS).encode() + b"\r\n"
_FRAMES: Mapping[LineFormat, tuple[bytes, bytes, bytes]] = {
    "csv": (_HEADER, b"", b""),
    "excel": (b"\xef\xbb\xbf" + _HEADER, b"", b""),
    "ndjson": (b"", b"", b""),
    "geojson": (b'{"type":"FeatureCollection","numberMatched":%d,"features":[\n', b",\n", b"\n]}\n"),
}
