"""Answers a request with rows: receives all of them, checks them, and answers them in order, or describes the first."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Any, NamedTuple
from urllib.parse import quote

from pydantic_core import to_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from localidades_api.bulk.columns import AnswerRows
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.readers import SAMPLE_ROWS, CsvReader, RowReader
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.bulk.writers import AnswerWriter
from localidades_api.errors import LocalidadesError
from localidades_api.http.body import spool_body
from localidades_api.http.transfers import Transfers

Answered = Sequence[tuple[Row, Answer]]
# Answers the next rows of an iterator, for a few milliseconds.
AnswerSome = Callable[[Iterator[Row | None]], Awaitable[Answered]]
Read = Callable[[IO[bytes], AnswerRows | None], RowReader]


class Answering(NamedTuple):
    """The functions that answer rows: all of them, and a sample of the first ones, by which columns are found."""

    some: AnswerSome
    sample: AnswerRows | None = None


_log = logging.getLogger(__name__)

_IN_MEMORY = 1024**2  # bytes of a body that is not in a file


class Exchange(NamedTuple):
    """A request with rows, the limit on such transfers, and whose turn it is to work."""

    request: Request
    transfers: Transfers
    turn: asyncio.Lock


class _RowsResponse(Response, ABC):
    """The response to a request with rows.

    Such responses take turns, so that other requests wait for at most one of them. An error of the body or the service
    is raised before the response begins.
    """

    def __init__(self, exchange: Exchange, read: Read, headers: Mapping[str, str]) -> None:
        self._request, self._transfers, self._turn = exchange
        self._read = read
        self.background = None
        self.init_headers({**headers, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # the request has the scope
        """Receive the rows, and send the response."""
        with SpooledTemporaryFile(_IN_MEMORY) as body:
            await spool_body(self._request, body)
            async with self._transfers.begin().sending(scope):
                await self._send(body, send)

    @abstractmethod
    async def _send(self, body: IO[bytes], send: Send) -> None:
        """Send the response to a body."""

    async def _check(self, body: IO[bytes], sample: AnswerRows | None) -> RowReader:
        async with self._turn:
            reader = await asyncio.to_thread(self._read, body, sample)  # a header may have a megabyte
        checking = reader.check()
        is_checked = False
        while not is_checked:
            async with self._turn:  # the first rows may be matched
                is_checked = await asyncio.to_thread(next, checking, self) is self
            if await self._request.is_disconnected():
                raise ClientDisconnect
        return reader


class PreviewResponse(_RowsResponse):
    """A description of the table in the body of a request, as JSON."""

    def __init__(
        self,
        exchange: Exchange,
        read: Read,
        headers: Mapping[str, str],
        sampling: AbstractAsyncContextManager[AnswerRows],
    ) -> None:
        super().__init__(exchange, read, headers)
        self._sampling = sampling

    async def _send(self, body: IO[bytes], send: Send) -> None:
        async with self._sampling as sample:
            reader = await self._check(body, sample)
        content = await asyncio.to_thread(_describe, reader)  # each of the rows may have a megabyte
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": content})


def _describe(reader: RowReader) -> bytes:
    has_header = isinstance(reader, CsvReader) and reader.has_header
    place: dict[str, Any] = {"sheets": [], "sheet": None, "header_row": None, "has_header": has_header, "note": None}
    if isinstance(reader, XlsxReader):
        place = {
            "sheets": reader.sheets,
            "sheet": reader.sheet.name,
            "header_row": reader.header_row,
            "has_header": reader.header_row > 0,
            "note": reader.note,
        }
    first = list(islice(reader, SAMPLE_ROWS))
    return to_json({**place, "quantity": reader.count, **reader.describe(first)})


class BulkResponse(_RowsResponse):
    """The answers to the rows of a request.

    A failure after the response has begun ends it early, which every HTTP client notices.
    """

    def __init__(
        self,
        exchange: Exchange,
        read: Read,
        headers: Mapping[str, str],
        write: Callable[[RowReader], AnswerWriter],
        answering: AbstractAsyncContextManager[Answering],
    ) -> None:
        super().__init__(exchange, read, headers)
        self._write = write
        self._answering = answering

    async def _send(self, body: IO[bytes], send: Send) -> None:
        async with self._answering as answering:
            answers = self._answer(body, answering)
            piece: bytes | None = await anext(answers)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                while piece is not None and not await self._request.is_disconnected():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    piece = await anext(answers, None)
            except (LocalidadesError, OSError) as error:
                _log.error("A response of many rows was cut off: %s", error)
            else:
                await send({"type": "http.response.body", "body": b""})

    async def _answer(self, body: IO[bytes], answering: Answering) -> AsyncIterator[bytes]:
        """Yield the answers to all rows, at least one piece."""
        reader = await self._check(body, answering.sample)
        rows, left, writer = reader.rows(), reader.count, self._write(reader)
        written = await asyncio.to_thread(writer.begin)  # writing a workbook copies most of it
        self.headers.update(_describe_table(reader, writer))
        while left:
            async with self._turn:
                answered = await answering.some(rows)
                written += b"".join([writer.write(*one) for one in answered])
            if answered:
                if written:
                    yield written
                left, written = left - len(answered), b""
            await asyncio.sleep(0)
        yield written + await asyncio.to_thread(writer.end)


def _describe_table(reader: RowReader, writer: AnswerWriter) -> dict[str, str]:
    """Return headers with the sheet that was read, the row of its header, and the columns of the answer in a table."""
    headers: dict[str, str] = {}
    if isinstance(reader, XlsxReader):
        headers |= {"Sheet-Name": quote(reader.sheet.name), "Header-Row": str(reader.header_row)}
    if writer.positions:
        headers["Answer-Columns"] = ", ".join(f"{name}={at}" for name, at in writer.positions.items())
    return headers
