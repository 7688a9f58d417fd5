"""Sends a download: chunk by chunk, compressed as the client accepts."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type

from localidades_api.catalogue.schemas import Release
from localidades_api.downloads.formats import FILE_TYPES, FileType
from localidades_api.errors import UnavailableError
from localidades_api.http.negotiation import choose_coding
from localidades_api.http.paths import WITH_BODY
from localidades_api.http.representation import Representation
from localidades_api.http.transfers import Transfer, Transfers

CODINGS = ("zstd", "br", "gzip")  # for downloads, best first
Chunks = AsyncGenerator[bytes, None]

_log = logging.getLogger(__name__)

for _type in FILE_TYPES.values():
    if not _type.is_compressed:
        # Chunk by chunk: otherwise brotli buffers up to 30 MB of a stream to save a thousandth of its size.
        add_compress_type(_type.media_type.partition(";")[0], streaming=True)


def represent_file(asked: Headers, release: Release, name: str, *, is_pinned: bool) -> Representation:
    """Choose the representation of a file; its tag is weak, because the same records can be other bytes."""
    return Representation.of(asked, release, name, vary=["Accept-Encoding"], is_pinned=is_pinned, is_weak=True)


async def start_download(
    transfers: Transfers, chunks: Chunks, headers: Mapping[str, str], file_type: FileType, filename: str, records: int
) -> "Download":
    """Fetch the first chunk and return the response, so that an error until then can still be answered.

    Raises TransfersFullError.
    """
    disposition = f'attachment; filename="{filename}"'
    headers = {**headers, "Content-Disposition": disposition, "Catalogue-Records": str(records)}
    transfer = transfers.begin()
    try:
        return Download(await anext(chunks, b""), chunks, headers, file_type, transfer)
    except BaseException:
        transfer.end()
        raise


class Download(Response):
    """A streamed file, compressed as the client accepts it (zstd, br, gzip).

    The call never raises, because an exception would keep its frames, and a compressor of some megabytes, until the
    garbage collector runs.
    """

    def __init__(
        self, first: bytes, rest: Chunks, headers: Mapping[str, str], file_type: FileType, transfer: Transfer
    ) -> None:
        self.status_code = 200
        self._first = first
        self._rest = rest
        self._transfer = transfer
        self.background = None
        self.init_headers({**headers, "Content-Type": file_type.media_type, "X-Content-Type-Options": "nosniff"})
        if not file_type.is_compressed:  # the middleware adds it
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
