"""Answers that a client has not read yet, in memory or, if they are many, in temporary files."""

import asyncio
from collections import deque
from tempfile import SpooledTemporaryFile
from typing import Self

_MAX_UNREAD = 1024**3  # bytes of answers that a client may leave unread while it still sends
MAX_FILE = 256 * 1024**2  # bytes of a file, which is removed once it has been read
_IN_MEMORY = 1024**2  # bytes of answers that are not in a file
_PIECE = 64 * 1024  # bytes that are taken at once


class Outbox:
    """A queue of bytes. It takes as much of the disk as is unread, and one file more at most."""

    def __init__(self) -> None:
        self._parts = deque([_Part()])
        self._unread = 0
        self._has_more, self._has_room = asyncio.Event(), asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.close()

    def put(self, answers: bytes) -> None:
        """Add answers."""
        if self._parts[-1].size >= MAX_FILE:
            self._parts.append(_Part())
        self._parts[-1].write(answers)
        self._unread += len(answers)
        self._has_more.set()

    async def room(self) -> None:
        """Wait until there is room."""
        while self._unread > _MAX_UNREAD:
            self._has_room.clear()
            await self._has_room.wait()

    async def take(self, filling: "asyncio.Task[None]") -> bytes:
        """Return the next piece; none once the task that fills this has ended. Raises what ended it."""
        while not self._unread:
            if filling.done():
                filling.result()
                return b""
            has_more = asyncio.create_task(self._has_more.wait())
            await asyncio.wait({filling, has_more}, return_when=asyncio.FIRST_COMPLETED)
            has_more.cancel()
            self._has_more.clear()
        piece = self._parts[0].read()
        self._unread -= len(piece)
        self._has_room.set()
        if self._parts[0].is_read:
            if len(self._parts) > 1:
                self._parts.popleft().close()
            else:
                self._parts[0].clear()
        return piece


class _Part:
    """A file that is written at its end and read from its beginning."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # closed by `close`
        self.size = self._read = 0

    @property
    def is_read(self) -> bool:
        """Whether all of it has been read."""
        return self._read == self.size

    def write(self, answers: bytes) -> None:
        """Add answers."""
        self._file.seek(self.size)
        self._file.write(answers)
        self.size += len(answers)

    def read(self) -> bytes:
        """Return the next piece."""
        self._file.seek(self._read)
        piece = self._file.read(_PIECE)
        self._read += len(piece)
        return piece

    def clear(self) -> None:
        """Begin again with an empty file."""
        self.size = self._read = 0
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Remove it."""
        self._file.close()
