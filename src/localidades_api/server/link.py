"""Messages between a worker and the supervisor: lines of JSON over a socket pair."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from localidades_api.observability.metrics import COUNTERS, Snapshot

_MAX_MESSAGE = 4 * 1024**2  # bytes; the metrics of a worker that has sent every kind of response take some 100 KB
_HEARTBEAT_INTERVAL = 1.0  # seconds
_ANSWER_TIMEOUT = 1.0  # seconds that a scrape waits for the supervisor
_START_POLL_INTERVAL = 0.02  # seconds between checks whether the server has started


@dataclass(frozen=True)
class Message:
    """A worker's metrics, all workers' metrics from the supervisor, or the reason why a worker can't start."""

    snapshot: Snapshot = field(default_factory=dict)
    is_question: bool = False  # asks for the metrics of all workers
    is_leaving: bool = False  # the worker is stopping and accepts no more connections
    failure: str = ""

    def encode(self) -> bytes:
        """Return the message as a line of JSON."""
        fields = [list(self.snapshot.items()), self.is_question, self.is_leaving, self.failure]
        return json.dumps(fields).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "Message":
        """Return the message of a line."""
        items, *rest = json.loads(line)
        return cls({tuple(series): values for series, values in items}, *rest)


async def connect(end: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the streams of one end of the socket pair."""
    return await asyncio.open_unix_connection(sock=end, limit=_MAX_MESSAGE)


async def read(reader: asyncio.StreamReader) -> Message | None:
    """Return the next message, or None if the other end is gone."""
    with suppress(ConnectionError):
        line = await reader.readline()
        if line.endswith(b"\n"):  # else the sender died while writing it
            return Message.decode(line)
    return None


class Server(Protocol):
    """The attributes of `uvicorn.Server` that are used here."""

    started: bool
    should_exit: bool


class Link:
    """A worker's end: sends heartbeats, and asks for the metrics of all workers."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._answer: asyncio.Future[Snapshot] | None = None
        self._known: Snapshot | None = None  # from the last answer

    @asynccontextmanager
    async def following(self, server: Server) -> AsyncIterator[None]:
        """Send a heartbeat every second once the server has started; stop the process if the supervisor is gone.

        Heartbeats come from the server's event loop, so a loop that hangs sends none.
        """
        reader, self._writer = await connect(self._end.dup())
        tasks = [asyncio.create_task(self._listen(reader)), asyncio.create_task(self._report(server))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            if server.started:
                self._send(is_leaving=True)
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _report(self, server: Server) -> None:
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(_START_POLL_INTERVAL)
        while True:
            if not self._writer.transport.get_write_buffer_size():  # else the supervisor has stopped reading
                self._send(is_leaving=server.should_exit)
            await asyncio.sleep(_HEARTBEAT_INTERVAL)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while message := await read(reader):
            self._known = message.snapshot
            if self._answer and not self._answer.done():
                self._answer.set_result(message.snapshot)
        os.kill(os.getpid(), signal.SIGTERM)  # a killed supervisor can't stop its workers

    def _send(self, *, is_question: bool = False, is_leaving: bool = False) -> None:
        self._writer.write(Message(COUNTERS.snapshot(), is_question=is_question, is_leaving=is_leaving).encode())

    async def metrics(self) -> Snapshot:
        """Return the metrics of all workers, or those of the last answer if the supervisor is too slow."""
        if self._answer is None or self._answer.done():
            self._answer = asyncio.get_running_loop().create_future()
            self._send(is_question=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                return await asyncio.shield(self._answer)
        return self._known or COUNTERS.snapshot()

    def fail(self, reason: str) -> None:
        """Report why the worker can't start, after its event loop has ended."""
        with suppress(OSError):
            self._end.sendall(Message(failure=reason).encode())
