"""Answers a request with rows: receives all of them, checks them, and answers them one by one, in order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from localidades_api.bulk.readers import RowReader, XlsxReader
from localidades_api.bulk.rows import Answer, Row
from localidades_api.bulk.writers import AnswerWriter
from localidades_api.errors import LocalidadesError
from localidades_api.http.body import spool_body
from localidades_api.http.transfers import Transfers

Answered = Sequence[tuple[Row, Answer]]
# Answers the next rows of an iterator, for a few milliseconds.
AnswerSome = Callable[[Iterator[Row | None]], Awaitable[Answered]]

_log = logging.getLogger(__name__)

MAX_BODY = 1024**3  # bytes, as in deploy/nginx
_IN_MEMORY = 1024**2  # bytes of a body that is not in a file


class BulkResponse(Response):
    """The answers to the rows of a request.

    Such responses take turns, so that other requests wait for at most one of them. An error of the body or
    the service is raised before the response begins; a later failure ends the response early, which every
    HTTP client notices.
    """

    def __init__(
        self,
        transfers: Transfers,
        turn: asyncio.Lock,
        request: Request,
        read: Callable[[IO[bytes]], RowReader],
        write: Callable[[RowReader], AnswerWriter],
        answering: AbstractAsyncContextManager[AnswerSome],
        headers: Mapping[str, str],
    ) -> None:
        self._transfers = transfers
        self._turn = turn
        self._request = request
        self._read = read
        self._write = write
        self._answering = answering
        self.background = None
        self.init_headers({**headers, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # the request has the scope
        """Receive the rows, and send their answers until the client disconnects."""
        async with self._transfers.begin().sending(scope):
            with SpooledTemporaryFile(_IN_MEMORY) as body:
                await spool_body(self._request, body, MAX_BODY)
                async with self._answering as answer:
                    answers = self._answer(body, answer)
                    piece: bytes | None = await anext(answers)
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    try:
                        while piece is not None and not await self._request.is_disconnected():
                            await send({"type": "http.response.body", "body": piece, "more_body": True})
                            piece = await anext(answers, None)
                    except (LocalidadesError, OSError) as error:
                        _log.error("A response of many rows was cut off: %s", error)
                    else:
                        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer(self, body: IO[bytes], answer: AnswerSome) -> AsyncIterator[bytes]:
        """Yield the answers to all rows, at least one piece."""
        reader = self._read(body)
        checking = reader.check()
        is_checked = False
        while not is_checked:
            async with self._turn:
                is_checked = next(checking, self) is self
            await asyncio.sleep(0)
            if await self._request.is_disconnected():
                raise ClientDisconnect
        rows, left, writer = reader.rows(), reader.count, self._write(reader)
        written = await asyncio.to_thread(writer.begin)  # writing a workbook copies most of it
        while left:
            async with self._turn:
                answered = await answer(rows)
                written += b"".join([writer.write(*one) for one in answered])
            if answered:
                if written:
                    self.headers.update(_describe_table(reader, writer))
                    yield written
                left, written = left - len(answered), b""
            await asyncio.sleep(0)
        written += await asyncio.to_thread(writer.end)
        self.headers.update(_describe_table(reader, writer))
        yield written


def _describe_table(reader: RowReader, writer: AnswerWriter) -> dict[str, str]:
    """Return headers with the sheet that was read, the row of its header, and the columns of the answer in a table."""
    headers: dict[str, str] = {}
    if isinstance(reader, XlsxReader):
        headers |= {"Sheet-Name": quote(reader.sheet.name), "Header-Row": str(reader.header_row)}
    if writer.positions:
        headers["Answer-Columns"] = ", ".join(f"{name}={at}" for name, at in writer.positions.items())
    return headers
