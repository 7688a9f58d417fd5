"""A proxy between a command and Postgres that cuts the connection at a chosen message, as `kill -9` at any moment."""

import asyncio
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

_HEAD = struct.Struct("!cI")  # of a message: its type, and its length without the type


class Cut:
    """Counts the messages of a command; from the chosen one on, Postgres gets nothing more from it."""

    def __init__(self, at: int, *, is_delivered: bool) -> None:
        self.sent = 0
        self.has_happened = False
        self._at = at
        self._is_delivered = is_delivered
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, upstream: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection, message by message."""
        if self.has_happened:
            writer.transport.abort()
            return
        from_server, to_server = await asyncio.open_unix_connection(upstream)
        self._writers |= {writer, to_server}
        answers = asyncio.create_task(self._forward_answers(from_server, writer))
        try:
            await self._forward(reader, to_server)
        finally:
            to_server.close()
            await answers

    async def _forward(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            startup = await reader.readexactly(4)
            to_server.write(startup + await reader.readexactly(int.from_bytes(startup) - 4))
            while not self.has_happened:
                head = await reader.readexactly(_HEAD.size)
                message = head + await reader.readexactly(_HEAD.unpack(head)[1] - 4)
                self.sent += 1
                if self.sent < self._at or (self.sent == self._at and self._is_delivered):
                    to_server.write(message)
                    await to_server.drain()
                if self.sent >= self._at:
                    self._cut()

    def _cut(self) -> None:
        self.has_happened = True
        for writer in self._writers:
            writer.close()  # after what is to be delivered

    @staticmethod
    async def _forward_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()


@asynccontextmanager
async def cutting(url: str, cut: Cut) -> AsyncIterator[str]:
    """Lend a URL whose connections are cut."""
    found = re.search(r"host=([^&]+)&port=(\d+)", url)
    assert found is not None
    socket = f".s.PGSQL.{found[2]}"
    upstream = Path(unquote(found[1])) / socket
    serving: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(cut.serve(upstream, reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)
        task.add_done_callback(lambda _: writer.close())

    with TemporaryDirectory() as folder:
        listener = await asyncio.start_unix_server(serve, Path(folder) / socket)
        try:
            yield url.replace(found[1], folder)
        finally:
            listener.close()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
