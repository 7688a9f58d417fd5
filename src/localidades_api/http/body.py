"""Reads the body of a request, and limits how slowly its client may send it."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO

from starlette.requests import Request

from localidades_api.errors import ContentTooLargeError, RequestTimeoutError, UnavailableError

MAX_SILENCE = 20.0  # seconds without a byte, and seconds beyond what the rate allows
MAX_SPOOLED = 1024**3  # bytes of a file of rows, as in deploy/nginx
_MIN_RATE = 10_000  # bytes a second, on average since the body began
_MAX_TIME = 3600.0  # seconds for a whole body


async def read_chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as it comes, and an empty chunk at the end.

    Raises RequestTimeoutError for a client that sends too slowly, and ClientDisconnect for one that has gone. The time
    between two chunks in which nobody reads does not count.
    """
    chunks = request.stream()
    loop, waited, received = asyncio.get_running_loop(), 0.0, 0
    while True:
        began = loop.time()
        try:
            async with asyncio.timeout(MAX_SILENCE + min(received / _MIN_RATE - waited, _MAX_TIME - waited, 0.0)):
                chunk = await anext(chunks, b"")
        except TimeoutError as error:
            raise RequestTimeoutError from error
        waited += loop.time() - began
        received += len(chunk)
        yield chunk
        if not chunk:
            return


async def read_body(request: Request, limit: int) -> bytes:
    """Return the whole body; raise ContentTooLargeError beyond `limit` bytes, and as `read_chunks` does."""
    body = bytearray()
    async for chunk in read_chunks(request):
        body += chunk
        if len(body) > limit:
            raise ContentTooLargeError(limit)
    return bytes(body)


async def spool_body(request: Request, file: IO[bytes]) -> None:
    """Write the whole body to a file, and go back to its start.

    Raises ContentTooLargeError beyond `MAX_SPOOLED` bytes, UnavailableError if the disk is full, and as `read_chunks`.
    """
    async for chunk in read_chunks(request):
        if file.tell() + len(chunk) > MAX_SPOOLED:
            raise ContentTooLargeError(MAX_SPOOLED)
        try:
            file.write(chunk)
        except OSError as error:
            raise UnavailableError("The service can't keep the rows: its disk is full, or fails.") from error
    file.seek(0)
