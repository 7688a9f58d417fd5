"""Answers a request that sends rows: streamed both ways, an answer to each row, in order.

Most clients read nothing before they have sent everything. What such a client has not read yet waits in a temporary
file, so that neither side waits for the other, and memory stays small.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from localidades_api.bulk.outbox import Outbox
from localidades_api.bulk.reading import RowReader
from localidades_api.bulk.rows import Answer, Row
from localidades_api.bulk.writing import AnswerWriter
from localidades_api.errors import LocalidadesError
from localidades_api.http.body import read_chunks
from localidades_api.http.transfers import Transfers

Answered = Sequence[tuple[Row, Answer]]
# Takes some rows from an iterator, as many as a few milliseconds allow, and answers them; none if it is exhausted.
AnswerSome = Callable[[Iterator[Row]], Awaitable[Answered]]

_log = logging.getLogger(__name__)

_EARLY_ERROR_TIMEOUT = 0.25  # seconds: an error in so short a time still gets a response of its own


class BulkResponse(Response):
    """The answers to the rows of a request, sent while its body still comes.

    Such responses take turns, so that other requests wait for one of them at most. Until the first answers are sent, an
    error is raised, such as TransfersFullError; later ones end the response before its last byte, which every HTTP
    client notices.
    """

    def __init__(
        self,
        transfers: Transfers,
        turn: asyncio.Lock,
        request: Request,
        reader: RowReader,
        writer: AnswerWriter,
        answering: AbstractAsyncContextManager[AnswerSome],
        headers: Mapping[str, str],
    ) -> None:
        self._transfers = transfers
        self._turn = turn
        self._request = request
        self._reader = reader
        self._writer = writer
        self._answering = answering
        self._has_begun = False
        self.background = None
        self.init_headers({**headers, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # the request has it
        """Answer the rows as they come."""
        async with self._transfers.begin().sending(scope):
            with Outbox() as outbox:
                answering = asyncio.create_task(self._fill(outbox))
                try:
                    await self._send(outbox, answering, send)
                finally:
                    answering.cancel()
                    with suppress(BaseException):  # raised by `_send` already
                        await answering

    async def _send(self, outbox: Outbox, answering: "asyncio.Task[None]", send: Send) -> None:
        """Send what comes into the outbox."""
        await asyncio.wait({answering}, timeout=_EARLY_ERROR_TIMEOUT)
        if answering.done():
            answering.result()  # raises what went wrong
        piece = await outbox.take(answering)
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                piece = await outbox.take(answering)
        except (LocalidadesError, OSError) as error:
            _log.error("A response of many rows was cut off: %s", error)
        except ClientDisconnect:
            pass
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _fill(self, outbox: Outbox) -> None:
        """Answer every row of the body."""
        async with self._answering as answer:
            async for chunk in read_chunks(self._request):
                rows = self._reader.feed(chunk) if chunk else self._reader.close()
                async for answers in self._answer(rows, answer):
                    outbox.put(answers)
                    await outbox.room()
            outbox.put(self._begin() + self._writer.end())

    def _begin(self) -> bytes:
        """Return what comes before the first row, once."""
        head = b"" if self._has_begun else self._writer.begin()
        self._has_begun = True
        return head

    async def _answer(self, rows: Iterator[Row], answer: AnswerSome) -> AsyncIterator[bytes]:
        while True:
            async with self._turn:
                answered = await answer(rows)
                if not answered:
                    return
                written = self._begin() + b"".join([self._writer.write(*one) for one in answered])
            yield written
            await asyncio.sleep(0)
